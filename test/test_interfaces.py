"""control_msgs from .ci speaks with the published one: same types on the wire."""

import json
import os
from pathlib import Path
import sys

from control_msgs.action import FollowJointTrajectory
import pytest

# As reported by controllers of ROS 2 Jazzy (ros2 topic info --verbose).
PUBLISHED = {
    'JointTrajectoryControllerState': (
        'RIHS01_51d8dd89cc624cbe9daaeeb4d80d6de9b86168ffdc3be41fefc0953e3c26e480'
    ),
    'DynamicJointState': 'RIHS01_18024c98a62697680f581108eeed40b28fb4542fa0ac5a8e36f56c62b6813d26',
}


@pytest.mark.parametrize('name', PUBLISHED)
def test_type_hash_is_the_published_one(name: str) -> None:
    prefixes = [*os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep), sys.prefix]
    places = [Path(p, 'share', 'control_msgs', 'msg', f'{name}.json') for p in prefixes if p]
    text = next(path for path in places if path.exists()).read_text()
    hashes = {h['type_name']: h['hash_string'] for h in json.loads(text)['type_hashes']}
    assert hashes[f'control_msgs/msg/{name}'] == PUBLISHED[name]


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
