"""A joint_trajectory_controller as a client sees it: its parameters, read and set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
import math
from typing import Any

from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.parameter_client import AsyncParameterClient

from ...exceptions import ControllerError
from .waiting import answer_of, wait_until

JTC = 'joint_trajectory_controller/JointTrajectoryController'


@dataclass(frozen=True)
class ControllerDescription:
    """
    What a controller says about itself.

    Parameters
    ----------
    name : as the controller manager knows it
    joints : in the controller's order
    command_interfaces, state_interfaces : for example ('effort',), ('position', 'velocity')
    rate : its update rate [Hz], 0 when it does not say
    gains : {joint: {p, i, d, ff_velocity_scale, …}}
    values : all its parameters

    """

    name: str
    joints: tuple[str, ...]
    command_interfaces: tuple[str, ...]
    state_interfaces: tuple[str, ...]
    rate: float
    gains: Mapping[str, Mapping[str, float]]
    values: Mapping[str, Any]

    @property
    def followed_interface(self) -> str:
        """Of the interfaces that it commands, the one that the drives follow."""
        order = ('position', 'velocity', 'effort')
        return next((name for name in order if name in self.command_interfaces), 'effort')

    def check_gains_are_torques(self) -> None:
        """
        Check that gains are torques per error, which follow from the inertia.

        Raises
        ------
        ControllerError : the controller commands something else

        """
        if self.command_interfaces != ('effort',):
            raise ControllerError(
                f"'{self.name}' commands {', '.join(self.command_interfaces)}: gains follow from "
                'the inertia only where efforts are commanded'
            )

    def to_dict(self) -> dict[str, Any]:
        """Describe the controller by plain values, as a recording keeps it."""
        return {
            'name': self.name,
            'type': JTC,
            'rate': self.rate,
            'joints': list(self.joints),
            'command_interfaces': list(self.command_interfaces),
            'state_interfaces': list(self.state_interfaces),
            'gains': {joint: dict(gains) for joint, gains in self.gains.items()},
        }


class ControllerClient:
    """
    Parameter services of one controller; every call waits, so call from a worker thread.

    Parameters
    ----------
    node : whose executor spins
    name : of the controller, relative to the node's namespace
    timeout : longest wait [s]

    """

    def __init__(self, node: Node, name: str, timeout: float):
        self.name, self.timeout = name, timeout
        self._who = f"controller '{name}'"
        self._parameters = AsyncParameterClient(node, name)

    def describe(self) -> ControllerDescription:
        """
        Read the controller's parameters.

        Raises
        ------
        ControllerError : there is no such controller, or it is not a trajectory controller

        """
        wait_until(
            self._parameters.services_are_ready,
            self.timeout,
            what=f"there is no controller '{self.name}': start it, or set excitation.controller "
            "to one of those that 'ros2 control list_controllers' shows",
        )
        listed = self._answer(lambda: self._parameters.list_parameters([], 0))
        values = self.get(sorted(listed.result.names))
        if not values.get('joints') or 'command_interfaces' not in values:
            raise ControllerError(
                f"'{self.name}' has no parameters joints and command_interfaces: it must be a "
                'joint_trajectory_controller, scaled or not, and none that passes trajectories '
                'through'
            )
        return _description(self.name, values)

    def get(self, names: list[str]) -> dict[str, Any]:
        """
        Read parameters.

        Raises
        ------
        ControllerError : no answer, or one of the names is unknown

        """
        answer = self._answer(lambda: self._parameters.get_parameters(names))
        if len(answer.values) != len(names):
            # One unknown name empties the whole answer.
            raise ControllerError(f"'{self.name}' lacks one of the parameters {', '.join(names)}")
        return dict(zip(names, map(parameter_value_to_python, answer.values), strict=True))

    def set(self, values: Mapping[str, float]) -> None:
        """
        Set numbers all at once or not at all, and read them back.

        Raises
        ------
        ControllerError : no number, refused, or not what was set; says what was answered

        """
        if wrong := [name for name, value in values.items() if not math.isfinite(value)]:
            raise ControllerError(f'{wrong[0]} would not be a number: nothing was set')
        parameters = [
            Parameter(name, Parameter.Type.DOUBLE, float(value)) for name, value in values.items()
        ]
        answer = self._answer(lambda: self._parameters.set_parameters_atomically(parameters))
        if not answer.result.successful:
            raise ControllerError(
                f"'{self.name}' refused the new parameters: {answer.result.reason or 'no reason'}"
            )
        found = self.get(list(values))
        for name, value in values.items():
            if found[name] != float(value):
                raise ControllerError(
                    f"'{self.name}' says {name} is {found[name]} after it was set to {value}"
                )

    def _answer(self, ask: Callable[[], Any]) -> Any:
        return answer_of(ask, self.timeout, self._who)


def _description(name: str, values: Mapping[str, Any]) -> ControllerDescription:
    gains: dict[str, dict[str, float]] = {}
    for key, value in values.items():
        joint, _, gain = key.removeprefix('gains.').rpartition('.')
        if not key.startswith('gains.'):
            continue
        if gain == 'antiwindup_strategy':
            # Gains are numbers: a strategy is one by its name, which the replay knows.
            gains.setdefault(joint, {})[f'antiwindup_{value}'] = 1.0
        elif isinstance(value, int | float):
            gains.setdefault(joint, {})[gain] = float(value)
    return ControllerDescription(
        name=name,
        joints=tuple(values['joints']),
        command_interfaces=tuple(values['command_interfaces']),
        state_interfaces=tuple(values.get('state_interfaces') or ()),
        rate=float(values.get('update_rate') or 0.0),
        gains=gains,
        values=values,
    )
