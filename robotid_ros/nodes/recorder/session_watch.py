"""What the excitation was last heard of, for the recorder: the second to watch it."""

from collections.abc import Callable
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticStatus

from ..common.messages import format_seconds, State, status, values_of
from ..common.processes import is_active, is_here

# Silence of an excitation that moves the robot, after which it is taken for dead [s]: it publishes
# its state at least every 0.2 s, and the robot has to rest within a second. Of one on this machine
# that is seen to be dead or suspended, less is enough; one that is seen to be alive is short of
# processor, and its guardian is nearer to it: more than a second of silence was seen beside eight
# busy loops on two cores.
SILENCE_TIME, DEAD_SILENCE_TIME, BUSY_SILENCE_TIME = 0.8, 0.5, 2.0
STATES = {state.value for state in State}
MOVING = {state.value for state in State if state.moving}
ENDED = {state.value for state in State if state.ended}


class ReceivedState(NamedTuple):
    """State of the excitation, and when it was received and published [ns, system time]."""

    message: DiagnosticStatus
    received: int
    published: int


class SessionWatch:
    """
    Follows the states of the excitation; `clock` gives the time of the node [ns].

    `silence` is the time since the last state, as far as it was listened for [s].
    """

    def __init__(self, clock: Callable[[], int]):
        self._clock, self._last = clock, DiagnosticStatus()
        self._heard = clock()
        self.silence = 0.0

    @property
    def state(self) -> str:
        """Last state."""
        return values_of(self._last).get('state', '')

    @property
    def moving(self) -> bool:
        """Whether the robot was moved when the excitation was heard last."""
        return self.state in MOVING

    @property
    def lost(self) -> bool:
        """Whether the excitation died while it moved the robot."""
        if not self.moving or self.silence <= DEAD_SILENCE_TIME:
            return False
        values = values_of(self._last)
        if not is_here(values):
            return self.silence > SILENCE_TIME
        return self.silence > BUSY_SILENCE_TIME or not is_active(int(values['pid']))

    def hear(self, message: DiagnosticStatus) -> None:
        """Take in a state, unless it is none."""
        if values_of(message).get('state') in STATES:
            self._last, self._heard, self.silence = message, self._clock(), 0.0

    def cut(self, sentence: str) -> DiagnosticStatus:
        """Make the state that ends this session where it was heard of last, and take it in."""
        values = {
            **values_of(self._last),
            'state': State.FAILED.value,
            'stamp': format_seconds(self._heard),
            'cut': 'true',
        }
        name, hardware = self._last.name, self._last.hardware_id
        self._last = status(name, sentence, values, hardware=hardware, failed=True)
        return self._last
