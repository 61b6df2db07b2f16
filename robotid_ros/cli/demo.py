"""`robotid demo [ROBOT]`: a whole session on the simulated robot, over services and topics."""

import argparse
from pathlib import Path
import sys
from typing import TYPE_CHECKING

from ..exceptions import ConfigurationError, RobotIdError

if TYPE_CHECKING:
    from ..files.results import Results

# Longest session [s]: several times what one takes on a machine with other work.
TIME_LIMIT = 600.0

HELP = 'run a whole session on the simulated robot'
DESCRIPTION = (
    'Start a simulated robot and identify it: four nodes, driven by services and '
    'topics as a real robot would be. Ends with the residuals on the validation trajectory '
    'and the identified parameters beside the true ones.'
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
    from ..nodes.demo.demo import Demo
    from .terminal import ProgressBar

    log_level = 'info' if args.verbose else 'warn'
    with ProgressBar(1) as progress, Demo(config, Path(args.output), log_level) as demo:
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
