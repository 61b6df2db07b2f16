"""`robotid validate BAG --parameters FILE`: how well parameters predict another recording."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .shared_options import (
    add_log_options,
    add_output_options,
    add_part_options,
    add_robot_options,
    LOG,
    open_logs,
    selected_part,
)
from .terminal import print_error, print_json, print_paragraph, ProgressBar
from .terminal.results_text import GOOD_RESIDUAL, rows_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from ..core.model import Robot
    from ..files.results import Residual, Results

HELP = 'compare what identified parameters predict with a recording'
DESCRIPTION = (
    'Predict the torques of a recording by identified parameters and compare. '
    "Without a part, a session's validation phase is used, else all of it."
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
    add_part_options(parser)
    add_log_options(parser)
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Predict and print the residuals."""
    from ..files.results import total_residual
    from ..files.results_file import read_results

    with ProgressBar(2) as progress:
        rows, warnings = _predict(args, read_results(args.parameters), progress)
    worst = max(rows, key=lambda row: row.relative)
    passed = args.max_residual is None or 100 * worst.relative <= args.max_residual
    if args.json:
        total = total_residual(rows)
        print_json({'residuals': rows, 'total': total, 'warnings': warnings, 'passed': passed})
    else:
        _print(rows, warnings)
    if not passed:
        print_error(
            f'robotid: {worst.joint} misses the bound: {100 * worst.relative:.2f} % of its torque '
            f'is not predicted, {args.max_residual:g} % are allowed'
        )
    return int(not passed)


def _print(rows: 'Sequence[Residual]', warnings: 'Sequence[str]') -> None:
    print(f'{rows_table(rows, "residual [%]")}\n')
    for text in warnings:
        print_paragraph(text, 'warning')
    worst = max(rows, key=lambda row: row.reported)
    good = worst.reported <= GOOD_RESIDUAL and not warnings
    print_paragraph(
        f'Of the effort of a joint at most {100 * worst.reported:.2f} % ({worst.joint}) is not '
        'predicted.',
        style='good' if good else 'doubtful',
    )


def _predict(
    args: argparse.Namespace, results: 'Results', progress: ProgressBar
) -> 'tuple[Sequence[Residual], list[str]]':
    """Predict the torques of the chosen part of the recording; return residuals and warnings."""
    from ..files.identification_input import split
    from ..files.results import URDF

    progress.step('reading')
    path = Path(args.parameters)
    identified = (path if path.is_dir() else path.parent) / URDF
    known = identified.read_text() if identified.exists() else None
    joints = args.joints or results.joints
    session = open_logs(
        args, [args.bag], progress, urdf=known, joints=joints, settings=results.settings
    )
    part = selected_part(args)
    chosen, other = split(session.recording, part)
    if part is None and other is not None:
        chosen = other
    progress.step('predicting')
    from ..core.diagnostics.prediction import prediction_warnings
    from ..core.pipeline.validation import validate
    from ..files.collect_results import residual_rows
    from ..files.robot_description import other_robot_warning

    settings = session.configuration.identification
    robot = session.robot.elastic or session.robot
    validation = validate(chosen, robot, _standard_parameters(results, robot), settings)
    warnings = [*robot.warnings, *other_robot_warning(known, session.recording.urdf)]
    return residual_rows(robot, validation), warnings + prediction_warnings(validation)


def _standard_parameters(results: 'Results', robot: 'Robot') -> 'np.ndarray':
    """Place the identified values on the robot's standard parameters, (p,)."""
    import numpy as np

    chi = np.zeros(robot.p)
    for name, value in results.minimal_parameters.items():
        chi[robot.column(name)] = value
    return chi
