"""Patched bytes are what rclpy itself would have sent."""

import struct

from control_msgs.msg import JointTrajectoryControllerState
from hypothesis import given, settings, strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from robotid_ros.nodes.simulated_robot.message_templates import (
    ControllerStateTemplate,
    JointStateTemplate,
    MessageTemplate,
)
from robotid_ros.plant.controller_types import ControllerState
from robotid_ros.plant.trajectory import Point

JOINTS = ('zjoint', 'joint2', 'joint3')
numbers = st.lists(st.floats(), min_size=3, max_size=3)
stamps = st.integers(0, 2**31 * 10**9 - 1)
durations = st.integers(-(10**12), 10**15)


def stamp(owner, time):
    owner.sec, owner.nanosec = divmod(time, 10**9)


@settings(max_examples=50, deadline=None)
@given(stamps, numbers, numbers, numbers)
def test_joint_states(time, q, dq, tau):
    order = (1, 2, 0)
    message = JointState(
        name=['joint2', 'joint3', 'zjoint'],
        position=[q[i] for i in order],
        velocity=[dq[i] for i in order],
        effort=[tau[i] for i in order],
    )
    stamp(message.header.stamp, time)
    assert JointStateTemplate(JOINTS).fill(time, q, dq, tau) == bytes(serialize_message(message))


OUTPUTS = {'effort': 'effort', 'velocity': 'velocities', 'position': 'positions'}


@settings(max_examples=50, deadline=None)
@given(
    stamps, durations, numbers, numbers, numbers, numbers, st.floats(), st.sampled_from([*OUTPUTS])
)
def test_controller_state(time, elapsed, q, dq, ddq, tau, factor, interface):
    desired, current = Point(elapsed, q, dq, ddq), Point(elapsed + 1, dq, q)
    state = ControllerState(desired, current, tau, ddq, tau, factor)
    message = JointTrajectoryControllerState(joint_names=list(JOINTS), speed_scaling_factor=factor)
    stamp(message.header.stamp, time)
    message.reference = JointTrajectoryPoint(positions=q, velocities=dq, accelerations=ddq)
    stamp(message.reference.time_from_start, elapsed)
    message.feedback = JointTrajectoryPoint(positions=dq, velocities=q)
    stamp(message.feedback.time_from_start, elapsed + 1)
    message.error = JointTrajectoryPoint(positions=tau, velocities=ddq)
    message.output = JointTrajectoryPoint(**{OUTPUTS[interface]: tau})
    found = ControllerStateTemplate(JOINTS, interface).fill(time, state)
    # It ends with its last field; what rclpy sends beyond are bytes that nobody wrote.
    assert bytes(serialize_message(message)).startswith(found)
    assert found.endswith(struct.pack('<d', factor))


@given(stamps)
def test_clock(time):
    data = MessageTemplate(Clock(), (), ('clock',)).fill({}, {'clock': time})
    message = deserialize_message(data, Clock)
    assert message.clock.sec * 10**9 + message.clock.nanosec == time
