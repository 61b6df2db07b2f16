"""Messages of a motion become arrays: by joint name, within its time, whatever else is there."""

from dataclasses import replace

from control_msgs.msg import JointTrajectoryControllerState
import numpy as np
import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from robotid_ros.exceptions import RobotStateError
from robotid_ros.nodes.excitation.verifications import MotionLog

JOINTS = ('a', 'b')
START, STOP = 1_000_000_000, 1_400_000_000
PERIOD = 4_000_000


def stamp(message, nanoseconds: int):
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, 10**9)
    return message


def state(k: int) -> JointTrajectoryControllerState:
    """Return a state of the controller, whose joints are in another order."""
    message = stamp(JointTrajectoryControllerState(joint_names=['b', 'a']), START + k * PERIOD)
    message.reference.positions, message.feedback.positions = [0.2, 0.1], [20.0, 10.0]
    message.error.positions, message.output.effort = [2.0 * k, 1.0 * k], [4.0, 3.0]
    return message


def joint_state(k: int, effort: list[float]) -> JointState:
    names = ['a', 'gripper', 'b']
    message = JointState(name=names, position=[1.0, 9.0, 2.0], effort=effort)
    return stamp(message, START + k * PERIOD + 30_000)


def raw(effort: list[float]) -> MotionLog:
    """Messages from before until after the motion, one of them garbage."""
    rows = range(-20, 130)
    return MotionLog(
        JOINTS,
        [*(serialize_message(state(k)) for k in rows), b'no message'],
        [b'', *(serialize_message(joint_state(k, effort)) for k in rows)],
        *(START, STOP),
    )


def test_errors_are_those_of_the_motion():
    found = raw([]).tracking()
    assert (found.joints, len(found.time)) == (JOINTS, 101)
    np.testing.assert_allclose(found.time, np.arange(101) * 0.004)
    np.testing.assert_array_equal(found.error, np.outer(np.arange(101), [1.0, 2.0]))


def test_a_motion_that_nobody_saw_is_no_motion():
    blind = replace(raw([]), start=STOP - 5 * PERIOD)
    with pytest.raises(RobotStateError, match='only 6 states'):
        blind.tracking()


@pytest.mark.parametrize(
    ('effort', 'position', 'torque'),
    [
        ([5.0, 0.0, 6.0], [1.0, 2.0], [5.0, 6.0]),
        # Drivers without sensors publish nothing, zeros or NaN: what is commanded counts.
        ([], [10.0, 20.0], [3.0, 4.0]),
        ([0.0] * 3, [10.0, 20.0], [3.0, 4.0]),
        ([float('nan')] * 3, [10.0, 20.0], [3.0, 4.0]),
    ],
)
def test_efforts_are_measured_or_else_commanded(effort, position, torque):
    messages = raw(effort)
    recording = messages.recording()
    assert recording.joints == JOINTS
    assert 0.0 <= recording.time[0] and recording.time[-1] <= 0.4
    np.testing.assert_array_equal(recording.position[0], position)
    np.testing.assert_array_equal(recording.effort[0], torque)
    np.testing.assert_array_equal(messages.means(), [position, torque])


def test_the_rate_is_what_the_states_show():
    assert raw([]).update_rate(0.0) == pytest.approx(250.0)
    # The parameter, rounded by ros2_control to what its own rate allows.
    assert raw([]).update_rate(300.0) == pytest.approx(250.0)
    few = replace(raw([]), states=[], joint_states=[])
    with pytest.raises(RobotStateError, match='how often it updates'):
        few.update_rate(0.0)
