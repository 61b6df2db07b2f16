"""Controller gains that fit the identified inertia, and set on a robot that rests."""

from collections.abc import Mapping
from dataclasses import dataclass
import math
from pathlib import Path
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
from rclpy.node import Node

from ...core.arrays import Array
from ...core.model import mass_matrix, Robot
from ...exceptions import ControllerError, FEW
from ...files.verification import read_verification, VERIFICATION
from ...node_settings import GainProposalSettings
from ..common.controller import ControllerClient, subscribe_states
from ..common.messages import stamps_to_nanoseconds, State, values_of
from ..common.runtime import ConfiguredNode, LATCHED


@dataclass(frozen=True)
class JointGains:
    """
    PID gains of one joint and the behaviour they give a decoupled inertia J.

    Parameters
    ----------
    p, i, d : gains per unit of the controller's command
    inertia : J in that unit [kg·m² where the command is a torque]

    """

    p: float
    i: float
    d: float
    inertia: float

    @property
    def natural_frequency(self) -> float:
        """ω_n = √(p/J) [rad/s]."""
        return math.sqrt(max(self.p, 0.0) / self.inertia)

    @property
    def damping(self) -> float:
        """ζ = d / (2 √(p J))."""
        return self.d / (2.0 * math.sqrt(self.p * self.inertia)) if self.p > 0.0 else math.inf


def propose_gains(old: JointGains, settings: GainProposalSettings) -> JointGains:
    """
    Place the poles of J q̈ = −p e − d ė at the wanted ω_n and ζ: `p = J ω²`, `d = 2 ζ J ω`.

    The integral gain keeps its ratio to p. No gain changes by more than the allowed factor; one
    that is zero stays zero.
    """

    def bounded(old: float, new: float) -> float:
        return min(max(new, old / settings.change), old * settings.change)

    omega = settings.bandwidth or old.natural_frequency
    p = bounded(old.p, old.inertia * omega**2)
    d = bounded(old.d, 2.0 * settings.damping * old.inertia * omega)
    i = old.i * p / old.p if old.p else old.i
    return JointGains(p, i, d, old.inertia)


Gains = dict[str, JointGains]


def propose_for_joints(
    robot: Robot,
    inertia: Array,
    present: Mapping[str, Mapping[str, float]],
    settings: GainProposalSettings,
) -> tuple[Gains, Gains]:
    """Present and proposed gains, from the inertia (n,) of each joint [kg·m² or kg]."""
    old = {}
    for joint, value, drive in zip(robot.joints, inertia, robot.drive_gain, strict=True):
        p, i, d = (float(present.get(joint, {}).get(name, 0.0)) for name in 'pid')
        old[joint] = JointGains(p, i, d, float(value / abs(drive)))
    return old, {joint: propose_gains(gains, settings) for joint, gains in old.items()}


