"""`robotid validate BAG --parameters FILE`: how well parameters predict another recording."""

import argparse
from pathlib import Path
import sys
from typing import TYPE_CHECKING

from .shared_options import add_part_options, add_robot_options, open_with_options, selected_part
from .terminal import HelpFormatter, number, Progress, table

if TYPE_CHECKING:
    import numpy as np

    from ..core.model import Robot
    from ..files.results import Results

EXAMPLES = """\
examples:
  robotid validate recordings/tx40_other --parameters tx40_identified
  robotid validate arm.mcap --parameters parameters.yaml -c config/arm.yaml --from 30
"""


def register(
    subparsers: 'argparse._SubParsersAction[argparse.ArgumentParser]',
) -> argparse.ArgumentParser:
    """Describe the arguments."""
    parser = subparsers.add_parser(
        'validate',
        help='compare what identified parameters predict with a recording',
        description='Predict the torques of a recording by identified parameters and compare. '
        "Without a part, a session's validation phase is used, else all of it.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument('bag', help='rosbag2 folder, .mcap or .db3 file')
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
    return parser


def run(args: argparse.Namespace) -> int:
    """Predict and print the residuals."""
    from ..files.identification_input import split
    from ..files.results import read_results, URDF

    results = read_results(args.parameters)
    path = Path(args.parameters)
    identified = (path if path.is_dir() else path.parent) / URDF
    with Progress(2) as progress:
        progress.step('reading')
        urdf = identified.read_text() if identified.exists() else None
        session = open_with_options(
            args, args.bag, progress, urdf, results.joints, results.settings
        )
        part = selected_part(args)
        chosen, other = split(session.recording, part)
        if part is None and other is not None:
            chosen = other
        progress.step('predicting')
        from ..core.pipeline.validation import validate
        from ..files.save_results import residual_rows

        settings = session.configuration.identification
        robot = session.robot.elastic or session.robot
        validation = validate(chosen, robot, _standard_parameters(results, robot), settings)
    rows = residual_rows(robot, validation)
    lines = [
        (
            *(r.joint, f'{100 * r.relative:.2f}', f'{100 * r.moving:.2f}', f'{r.r2:.4f}'),
            *(number(r.rms, 3), number(r.torque, 3), r.unit),
        )
        for r in rows
    ]
    head = ('joint', 'residual [%]', 'moving', 'R²', 'RMS', 'torque RMS', 'unit')
    print(table(head, lines, '<>>>>><'))
    worst = max(rows, key=lambda row: row.relative)
    if args.max_residual is None or 100 * worst.relative <= args.max_residual:
        return 0
    print(
        f'robotid: {worst.joint} misses the bound: {100 * worst.relative:.2f} % of its torque is '
        f'not predicted, {args.max_residual:g} % are allowed',
        file=sys.stderr,
    )
    return 1


def _standard_parameters(results: 'Results', robot: 'Robot') -> 'np.ndarray':
    """Place the identified values on the robot's standard parameters, (p,)."""
    import numpy as np

    chi = np.zeros(robot.p)
    for name, value in results.minimal_parameters.items():
        chi[robot.column(name)] = value
    return chi
