"""Where joints stand, by all who publish joint states."""

from collections.abc import Sequence
from contextlib import closing
import time

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from .batched_subscription import BatchedSubscription
from .messages import is_well_formed
from .waiting import wait_until

LISTENING = 0.3  # to other publishers of joint states, such as a gripper's [s]


def read_positions(
    node: Node, joints: Sequence[str], timeout: float, listening: float = LISTENING
) -> dict[str, float]:
    """Return finite positions by joint, of all who publish them; `joints` must be heard."""
    positions: dict[str, float] = {}
    end = time.monotonic() + listening
    with closing(BatchedSubscription(node, JointState, 'joint_states')) as states:

        def heard() -> bool:
            for message in states.take_newest(is_well_formed)[0]:
                pairs = zip(message.name, message.position, strict=False)
                positions.update({name: q for name, q in pairs if np.isfinite(q)})
            return set(joints) <= positions.keys() and time.monotonic() > end

        what = f"no joint states of every joint on '{states.topic}'"
        wait_until(heard, timeout + listening, what=f'{what}: start the joint_state_broadcaster')
    return positions
