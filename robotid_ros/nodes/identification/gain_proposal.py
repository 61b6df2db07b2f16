"""Controller gains that follow from the identified inertia, set on a robot that rests."""

from collections.abc import Mapping
from contextlib import closing
from itertools import compress
import math
from pathlib import Path
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
from rclpy.node import Node

from ...core.verification.gains import GAIN_MARGIN, GainProposal, JointGains, NAMES, PHASE_MARGIN
from ...exceptions import ControllerError, FEW
from ...files.verification import read_verification, VERIFICATION
from ..common.controller import ControllerClient, subscribe_states
from ..common.messages import stamps_to_nanoseconds, State, values_of
from ..common.runtime import ConfiguredNode, LATCHED


def gain_parameters(gains: Mapping[str, JointGains]) -> dict[str, float]:
    """Name the gains as the controller's parameters do."""
    return {
        f'gains.{joint}.{name}': getattr(values, name)
        for joint, values in gains.items()
        for name in NAMES
    }


# Why no other gains are proposed than the present ones.
REASONS = {
    'springs': 'gains of joints with springs do not follow from the inertia',
    'margins': 'none within controller_gains.change of them keeps 6 dB and 45° in all postures: '
    'raise it',
    'swings': 'with stiffer ones a joint swings at rest in a simulation',
    'saturates': 'with stiffer ones drives reach their limits in a simulation',
}


def proposal_sentence(proposal: GainProposal) -> str:
    """Say what a simulation makes of a proposal, and of the margins at the worst posture."""
    low, high = (f'{end(proposal.ratio, default=math.nan):.2f}' for end in (min, max))
    error = f'{low} to {high} times the tracking error in a simulation'
    if proposal.why == 'springs' and not proposal.better:
        return f'the gains in place stay: {REASONS[proposal.why]}'
    gain, phase = proposal.new_margins if proposal.better else proposal.margins
    margins = f'margins of {20.0 * math.log10(gain):.1f} dB and {math.degrees(phase):.0f}°'
    if proposal.better:
        return f'{error}, {margins}'
    reason = REASONS.get(proposal.why, f'the stiffest with 6 dB and 45° leave {error}')
    good = gain >= GAIN_MARGIN and phase >= PHASE_MARGIN
    verdict = 'are as good as can be had' if good else 'stay'
    return f'the gains in place ({margins}) {verdict}: {reason}'


OBSERVED_TIME = 0.3  # how long the robot is watched, by its own clock [s]
# Travel meanwhile that is a motion [rad or m]: a reference at rest is constant, and positions that
# are measured at rest differ by less, even with an encoder of 12 bits.
MAX_REFERENCE_TRAVEL, MAX_TRAVEL = 1e-5, 5e-3
POLL_PERIOD = 0.01


def check_at_rest(node: Node, controller: str, timeout: float) -> None:
    """Watch states, in a worker thread; ControllerError: the robot moves, or nobody knows."""

    def is_well_formed(state: Any) -> bool:
        positions = (state.reference.positions, state.feedback.positions)
        return all(len(p) == len(state.joint_names) and np.isfinite(p).all() for p in positions)

    states, end = list[Any](), time.monotonic() + timeout
    with closing(subscribe_states(node, controller)) as stream:
        while not states or np.ptp(stamps_to_nanoseconds(states)) * 1e-9 < OBSERVED_TIME:
            if time.monotonic() > end:
                raise ControllerError(
                    f"'{stream.topic}' does not say whether the robot rests: activate the "
                    'controller'
                )
            time.sleep(POLL_PERIOD)
            states += stream.take_newest(is_well_formed)[0]
            states = [state for state in states if state.joint_names == states[-1].joint_names]
    reference = np.array([state.reference.positions for state in states])
    measured = np.array([state.feedback.positions for state in states])
    moves = np.ptp(reference, axis=0) > MAX_REFERENCE_TRAVEL
    moves |= np.ptp(measured, axis=0) > MAX_TRAVEL
    if moving := [*compress(states[0].joint_names, moves)]:
        raise ControllerError(f'the robot moves ({", ".join(moving)}): wait until it rests')


# The excitation repeats a state in which it moves several times a second. After so long without
# one, it has died [s]; or another one is up that is not heard yet.
MAX_STATE_AGE = 2.0
MOVING = {state.value for state in State if state.moving}
# The parameter that asks for gains which are not better.
ANYWAY = 'identification.controller_gains.although_not_better'
NO_GAINS = 'the recording holds none of a controller that commands efforts'


def check_trial(folder: Path, created: str) -> None:
    """Raise a ControllerError where a trial of the gains of results found them not better."""
    found = read_verification(folder / VERIFICATION)
    if found is None or found.results != created or found.gains is None or found.gains.kept:
        return
    rows = found.gains.tracking[:FEW]
    errors = '; '.join(
        f'{row.joint} {row.rms_before:.3g} before, {row.rms_after:.3g} {row.unit} with them'
        for row in rows
    )
    reason = f'tracking error RMS: {errors}' if rows else found.gains.sentence
    raise ControllerError(
        f'~/verify_gains found the proposed gains not better ({reason}): the present ones stay; '
        f'set the parameter {ANYWAY} of this node to true to set them all the same'
    )


class GainUpdate:
    """Sets the proposed gains."""

    def __init__(self, node: ConfiguredNode):
        self._node = node
        excitation = node.configuration.excitation
        self._controller = ControllerClient(node, excitation.controller, excitation.timeout)
        self._session, self._heard = '', 0.0
        states = node.create_subscription(
            DiagnosticStatus, 'excitation/state', self._on_state, LATCHED
        )
        self._state_topic: str = states.topic_name

    def set(self, proposal: GainProposal | str, folder: Path, created: str) -> None:
        """Set proposed gains, or the old ones again if that fails; ControllerError: why not."""
        self._check_no_session()
        if isinstance(proposal, str):
            raise ControllerError(f'no gains are proposed: {proposal or NO_GAINS}')
        if not self._node.get_parameter(ANYWAY).value:
            if not proposal.better:
                raise ControllerError(proposal_sentence(proposal))
            check_trial(folder, created)
        description = self._controller.describe()
        description.check_gains_are_torques()
        check_at_rest(self._node, self._controller.name, self._controller.timeout)
        self._check_no_session()  # begun meanwhile
        old = gain_parameters(proposal.old)
        if changed := [name for name in old if description.values.get(name, 0.0) != old[name]]:
            raise ControllerError(
                f'{changed[0]} is not what it was in the recording, for which gains are proposed: '
                'run a session with the present ones'
            )
        try:
            self._controller.set(gain_parameters(proposal.new))
        except ControllerError as error:
            self._controller.set(old)
            raise ControllerError(f'{error}; the old gains are set again') from error

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
