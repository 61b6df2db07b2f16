"""`robotid demo [ROBOT]`: a whole session on the simulated robot, over services and topics."""

import argparse
from pathlib import Path
import sys
from typing import TYPE_CHECKING

from ..exceptions import ConfigurationError, RobotIdError

if TYPE_CHECKING:
    from ..files.results import Results

# Longest session [s]: several times what one takes on a machine with other work.
TIME_LIMIT = 900.0

HELP = 'run a whole session on the simulated robot'
DESCRIPTION = (
    'Start a simulated robot and identify it: four nodes, driven by services and '
    'topics as a real robot would be. Ends with the residuals on the validation trajectory, '
    'the identified parameters beside the true ones, and what they are worth on the robot: '
    'tracking errors with and without feed-forward, and with the proposed gains.'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        'robot', nargs='?', default='tx40', help='a robot of config/, or a configuration file'
    )
    parser.add_argument(
        '-o', '--output', metavar='DIR', default='demo', help='folder of the recording and results'
    )
    parser.add_argument(
        '--verbose', action='store_true', help='show what the nodes log, not only their warnings'
    )


def run(args: argparse.Namespace) -> int:
    """Run the session, print the tables; success only if the robot was found again."""
    config = find_config(args.robot)
    expect_ros('the demo')
    from ..nodes.demo.demo import Demo, VERIFICATIONS
    from .terminal import ProgressBar

    log_level = 'info' if args.verbose else 'warn'
    session = Demo(config, Path(args.output), log_level, VERIFICATIONS)
    with ProgressBar(1) as progress, session as demo:
        results = demo.run(progress.show, TIME_LIMIT)
    return report(results, demo.folder)


def expect_ros(what: str) -> None:
    """
    Check that ROS 2 can be imported.

    Raises
    ------
    RobotIdError : it cannot; `what` needs it

    """
    try:
        import rclpy  # noqa: F401
    except ImportError as error:
        raise RobotIdError(
            f'{what} needs ROS 2 ({error}): source its setup.bash, or run make demo'
        ) from error


def find_config(name: str) -> Path:
    """
    Find a robot's configuration by name or path.

    Raises
    ------
    ConfigurationError : there is none; lists those of the package

    """
    if name.endswith('.yaml'):
        path = Path(name)
        if not path.is_file():
            raise ConfigurationError(f"'{name}' does not exist: give a configuration file")
        return path.absolute()
    from ..files.configuration import resolve

    folder = resolve('package://robotid_ros/config')
    path = folder / f'{name}.yaml'
    if not path.is_file():
        known = ', '.join(sorted(p.stem for p in folder.glob('*.yaml')))
        raise ConfigurationError(
            f"there is no robot '{name}': use one of {known}, or a .yaml file"
        )
    return path


def report(results: 'Results', folder: Path) -> int:
    """Print residuals and parameters; return the exit code."""
    from ..nodes.demo.verdict import MAX_RESIDUAL, MIN_SHARE_WITHIN, verdict_of
    from .identify import base_table, residual_table

    print(base_table(results))
    print()
    print(residual_table(results))
    print_verification(results)
    verdict = verdict_of(results)
    print(f'\n{verdict}')
    print(f'written to {folder}')
    if verdict.passed:
        return 0
    print(
        f'robotid: the robot was not found again: at least {MIN_SHARE_WITHIN:.0%} within ±3σ and '
        f'at most {MAX_RESIDUAL:.0%} residual are asked for',
        file=sys.stderr,
    )
    return 1


def print_verification(results: 'Results') -> None:
    """Print tracking errors without and with what was identified; nothing where there are none."""
    from .terminal import format_number, format_table

    found = results.verification
    if found is None:
        return
    gains = found.gains.tracking if found.gains is not None else ()
    for name, rows in (('feed-forward', found.tracking), ('proposed gains', gains)):
        if not rows:
            continue
        cells = [
            (
                row.joint,
                *(format_number(1e3 * value, 3) for value in (row.rms_before, row.rms_after)),
                f'{row.ratio:.1f}',
                f'm{row.unit}',
            )
            for row in rows
        ]
        head = ('tracking error, RMS', 'before', f'with {name}', 'times smaller', 'unit')
        print()
        print(format_table(head, cells, '<>>><'))
    for text in filter(None, (found.reason, found.gains and found.gains.sentence)):
        print(f'\n{text}')
