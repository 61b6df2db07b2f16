"""What verbs share: their outcome with its exit code, and options: robot, log, part, output."""

import argparse
from collections.abc import Callable, Iterable, Sequence
import contextlib
import dataclasses
import math
from pathlib import Path
from typing import Any, cast, TYPE_CHECKING

from ..exceptions import ConfigurationError, FileError, RecordingError

if TYPE_CHECKING:
    from ..core.signals.recording import Recording
    from ..files.formats.read_options import ReadOptions
    from ..files.identification_input import AnyRecording, LogPart
    from ..files.results import Results

EFFORT_KINDS = ('auto', 'joint_torque', 'without_gravity')
# Exit codes. POOR and UNUSABLE: a command did its work, and says that its result is of no use.
EXIT_ERROR, EXIT_USAGE, EXIT_POOR, EXIT_UNUSABLE, EXIT_INTERRUPTED = 1, 2, 3, 4, 130
LOG = 'rosbag2 folder, .mcap or .db3 file; .bag of ROS 1; .csv, .npz, .mat, .h5, .parquet'
# Options of several verbs: usage and text.
ALL = '--all', 'show all parameters, figures and findings, however many there are'
CALIBRATION = '--calibration FILE', 'calibration of a LeRobot data set with normalised positions'
COLUMNS_EXAMPLE = 'time=t position=q{i} effort=tau{i}'
UNITS_EXAMPLE = 'time=ms position=deg effort=A*0.12'


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a verb has done: `main` prints one of its two forms, then the errors."""

    data: Any  # for `--json`
    show: Callable[[], object]  # prints it for people
    errors: Sequence[str] = ()  # sentences for standard error
    code: int = 0  # exit code


def option(
    parser: argparse._ActionsContainer, usage: str, text: str, **more: Any
) -> argparse.Action:
    """Add an option by its usage, `--seed N` or `-c, --config FILE`; `--all` is true or false."""
    *names, last = usage.split(', ')
    name, _, metavar = last.partition(' ')
    if metavar:
        more['metavar'] = metavar
    elif 'choices' not in more:
        more['action'] = 'store_true'
    return parser.add_argument(*names, name, help=text, **more)


def add_robot_options(
    parser: argparse.ArgumentParser, where: str = 'the recording', verb: str = 'identify these'
) -> None:
    """Add `--config`, `--urdf`, `--joints` and `--effort-kind`."""
    option(parser, '-c, --config FILE', f'configuration of the robot; default: from {where}')
    option(parser, '--urdf FILE', f'robot description; default: from {where}')
    text = f"{verb}; default: the configuration's, else all moving joints"
    option(parser, '--joints A,B,…', text, type=parse_names, default=())
    text = (
        'kind of the efforts: joint_torque with gravity and friction, without_gravity if the '
        'driver compensates gravity, auto to decide by the data; default: robot.effort_kind of '
        'the configuration'
    )
    option(parser, '--effort-kind', text, choices=EFFORT_KINDS)


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Add `--columns`, `--units`, `--rate` and `--effort-topic`."""
    group = parser.add_argument_group('columns, units and times of a log')
    text = (
        f"of a table: '{COLUMNS_EXAMPLE}', '{{joint}}_pos', 'x[0:6]', 'first..last', 'a,b'; "
        'default: by their names; efforts that are computed from the motion are refused'
    )
    option(group, '--columns PATTERNS', text, default='')
    text = f"of a table: '{UNITS_EXAMPLE}', also one per joint, between commas; "
    text += 'default: SI, unless names or values show another unit'
    option(group, '--units UNITS', text, default='')
    text = 'of a bag: separate topic of the efforts: '
    text += "'/dynamic_joint_states:torque', '/currents:data[0:6]'"
    option(group, '--effort-topic TOPIC[:FIELD]', text, default='')
    option(group, '--rate HZ', 'of a log without stamps', type=above_zero, default=0.0)


def add_output_option(
    parser: argparse.ArgumentParser,
    text: str,
    metavar: str = 'FILE',
    default: str | None = None,
    replaces: str = '',
) -> None:
    """Add `--output`, and `--force` where a verb does not replace files unasked: `expect_new`."""
    option(parser, f'-o, --output {metavar}', text, default=default)
    if replaces:
        option(parser, '--force', f'replace {replaces}')


def read_options(args: argparse.Namespace) -> 'ReadOptions':
    """Return what the user says of a log."""
    from ..files.formats.read_options import parse_assignments, ReadOptions

    return ReadOptions(
        joints=getattr(args, 'joints', ()),
        columns=parse_assignments(args.columns, f"--columns '{COLUMNS_EXAMPLE}'"),
        units=parse_assignments(args.units, f"--units '{UNITS_EXAMPLE}'"),
        rate=args.rate,
        effort_topic=args.effort_topic,
        effort_kind=getattr(args, 'effort_kind', None),
    )


