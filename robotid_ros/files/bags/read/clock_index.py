"""What is kept of a long recording: its clock at some joint states, and each joint's extent."""

import numpy as np

from ....core.signals.recording import extent_of
from .clock_alignment import Clock
from .joint_state_checks import known
from .joint_states import JointStates

THIN = 500  # joint states for one that is kept of the clock


class Thinned:
    """What a look through all pieces comes to."""

    def __init__(self) -> None:
        self.joints: tuple[str, ...] = ()
        self.known: dict[str, np.ndarray] = {}
        self.extent = np.empty((2, 0))
        self.count, self.jumped = 0, False
        self._times: list[np.ndarray] = []
        self._numbers: list[np.ndarray] = []

    @property
    def origin(self) -> int:
        """First stamp [ns]."""
        return int(self._times[0][1, 0])

    def add(self, states: JointStates, jumped: bool) -> None:
        """Look at a piece."""
        self.joints = states.joints
        for name, has in known(states).items():
            self.known[name] = has | self.known.get(name, False)
        extent = extent_of(states.position)
        if self.count:
            extent = extent_of(np.concatenate([extent, self.extent]))
        self.extent = extent
        count = len(states.stamp)
        chosen = np.unique([*range(0, count, THIN), count - 1])
        self._times.append(np.stack([states.received, states.stamp])[:, chosen])
        self._numbers.append(chosen + self.count)
        self.count += count
        self.jumped |= jumped

    def numbers(self) -> np.ndarray:
        """Return which joint states the clock is of."""
        return np.concatenate(self._numbers)

    def clock(self) -> Clock:
        """Return how reception and stamps go together."""
        received, stamp = np.concatenate(self._times, axis=1)
        return Clock(received, stamp, self.jumped)
