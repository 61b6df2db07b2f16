"""
Compare the predictions of identified parameters with a recording.

Predict the torques of a recording with identified parameters and compare them. Without a part, the
validation phase of a session is used, else the whole recording. The command also writes a page
that compares the robot description, identified.urdf and the base parameters. The exit code is 4 if
the residual of a joint exceeds half of its effort.

  robotid validate recordings/tx40_other --parameters tx40_identified
  robotid validate arm.mcap --parameters parameters.yaml --from 30
"""

import argparse
from dataclasses import replace
from pathlib import Path

from ..exceptions import ConfigurationError
from . import shared_options as shared
from .terminal import print_findings, print_written


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('bag', help=shared.LOG)
    text = 'parameters.yaml or its folder'
    shared.option(parser, '--parameters FILE', text, required=True)
    shared.add_robot_options(parser, 'the parameters', 'predict these')
    text = 'exit code 1 if the residual of a joint is larger'
    shared.option(parser, '--max-residual PERCENT', text, type=shared.above_zero)
    text = 'default: validation_<BAG>.html beside the parameters'
    shared.add_output_option(parser, text, replaces='an existing page')
    shared.add_part_options(parser)
    shared.add_log_options(parser)


def run(args: argparse.Namespace) -> shared.Outcome:
    """Predict, and write the page."""
    from ..core.findings import finding
    from ..files.atomic import beside_recording
    from ..files.collect_results import check_parameters
    from ..files.identification_input import open_input
    from ..files.results import read_results, results_folder, total_residual, URDF, verdict_of
    from ..files.robot_description import other_robot_warning
    from ..files.verdict_text import verdict_data
    from .results_text import print_joints, print_verdict

    page = f'validation_{beside_recording(args.bag, "").name}.html'
    output = Path(args.output or results_folder(args.parameters) / page)
    shared.expect_new([output], args.force)
    results = read_results(args.parameters)
    if args.joints and set(args.joints) != set(results.joints):
        raise ConfigurationError(
            f'the parameters are of {", ".join(results.joints)}, which share links: leave out '
            '--joints'
        )
    args.progress.step('reading')
    identified = results_folder(args.parameters) / URDF
    known = identified.read_text() if identified.exists() else None
    session = open_input(
        [args.bag],
        args.config or results.settings,
        shared.description(args),
        options=replace(shared.read_options(args), joints=args.joints or results.joints),
        fallback=known or '',
        progress=args.progress.share,
    )
    chosen = shared.part_to_predict(session.recording, args)
    args.progress.step('predicting')
    verdict = verdict_of(results)
    marked = [] if verdict.usable else [finding('marked_unusable', reason=verdict.reason)]
    others = other_robot_warning(known, session.recording.urdf)
    notes = (*marked, *session.robot.warnings, *others)
    found = check_parameters(results, chosen, session, args.command_line, notes)
    args.progress.step('writing the page')
    written = shared.page_written('validation', output, found, force=args.force)
    rows = found.validation
    worst = max(rows, key=lambda row: row.relative)
    passed = args.max_residual is None or 100 * worst.relative <= args.max_residual

    def show() -> None:
        print_joints(found, every=True)
        print_findings(found.findings)
        print_verdict(found, args.parameters, brief=True)
        print_written(written)

    data = {'residuals': rows, 'total': total_residual(rows)}
    data |= {'findings': found.findings, 'verdict': verdict_data(found), **written}
    data['passed'] = passed
    if passed:
        return shared.judged(data, show, found)
    error = (
        f'{worst.joint} misses the bound: {100 * worst.relative:.2f} % of its torque is not '
        f'predicted, {args.max_residual:g} % are allowed'
    )
    return shared.Outcome(data, show, [error], shared.EXIT_ERROR)
