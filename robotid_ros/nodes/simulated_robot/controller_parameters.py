"""Parameters of the simulated joint_trajectory_controller, with the original's names and types."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
import math
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node

from ...plant.controller_types import AcceptanceRules, ControllerSettings
from ...simulation_settings import (
    ConstraintSettings,
    GainSettings,
    JointConstraintSettings,
    SimulationSettings,
)

ACTION_MONITOR_RATE = 20.0
# Where robots with a speed slider tell its factor, by the driver of Universal Robots.
SPEED_SCALING = 'speed_scaling/speed_scaling_factor'
# Name -> default; these change what is accepted while the controller runs.
ACCEPTANCE_PARAMETERS = {
    'allow_partial_joints_goal': 'partial_joints',
    'allow_nonzero_velocity_at_trajectory_end': 'nonzero_end_velocity',
    'allow_integration_in_goal_trajectories': 'integration',
}
READ_ONLY_FIELDS = ('antiwindup_strategy', 'max_deceleration_on_cancel')


def declare_parameters(node: Node, joints: Sequence[str], settings: SimulationSettings) -> None:
    """Declare everything that the original declares for these joints."""
    for name, value, description, read_only, minimum in _parameters(joints, settings):
        descriptor = ParameterDescriptor(description=description, read_only=read_only)
        if minimum is not None:
            at_least = FloatingPointRange(from_value=minimum, to_value=math.inf)
            descriptor.floating_point_range = [at_least]
        node.declare_parameter(name, value, descriptor)


def read_parameters(
    node: Node, joints: tuple[str, ...], wraparound: tuple[bool, ...]
) -> ControllerSettings:
    """Collect the parameters' present values as the controller's settings."""
    (interface,) = node.get_parameter('command_interfaces').value

    def group(cls: type[Any], prefix: str, **further: Any) -> Any:
        names = [field.name for field in fields(cls) if field.name not in further]
        return cls(
            **{name: node.get_parameter(f'{prefix}.{name}').value for name in names}, **further
        )

    by_joint = {j: group(JointConstraintSettings, f'constraints.{j}') for j in joints}
    return ControllerSettings(
        joints,
        wraparound,
        round(1e9 / node.get_parameter('update_rate').value),
        {joint: group(GainSettings, f'gains.{joint}') for joint in joints},
        group(ConstraintSettings, 'constraints', joints=by_joint),
        AcceptanceRules(
            **{own: node.get_parameter(name).value for name, own in ACCEPTANCE_PARAMETERS.items()},
            effort=interface == 'effort',
        ),
        node.get_parameter('cmd_timeout').value,
        interface,
    )


def _parameters(
    joints: Sequence[str], settings: SimulationSettings
) -> Iterator[tuple[str, Any, str, bool, float | None]]:
    """Name, default, description, whether it is read-only, and its smallest value."""
    for name, value, description, read_only in _own_parameters(joints, settings):
        yield name, value, description, read_only, None
    yield from _group(settings.constraints, 'constraints')
    for joint in joints:
        limits = settings.constraints.joints.get(joint, JointConstraintSettings())
        yield from _group(limits, f'constraints.{joint}')
        yield from _group(settings.gains.get(joint, GainSettings()), f'gains.{joint}')


def _own_parameters(
    joints: Sequence[str], settings: SimulationSettings
) -> Iterator[tuple[str, Any, str, bool]]:
    yield 'joints', list(joints), 'joints of the controller', True
    yield 'command_joints', list(joints), 'joints that are commanded', True
    interface = settings.command_interface
    yield 'command_interfaces', [interface], 'what is commanded', True
    yield 'state_interfaces', ['position', 'velocity'], 'what is measured', True
    rate = settings.controller_rate or settings.update_rate
    yield 'update_rate', round(rate), 'updates per second', True
    # Those of every controller: -100 stands for the default of controller_interface.
    yield 'is_async', False, 'updates in a thread of its own', False
    yield 'thread_priority', -100, 'of that thread', False
    yield 'action_monitor_rate', ACTION_MONITOR_RATE, 'feedback and results [Hz]', True
    yield 'interpolation_method', 'splines', 'between points', True
    yield 'open_loop_control', False, 'deprecated', True
    yield 'interpolate_from_desired_state', False, 'start from the reference', True
    yield 'speed_scaling.initial_scaling_factor', 1.0, 'fixed but with position commands', True
    scaling = SPEED_SCALING if interface == 'position' else ''
    yield 'speed_scaling.state_interface', scaling, 'where the hardware tells its factor', True
    yield 'speed_scaling.command_interface', '', 'where the hardware is told it', True
    yield 'cmd_timeout', 0.0, 'hold after this time beyond the end, 0: never [s]', False
    yield 'set_last_command_interface_value_as_state_on_activation', True, 'on activation', False
    for name in ACCEPTANCE_PARAMETERS:
        yield name, False, 'what trajectories are accepted', False


def _group(settings: Any, prefix: str) -> Iterator[tuple[str, Any, str, bool, float | None]]:
    for field in fields(settings):
        if field.name == 'joints':
            continue
        read_only = field.name in (*READ_ONLY_FIELDS, 'decelerate_on_cancel')
        text = f'{field.metadata["description"]} {field.metadata["unit"]}'.strip()
        name, value = f'{prefix}.{field.name}', getattr(settings, field.name)
        yield name, value, text, read_only, field.metadata['minimum']
