"""Sets the proposed gains on the controller of a robot that rests."""

from collections.abc import Mapping
import time

from diagnostic_msgs.msg import DiagnosticStatus

from ...core.arrays import Array
from ...core.model import Robot
from ...exceptions import ControllerError
from ...node_settings import GainSettings
from ..common.controller_client import ControllerClient
from ..common.messages import State, values_of
from ..common.runtime import ConfiguredNode, LATCHED
from .gain_proposal import gain_parameters, JointGains, propose_gains
from .rest_check import check_at_rest

# A state of the excitation that is older says nothing any more [s]: it repeats it several times a
# second, unless it has died.
MAX_STATE_AGE = 2.0
MOVING = {state.value for state in State if state.moving}
Gains = dict[str, JointGains]


class GainUpdate:
    """
    Proposes gains, and sets them.

    Parameters
    ----------
    node : that was asked to
    settings : of the proposal

    """

    def __init__(self, node: ConfiguredNode, settings: GainSettings):
        self._node, self._settings = node, settings
        excitation = node.configuration.excitation
        self._controller = ControllerClient(node, excitation.controller, excitation.timeout)
        self._session, self._heard = '', 0.0
        node.create_subscription(DiagnosticStatus, 'excitation/state', self._on_state, LATCHED)

    def propose(
        self, robot: Robot, inertia: Array, present: Mapping[str, Mapping[str, float]]
    ) -> tuple[Gains, Gains]:
        """Present and proposed gains, from the identified inertia (n,) in the command's unit."""
        old = {}
        for joint, value, drive in zip(robot.joints, inertia, robot.drive_gain, strict=True):
            p, i, d = (float(present.get(joint, {}).get(name, 0.0)) for name in ('p', 'i', 'd'))
            old[joint] = JointGains(p, i, d, float(value / abs(drive)))
        return old, {joint: propose_gains(gains, self._settings) for joint, gains in old.items()}

    def set(self, robot: Robot, inertia: Array) -> tuple[Gains, Gains]:
        """
        Set the proposal for the present gains; put the old ones back if that fails.

        Returns
        -------
        Old and new gains.

        Raises
        ------
        ControllerError : the robot moves, or the controller refuses

        """
        if self._session in MOVING and time.monotonic() - self._heard < MAX_STATE_AGE:
            raise ControllerError(
                f'the excitation moves the robot ({self._session}): wait until its session ends'
            )
        description = self._controller.describe()
        if description.command_interfaces != ('effort',):
            raise ControllerError(
                f"'{self._controller.name}' commands {', '.join(description.command_interfaces)}: "
                'gains follow from the inertia only where efforts are commanded'
            )
        check_at_rest(self._node, self._controller.name, self._controller.timeout)
        old, new = self.propose(robot, inertia, description.gains)
        try:
            self._controller.set(gain_parameters(new))
        except ControllerError as error:
            self._controller.set(gain_parameters(old))
            raise ControllerError(f'{error}; the old gains are set again') from error
        return old, new

    def _on_state(self, message: DiagnosticStatus) -> None:
        self._session, self._heard = values_of(message).get('state', ''), time.monotonic()
