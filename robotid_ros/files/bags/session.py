"""
Session: what a recording carries beside the joint states.

All of it travels as topics, so that MCAP, SQLite, `ros2 bag` and `rosbags` keep it alike:

- `/joint_states`, sensor_msgs/JointState: what was measured; its time is `header.stamp`
- `/<controller>/controller_state`, control_msgs/JointTrajectoryControllerState: reference, output
- `/robot_description`, std_msgs/String: the URDF; the last one counts
- `/excitation/state`, diagnostic_msgs/DiagnosticStatus: phases. `values` hold `state` (idle, …,
  exciting, validating, done, failed) and `stamp` (ROS time of the change [s]); without `stamp` the
  time of reception counts, without `state` the last word of `name`
- `/excitation/reference`, trajectory_msgs/JointTrajectory: the sampled reference, for people
- `/recorder/session`, std_msgs/String: YAML text of a `RecordedSession`; the last one counts

Topics match by their last names too (`/left/excitation/state`), so that namespaces are free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import contextlib
import dataclasses
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
import itertools
import math
from typing import Any, NamedTuple, TYPE_CHECKING, TypeVar

import numpy as np

from ...core.findings import Finding, finding
from ...core.signals.recording import Controller, Phase, RunContext
from ...exceptions import RecordingError
from ..bounded import damage_errors
from ..yaml import dump_yaml, from_plain, parse_yaml
from .messages import STATUS, STRING

if TYPE_CHECKING:
    from ...core.excitation.trajectory import Trajectory
    from .storage import Bag

SESSION_TOPIC = '/recorder/session'
STATE_TOPIC = '/excitation/state'
DESCRIPTION_TOPIC = '/robot_description'
FORMAT = 1


@dataclass(frozen=True)
class RecordedSession:
    """Snapshot of what a session ran with: plain values only."""

    # Name, type, rate [Hz], joints, command_interfaces, gains {joint: {p, i, d, …}}.
    controller: Mapping[str, Any] = field(default_factory=dict)
    # `Trajectory.to_dict` by phase, as in `excitation/state`.
    trajectories: Mapping[str, Any] = field(default_factory=dict)
    configuration: Mapping[str, Any] = field(default_factory=dict)  # as the file held it
    versions: Mapping[str, str] = field(default_factory=dict)  # by package
    values: Mapping[str, Any] = field(default_factory=dict)  # else that is worth keeping


def dump_session(session: RecordedSession) -> str:
    """Text of the message on `SESSION_TOPIC`."""
    groups = {f.name: dict(getattr(session, f.name)) for f in dataclasses.fields(session)}
    return dump_yaml({'format': FORMAT, **groups})


class Clock(NamedTuple):
    """How times of reception and stamps of joint states, not necessarily all, go together."""

    received: np.ndarray  # (N,) [ns]
    stamp: np.ndarray  # (N,) on one clock [ns]
    jumped: bool  # whether the clock of the stamps was set meanwhile

    def stamp_of(self, received: int) -> int:
        """Return the stamp [ns] that belongs to a time of reception [ns]."""
        if not self.jumped:
            # With simulated time the two are different clocks; a constant apart is enough.
            return received + int(np.median(self.stamp - self.received))
        return _interpolated(received, self.received, self.stamp)

    def received_at(self, stamp: int) -> int:
        """Return the time of reception [ns] that belongs to a stamp [ns]."""
        return _interpolated(stamp, self.stamp, self.received)


def _interpolated(at: int, x: np.ndarray, y: np.ndarray) -> int:
    return int(y[0]) + round(float(np.interp(at - int(x[0]), x - x[0], y - y[0])))


# States in which the robot moves.
MEASURED = ('exciting', 'validating')
MOVING = ('approaching', *MEASURED, 'verifying')
STATES = ('idle', 'designing', *MOVING, 'done', 'failed')
# What a motion that has run to its end is followed by. Anything else cuts the session, whoever
# ended it: an excitation that was started anew says 'idle' or 'designing', and nothing comes of
# one that is gone.
GOES_ON = (*MOVING, 'done')
# Of a motion that count as missing [s]: some samples at 10 Hz. Phases have the stamps of the
# motion itself, whole ones lack nothing.
MIN_MISSING = 0.3
# Mean, lowest and highest share of the planned speed.
Speed = tuple[float, float, float]
FULL: Speed = (1.0, 1.0, 1.0)


class StateChange(NamedTuple):
    """A state, since when it holds and when it was received [s]; of a motion its speed, too."""

    name: str
    time: float
    received: float
    cycles: int = 1
    speed: Speed = FULL
    rests: float = 0.0


def build_phases(
    states: Iterable[StateChange], periods: Mapping[str, float], end: float
) -> tuple[Phase, ...]:
    """Make phases of states; `periods` last a cycle [s], the recording lasts to `end` [s]."""
    known, latest = list[StateChange](), -math.inf
    for state in states:
        if state.name in STATES:
            # Motions have stamps of the robot's clock, all other states those of the node's: the
            # end of a session is behind all of it.
            if state.name not in MOVING and state.time < latest:
                state = state._replace(time=max(state.received, latest))
            latest = max(latest, state.time)
            known.append(state)
    known.sort(key=lambda state: state.time)
    runs = [list(group) for _, group in itertools.groupby(known, key=lambda s: s.name)]
    phases = []
    for run, following in itertools.zip_longest(runs, runs[1:]):
        name, start, speed = run[0].name, run[0].time, run[-1].speed
        stop = following[0].time if following else max(end, start)
        planned = periods.get(name, 0.0) * run[-1].cycles / speed[0] + run[-1].rests
        missing = planned - max(0.0, min(stop, end) - max(start, 0.0))
        missing = missing if missing > MIN_MISSING else 0.0
        goes_on = following is not None and following[0].name in GOES_ON
        cut = name in MOVING and (missing > 0.0 or not goes_on)
        phases.append(Phase(name, start, stop, cut, missing, speed, run[-1].rests))
    return tuple(phases)


def parse_speed(values: Mapping[str, str]) -> Speed:
    """Read the speed of a motion from the values of a state; what cannot be one is none."""
    try:
        mean, low, high = (float(values.get(k, 1.0)) for k in ('speed', 'speed_min', 'speed_max'))
    except ValueError:
        return FULL
    return (mean, low, high) if 0.0 <= low <= mean <= high < math.inf and mean > 0.0 else FULL


def cut_notes(phases: Sequence[Phase]) -> tuple[Finding, ...]:
    """Say which phases are cut."""
    cut = (phase for phase in phases if phase.cut)
    return tuple(finding('session_cut', phase=p.name, missing=p.missing or None) for p in cut)


MAX_SECONDS = 9e9  # of a stamp: 64 bits of nanoseconds
MAX_DIGITS = 9  # of a number of cycles
Run = TypeVar('Run', bound=RunContext)


def _topic(bag: Bag, message_type: str, name: str) -> str | None:
    """Topic of this name, in any namespace; the shortest one when there are several."""
    found = (t for t, count in bag.topics(message_type).items() if count and t.endswith(name))
    own = (t for t in found if not t.endswith(f'identification{name}'))
    return min(own, key=len, default=None)


def _read_last_text(bag: Bag, name: str) -> str | None:
    """Last std_msgs/String on a topic; None when there is none."""
    text, topic = None, _topic(bag, STRING, name)
    for _, texts in bag.texts(topic) if topic else ():
        text = texts['data'][0]
    return text


def read_session(bag: Bag) -> RecordedSession:
    """Session snapshot, empty where none was recorded; without groups of newer versions."""
    text = _read_last_text(bag, SESSION_TOPIC)
    if text is None:
        return RecordedSession()
    content = parse_yaml(text, str(bag.path))
    if not isinstance(content, Mapping) or 'format' not in content:
        raise RecordingError(f"'{bag.path}' holds no session: record it with 'recorder'")
    groups = {f.name: content.get(f.name) or {} for f in dataclasses.fields(RecordedSession)}
    for name, group in groups.items():
        if not isinstance(group, Mapping):
            raise RecordingError(f"'{name}' of the session in '{bag.path}' is not a group")
    return RecordedSession(**groups)


def read_urdf(bag: Bag) -> str | None:
    """URDF of the robot, when it was recorded."""
    return _read_last_text(bag, DESCRIPTION_TOPIC)


def add_context(bag: Bag, recording: Run, clock: Clock, end: float) -> Run:
    """Add what a bag says about its joint states up to `end` [s], but the reference."""
    session = read_session(bag)
    phases = read_phases(bag, session, clock, recording.origin, end)
    notes = [*recording.notes, *cut_notes(phases)]
    for phase in phases:
        name, (mean, low, high) = phase.name, phase.speed
        if name in MEASURED and phase.speed != FULL:
            changed = finding('speed_changed', phase=name, low=low, high=high)
            slow = finding('slow_motion', phase=name, speed=mean)
            notes.append(slow if phase.steady else changed)
    controller, content = None, session.controller
    if content:
        known = {'type': '', 'rate': 0.0, 'command_interfaces': (), **content}
        names = [f.name for f in dataclasses.fields(Controller) if known.get(f.name) is not None]
        with damage_errors(bag.path, 'record again', what='describes its controller wrongly'):
            controller = from_plain(Controller, {name: known[name] for name in names})
    if controller and (joints := changed_gains(session)):
        controller = dataclasses.replace(controller, gains={})
        notes.append(finding('gains_changed', joints))
    # The motions as they ran: without those that rested or changed their speed meanwhile.
    trajectories: dict[str, Trajectory] = {}
    if session.trajectories:  # designing needs much that reading does not
        from ...core.excitation.trajectory import Trajectory

        by_name = {phase.name: phase for phase in reversed(phases)}
        for name, motion in session.trajectories.items():
            ran = by_name.get(name)
            if ran is not None and (ran.rests or not ran.steady):
                continue
            what = f"has a damaged trajectory of phase '{name}'"
            with damage_errors(bag.path, 'record again', what=what):
                trajectory = Trajectory.from_dict(motion)
            speed = 1.0 if ran is None else ran.speed[0]
            trajectories[name] = trajectory if speed == 1.0 else trajectory.at_speed(speed)
    return dataclasses.replace(
        recording,
        controller=controller,
        phases=phases,
        urdf=read_urdf(bag),
        trajectories=trajectories,
        configuration=dict(session.configuration) or None,
        notes=tuple(notes),
    )


def read_phases(
    bag: Bag, session: RecordedSession, clock: Clock, origin: int, end: float
) -> tuple[Phase, ...]:
    """Parts of the session, on the recording's clock from `origin` [ns] to `end` [s]."""
    topic = _topic(bag, STATUS, STATE_TOPIC)
    states = []
    for reception, texts in bag.texts(topic) if topic else ():
        keys = [path for path in texts if path.endswith('.key')]
        values = {texts[key][0]: texts[f'{key[:-3]}value'][0] for key in keys}
        name = values.get('state') or texts['name'][0].split(' ')[-1]
        received = (clock.stamp_of(reception) - origin) * 1e-9
        time, text = received, values.get('stamp', '')
        with contextlib.suppress(InvalidOperation, ValueError, OverflowError):
            # A power of ten that is huge would be written out.
            if not clock.jumped and text and abs(float(text)) < MAX_SECONDS:
                time = (int(Decimal(text) * 10**9) - origin) * 1e-9
        cycles = values.get('cycles') or ''
        count = int(cycles) if cycles.isdecimal() and len(cycles) < MAX_DIGITS else 1
        rests = 0.0
        with contextlib.suppress(ValueError):
            rests = min(max(0.0, float(values.get('rests', 0.0))), MAX_SECONDS)
        states.append(StateChange(name, time, received, count, parse_speed(values), rests))
    periods = {}
    # Times of reception do not tell when a motion began.
    for phase, content in () if clock.jumped else session.trajectories.items():
        with contextlib.suppress(KeyError, TypeError, ValueError):
            periods[str(phase)] = float(content['period'])
    return build_phases(states, periods, end)


def changed_gains(session: RecordedSession) -> list[str]:
    """Return the joints whose gains differ between before and after the recording."""
    before, after = session.controller.get('gains') or {}, session.values.get('gains_after') or {}
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)) or not after:
        return []
    return [joint for joint in before if before[joint] != after.get(joint)]
