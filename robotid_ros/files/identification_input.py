"""Input of an identification: configuration, robot, and the parts of a recording."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from ..core.model import build_robot, Robot, RobotSettings
from ..core.model.assumed_inertials import ASSUMED_MASS, lacks_inertials
from ..core.pipeline.several_logs import LogSet
from ..core.setup.joint_selection import select_joints
from ..core.signals.recording import Recording
from ..exceptions import ConfigurationError, RecordingError
from .bags import ChunkedRecording, open_recording
from .bags.read.chunked_recording import ProgressCallback
from .configuration import Configuration, from_mapping, load, read_mapping, read_urdf
from .formats.read_options import DEFAULTS, ReadOptions
from .log_comparison import check_descriptions, check_joints, check_positions, position_ranges
from .robot_description import read_description

EXCITING, VALIDATING = 'exciting', 'validating'
# A shorter part holds no motion to identify from: this finds mistyped bounds early [s].
MIN_DURATION = 0.5

AnyRecording = Recording | ChunkedRecording


@dataclass(frozen=True)
class Session:
    """
    A recording, or several of them, with the robot that they are of.

    `settings` is the configuration's mapping, `options` how the recording was read, `others` more
    recordings of the same robot.
    """

    configuration: Configuration
    robot: Robot
    recording: AnyRecording
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: ReadOptions = DEFAULTS
    others: tuple[AnyRecording, ...] = ()


@dataclass(frozen=True)
class Part:
    """A part of a recording, from its first sample: seconds, or fractions of its duration."""

    start: float
    stop: float
    fraction: bool = False

    def of(self, recording: AnyRecording) -> AnyRecording:
        """
        Cut this part out of a recording.

        Raises
        ------
        RecordingError : next to nothing is left

        """
        first, last = recording.time_range
        scale = last - first if self.fraction else 1.0
        start, stop = first + scale * self.start, first + scale * self.stop
        # The last sample belongs to a part that ends where the recording ends.
        return _check_duration(recording.between(start, inf if stop >= last else stop))


def open_session(
    bag: str,
    config: str | None = None,
    urdf: str | None = None,
    progress: ProgressCallback | None = None,
    *,
    description: str | None = None,
    joints: tuple[str, ...] = (),
    settings: Mapping[str, Any] | None = None,
    options: ReadOptions = DEFAULTS,
    more: Sequence[str] = (),
    effort_kind: str | None = None,
) -> Session:
    """
    Read a recording, or several of one robot, and build the robot.

    Parameters
    ----------
    bag : the recording
    config : configuration file; None: the configuration that the recording carries
    urdf : robot description to use when neither a given configuration names one nor the recording
        carries one
    progress : called with the share that is read of a long recording
    description : file of the robot description, used before all others
    joints : to identify, instead of those of the configuration
    settings : configuration where no file is given, used before that of the recording
    options : how to read the recording; its joints are those of the description where it says none
    more : other recordings of the same robot, read alike; the first one says what it is
    effort_kind : what the efforts are, instead of the configuration's `robot.effort_kind`

    Raises
    ------
    RobotIdError : something is missing or does not fit, or the recordings differ

    """
    given = None if description is None else read_description(description)
    options = _complete(options, config, given, urdf, joints)
    bags = (bag, *more)
    recordings = [open_recording(b, options=options, progress=progress) for b in bags]
    values, configuration = session_configuration(recordings[0], config, settings)
    if effort_kind is not None:
        values, configuration = with_effort_kind(values, configuration, effort_kind)
    if given is None and read_urdf(configuration) is None:
        check_descriptions(recordings)
    urdf = given or session_description(configuration, recordings[0], config, urdf)
    wanted = configuration.robot
    wanted = replace(wanted, joints=joints) if joints else wanted
    robot, _ = select_robot(urdf, wanted, recordings)
    if not all(set(robot.recorded_joints) <= set(r.joints) for r in recordings):
        names = robot.recorded_joints
        recordings = [open_recording(b, names, options=options, progress=progress) for b in bags]
    return Session(configuration, robot, recordings[0], values, options, tuple(recordings[1:]))


def with_effort_kind(
    values: Mapping[str, Any], configuration: Configuration, effort_kind: str
) -> tuple[dict[str, Any], Configuration]:
    """Return the configuration's mapping and the configuration with another `effort_kind`."""
    robot = replace(configuration.robot, effort_kind=effort_kind)
    changed = {**values, 'robot': {**(values.get('robot') or {}), 'effort_kind': effort_kind}}
    return changed, replace(configuration, robot=robot)


def _complete(
    options: ReadOptions,
    config: str | None,
    description: str | None,
    urdf: str | None,
    joints: tuple[str, ...],
) -> ReadOptions:
    """Add the joints that a table may be of, where the options do not say."""
    configured = None if config is None else load(config)
    if description is None and configured is not None:
        description = read_urdf(configured)
    joints = options.joints or joints or (configured.robot.joints if configured else ())
    return replace(options, urdf=description or urdf or '', joints=joints)


