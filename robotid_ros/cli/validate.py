"""`robotid validate BAG --parameters FILE`: how well parameters predict another recording."""

import argparse
import math
from pathlib import Path
import sys
from typing import TYPE_CHECKING

from .shared_options import (
    add_log_options,
    add_part_options,
    add_robot_options,
    LOG,
    open_logs,
    selected_part,
)
from .terminal import format_number, format_table, ProgressBar

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
  robotid validate arm.mcap --parameters parameters.yaml -c config/arm.yaml --from 30
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('bag', help=LOG)
    parser.add_argument(
        '--parameters', required=True, metavar='FILE', help='parameters.yaml or its folder'
    )
    add_robot_options(parser, 'the parameters')
    parser.add_argument(
        '--max-residual',
        type=float,
        metavar='PERCENT',
        help='fail when a joint is worse than this',
    )
    add_part_options(parser)
    add_log_options(parser)


def run(args: argparse.Namespace) -> int:
    """Predict and print the residuals."""
    from ..files.results_file import read_results

    with ProgressBar(2) as progress:
        rows, warnings = _predict(args, read_results(args.parameters), progress)
    print(_table(rows))
    for text in warnings:
        print(f'\nwarning: {text}')
    worst = max(rows, key=lambda row: row.relative)
    if args.max_residual is None or 100 * worst.relative <= args.max_residual:
        return 0
    print(
        f'robotid: {worst.joint} misses the bound: {100 * worst.relative:.2f} % of its torque is '
        f'not predicted, {args.max_residual:g} % are allowed',
        file=sys.stderr,
    )
    return 1


def _table(rows: 'Sequence[Residual]') -> str:
    """Lay out the residuals of each joint and of all together."""
    from ..files.results import total_residual

    lines: list[tuple[str, ...]] = [
        (
            *(r.joint, f'{100 * r.relative:.2f}', f'{100 * r.moving:.2f}', f'{r.r2:.4f}'),
            *(format_number(r.rms, 3), format_number(r.torque, 3), r.unit),
        )
        for r in rows
    ]
    total = total_residual(rows)
    if len(rows) > 1 and not math.isnan(total):
        lines.append(('all', f'{100 * total:.2f}', *[''] * 5))
    head = ('joint', 'residual [%]', 'moving', 'R²', 'RMS', 'torque RMS', 'unit')
    return format_table(head, lines, '<>>>>><')


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
