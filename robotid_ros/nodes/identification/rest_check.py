"""Whether the robot rests: only then its controller's gains may be changed."""

from collections.abc import Sequence
import time
from typing import Any

import numpy as np
from rclpy.node import Node

from ...exceptions import ControllerError
from ..common.controller import subscribe_states
from ..common.messages import stamps_to_nanoseconds

# How long the robot is watched, by its own clock [s].
OBSERVED_TIME = 0.3
# Travel meanwhile that is a motion [rad or m]: a reference at rest is constant, and positions that
# are measured at rest differ by less, even with an encoder of 12 bits.
MAX_REFERENCE_TRAVEL, MAX_TRAVEL = 1e-5, 5e-3
POLL_PERIOD = 0.01


def check_at_rest(node: Node, controller: str, timeout: float) -> None:
    """
    Watch the states of a controller for a moment; call from a worker thread.

    Raises
    ------
    ControllerError : the robot moves, or nobody knows

    """
    stream = subscribe_states(node, controller)
    states: list[Any] = []
    try:
        end = time.monotonic() + timeout
        while _span(states) < OBSERVED_TIME:
            if time.monotonic() > end:
                raise ControllerError(
                    f"'{stream.topic}' does not say whether the robot rests: activate the "
                    'controller'
                )
            time.sleep(POLL_PERIOD)
            states += stream.take_newest(_is_well_formed)[0]
            states = [state for state in states if state.joint_names == states[-1].joint_names]
    finally:
        stream.close()
    if moving := moving_joints(states):
        raise ControllerError(f'the robot moves ({", ".join(moving)}): wait until it rests')


def moving_joints(states: Sequence[Any]) -> list[str]:
    """Names of the joints that travel in the course of a controller's states."""
    reference = np.array([state.reference.positions for state in states])
    measured = np.array([state.feedback.positions for state in states])
    moves = np.ptp(reference, axis=0) > MAX_REFERENCE_TRAVEL
    moves |= np.ptp(measured, axis=0) > MAX_TRAVEL
    return [name for name, moving in zip(states[0].joint_names, moves, strict=True) if moving]


def _span(states: Sequence[Any]) -> float:
    """Return the time from the first to the last state [s]."""
    return float(np.ptp(stamps_to_nanoseconds(states))) * 1e-9 if states else 0.0


def _is_well_formed(state: Any) -> bool:
    """Whether a state has a position and a reference of each joint."""
    positions = (state.reference.positions, state.feedback.positions)
    return all(len(p) == len(state.joint_names) and np.isfinite(p).all() for p in positions)
