"""Context of the joint states in a recording: phases, controller, reference, robot."""

from collections.abc import Callable, Mapping
import contextlib
import dataclasses
from decimal import Decimal, InvalidOperation
from typing import Any, TYPE_CHECKING, TypeVar

import numpy as np

from ....core.signals.recording import Controller, Phase, RunContext
from ....exceptions import RecordingError
from ..schema.message_definitions import STATUS, STRING
from ..schema.session_header import (
    DESCRIPTION_TOPIC,
    parse_session,
    Session,
    SESSION_TOPIC,
    STATE_TOPIC,
)
from ..schema.session_phases import build_phases, cut_notes, parse_speed, speed_notes, StateChange
from .clock_alignment import Clock
from .storage import Bag

if TYPE_CHECKING:
    from ....core.excitation.trajectory import Trajectory

MAX_SECONDS = 9e9  # of a stamp: 64 bits of nanoseconds
MAX_DIGITS = 9  # of a number of cycles
StampConversion = Callable[[np.ndarray], np.ndarray]
Run = TypeVar('Run', bound=RunContext)


def _topic(bag: Bag, message_type: str, name: str) -> str | None:
    """Topic of this name, in any namespace; the shortest one when there are several."""
    found = [t for t, count in bag.topics(message_type).items() if count and t.endswith(name)]
    found = [t for t in found if not t.endswith(f'identification{name}')]
    return min(found, key=len, default=None)


def read_last_text(bag: Bag, name: str) -> str | None:
    """Last std_msgs/String on a topic; None when there is none."""
    topic = _topic(bag, STRING, name)
    text = None
    if topic is not None:
        for _, message in bag.decoded(topic):
            text = message.data
    return text


def add_context(bag: Bag, recording: Run, clock: Clock, end: float) -> Run:
    """
    Add what a bag says about its joint states, but the reference.

    Parameters
    ----------
    bag : the recording
    recording : joint states, or what is known besides
    clock : of the stamps
    end : last time of the recording [s]

    """
    session = read_session(bag)
    phases = read_phases(bag, session, clock.stamp_of, recording.origin, end, clock.jumped)
    return dataclasses.replace(
        recording,
        controller=_known_controller(session, str(bag.path)),
        phases=phases,
        urdf=read_urdf(bag),
        trajectories=_trajectories(bag, session, phases),
        configuration=dict(session.configuration) or None,
        notes=(
            *recording.notes,
            *cut_notes(phases),
            *speed_notes(phases),
            *_changed_gain_notes(session),
        ),
    )


def _trajectories(
    bag: Bag, session: Session, phases: tuple[Phase, ...]
) -> dict[str, 'Trajectory']:
    """Read the motions as they ran; a motion whose speed changed followed none that has a name."""
    found = {}
    for name, content in session.trajectories.items():
        phase = next((phase for phase in phases if phase.name == name), None)
        if phase is None or phase.steady:
            trajectory = _trajectory(name, content, bag)
            speed = 1.0 if phase is None else phase.speed[0]
            found[name] = trajectory if speed == 1.0 else trajectory.at_speed(speed)
    return found


def _trajectory(phase: str, content: Any, bag: Bag) -> 'Trajectory':
    # Designing needs much that reading does not.
    from ....core.excitation.trajectory import Trajectory

    try:
        return Trajectory.from_dict(content)
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordingError(
            f"the trajectory of phase '{phase}' in '{bag.path}' is damaged ({error!r}): "
            'record again'
        ) from error


def read_session(bag: Bag) -> Session:
    """Session snapshot; an empty one when it was not recorded."""
    text = read_last_text(bag, SESSION_TOPIC)
    return Session() if text is None else parse_session(text, str(bag.path))


def read_urdf(bag: Bag) -> str | None:
    """URDF of the robot, when it was recorded."""
    return read_last_text(bag, DESCRIPTION_TOPIC)


def read_phases(
    bag: Bag,
    session: Session,
    to_stamp: StampConversion,
    origin: int,
    end: float,
    by_reception: bool = False,
) -> tuple[Phase, ...]:
    """
    Parts of the session, on the recording's clock.

    Parameters
    ----------
    bag : the recording
    session : which motions were planned
    to_stamp : turns times of reception into stamps [ns]
    origin : stamp of the recording's time zero [ns]
    end : last time of the recording [s]
    by_reception : leave the stamps in the messages aside: their clock was set meanwhile

    """
    topic = _topic(bag, STATUS, STATE_TOPIC)
    states = []
    for reception, message in bag.decoded(topic) if topic else ():
        values = {item.key: item.value for item in message.values}
        name = values.get('state') or message.name.split(' ')[-1]
        received = (int(to_stamp(np.array([reception], np.int64))[0]) - origin) * 1e-9
        stamp = None if by_reception else _nanoseconds(values.get('stamp'))
        time = received if stamp is None else (stamp - origin) * 1e-9
        cycles, speed = _count(values.get('cycles')), parse_speed(values)
        states.append(StateChange(name, time, received, cycles, speed))
    # Times of reception do not tell when a motion began.
    return build_phases(states, {} if by_reception else _periods(session), end)


def _periods(session: Session) -> dict[str, float]:
    """Return the duration of one cycle of each motion [s]."""
    found = {}
    for phase, content in session.trajectories.items():
        with contextlib.suppress(KeyError, TypeError, ValueError):
            found[str(phase)] = float(content['period'])
    return found


def _count(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < MAX_DIGITS else 1


def _nanoseconds(text: str | None) -> int | None:
    try:
        # A power of ten that is huge would be written out.
        return int(Decimal(text) * 10**9) if text and abs(float(text)) < MAX_SECONDS else None
    except (InvalidOperation, ValueError, OverflowError):
        return None


def build_controller(content: Mapping[str, Any], path: str) -> Controller | None:
    """Build the controller of a session's snapshot."""
    if not content:
        return None
    try:
        gains = content.get('gains') or {}
        return Controller(
            name=str(content['name']),
            type=str(content.get('type', '')),
            rate=float(content.get('rate', 0.0)),
            joints=tuple(map(str, content['joints'])),
            command_interfaces=tuple(map(str, content.get('command_interfaces', ()))),
            gains={str(j): {str(k): float(v) for k, v in g.items()} for j, g in gains.items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(
            f"the session in '{path}' describes its controller wrongly ({error!r}): record again"
        ) from error


def _known_controller(session: Session, path: str) -> Controller | None:
    """Return the controller, without gains where they are not those of the whole recording."""
    controller = build_controller(session.controller, path)
    if controller is None or not changed_gains(session):
        return controller
    return dataclasses.replace(controller, gains={})


def changed_gains(session: Session) -> list[str]:
    """Return the joints whose gains differ between before and after the recording."""
    before, after = session.controller.get('gains') or {}, session.values.get('gains_after') or {}
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)) or not after:
        return []
    return [joint for joint in before if before[joint] != after.get(joint)]


def _changed_gain_notes(session: Session) -> tuple[str, ...]:
    if not (joints := changed_gains(session)):
        return ()
    return (
        f'the gains of {", ".join(joints)} were changed during the recording, and nobody knows '
        'when: no method uses them (DIDIM needs a recording with gains that stay)',
    )
