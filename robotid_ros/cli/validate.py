"""`robotid validate BAG --parameters FILE`: how well parameters predict another recording."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..exceptions import MissingPackageError
from .shared_options import (
    add_force_option,
    add_log_options,
    add_output_options,
    add_part_options,
    add_robot_options,
    description,
    expect_new,
    judged,
    LOG,
    read_options,
    selected_part,
)
from .terminal import print_error, print_json, print_paragraph, ProgressBar
from .terminal.results_text import print_findings, print_verdict, rows_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..files.comparison import CheckedParameters
    from ..files.results import Results

HELP = 'compare what identified parameters predict with a recording'
DESCRIPTION = (
    'Predict the torques of a recording by identified parameters and compare. '
    "Without a part, a session's validation phase is used, else all of it. Writes a page that "
    'sets the robot description, identified.urdf and the base parameters side by side. The exit '
    'code is 4 where the parameters do not predict it: more than half of the effort of a joint.'
)
EXAMPLES = """\
examples:
  robotid validate recordings/tx40_other --parameters tx40_identified
  robotid validate arm.mcap --parameters parameters.yaml --from 30
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('bag', help=LOG)
    parser.add_argument(
        '--parameters', required=True, metavar='FILE', help='parameters.yaml or its folder'
    )
    add_robot_options(parser, 'the parameters', 'predict these')
    parser.add_argument(
        '--max-residual',
        type=float,
        metavar='PERCENT',
        help='fail when a joint is worse than this',
    )
    parser.add_argument(
        '-o',
        '--output',
        metavar='FILE',
        help='default: validation_<BAG>.html beside the parameters',
    )
    add_force_option(parser, 'an existing page')
    add_part_options(parser)
    add_log_options(parser)
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Predict, print the residuals, write the page."""
    from ..files.report.page import write_validation
    from ..files.results import total_residual
    from ..files.results_file import read_results
    from ..files.verdict_text import verdict_data

    output = _output(args)
    expect_new(output, args.force)
    with ProgressBar(3) as progress:
        checked = _predict(args, read_results(args.parameters), progress)
        progress.step('writing the page')
        try:
            path = write_validation(checked, output, overwrite=args.force)
            written, label = str(path), 'written'
        except MissingPackageError as error:
            written, label = str(error), 'warning'
    found = checked.checked
    rows, warnings = found.validation, found.warnings
    worst = max(rows, key=lambda row: row.relative)
    passed = args.max_residual is None or 100 * worst.relative <= args.max_residual
    if args.json:
        print_json(
            {
                'residuals': rows,
                'total': total_residual(rows),
                'explanation': checked.explanation(),
                'warnings': warnings,
                'verdict': verdict_data(found),
                label: written,
                'passed': passed,
            }
        )
    else:
        _print(found, checked.explanation(), (written, label))
    if not passed:
        print_error(
            f'robotid: {worst.joint} misses the bound: {100 * worst.relative:.2f} % of its torque '
            f'is not predicted, {args.max_residual:g} % are allowed'
        )
        return 1
    return judged(found)


def _output(args: argparse.Namespace) -> Path:
    """Return where the page goes: beside the parameters, named after the log."""
    if args.output:
        return Path(args.output)
    from ..files.results_file import results_folder

    log = Path(args.bag).absolute()
    name = log.stem if log.is_file() else log.name
    return results_folder(args.parameters) / f'validation_{name}.html'


def _print(results: 'Results', explanation: 'Sequence[str]', written: tuple[str, str]) -> None:
    print(f'{rows_table(results.validation, "residual [%]")}\n')
    for text in explanation:
        print_paragraph(text)
    print_findings(results)
    print_paragraph(*written)
    print_verdict(results)


def _predict(
    args: argparse.Namespace, results: 'Results', progress: ProgressBar
) -> 'CheckedParameters':
    """Predict the torques of the chosen part of the recording by every set of parameters."""
    from ..files.identification_input import open_input, split
    from ..files.results import URDF
    from ..files.results_file import results_folder

    progress.step('reading')
    identified = results_folder(args.parameters) / URDF
    known = identified.read_text() if identified.exists() else None
    session = open_input(
        [args.bag],
        args.config or results.settings,
        description(args),
        options=replace(read_options(args), joints=args.joints or results.joints),
        fallback=known or '',
        progress=progress.share,
    )
    part = selected_part(args)
    chosen, other = split(session.recording, part)
    if part is None and other is not None:
        chosen = other
    progress.step('predicting')
    from ..files.check_parameters import check_parameters
    from ..files.robot_description import other_robot_warning
    from ..files.verdict_text import unusable_note

    checked = check_parameters(results, chosen, session, args.command_line)
    marked = unusable_note(results)
    notes = (
        *([marked] if marked else []),
        *session.robot.warnings,
        *other_robot_warning(known, session.recording.urdf),
    )
    return checked.with_warnings(notes)
