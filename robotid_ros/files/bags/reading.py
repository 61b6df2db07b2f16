"""From a bag to a `Recording`."""

from collections.abc import Iterator, Sequence
import dataclasses
from pathlib import Path
from typing import Any, TYPE_CHECKING

import numpy as np

from ...core.signals.clock import one_clock
from ...core.signals.recording import Recording
from ...exceptions import RecordingError
from . import context
from .joint_states import choose, find_topic, JointStates, sources
from .session import Session
from .storage import Bag, open_bag

if TYPE_CHECKING:
    from ...core.excitation.trajectories import Trajectory


def read_recording(
    path: str | Path, joints: Sequence[str] | None = None, *, topic: str = ''
) -> Recording:
    """
    Read one recording; its time counts from the first joint state.

    Parameters
    ----------
    path : rosbag2 folder, .mcap or .db3 file, also one that was cut short
    joints : names to keep, in this order; None: all that one publisher sends
    topic : of the joint states, '' to find it

    Raises
    ------
    RecordingError : missing, empty, damaged, without joint states or without effort
    UnknownNameError : a joint that the recording lacks

    """
    with open_bag(path) as bag:
        tables = [choose(found, joints) for found in sources(bag, topic or find_topic(bag))]
        states, jumps = steady(_checked(tables[0], path, joints is None))
        session = context.session(bag)
        recording = _recording(states, states.stamp[0], path)
        return _with_context(recording, bag, states, session, jumps)


def blocks(
    path: str | Path,
    joints: Sequence[str] | None = None,
    *,
    seconds: float = 60.0,
    topic: str = '',
) -> Iterator[Recording]:
    """
    Read a long recording in pieces of about `seconds`, in bounded memory.

    The pieces share one clock and carry joint states only.
    """
    origin = None
    with open_bag(path) as bag:
        for found in sources(bag, topic or find_topic(bag), seconds):
            states = _checked(choose(found, joints), path, joints is None)
            joints = states.joints
            origin = states.stamp[0] if origin is None else origin
            yield _recording(states, origin, path)


def _checked(states: JointStates, path: str | Path, all_joints: bool) -> JointStates:
    """Refuse what no identification can use; of all joints, keep those that it can."""
    for name, remedy in (
        ('effort', "give the robot's state broadcaster the effort interfaces"),
        ('position', 'an identification needs measured positions'),
    ):
        missing = np.isnan(getattr(states, name)).all(axis=0)
        if missing.all():
            raise RecordingError(f"'{path}' has no {name} of any joint: {remedy}")
        dead = [j for j, m in zip(states.joints, missing, strict=True) if m]
        if dead and all_joints:
            states = states.columns([j for j in states.joints if j not in dead])
        elif dead:
            raise RecordingError(
                f"'{path}' has no {name} of {', '.join(dead)}: {remedy}, or leave them out of "
                'robot.joints'
            )
    return states


def steady(states: JointStates) -> tuple[JointStates, bool]:
    """Join what was recorded before and after a clock was set; tell whether one was."""
    origin, began = states.stamp[0], states.received[0]
    time, kept, jumps, notes = one_clock(
        (states.stamp - origin) * 1e-9, (states.received - began) * 1e-9, states.position
    )
    if kept.all() and not jumps.size:
        return states, False
    stamp = origin + np.round(time * 1e9).astype(np.int64)
    whole = dataclasses.replace(states, stamp=stamp, notes=(*states.notes, *notes))
    return whole.rows(kept), bool(jumps.size)


def _recording(states: JointStates, origin: int, path: str | Path) -> Recording:
    velocity = states.velocity if np.isfinite(states.velocity).any() else None
    return Recording(
        joints=states.joints,
        time=(states.stamp - origin) * 1e-9,
        position=states.position,
        velocity=velocity,
        effort=states.effort,
        source=str(path),
        origin=int(origin),
        notes=states.notes,
    )


def _with_context(
    recording: Recording, bag: Bag, states: JointStates, session: Session, jumps: bool
) -> Recording:
    origin = int(states.stamp[0])
    # With simulated time stamps and reception are on different clocks; a constant apart is enough.
    lag = int(np.median(states.stamp - states.received))

    def to_stamp(received: np.ndarray) -> np.ndarray:
        if not jumps:
            return received + lag
        passed = np.interp(received - origin, states.received - origin, states.stamp - origin)
        return np.asarray(origin + np.round(passed).astype(np.int64))

    controller = context.controller(session.controller, str(bag.path))
    name = controller.name if controller else ''
    return dataclasses.replace(
        recording,
        # Its stamps jump as well, and nothing says where.
        reference=None if jumps else context.reference(bag, recording.joints, name, origin),
        controller=controller,
        phases=context.phases(bag, to_stamp, origin, float(recording.time[-1]), jumps),
        urdf=context.description(bag),
        trajectories={k: _trajectory(k, v, bag) for k, v in session.trajectories.items()},
        configuration=dict(session.configuration) or None,
        notes=(*recording.notes, *context.changed_gains(session)),
    )


def _trajectory(phase: str, content: Any, bag: Bag) -> 'Trajectory':
    # Designing needs much that reading does not.
    from ...core.excitation.trajectories import Trajectory

    try:
        return Trajectory.from_dict(content)
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordingError(
            f"the trajectory of phase '{phase}' in '{bag.path}' is damaged ({error!r}): "
            'record again'
        ) from error
