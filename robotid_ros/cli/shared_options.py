"""Options that several verbs share: the robot, parts of a recording."""

import argparse
from collections.abc import Sequence
import math
from pathlib import Path
from typing import TYPE_CHECKING

from ..exceptions import ConfigurationError

if TYPE_CHECKING:
    from ..files.formats.read_options import ReadOptions
    from ..files.identification_input import Input, Part
    from ..files.results import Results
    from .terminal import ProgressBar

# start, stop, whether they are fractions: the parser must not import what the work needs.
PartBounds = tuple[float, float, bool]
EFFORT_KINDS = ('auto', 'joint_torque', 'without_gravity')
# Of a command that judges: it did its work, and the result is marked unusable.
EXIT_UNUSABLE = 4
LOG = (
    'rosbag2 folder, .mcap or .db3 file; .bag of ROS 1; .csv, .xlsx, .json, .npz, .mat, .h5, '
    '.parquet'
)
COLUMNS_EXAMPLE = 'time=t position=q{i} effort=tau{i}'
UNITS_EXAMPLE = 'time=ms position=deg effort=A*0.12'


def add_robot_options(
    parser: argparse.ArgumentParser, where: str = 'the recording', verb: str = 'identify these'
) -> None:
    """Add `--config`, `--urdf`, `--joints` and `--effort-kind`."""
    default = f'default: the one in {where}'
    parser.add_argument('-c', '--config', metavar='FILE', help=default)
    parser.add_argument('--urdf', metavar='FILE', help='robot description; likewise')
    add_joints_option(parser, f"{verb}; default: the configuration's, else all that move")
    parser.add_argument(
        '--effort-kind',
        choices=EFFORT_KINDS,
        help='what the efforts are: joint_torque with all that the joint bears, without_gravity '
        "where the driver compensates it, auto: the data tell; default: the configuration's "
        'robot.effort_kind',
    )


def add_joints_option(parser: argparse.ArgumentParser, text: str) -> None:
    """Add `--joints`, which `text` explains."""
    parser.add_argument('--joints', type=parse_names, metavar='A,B,…', default=(), help=text)


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Add `--columns`, `--units`, `--rate` and `--effort-topic`."""
    group = parser.add_argument_group('logs that do not say it themselves')
    group.add_argument(
        '--columns',
        metavar='PATTERNS',
        default='',
        help=f"of a table: '{COLUMNS_EXAMPLE}', '{{joint}}_pos', 'x[0:6]', 'first..last', 'a,b'; "
        'default: found by their names, without names by their values; efforts that derive from '
        'the motion are refused',
    )
    group.add_argument(
        '--units',
        metavar='UNITS',
        default='',
        help=f"of a table: '{UNITS_EXAMPLE}', one per joint between commas; default: SI, or what "
        'names and values say',
    )
    group.add_argument('--rate', type=float, default=0.0, metavar='HZ', help='where no stamps are')
    group.add_argument(
        '--effort-topic',
        metavar='TOPIC[:FIELD]',
        default='',
        help="of a bag: efforts on a topic of their own: '/dynamic_joint_states:torque', "
        "'/currents:data[0:6]'",
    )


def add_output_options(parser: argparse.ArgumentParser, tables: str = '') -> None:
    """Add `--json`, and `--all` where a verb has long tables, which `tables` names."""
    if tables:
        parser.add_argument('--all', action='store_true', help=f'show {tables}')
    parser.add_argument(
        '--json', action='store_true', help='print what was found as JSON, and nothing else'
    )


def add_urdf_option(parser: argparse.ArgumentParser) -> None:
    """Add `--urdf` where no robot is built; `read_options` takes the columns' joints from it."""
    parser.add_argument('--urdf', metavar='FILE', help='names, order and limits of the joints')


def read_options(args: argparse.Namespace, *, described: bool = False) -> 'ReadOptions':
    """
    Return what the user says of a log, with the robot description of `add_urdf_option` if asked.

    Raises
    ------
    ConfigurationError : patterns or units of another form

    """
    from ..files.formats.read_options import parse_assignments, ReadOptions

    return ReadOptions(
        urdf=(description(args) if described else None) or '',
        joints=getattr(args, 'joints', ()),
        columns=parse_assignments(args.columns, f"--columns '{COLUMNS_EXAMPLE}'"),
        units=parse_assignments(args.units, f"--units '{UNITS_EXAMPLE}'"),
        rate=args.rate,
        effort_topic=args.effort_topic,
        effort_kind=getattr(args, 'effort_kind', None),
    )


