"""Why a controller was deactivated in the middle of a motion, if controller_manager knows."""

import importlib

from rclpy.node import Node

from ...exceptions import ControllerError
from .runtime import result_of

SERVICE = 'controller_manager/list_hardware_components'
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

    """

    def __init__(self, node: Node):
        self._client = None
        try:
            services = importlib.import_module('controller_manager_msgs.srv')
        except ImportError:
            return
        self._type = services.ListHardwareComponents
        self._client = node.create_client(self._type, SERVICE)

    def explain_deactivation(self) -> str:
        """Say which hardware has failed; where nobody answers, who knows."""
        if self._client is None or not self._client.service_is_ready():
            return _UNKNOWN
        try:
            future = self._client.call_async(self._type.Request())
            components = result_of(future, ANSWER_TIMEOUT, SERVICE).component
        except ControllerError:
            return _UNKNOWN
        failed = [f'{c.name} is {c.state.label}' for c in components if c.state.label != 'active']
        if not failed:
            return 'somebody deactivated it, its hardware is active'
        return f'it was deactivated because its hardware failed: {", ".join(failed)}'
