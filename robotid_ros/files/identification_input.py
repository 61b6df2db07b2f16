"""The one way in: recordings, configuration and description become logs of one robot."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..core.findings import Finding
from ..core.model import build_robot, Robot, RobotSettings
from ..core.model.assumed_inertials import lacks_inertials
from ..core.model.robot_builder import ASSUMED_MASS
from ..core.pipeline.observation import LogSet
from ..core.setup.joint_choice import MIN_TRAVEL, PositionRange, select_joints
from ..core.signals.recording import range_of_positions, Recording
from ..exceptions import ConfigurationError, RecordingError
from .bags import ChunkedRecording, open_recording
from .bags.recording import ProgressCallback
from .configuration import Configuration, from_mapping, load_with_mapping, read_urdf
from .formats.read_options import DEFAULTS, ReadOptions

EXCITING, VALIDATING = 'exciting', 'validating'
# A shorter part holds no motion to identify from: this finds mistyped bounds early [s].
MIN_DURATION = 0.5

AnyRecording = Recording | ChunkedRecording
_NOTHING_GIVEN = Configuration()


@dataclass(frozen=True)
class Input:
    """Recordings of one robot, and the robot."""

    # The first one says what the robot is where nothing that was given does.
    recordings: tuple[AnyRecording, ...]
    robot: Robot  # with warnings of what was locked
    robot_settings: RobotSettings  # that give it
    urdf: str  # text of its description
    configuration: Configuration  # what counts, checked
    settings: Mapping[str, Any]  # and as its mapping
    options: ReadOptions  # how the recordings were read

    @property
    def recording(self) -> AnyRecording:
        """The first recording."""
        return self.recordings[0]

    def read(self, source: str, progress: ProgressCallback | None = None) -> AnyRecording:
        """Read another recording of the robot."""
        names = self.robot.recorded_joints
        return open_recording(source, names, options=self.options, progress=progress)


@dataclass(frozen=True)
class LogPart:
    """A part of a recording, from its first sample: seconds, or fractions of its duration."""

    start: float
    stop: float
    fraction: bool = False

    def of(self, recording: AnyRecording) -> AnyRecording:
        """Cut this part out of a recording; a RecordingError where next to nothing is left."""
        first, last = recording.time_range
        scale = last - first if self.fraction else 1.0
        start, stop = first + scale * self.start, first + scale * self.stop
        # The last sample belongs to a part that ends where the recording ends.
        return _check_duration(recording.between(start, inf if stop >= last else stop))


def open_input(
    sources: Sequence[str | Path | AnyRecording],
    configuration: str | Path | Mapping[str, Any] | Configuration | None = None,
    urdf: str | None = None,
    *,
    options: ReadOptions = DEFAULTS,
    fallback: str = '',
    progress: ProgressCallback | None = None,
) -> Input:
    """
    Read recordings of one robot, and build the robot.

    What is given goes before what was recorded: the description is `urdf` (text), else the one
    that a given configuration names, else that of the first recording, else `fallback`. A
    configuration is a file, its mapping, or checked; None: that of the recording. Of `options`,
    `joints` and `effort_kind` go before the configuration's. `progress` is called with the share
    that is read of a long recording. RobotIdError: something is missing or does not fit, or the
    recordings differ.
    """
    settings: Mapping[str, Any] = {}
    checked = configuration if isinstance(configuration, Configuration) else _NOTHING_GIVEN
    if isinstance(configuration, str | Path):
        settings, checked = load_with_mapping(configuration)
    description = urdf or read_urdf(checked)
    joints = options.joints or checked.robot.joints
    reading = replace(options, urdf=description or fallback, joints=joints)

    paths = [os.path.realpath(source) for source in sources if isinstance(source, str | Path)]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise RecordingError(f"'{Path(twice).name}' is given twice: give each recording once")
    opened = partial(open_recording, options=reading, progress=progress)
    recordings = [opened(s) if isinstance(s, str | Path) else s for s in sources]
    if configuration is None or isinstance(configuration, Mapping):
        settings, checked = _recorded_configuration(recordings[0], configuration)
    if description is None:
        known = [each for each in recordings if each.urdf is not None]
        for other in known[1:]:
            if str(other.urdf).split() != str(known[0].urdf).split():
                raise RecordingError(
                    f"'{known[0].source}' and '{other.source}' have different robot "
                    'descriptions: give the right one for both with --urdf, or identify '
                    'each robot separately'
                )
        description = recordings[0].urdf or read_urdf(checked) or fallback
    if not description:
        raise ConfigurationError(
            f"'{recordings[0].source}' has no robot description: give one with --urdf, or a "
            'configuration with -c whose robot.urdf names one'
        )
    wanted = replace(checked.robot, joints=options.joints or checked.robot.joints)
    if options.effort_kind is not None:
        wanted = replace(wanted, effort_kind=options.effort_kind)
        own = {**(settings.get('robot') or {}), 'effort_kind': options.effort_kind}
        settings = {**settings, 'robot': own}
    robot, chosen = _select_robot(description, wanted, recordings)
    reading = replace(reading, urdf=description)
    # The description may name joints of which the first reading took only some.
    if not all(set(robot.recorded_joints) <= set(r.joints) for r in recordings):
        names = robot.recorded_joints
        recordings = [opened(s, names) if isinstance(s, str | Path) else s for s in sources]
    # The configuration keeps its own joints; `robot` has those of the options.
    checked = replace(checked, robot=replace(wanted, joints=checked.robot.joints))
    return Input(tuple(recordings), robot, chosen, description, checked, settings, reading)


def _recorded_configuration(
    recording: AnyRecording, given: Any
) -> tuple[Mapping[str, Any], Configuration]:
    """Return a mapping that was recorded, or kept with results, and the configuration in it."""
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


def _select_robot(
    urdf: str, wanted: RobotSettings, recordings: Sequence[AnyRecording]
) -> tuple[Robot, RobotSettings]:
    """Build the robot without joints at rest, unless springs are modelled; and its settings."""
    if wanted.mass == 0.0 and lacks_inertials(urdf):  # it does not matter here
        wanted = replace(wanted, mass=ASSUMED_MASS)
    chosen, notes = wanted, tuple[Finding, ...]()
    joints = set(wanted.joints)
    if all(joints <= set(r.joints) for r in recordings) and not wanted.elastic.joints:
        first = recordings[0]
        for other in () if wanted.joints else recordings[1:]:
            if set(other.joints) != set(first.joints):
                common = ','.join(joint for joint in first.joints if joint in other.joints)
                remedy = f'name those to identify of both by --joints {common}'
                raise RecordingError(
                    f"'{first.source}' has efforts and positions of {', '.join(first.joints)}, "
                    f"'{other.source}' of {', '.join(other.joints)}: "
                    + (remedy if common else 'identify each robot by itself')
                )
        chosen, notes = select_joints(urdf, wanted, *_position_ranges(recordings, joints))
        _check_positions(recordings, [k for k in chosen.locked if k not in wanted.locked])
    robot = build_robot(urdf, chosen)
    return replace(robot, warnings=(*robot.warnings, *notes)), chosen


def split(
    recording: AnyRecording, part: LogPart | None = None, validation: LogPart | None = None
) -> tuple[AnyRecording, AnyRecording | None]:
    """
    Split a recording into what to identify on and what to validate on, None without.

    Without parts the session's phases count, or all of it is to identify on. With the first one
    alone the longer of what comes before or after it validates. Raises ConfigurationError where
    they overlap: what is fitted does not validate.
    """
    names = {phase.name for phase in recording.phases}
    if part is not None:
        chosen = part.of(recording)
    else:
        chosen = _check_duration(recording.phase(EXCITING) if EXCITING in names else recording)
    if validation is not None:
        other = validation.of(recording)
        (first, last), (start, stop) = chosen.time_range, other.time_range
        if start < last and first < stop:
            raise ConfigurationError(
                'the parts overlap, but fitted data cannot validate: choose separate parts, as '
                '--part 0:0.7 and --validation-part 0.7:1'
            )
        return chosen, other
    if part is None:
        known = VALIDATING in names
        return chosen, _check_duration(recording.phase(VALIDATING)) if known else None
    (first, last), (start, stop) = recording.time_range, chosen.time_range
    if max(start - first, last - stop) < MIN_DURATION:
        return chosen, None
    before = start - first > last - stop
    return chosen, recording.between(*((-inf, start) if before else (stop + 1e-9, inf)))


def split_all(
    logs: Sequence[AnyRecording], part: LogPart | None = None, validation: LogPart | None = None
) -> tuple[AnyRecording | LogSet, AnyRecording | LogSet | None]:
    """Split each of several logs of one robot as `split` does."""
    if len(logs) == 1:
        return split(logs[0], part, validation)
    pairs = [split(log, part, validation) for log in logs]
    others = tuple(other for _, other in pairs if other is not None)
    return LogSet(tuple(chosen for chosen, _ in pairs)), LogSet(others) if others else None


def _check_duration(recording: AnyRecording) -> AnyRecording:
    if recording.duration < MIN_DURATION:
        raise RecordingError(
            f"the part of '{recording.source}' to work on lasts {recording.duration:.3f} s: "
            f'record or choose at least {MIN_DURATION} s'
        )
    return recording


def _position_ranges(
    recordings: Sequence[AnyRecording], wanted: Collection[str]
) -> tuple[dict[str, PositionRange], dict[str, PositionRange]]:
    """Return position ranges of joints with efforts that change, or are wanted; of others."""
    ranges, left_out = dict[str, PositionRange](), dict[str, PositionRange]()
    for recording in recordings:
        dead = np.zeros(len(recording.joints), bool)
        if isinstance(recording, Recording):
            low, high = range_of_positions(recording.effort)
            dead = (low == high) & (low != high).any()
        each = [
            (left_out if still and found.moves and joint not in wanted else ranges, joint, found)
            for (joint, found), still in zip(_ranges(recording).items(), dead, strict=True)
        ]
        each += [(left_out, k, PositionRange(*ends)) for k, ends in recording.left_out.items()]
        for group, joint, found in each:
            known = group.setdefault(joint, found)
            if found.moves or known.moves:
                lower, upper = min(known.lower, found.lower), max(known.upper, found.upper)
                group[joint] = PositionRange(lower, upper)
    return {k: v for k, v in ranges.items() if k not in left_out}, left_out


def _check_positions(recordings: Sequence[AnyRecording], joints: Sequence[str]) -> None:
    """Check that joints which count as locked stand at one position in all recordings."""
    first = _ranges(recordings[0])
    for other in recordings[1:]:
        here = _ranges(other)
        for joint in (joint for joint in joints if joint in first and joint in here):
            one, two = first[joint], here[joint]
            if abs(one.middle - two.middle) > MIN_TRAVEL and not (one.moves or two.moves):
                raise RecordingError(
                    f"{joint} stands at {one.middle:.4g} in '{recordings[0].source}' and at "
                    f"{two.middle:.4g} in '{other.source}': identify the logs separately, or "
                    'record with this joint at one position'
                )


def _ranges(recording: AnyRecording) -> dict[str, PositionRange]:
    ends = (PositionRange(*each) for each in recording.position_range.T.tolist())
    return dict(zip(recording.joints, ends, strict=True))
