"""Predicted effort while the robot moves; no ROS in here."""

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Array
from ...core.model import inverse_dynamics, Robot
from ...core.monitoring.motion_rows import FilteredStates

# Longer silence, and a clock that was set back by more, start the filter anew [s]: the straight
# line between two samples would bridge it with a velocity that the robot never had.
MAX_GAP = 0.5


class LivePrediction:
    """Predicts efforts by parameters (p,), from joint states through a causal filter [Hz]."""

    def __init__(self, robot: Robot, standard: Array, cutoff: float):
        self._robot, self._standard = robot, standard
        self._states = FilteredStates(robot.drive_gain, cutoff, MAX_GAP)

    def update(self, stamp: NDArray[np.int64], position: Array, effort: Array) -> None:
        """Take in joint states: stamps [ns], positions and efforts as published, (N, n)."""
        for sample in zip(stamp.tolist(), position, effort, strict=True):
            self._states.take(*sample)

    def predict(self) -> tuple[int, Array, Array | None] | None:
        """
        Return the last stamp [ns], the predicted effort and the residual (n,) [N·m or N].

        The residual is measured minus predicted, None where no effort is reported. Before the
        first joint state there is nothing.
        """
        states = self._states
        if not states.started:
            return None
        motion = (row[None] for row in states.motion)
        predicted = inverse_dynamics(self._robot, self._standard, *motion)[0]
        residual = states.effort - predicted if states.effort_reported else None
        return states.stamp, predicted, residual