def open_logs(args: argparse.Namespace, bags: Sequence[str], progress: 'ProgressBar') -> 'Input':
    """Open recordings of one robot as the options say."""
    from ..files.identification_input import open_input

    given = read_options(args)
    return open_input(bags, args.config, description(args), options=given, progress=progress.share)


def description(args: argparse.Namespace) -> str | None:
    """Return the text of the robot description that `--urdf` names, None without."""
    from ..files.robot_description import read_description

    return read_description(args.urdf) if args.urdf else None


def judged(results: 'Results', *, quiet: bool = False) -> int:
    """Return the exit code of results, with a sentence on standard error for unusable ones."""
    from ..files.results import verdict_of
    from ..files.verdict_text import unusable_note
    from .terminal import print_error

    if verdict_of(results).usable:
        return 0
    if not quiet:
        print_error(f'robotid: {unusable_note(results)}')
    return EXIT_UNUSABLE


def default_output(bag: str, suffix: str) -> Path:
    """Path beside a recording, here for a URL: its name without an ending, and a suffix."""
    if '://' in bag:
        return Path(f'{Path(bag.split("?")[0]).stem}_{suffix}').absolute()
    path = Path(bag).absolute()
    return path.with_name(f'{path.stem if path.is_file() else path.name}_{suffix}')


def add_force_option(parser: argparse.ArgumentParser, what: str) -> None:
    """Let the user replace what is there: `expect_new`, `expect_no_results`."""
    parser.add_argument('--force', action='store_true', help=f'replace {what}')


def expect_no_results(folder: Path, force: bool) -> None:
    """
    Check that results can be written to a folder, and replace none unless asked to.

    Raises
    ------
    FileError : it holds results, and not to be replaced; or it cannot be written

    """
    from ..exceptions import FileError
    from ..files.atomic import expect_writable
    from ..files.results_file import RESULT_FILES

    expect_writable(folder)
    there = [name for name in RESULT_FILES if (folder / name).exists()]
    if there and not force:
        raise FileError(
            f"'{folder}' holds {there[0]} already: name another folder by -o, or add --force"
        )


def expect_new(path: Path, force: bool) -> None:
    """
    Check that a file can be written, and replaces nothing that somebody may miss.

    Raises
    ------
    FileError : it is there, and not to be replaced; or its folder cannot be written

    """
    from ..exceptions import FileError
    from ..files.atomic import expect_writable

    if path.exists() and not force:
        raise FileError(f"'{path}' exists already: name another file or add --force")
    expect_writable(path.parent)


def parse_names(text: str) -> tuple[str, ...]:
    """Read names between commas."""
    names = tuple(name.strip() for name in text.split(','))
    if not all(names) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"'{text}' is no list of names: write joint_1,joint_2")
    return names


def add_part_options(parser: argparse.ArgumentParser) -> None:
    """Add `--part`, `--from` and `--to`."""
    parser.add_argument(
        '--part',
        type=parse_part,
        metavar='START:STOP',
        help='use this part: fractions (0:0.5) or seconds (0s:3.65s)',
    )
    parser.add_argument('--from', dest='start', type=float, metavar='S', help='use from here [s]')
    parser.add_argument('--to', dest='stop', type=float, metavar='S', help='use up to here [s]')


def parse_part(text: str) -> PartBounds:
    """Read 'START:STOP': fractions of the recording, or seconds when one ends in 's'."""
    ends = text.split(':')
    fraction = not any(end.endswith('s') for end in ends)
    try:
        start, stop = (end.removesuffix('s') for end in ends)
        low = float(start or 0.0)
        high = float(stop or (1.0 if fraction else math.inf))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no part: write 0:0.5 for the first half, 2s:8.5s for seconds"
        ) from None
    if not 0.0 <= low < high or (fraction and high > 1.0):
        raise argparse.ArgumentTypeError(
            f"'{text}' is no part: the start comes first, and fractions end at 1 (seconds: 2s:8s)"
        )
    return low, high, fraction


def selected_part(args: argparse.Namespace) -> 'Part | None':
    """
    Return the part that was asked for, None for all.

    Raises
    ------
    ConfigurationError : options that contradict each other

    """
    if args.start is None and args.stop is None:
        return make_part(args.part)
    start = 0.0 if args.start is None else args.start
    stop = math.inf if args.stop is None else args.stop
    if args.part is not None or not 0.0 <= start < stop:
        raise ConfigurationError('give either --part, or --from and --to with the start first')
    return make_part((start, stop, False))


def make_part(values: PartBounds | None) -> 'Part | None':
    """Turn what the parser read into a part."""
    from ..files.identification_input import Part

    return None if values is None else Part(*values)
