"""Products WᵀW and WᵀY of successive blocks of a recording, for every column to choose from."""

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.ndimage import minimum_filter1d

from ..arrays import Array
from ..model.base_parameters import BaseParameters
from ..model.dynamics import regressor
from ..model.friction import FrictionTerm
from ..model.robot import Robot
from ..regression.observation_system import antialias
from ..signals.filters import central_differences, lowpass
from ..signals.preparation import (
    EDGE_PERIODS,
    MAX_CUTOFF_SHARE,
    measured_rows,
    MIN_MOVING_SHARE,
    UniformRecording,
)
from ..signals.samples import STANDSTILL

# Rows that are to be decimated are computed at so many times the cut-off, to save time.
OVERSAMPLING = 16.0
# Rows that are left out beside those at standstill, as by default.
GUARD = 2

Mask = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Columns:
    """
    The columns of all candidates: base parameters of links and drives, then friction terms.

    Attributes
    ----------
    robot : without friction
    base : its base parameters
    terms : friction terms to choose from, each once
    load : (b,) base parameters whose torque loads the joints, or None

    """

    robot: Robot
    base: BaseParameters
    terms: tuple[FrictionTerm, ...]
    load: Array | None = None

    def places(self, terms: tuple[FrictionTerm, ...]) -> npt.NDArray[np.intp]:
        """Return the columns of the base parameters and of some friction terms."""
        widths = [len(term.kind.symbols) for term in self.terms]
        first = self.base.rank + np.concatenate([[0], np.cumsum(widths)])
        chosen = [
            np.arange(first[k], first[k + 1]) for k, term in enumerate(self.terms) if term in terms
        ]
        return np.concatenate([np.arange(self.base.rank), *chosen]).astype(np.intp)

    def rows(self, q: Array, dq: Array, ddq: Array, tau: Array) -> list[Array]:
        """Return [W F Y] of each joint, (N, b + f + 1)."""
        W = regressor(self.robot, q, dq, ddq)[:, :, self.base.columns]
        result = []
        for j in range(self.robot.n):
            load = None if self.load is None else W[j] @ self.load
            friction = [f for term in self.terms for f in term.columns(dq[:, j], load)]
            result.append(np.column_stack([W[j], *friction, tau[:, j]]))
        return result


@dataclasses.dataclass(frozen=True)
class BlockGrams:
    """
    [W F Y]ᵀ [W F Y] of the rows of each block and joint.

    Attributes
    ----------
    products : (K, n, c, c)
    counts : (K, n) rows
    away : the same without rows at standstill, for friction that has a step there; None: the same

    """

    products: Array
    counts: Array
    away: 'BlockGrams | None' = None

    def of(self, joint: int, terms: tuple[FrictionTerm, ...]) -> tuple[Array, Array]:
        """Return products (K, c, c) and counts (K,) of the rows of a joint with some friction."""
        stepped = self.away is not None and any(term.has_step for term in terms)
        rows = self.away if stepped and self.away is not None else self
        return rows.products[:, joint], rows.counts[:, joint]


def block_grams(
    even: UniformRecording, columns: Columns, cutoff: float, band: float, edges: Array
) -> dict[str, BlockGrams]:
    """
    Return the products of rows as `prepare` and `observe` make them, by the setting `rows`.

    Parameters
    ----------
    even : the recording
    columns : to choose from
    cutoff : of the positions [Hz]
    band : of the filter that W and the torque share [Hz]
    edges : (K + 1,) limits of the blocks in time [s]

    """
    rate = even.rate
    q, dq, ddq = _motion(even, cutoff)
    tau = even.recording.effort * columns.robot.drive_gain
    # To save time, rows that are to be decimated are computed at `OVERSAMPLING` only.
    first = max(1, int(rate / (OVERSAMPLING * cutoff)))
    if first > 1:
        tau = antialias(tau[None], first)[0]
    second = max(1, int(MAX_CUTOFF_SHARE * rate / first / band))
    rows = columns.rows(q[::first], dq[::first], ddq[::first], tau[::first])
    if second > 1:
        rows = [antialias(part[None], second)[0][::second] for part in rows]
    keep = first * second
    usable = measured_rows(even, band)[::keep]
    edge = int(np.ceil(EDGE_PERIODS * rate / cutoff))
    inner = minimum_filter1d(even.measured, 2 * edge + 1, mode='constant')[::keep, None]
    fast = minimum_filter1d(np.abs(dq[::keep]) >= STANDSTILL, 2 * GUARD + 1, axis=0)
    time, moving = even.recording.time[::keep], usable & inner & fast
    usable = usable & (fast.mean(axis=0) > MIN_MOVING_SHARE)
    away = _products(rows, usable & fast, time, edges)
    return {
        'all': dataclasses.replace(_products(rows, usable, time, edges), away=away),
        'moving': _products(rows, moving, time, edges),
    }


def _motion(even: UniformRecording, cutoff: float) -> tuple[Array, Array, Array]:
    q = lowpass(even.recording.position, cutoff, even.rate)
    dq = central_differences(q, even.rate)
    return q, dq, central_differences(dq, even.rate)


def _products(rows: list[Array], used: Mask, time: Array, edges: Array) -> BlockGrams:
    block = np.searchsorted(edges, time, side='right') - 1
    count, size = len(edges) - 1, rows[0].shape[1]
    products = np.zeros((count, len(rows), size, size))
    counts = np.zeros((count, len(rows)))
    for j, part in enumerate(rows):
        for k in range(count):
            own = part[(block == k) & used[:, j]]
            products[k, j], counts[k, j] = own.T @ own, len(own)
    return BlockGrams(products, counts)
