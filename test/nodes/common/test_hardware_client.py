"""A controller that was deactivated: its hardware is named, where controller_manager says so."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from rclpy.expand_topic_name import expand_topic_name
from rclpy.task import Future

from robotid_ros.nodes.common.controller import HardwareClient


@pytest.fixture
def client() -> MagicMock:
    """Stand in for a client of controller_manager."""
    return MagicMock()


JOINTS = {'arm': 'joint_1', 'gripper': 'finger', 'encoders': 'joint_2'}


def component(name: str, label: str) -> SimpleNamespace:
    position = SimpleNamespace(name=f'{JOINTS[name]}/position')
    commands = [] if name == 'encoders' else [position]
    return SimpleNamespace(
        name=name,
        state=SimpleNamespace(label=label),
        command_interfaces=commands,
        state_interfaces=[position],
    )


def asked(client: MagicMock, **labels: str) -> HardwareClient:
    future = Future()
    if labels:
        components = [component(*item) for item in labels.items()]
        future.set_result(SimpleNamespace(component=components))
    client.call_async.return_value = future
    node = SimpleNamespace(create_client=lambda *_: client)
    return HardwareClient(node, 'arm_controller')


def explanation(client: MagicMock, **labels: str) -> str:
    return asked(client, **labels).explain_end(['joint_1', 'joint_2'])


def test_failed_hardware_is_named(client: MagicMock):
    found = explanation(client, arm='unconfigured', gripper='active')
    assert found == 'its hardware failed: arm is unconfigured'


def test_hardware_of_other_joints_was_not_the_reason(client: MagicMock):
    found = explanation(client, arm='active', gripper='inactive')
    assert found == 'its hardware is active'
    found = explanation(client, arm='active', gripper='inactive', encoders='inactive')
    assert found == 'its hardware failed: encoders is inactive'
    # Where no hardware tells its joints, no reason is known.
    assert 'list_hardware_components' in explanation(client, gripper='inactive')


@pytest.mark.parametrize(
    'controller, asked',
    [
        ('arm_controller', '/cell/controller_manager'),
        ('arm1/arm_controller', '/cell/arm1/controller_manager'),
        ('/arm1/arm_controller', '/arm1/controller_manager'),
        ('/arm_controller', '/controller_manager'),
    ],
)
def test_controller_manager_is_looked_for_beside_the_controller(
    client: MagicMock, controller: str, asked: str
):
    resolved: list[str] = []
    node = SimpleNamespace(
        create_client=lambda _, name: resolved.append(
            expand_topic_name(name, 'excitation', '/cell')
        )
    )
    HardwareClient(node, controller)
    services = 'list_hardware_components', 'switch_controller', 'set_hardware_component_state'
    assert resolved == [f'{asked}/{service}' for service in services]


def test_hardware_without_commands_is_not_deactivated(client: MagicMock):
    labels = {'arm': 'active', 'gripper': 'active', 'encoders': 'active'}
    assert asked(client, **labels).names(['joint_1', 'joint_2']) == ['arm']
    client.service_is_ready.return_value = False
    assert asked(client, **labels).names(['joint_1']) == []


def test_sound_hardware_was_not_the_reason(client: MagicMock):
    assert explanation(client, arm='active') == 'its hardware is active'


def test_without_an_answer_the_sentence_says_who_knows(client: MagicMock):
    assert 'list_hardware_components' in explanation(client)
    client.service_is_ready.return_value = False
    assert 'list_hardware_components' in explanation(client, arm='unconfigured')
