"""A controller that was deactivated: its hardware is named, where controller_manager says so."""

import sys
from types import ModuleType, SimpleNamespace
from unittest.mock import MagicMock

import pytest
from rclpy.task import Future

from robotid_ros.nodes.common.hardware_client import HardwareClient


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """Stand in for the interfaces of controller_manager, and for a client of them."""
    services = ModuleType('controller_manager_msgs.srv')
    services.ListHardwareComponents = MagicMock()
    monkeypatch.setitem(sys.modules, 'controller_manager_msgs', ModuleType('parent'))
    monkeypatch.setitem(sys.modules, 'controller_manager_msgs.srv', services)
    return MagicMock()


def explanation(client: MagicMock, **labels: str) -> str:
    future = Future()
    components = [
        SimpleNamespace(name=name, state=SimpleNamespace(label=label))
        for name, label in labels.items()
    ]
    if components:
        future.set_result(SimpleNamespace(component=components))
    client.call_async.return_value = future
    node = SimpleNamespace(create_client=lambda *_: client)
    return HardwareClient(node).explain_deactivation()


def test_failed_hardware_is_named(client: MagicMock):
    found = explanation(client, arm='unconfigured', gripper='active')
    assert found == 'it was deactivated because its hardware failed: arm is unconfigured'


def test_sound_hardware_was_not_the_reason(client: MagicMock):
    assert explanation(client, arm='active').startswith('somebody deactivated it')


def test_without_an_answer_the_sentence_says_who_knows(client: MagicMock):
    assert 'list_hardware_components' in explanation(client)
    client.service_is_ready.return_value = False
    assert 'list_hardware_components' in explanation(client, arm='unconfigured')


def test_without_its_interfaces_likewise(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, 'controller_manager_msgs.srv', None)
    assert 'list_hardware_components' in HardwareClient(SimpleNamespace()).explain_deactivation()
