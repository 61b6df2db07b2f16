"""From filtered joint states to rows of the regression: means over short blocks of time."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...arrays import Array
from ...model.dynamics import regressor
from ...model.robot import Robot

# Length of a block [s]: a fraction of the shortest moves, as a block in which a joint rests counts
# for nothing, but longer than the memory of the filter that the signals passed, so that white
# noise gives rows that hardly correlate.
ROW_TIME = 0.05
# Fewer instants in a block are no mean of it; more than this rate adds nothing to filtered
# signals, and costs a regressor each [s].
MIN_INSTANTS, MIN_STEP = 4, 0.0045


class Row(NamedTuple):
    """
    Means over a block of time.

    Attributes
    ----------
    stamp : of its end [ns]
    duration : [s]
    values : (n, m + 1) columns of the followed parameters, and measured less predicted effort
    used : (n,) joints that moved throughout, and throughout the block before

    """

    stamp: int
    duration: float
    values: Array
    used: npt.NDArray[np.bool_]


class MotionRows:
    """
    Collects instants of filtered motion and effort into rows.

    The block after a standstill or a turn is left out as well: the filter mixes into its effort
    what the joint bore at rest, which has no model.

    Parameters
    ----------
    robot : model
    standard : (p,) identified parameters
    columns : (m,) standard parameters that are followed
    standstill : joints slower than this are at rest [rad/s or m/s]

    """

    def __init__(
        self, robot: Robot, standard: Array, columns: npt.NDArray[np.intp], standstill: float
    ):
        # Friction that grows with the load takes the load from what was identified.
        self._robot = dataclasses.replace(robot, load_parameters=standard)
        self._standard, self._columns, self._standstill = standard, columns, standstill
        self.restart()

    def restart(self) -> None:
        """Begin anew after a gap."""
        self._moved = np.zeros(self._robot.n, dtype=bool)
        self._instants: list[tuple[int, Array, Array]] = []

    def add(self, stamp: int, motion: Array, effort: Array) -> Row | None:
        """
        Take in an instant.

        Parameters
        ----------
        stamp : [ns]
        motion : (3, n) position, velocity, acceleration
        effort : (n,) that passed the same filter

        Returns
        -------
        The row of the block that ends here, or None.

        """
        instants = self._instants
        if instants and (stamp - instants[-1][0]) * 1e-9 < MIN_STEP:
            return None
        instants.append((stamp, motion, effort))
        duration = (stamp - instants[0][0]) * 1e-9
        if duration < ROW_TIME or len(instants) < MIN_INSTANTS:
            return None
        self._instants = instants[-1:]
        return self._row(instants[1:], duration)

    def _row(self, instants: list[tuple[int, Array, Array]], duration: float) -> Row:
        q, dq, ddq = np.stack([motion for _, motion, _ in instants], axis=1)
        effort = np.array([effort for _, _, effort in instants])
        moving = self._is_moving(dq)
        used, self._moved = moving & self._moved, moving
        values = np.zeros((self._robot.n, len(self._columns) + 1))
        if used.any():
            W = regressor(self._robot, q, dq, ddq)
            values[:, :-1] = W[:, :, self._columns].mean(axis=1)
            values[:, -1] = np.mean(effort.T - W @ self._standard, axis=1)
        return Row(instants[-1][0], duration, values, used)

    def _is_moving(self, dq: Array) -> npt.NDArray[np.bool_]:
        """Return which joints (n,) move one way throughout, and every motor that they share."""
        couplings = self._robot.couplings
        speeds = np.column_stack([dq, *(dq @ coupling.ratios for coupling in couplings)])
        slow = self._standstill
        turning = np.all(speeds >= slow, axis=0) | np.all(speeds <= -slow, axis=0)
        moving = turning[: dq.shape[1]]
        for coupling, turns in zip(couplings, turning[dq.shape[1] :], strict=True):
            moving[coupling.ratios != 0.0] &= turns
        return np.asarray(moving)
