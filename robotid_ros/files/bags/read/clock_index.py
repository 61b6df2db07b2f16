"""Index of a long recording: its clock at some joint states, and each joint's range."""

import numpy as np

from ....core.signals.recording import range_of_positions
from ...formats.joint_table import JointTable
from .clock_alignment import Clock
from .joint_state_checks import data_available

# One joint state in so many is kept of the clock: an hour at 1 kHz takes 7200 of them, and between
# two, half a second apart at 1 kHz, times are interpolated.
DECIMATION = 500


class ClockIndex:
    """Clock, range and joints of a recording, gathered chunk by chunk."""

    def __init__(self) -> None:
        self.joints: tuple[str, ...] = ()
        self.data_available: dict[str, np.ndarray] = {}
        self.position_range = np.empty((2, 0))
        self.count, self.jumped = 0, False
        self._times: list[np.ndarray] = []
        self._numbers: list[np.ndarray] = []

    @property
    def origin(self) -> int:
        """First stamp [ns]."""
        return int(self._times[0][1, 0])

    def add(self, states: JointTable, jumped: bool) -> None:
        """Add a chunk."""
        self.joints = states.joints
        for name, has in data_available(states).items():
            self.data_available[name] = has | self.data_available.get(name, False)
        extremes = range_of_positions(states.position)
        if self.count:
            extremes = range_of_positions(np.concatenate([extremes, self.position_range]))
        self.position_range = extremes
        count = len(states.stamp)
        chosen = np.unique([*range(0, count, DECIMATION), count - 1])
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
