"""Joints that a motion leaves alone are locked where they stand, whoever publishes them."""

from pathlib import Path
import threading

import pytest
from rclpy.node import Node
from sensor_msgs.msg import JointState
from waiting import PATIENCE

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.exceptions import ControllerError
from robotid_ros.nodes.excitation.session_design import place_locked_joints, read_positions

URDF = (Path(__file__).resolve().parents[3] / 'urdf' / 'ur10.urdf').read_text()
ARM = ('shoulder_pan_joint', 'shoulder_lift_joint', 'elbow_joint')
WRIST = ('wrist_1_joint', 'wrist_2_joint')
STANDING = {'wrist_1_joint': 0.7, 'wrist_2_joint': -0.3, 'finger_of_another_description': 0.1}


def test_a_joint_is_locked_where_it_stands_unless_the_configuration_says_otherwise():
    settings = RobotSettings(joints=ARM, locked={'wrist_1_joint': 0.2})
    placed = place_locked_joints(URDF, settings, {**STANDING, 'elbow_joint': 1.0})
    assert placed.locked == {'wrist_1_joint': 0.2, 'wrist_2_joint': -0.3}
    # What nobody has heard of stands at the URDF's zero.
    assert build_robot(URDF, placed).locked == {**placed.locked, 'wrist_3_joint': 0.0}


@pytest.mark.ros
def test_positions_of_several_publishers_are_put_together(node: Node):
    publishers = [node.create_publisher(JointState, 'joint_states', 10) for _ in range(2)]
    end = threading.Event()

    def publish() -> None:
        while not end.wait(0.01):
            for publisher, names, place in zip(publishers, (ARM, WRIST), (0.5, 0.7), strict=True):
                # Doubled names, and values that are none, are passed over.
                publisher.publish(JointState(name=[names[0]] * 2, position=[9.0] * 2))
                publisher.publish(JointState(name=names[-1:], position=[float('nan')]))
                publisher.publish(JointState(name=names, position=[place] * len(names)))

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        # Both are required: when the second is discovered is not for a test to say.
        found = read_positions(node, (*ARM, *WRIST), PATIENCE)
        with pytest.raises(ControllerError, match='joint_state_broadcaster'):
            read_positions(node, ('tail_joint',), 0.1, listening=0.1)
    finally:
        end.set()
        thread.join()
    assert found == {**dict.fromkeys(ARM, 0.5), **dict.fromkeys(WRIST, 0.7)}
