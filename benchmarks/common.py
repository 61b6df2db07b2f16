"""What benchmarks share: where things are, robots as configured, command line and verdict."""

import argparse
from collections.abc import Sequence
import csv
from pathlib import Path
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robotid_ros.core.model import Robot
    from robotid_ros.files.configuration import Configuration

ROOT = Path(__file__).resolve().parent.parent
# Published logs of real robots; the README beside them names their origin.
DATASETS = ROOT.parent / 'shared' / 'datasets'


def configured(name: str | Path) -> 'tuple[Configuration, Robot]':
    """Return a robot of `config/`, or of any file, and its configuration."""
    # Who measures other processes must stay light itself.
    from robotid_ros.core.model import build_robot
    from robotid_ros.files.configuration import load, read_urdf

    path = name if isinstance(name, Path) else ROOT / 'config' / f'{name}.yaml'
    configuration = load(path)
    return configuration, build_robot(read_urdf(configuration) or '', configuration.robot)


def published(name: str) -> list[dict[str, str]]:
    """Read what a paper prints, from `studies/<name>_published.csv`."""
    with (ROOT / 'benchmarks' / 'studies' / f'{name}_published.csv').open() as stream:
        return list(csv.DictReader(line for line in stream if not line.startswith('#')))


def command_line(
    text: str, *, datasets: bool = False, check: bool = True
) -> argparse.ArgumentParser:
    """Start a parser from a module's docstring, with the options that many benchmarks have."""
    parser = argparse.ArgumentParser(description=text.strip().splitlines()[0])
    if datasets:
        parser.add_argument(
            'folder', nargs='?', type=Path, default=DATASETS, help='of the published logs'
        )
    if check:
        parser.add_argument('--check', action='store_true', help='fail where a bound is missed')
    return parser


def verdict(missed: Sequence[str], check: bool) -> int:
    """Print what misses its bound; return the exit code, 1 only if that was asked for."""
    lines = [f'missed: {text}' for text in missed] or ['every bound is kept']
    print('\n'.join(lines), file=sys.stderr if missed else sys.stdout)
    return int(check and bool(missed))