def select_robot(
    urdf: str, wanted: RobotSettings, recordings: Sequence[AnyRecording]
) -> tuple[Robot, RobotSettings]:
    """
    Build the robot without joints at rest in the recordings, unless springs are modelled.

    Parameters
    ----------
    urdf : the URDF's text
    wanted : the configuration
    recordings : of one robot

    Returns
    -------
    The robot with warnings of what was locked, and the configuration that gives it

    Raises
    ------
    RobotIdError : joints and recordings do not fit

    """
    if wanted.mass == 0.0 and lacks_inertials(urdf):  # it does not matter here
        wanted = replace(wanted, mass=ASSUMED_MASS)
    chosen, notes = wanted, tuple[str, ...]()
    joints = set(wanted.joints)
    if all(joints <= set(r.joints) for r in recordings) and not wanted.elastic.joints:
        check_joints(recordings, wanted.joints)
        chosen, notes = select_joints(urdf, wanted, *position_ranges(recordings, wanted.joints))
        check_positions(recordings, [k for k in chosen.locked if k not in wanted.locked])
    robot = build_robot(urdf, chosen)
    return replace(robot, warnings=(*robot.warnings, *notes)), chosen


def split(
    recording: AnyRecording, part: Part | None = None, validation: Part | None = None
) -> tuple[AnyRecording, AnyRecording | None]:
    """
    Split a recording into what to identify on and what to validate on.

    Without parts, the session's phases count. With the first one alone, what comes after it, or
    before it when that is longer, validates.

    Returns
    -------
    what to identify on (all of it when the session has no phases), what to validate on or None.

    """
    names = {phase.name for phase in recording.phases}
    if part is not None:
        chosen = part.of(recording)
    else:
        chosen = _check_duration(recording.phase(EXCITING) if EXCITING in names else recording)
    if validation is not None:
        return chosen, validation.of(recording)
    if part is not None:
        return chosen, _rest(recording, chosen)
    return chosen, _check_duration(recording.phase(VALIDATING)) if VALIDATING in names else None


def split_session(
    session: Session, part: Part | None = None, validation: Part | None = None
) -> tuple[AnyRecording | LogSet, AnyRecording | LogSet | None]:
    """Split the recording of a session as `split` does, each one where there are several."""
    if not session.others:
        return split(session.recording, part, validation)
    pairs = [split(log, part, validation) for log in (session.recording, *session.others)]
    others = tuple(other for _, other in pairs if other is not None)
    return LogSet(tuple(chosen for chosen, _ in pairs)), LogSet(others) if others else None


def session_configuration(
    recording: AnyRecording, config: str | None = None, given: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], Configuration]:
    """
    Return the configuration of a file, else a given one, else that of the recording, checked.

    Raises
    ------
    ConfigurationError : it does not fit this version

    """
    if config is not None:
        return read_mapping(config), load(config)
    settings = dict(given or recording.configuration or {})
    checked = dict(settings)
    if (given or recording.urdf is not None) and isinstance(checked.get('robot'), Mapping):
        # The file that the name leads to may be on another machine, or another one by now.
        checked['robot'] = {k: v for k, v in checked['robot'].items() if k != 'urdf'}
    try:
        return settings, from_mapping(checked)
    except ConfigurationError as error:
        where = 'of the identification' if given else f"in '{recording.source}'"
        raise ConfigurationError(
            f'the configuration {where} does not fit this version ({error}): give one with -c'
        ) from error


def session_description(
    configuration: Configuration,
    recording: AnyRecording,
    config: str | None = None,
    urdf: str | None = None,
) -> str:
    """
    Return the text of the description: of a given configuration, the recording, or what is left.

    Raises
    ------
    ConfigurationError : there is none

    """
    named = read_urdf(configuration)
    ranked = (named, recording.urdf) if config is not None else (recording.urdf, named)
    for text in (*ranked, urdf):
        if text is not None:
            return text
    raise ConfigurationError(
        f"'{recording.source}' carries no robot description: give one with --urdf, or a "
        'configuration with -c whose robot.urdf names one'
    )


def _rest(recording: AnyRecording, chosen: AnyRecording) -> AnyRecording | None:
    (first, last), (start, stop) = recording.time_range, chosen.time_range
    if max(start - first, last - stop) < MIN_DURATION:
        return None
    if start - first > last - stop:
        return recording.between(-inf, start)
    return recording.between(stop + 1e-9, inf)


def _check_duration(recording: AnyRecording) -> AnyRecording:
    if recording.duration < MIN_DURATION:
        raise RecordingError(
            f"the part of '{recording.source}' to work on lasts {recording.duration:.3f} s: "
            f'record or choose at least {MIN_DURATION} s'
        )
    return recording
