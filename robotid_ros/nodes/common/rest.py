"""Whether a robot rests."""

from contextlib import closing
from itertools import compress
import time
from typing import Any

import numpy as np
from rclpy.node import Node

from ...exceptions import ControllerError
from .controller import subscribe_states
from .messages import stamps_to_nanoseconds

OBSERVED_TIME = 0.3  # how long the robot is watched, by its own clock [s]
# Travel meanwhile that is a motion [rad or m]: a reference at rest is constant, and positions that
# are measured at rest differ by less, even with an encoder of 12 bits.
MAX_REFERENCE_TRAVEL, MAX_TRAVEL = 1e-5, 5e-3
POLL_PERIOD = 0.01


def check_at_rest(node: Node, controller: str, timeout: float) -> None:
    """Watch states, in a worker thread; ControllerError: the robot moves, or nobody knows."""

    def is_well_formed(state: Any) -> bool:
        positions = (state.reference.positions, state.feedback.positions)
        return all(len(p) == len(state.joint_names) and np.isfinite(p).all() for p in positions)

    states, end = list[Any](), time.monotonic() + timeout
    with closing(subscribe_states(node, controller)) as stream:
        while not states or np.ptp(stamps_to_nanoseconds(states)) * 1e-9 < OBSERVED_TIME:
            if time.monotonic() > end:
                raise ControllerError(
                    f"'{stream.topic}' does not say whether the robot rests: activate the "
                    'controller'
                )
            time.sleep(POLL_PERIOD)
            states += stream.take_newest(is_well_formed)[0]
            states = [state for state in states if state.joint_names == states[-1].joint_names]
    reference = np.array([state.reference.positions for state in states])
    measured = np.array([state.feedback.positions for state in states])
    moves = np.ptp(reference, axis=0) > MAX_REFERENCE_TRAVEL
    moves |= np.ptp(measured, axis=0) > MAX_TRAVEL
    if moving := [*compress(states[0].joint_names, moves)]:
        raise ControllerError(f'the robot moves ({", ".join(moving)}): wait until it rests')