def largest_inertia(robot: Robot, chi: Array, q: Array, poses: int) -> Array:
    """Largest M_jj (n,), motors included, on a motion (N, n), at so many of its poses."""
    # The diagonal varies slowly: more poses would cost time and hardly change the largest value.
    chosen = q[:: max(1, len(q) // poses)]
    return np.diagonal(mass_matrix(robot, chi, chosen), axis1=1, axis2=2).max(axis=0)


def gain_parameters(gains: Mapping[str, JointGains]) -> dict[str, float]:
    """Name the gains as the controller's parameters do."""
    return {
        f'gains.{joint}.{name}': getattr(values, name)
        for joint, values in gains.items()
        for name in ('p', 'i', 'd')
    }


# How long the robot is watched, by its own clock [s].
OBSERVED_TIME = 0.3
# Travel meanwhile that is a motion [rad or m]: a reference at rest is constant, and positions that
# are measured at rest differ by less, even with an encoder of 12 bits.
MAX_REFERENCE_TRAVEL, MAX_TRAVEL = 1e-5, 5e-3
POLL_PERIOD = 0.01


def check_at_rest(node: Node, controller: str, timeout: float) -> None:
    """
    Watch the states of a controller for a moment; call from a worker thread.

    Where the robot moves, or nobody knows, this is a ControllerError.
    """

    def is_well_formed(state: Any) -> bool:
        positions = (state.reference.positions, state.feedback.positions)
        return all(len(p) == len(state.joint_names) and np.isfinite(p).all() for p in positions)

    stream = subscribe_states(node, controller)
    states: list[Any] = []
    try:
        end = time.monotonic() + timeout
        while not states or np.ptp(stamps_to_nanoseconds(states)) * 1e-9 < OBSERVED_TIME:
            if time.monotonic() > end:
                raise ControllerError(
                    f"'{stream.topic}' does not say whether the robot rests: activate the "
                    'controller'
                )
            time.sleep(POLL_PERIOD)
            states += stream.take_newest(is_well_formed)[0]
            states = [state for state in states if state.joint_names == states[-1].joint_names]
    finally:
        stream.close()
    reference = np.array([state.reference.positions for state in states])
    measured = np.array([state.feedback.positions for state in states])
    moves = np.ptp(reference, axis=0) > MAX_REFERENCE_TRAVEL
    moves |= np.ptp(measured, axis=0) > MAX_TRAVEL
    if moving := [states[0].joint_names[j] for j in np.flatnonzero(moves)]:
        raise ControllerError(f'the robot moves ({", ".join(moving)}): wait until it rests')


# The excitation repeats a state in which it moves several times a second. After so long without
# one, it has died [s]; or another one is up that is not heard yet.
MAX_STATE_AGE = 2.0
MOVING = {state.value for state in State if state.moving}
# The parameter that asks for gains which are not better.
ANYWAY = 'identification.controller_gains.although_not_better'


def check_trial(folder: Path, created: str) -> None:
    """
    Check that a trial of the proposed gains, if there was one, found them better.

    `folder` and `created` are those of the results that the gains follow from. A trial that did
    not is a ControllerError of the tracking errors, and of how to set the gains all the same.
    """
    found = read_verification(folder / VERIFICATION)
    if found is None or found.results != created or found.gains is None or found.gains.kept:
        return
    errors = '; '.join(
        f'{row.joint} {row.rms_before:.3g} before, {row.rms_after:.3g} {row.unit} with them'
        for row in found.gains.tracking[:FEW]
    )
    raise ControllerError(
        f'~/verify_gains found the proposed gains not better (tracking error RMS: {errors}): the '
        f'present ones stay; set the parameter {ANYWAY} of this node to true to set them all the '
        'same'
    )


class GainUpdate:
    """Sets the proposed gains."""

    def __init__(self, node: ConfiguredNode, settings: GainProposalSettings):
        self._node, self._settings = node, settings
        excitation = node.configuration.excitation
        self._controller = ControllerClient(node, excitation.controller, excitation.timeout)
        self._session, self._heard = '', 0.0
        states = node.create_subscription(
            DiagnosticStatus, 'excitation/state', self._on_state, LATCHED
        )
        self._state_topic: str = states.topic_name

    def set(self, robot: Robot, inertia: Array, folder: Path, created: str) -> tuple[Gains, Gains]:
        """
        Set the proposal for the present gains; put the old ones back if that fails.

        Parameters
        ----------
        robot, inertia : model, and what each joint of it moves (n,) [kg·m² or kg]
        folder, created : of the results, beside which a trial of the proposal is told

        Returns
        -------
        Old and new gains.

        Raises
        ------
        ControllerError : a session may run, a trial found them not better, the robot moves, or the
            controller refuses

        """
        self._check_no_session()
        if not self._node.get_parameter(ANYWAY).value:
            check_trial(folder, created)
        description = self._controller.describe()
        description.check_gains_are_torques()
        check_at_rest(self._node, self._controller.name, self._controller.timeout)
        self._check_no_session()  # begun meanwhile
        old, new = propose_for_joints(robot, inertia, description.gains, self._settings)
        try:
            self._controller.set(gain_parameters(new))
        except ControllerError as error:
            self._controller.set(gain_parameters(old))
            raise ControllerError(f'{error}; the old gains are set again') from error
        return old, new

    def _check_no_session(self) -> None:
        """Raise a ControllerError where a session moves the robot, or may."""
        if self._session and self._session not in MOVING:
            return
        if self._session and time.monotonic() - self._heard < MAX_STATE_AGE:
            raise ControllerError(
                f'the excitation moves the robot ({self._session}): wait until its session ends'
            )
        if self._node.count_publishers(self._state_topic):
            raise ControllerError(
                f"the excitation is up and does not say on '{self._state_topic}' whether it moves "
                'the robot: ask again, or restart it'
            )

    def _on_state(self, message: DiagnosticStatus) -> None:
        self._session, self._heard = values_of(message).get('state', ''), time.monotonic()
