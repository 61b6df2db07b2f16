"""Sets the proposed gains on the controller of a robot that rests."""

import time

from diagnostic_msgs.msg import DiagnosticStatus

from ...core.arrays import Array
from ...core.model import Robot
from ...exceptions import ControllerError
from ...node_settings import GainSettings
from ..common.controller_client import ControllerClient
from ..common.messages import State, values_of
from ..common.runtime import ConfiguredNode, LATCHED
from .gain_proposal import gain_parameters, Gains, propose_for_joints
from .rest_check import check_at_rest

# A state of the excitation that is older says nothing any more [s]: it repeats it several times a
# second, unless it has died.
MAX_STATE_AGE = 2.0
MOVING = {state.value for state in State if state.moving}


class GainUpdate:
    """
    Sets the proposed gains.

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
        description.check_gains_are_torques()
        check_at_rest(self._node, self._controller.name, self._controller.timeout)
        old, new = propose_for_joints(robot, inertia, description.gains, self._settings)
        try:
            self._controller.set(gain_parameters(new))
        except ControllerError as error:
            self._controller.set(gain_parameters(old))
            raise ControllerError(f'{error}; the old gains are set again') from error
        return old, new

    def _on_state(self, message: DiagnosticStatus) -> None:
        self._session, self._heard = values_of(message).get('state', ''), time.monotonic()
