"""Where joints stand, by all who publish joint states, and whether they rest."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import repeat
import time
from typing import Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from ...core.arrays import Array
from ...exceptions import ControllerError
from .batched_subscription import BatchedSubscription
from .messages import is_well_formed, to_nanoseconds
from .waiting import wait_until

LISTENING = 0.3  # to other publishers of joint states, such as a gripper's [s]
OBSERVED_TIME = 0.3  # how long a joint is watched that has to rest, by its stamps [s]
# Travel meanwhile that is a motion [rad or m]: a reference at rest is constant, and positions that
# are measured at rest differ by less, even with an encoder of 12 bits.
MAX_REFERENCE_TRAVEL, MAX_TRAVEL = 1e-5, 5e-3
POLL_PERIOD = 0.01


def read_positions(node: Node, joints: Sequence[str], timeout: float) -> dict[str, float]:
    """Return finite positions by joint, of all who publish them; `joints` must be heard."""
    positions: dict[str, float] = {}
    end = time.monotonic() + LISTENING
    with closing(BatchedSubscription(node, JointState, 'joint_states')) as states:

        def heard() -> bool:
            for message in states.take_newest(is_well_formed)[0]:
                pairs = zip(message.name, message.position, strict=False)
                positions.update({name: q for name, q in pairs if np.isfinite(q)})
            return set(joints) <= positions.keys() and time.monotonic() > end

        what = f"no joint states of every joint on '{states.topic}'"
        wait_until(heard, timeout + LISTENING, what=f'{what}: start the joint_state_broadcaster')
    return positions


def check_at_rest(states: BatchedSubscription, timeout: float, joints: Sequence[str] = ()) -> None:
    """
    Watch joint states, or those of a controller and its reference, in a worker thread; close them.

    ControllerError: a joint moves that is heard, or one of `joints` (else: of those heard) is not
    heard for long enough. Some grippers are published only as they move.
    """
    # Stamps [s] and positions by joint and travel; a state that is repeated says nothing new.
    seen = defaultdict[tuple[str, float], list[tuple[float, float]]](list)
    spans: dict[tuple[str, float], Array] = {}

    def unknown() -> list[str]:
        """Return joints that have to rest, and were not watched for long enough."""
        heard = dict.fromkeys(joint for joint, _ in spans)
        short = {joint for (joint, _), (watched, _) in spans.items() if watched < OBSERVED_TIME}
        asked = joints or heard or ('any joint',)
        return [joint for joint in asked if joint in short or joint not in heard]

    end = time.monotonic() + timeout
    with closing(states):
        while unknown() and time.monotonic() < end:
            time.sleep(POLL_PERIOD)
            for message in states.take_messages():
                stamp = to_nanoseconds(message.header.stamp) * 1e-9
                for joint, position, travel in _positions(message):
                    seen[joint, travel].append((stamp, position))
            spans = {key: np.ptp(rows, axis=0) for key, rows in seen.items()}
    if names := ', '.join(unknown()):
        raise ControllerError(
            f"'{states.topic}' does not say whether the robot rests ({names}): start what "
            'publishes it, or name the joints of the arm alone (robot.joints, --joints)'
        )
    if moving := [joint for (joint, most), (_, moved) in spans.items() if not moved <= most]:
        names = ', '.join(dict.fromkeys(moving))
        raise ControllerError(f'the robot moves ({names}): wait until it rests')


def _positions(message: Any) -> Iterable[tuple[str, float, float]]:
    """Return joints, positions and the travel that is a motion; none if it is malformed."""
    if isinstance(message, JointState):
        names = message.name if is_well_formed(message) else ()
        return zip(names, message.position, repeat(MAX_TRAVEL), strict=False)
    rows = message.reference.positions, message.feedback.positions
    if any(len(row) != len(message.joint_names) or not np.isfinite(row).all() for row in rows):
        return ()
    travels = MAX_REFERENCE_TRAVEL, MAX_TRAVEL
    return [
        (joint, position, travel)
        for row, travel in zip(rows, travels, strict=True)
        for joint, position in zip(message.joint_names, row, strict=True)
    ]
