"""A controller that forwards efforts beside the trajectory controller, and their manager."""

from collections.abc import Callable
import math
from typing import Any

from controller_manager_msgs.msg import ControllerState
from controller_manager_msgs.srv import ListControllers, SwitchController
from rclpy.node import Node
from rclpy.qos import QoSPresetProfiles
from std_msgs.msg import Float64MultiArray

from ...simulation_settings import SimulationSettings
from ..common.controller import FORWARDED, FORWARDING, JTC, MANAGER
from .control_loop import ControlLoop


class SimulatedManager(Node):
    """
    Switches between two controllers in a cycle of the control loop, and is one of them.

    Parameters
    ----------
    settings : names of the controllers
    loop : that the trajectory controller commands at first
    options : of `rclpy.node.Node`

    """

    def __init__(
        self, settings: SimulationSettings, loop: Callable[[], ControlLoop], **options: Any
    ):
        super().__init__(MANAGER, **options)
        self._loop, self._names = loop, (settings.controller, settings.effort_controller)
        self.create_service(SwitchController, '~/switch_controller', self._on_switch)
        self.create_service(ListControllers, '~/list_controllers', self._on_list)
        topic, qos = f'{settings.effort_controller}/{FORWARDED}', QoSPresetProfiles.SYSTEM_DEFAULT
        self.create_subscription(Float64MultiArray, topic, self._on_command, qos.value)

    def _active(self) -> dict[str, bool]:
        loop = self._loop()
        return dict(
            zip(self._names, (loop.controller.active, loop.forwarded is not None), strict=True)
        )

    def _on_command(self, message: Float64MultiArray) -> None:
        loop = self._loop()
        if loop.forwarded is None or not all(map(math.isfinite, message.data)):
            return
        if len(message.data) == len(loop.forwarded):
            loop.forwarded = list(message.data)
        else:
            # As the original: its update fails, it is deactivated, and its last efforts stay.
            self.get_logger().error('a command of the wrong size: the controller is deactivated')
            loop.switch(lambda q, dq: self._apply(False, False, q, dq))

    def _on_list(self, _: Any, response: ListControllers.Response) -> ListControllers.Response:
        interfaces = [f'{joint}/effort' for joint in self._loop().physics.joints]
        kinds = zip(self._active().items(), (JTC, FORWARDING[0]), strict=True)
        response.controller = [
            ControllerState(
                name=name,
                type=kind,
                state='active' if active else 'inactive',
                required_command_interfaces=interfaces,
                claimed_interfaces=interfaces if active else [],
            )
            for (name, active), kind in kinds
        ]
        return response

    def _on_switch(
        self, request: SwitchController.Request, response: SwitchController.Response
    ) -> SwitchController.Response:
        before = self._active()
        on, off = set(request.activate_controllers), set(request.deactivate_controllers)
        trajectory, forwards = (
            (active and name not in off) or name in on for name, active in before.items()
        )
        wrong = any(before.get(name, True) for name in on)
        wrong |= not all(before.get(name, False) for name in off)
        if trajectory and forwards:
            response.message = 'both controllers would claim the same interfaces'
        elif (on | off) - set(before) or (wrong and request.strictness != request.BEST_EFFORT):
            response.message = 'a controller is unknown, active already, or inactive'
        else:
            response.ok = self._loop().switch(
                lambda q, dq: self._apply(trajectory, forwards, q, dq)
            )
        return response

    def _apply(
        self, trajectory: bool, forwards: bool, position: list[float], velocity: list[float]
    ) -> None:
        loop = self._loop()
        controller = loop.controller
        if controller.active and not trajectory:
            controller.deactivate()
        # What the other one has left on the interfaces stays until a command comes.
        if loop.forwarded is not None:
            controller.command = loop.forwarded
        loop.forwarded = controller.command if forwards else None
        if trajectory and not controller.active:
            controller.activate(position, velocity)
