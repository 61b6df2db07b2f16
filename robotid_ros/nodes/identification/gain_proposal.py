"""Controller gains that follow from the identified inertia, set on a robot that rests."""

from pathlib import Path
import time

from diagnostic_msgs.msg import DiagnosticStatus

from ...core.verification.gains import GainProposal
from ...exceptions import ControllerError, FEW
from ...files import verification as record
from ..common.controller import ControllerClient, subscribe_states
from ..common.joint_states import check_at_rest
from ..common.messages import MOVING, values_of
from ..common.runtime import ConfiguredNode, LATCHED

# The excitation repeats a state in which it moves several times a second. After so long without
# one, it has died [s]; or another one is up that is not heard yet.
MAX_STATE_AGE = 2.0
# The parameter that asks for gains which are not better.
ANYWAY = 'identification.controller_gains.although_not_better'
NO_GAINS = 'the recording holds none of a controller that commands efforts'


def check_trial(folder: Path, created: str) -> None:
    """Raise a ControllerError where a trial of the gains of results found them not better."""
    found = record.read_verification(folder / record.VERIFICATION)
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
                raise ControllerError(record.proposal_sentence(proposal))
            check_trial(folder, created)
        description, name = self._controller.describe(), self._controller.name
        description.check_gains_are_torques()
        check_at_rest(subscribe_states(self._node, name), self._controller.timeout)
        self._check_no_session()  # begun meanwhile
        old = record.gain_parameters(proposal.old)
        if changed := [name for name in old if description.values.get(name, 0.0) != old[name]]:
            raise ControllerError(
                f'{changed[0]} changed after the recording, for which gains are proposed: run a '
                'session with the present parameters'
            )
        try:
            self._controller.set(record.gain_parameters(proposal.new))
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
                f"the excitation runs, but '{self._state_topic}' does not say whether it moves "
                'the robot: ask again, or restart it'
            )

    def _on_state(self, message: DiagnosticStatus) -> None:
        self._session, self._heard = values_of(message).get('state', ''), time.monotonic()