def read_command_options(args: argparse.Namespace) -> 'ReadOptions':
    """Return what the user says of a log of commands."""
    from ..files.formats.table import read_calibration
    from ..files.formats.units import canonical

    options = dataclasses.replace(read_options(args), commands=True)
    if not args.calibration:
        return options
    degrees = canonical(dict(options.units).get('position', '')) == 'deg'
    return dataclasses.replace(options, calibration=read_calibration(args.calibration, degrees))


def description(args: argparse.Namespace) -> str | None:
    """Return the text of the robot description that `--urdf` names, None without."""
    if not args.urdf:
        return None
    from ..files.robot_description import read_description

    return read_description(args.urdf)


def judged(data: Any, show: Callable[[], None], results: 'Results') -> Outcome:
    """Return the outcome of a verb whose results have a verdict."""
    from ..files.results import verdict_of
    from ..files.verdict_text import unusable_note

    usable = verdict_of(results).usable
    errors = () if usable else (unusable_note(results, brief=True),)
    return Outcome(data, show, errors, 0 if usable else EXIT_UNUSABLE)


def page_written(
    kind: str, path: str | Path, *subject: Any, force: bool, label: str = 'written'
) -> dict[str, str]:
    """Write a page: its path under a label; or why not, where what draws it is not installed."""
    from ..files.report.page import save_page_if_possible

    reason = save_page_if_possible(kind, path, *subject, overwrite=force)
    return {'warning': reason} if reason else {label: str(path)}


def expect_new(paths: Iterable[Path], force: bool) -> None:
    """Check, before the work, that files can be written, and replace none unless asked to."""
    from ..files.atomic import expect_writable

    for path in paths:
        if path.exists() and not force:
            raise FileError(f"'{path}' exists already: name another output by -o, or add --force")
        expect_writable(path.parent)


def parse_names(text: str) -> tuple[str, ...]:
    """Read names between commas."""
    names = tuple(name.strip() for name in text.split(','))
    if not all(names) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"'{text}' is no list of names: write joint_1,joint_2")
    return names


def add_part_options(parser: argparse.ArgumentParser) -> None:
    """Add `--part`, `--from` and `--to`."""
    text = 'use this part: fractions (0:0.5) or seconds (0s:3.65s)'
    option(parser, '--part START:STOP', text, type=parse_part)
    option(parser, '--from S', 'start of the part [s]', dest='start', type=float)
    option(parser, '--to S', 'end of the part [s]', dest='stop', type=float)


def parse_part(text: str) -> 'LogPart':
    """Read 'START:STOP': fractions of the recording, or seconds when one ends in 's'."""
    from ..files.identification_input import LogPart

    ends, low, high = text.split(':'), math.nan, math.nan
    fraction = not any(end.endswith('s') for end in ends)
    with contextlib.suppress(ValueError):
        start, stop = (end.removesuffix('s') for end in ends)
        low, high = float(start or 0.0), float(stop or (1.0 if fraction else math.inf))
    if not 0.0 <= low < high or (fraction and high > 1.0):
        raise argparse.ArgumentTypeError(
            f"'{text}' is no part: write 0:0.5 for the first half, 2s:8.5s for seconds"
        )
    return LogPart(low, high, fraction)


def selected_part(args: argparse.Namespace) -> 'LogPart | None':
    """Return the part that was asked for, None for all; ConfigurationError: options contradict."""
    from ..files.identification_input import LogPart

    start, stop, part = args.start, args.stop, args.part
    if start is None and stop is None:
        return cast('LogPart | None', part)
    start, stop = start or 0.0, math.inf if stop is None else stop
    if part is not None or not 0.0 <= start < stop:
        raise ConfigurationError('give either --part, or --from and --to with the start first')
    return LogPart(start, stop)


def part_to_predict(recording: 'AnyRecording', args: argparse.Namespace) -> 'AnyRecording':
    """Return the part that was asked for, else the validation phase of a session, else all."""
    from ..files.identification_input import split

    part = selected_part(args)
    chosen, other = split(recording, part)
    return other if part is None and other is not None else chosen


def in_memory(recording: 'AnyRecording') -> 'Recording':
    """Return a recording for what simulates it; RecordingError where it is too long."""
    from ..core.signals.recording import Recording

    if not isinstance(recording, Recording):
        raise RecordingError(
            f"'{recording.source}' is too long to be simulated: choose a part of it by --from and "
            '--to'
        )
    return recording


def above_zero(text: str) -> float:
    """Read a number above zero."""
    value = math.nan
    with contextlib.suppress(ValueError):
        value = float(text)
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' must be a number above zero")
    return value
