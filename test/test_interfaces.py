"""The interfaces from .ci speak with the published ones: same types on the wire."""

import json
import os
from pathlib import Path
import sys

from control_msgs.action import FollowJointTrajectory
import pytest

# As reported by controllers of ROS 2 Jazzy (ros2 topic info --verbose); services as ROS computes
# them from the files of ros2_control 4.46.
PUBLISHED = {
    'control_msgs/msg/JointTrajectoryControllerState': (
        'RIHS01_51d8dd89cc624cbe9daaeeb4d80d6de9b86168ffdc3be41fefc0953e3c26e480'
    ),
    'control_msgs/msg/DynamicJointState': (
        'RIHS01_18024c98a62697680f581108eeed40b28fb4542fa0ac5a8e36f56c62b6813d26'
    ),
    'controller_manager_msgs/srv/ListControllers': (
        'RIHS01_4f8e36bb1fa5afdeba45c2d56ae6a2097b1493a253f961dd6290c085033bd189'
    ),
    'controller_manager_msgs/srv/ListHardwareComponents': (
        'RIHS01_2ff105e609928671af16413362c0fdd089e1dd50c5a49d830db603ba8e4439c8'
    ),
    'controller_manager_msgs/srv/SetHardwareComponentState': (
        'RIHS01_940b15846ed3e1fb561ab45edf77a992b811fd59c574f45d5205a84a0deb2f65'
    ),
    'controller_manager_msgs/srv/SwitchController': (
        'RIHS01_d4ad10aa5da7808bc522d55d4123d8ef79de73d049d165639d7663ac37cc9895'
    ),
}


@pytest.mark.parametrize('name', PUBLISHED)
def test_type_hash_is_the_published_one(name: str) -> None:
    prefixes = [*os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep), sys.prefix]
    places = [Path(p, 'share', f'{name}.json') for p in prefixes if p]
    text = next(path for path in places if path.exists()).read_text()
    hashes = {h['type_name']: h['hash_string'] for h in json.loads(text)['type_hashes']}
    assert hashes[name] == PUBLISHED[name]


def test_action_has_the_published_fields() -> None:
    goal = FollowJointTrajectory.Goal.get_fields_and_field_types()
    assert goal['path_tolerance'] == 'sequence<control_msgs/JointTolerance>'
    assert list(goal) == [
        'trajectory',
        'multi_dof_trajectory',
        'path_tolerance',
        'component_path_tolerance',
        'goal_tolerance',
        'component_goal_tolerance',
        'goal_time_tolerance',
    ]
    result = FollowJointTrajectory.Result
    assert list(result.get_fields_and_field_types()) == ['error_code', 'error_string']
    assert (result.SUCCESSFUL, result.PATH_TOLERANCE_VIOLATED) == (0, -4)
    assert result.GOAL_TOLERANCE_VIOLATED == -5
