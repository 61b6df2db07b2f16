"""Why a controller was deactivated in the middle of a motion, if controller_manager knows."""

from collections.abc import Collection
import importlib
from typing import Any

from rclpy.node import Node

from ...exceptions import ControllerError
from .waiting import result_of

_SERVICE = 'controller_manager/list_hardware_components'
# How long the answer may take [s]: 'failed' is not published before.
ANSWER_TIMEOUT = 0.1
_UNKNOWN = (
    'it was deactivated, perhaps because its hardware failed '
    "('ros2 control list_hardware_components' and controller_manager's log say which)"
)


class HardwareClient:
    """
    Asks controller_manager for the state of its hardware, where its interfaces are installed.

    Parameters
    ----------
    node : whose executor spins
    controller : its name; controller_manager is in the same namespace

    """

    def __init__(self, node: Node, controller: str):
        self._client = None
        try:
            services = importlib.import_module('controller_manager_msgs.srv')
        except ImportError:
            return
        self._type = services.ListHardwareComponents
        namespace = ''.join(controller.rpartition('/')[:2])
        self._client = node.create_client(self._type, f'{namespace}{_SERVICE}')

    def explain_deactivation(self, joints: Collection[str]) -> str:
        """Say which hardware of these joints has failed; where nobody answers, who knows."""
        failed = self._failed(joints)
        if failed is None:
            return _UNKNOWN
        if not failed:
            return 'somebody deactivated it, its hardware is active'
        return f'it was deactivated because its hardware failed: {failed}'

    def explain_silence(self, joints: Collection[str]) -> str:
        """Say which hardware of these joints has failed, '' where none is known to have."""
        failed = self._failed(joints)
        return f'its hardware failed: {failed}' if failed else ''

    def _failed(self, joints: Collection[str]) -> str | None:
        """Return the hardware of these joints that is not active, None where nobody knows."""
        if self._client is None or not self._client.service_is_ready():
            return None
        try:
            future = self._client.call_async(self._type.Request())
            components = result_of(future, ANSWER_TIMEOUT, _SERVICE).component
        except ControllerError:
            return None
        # Others may be inactive all along: a gripper that nobody needs.
        states = {c.name: c.state.label for c in components if _joints(c).intersection(joints)}
        if not states:
            return None
        return ', '.join(f'{k} is {label}' for k, label in states.items() if label != 'active')


def _joints(component: Any) -> set[str]:
    """Return the joints and sensors of a component, whose interfaces are 'joint_1/effort'."""
    interfaces = (*component.command_interfaces, *component.state_interfaces)
    return {interface.name.rpartition('/')[0] for interface in interfaces}
