"""The observation matrix along a simulated motion, beside the measured torque."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...exceptions import RecordingError
from ..arrays import Array
from ..model.dynamics import regressor
from ..regression.observation_system import antialias, System
from .reference_and_torque import interpolate_rows
from .replay_problem import ReplayProblem
from .simulation.closed_loop import Simulation
from .simulation.direct_model import slip_columns

Rows = npt.NDArray[np.intp]
# Rows, how many of them are overlap before the piece, and how many are its own.
Block = tuple[Rows, int, int]

# In units of the decimation: what the filter remembers to 1e-9, and the edge it spoils.
FILTER_MEMORY, FILTER_EDGE = 30, 3
# Rows that are observed at once.
BLOCK_ROWS = 4096


def columns(replay: ReplayProblem, simulation: Simulation, row: Array) -> Array:
    """
    Return W_δ(q_ddm, q̇_ddm, q̈_ddm) of the base parameters at rows (N,), (n, N, b) (eq. 47).

    Dry friction has the signs that acted in the simulation, also where the robot stood still, so
    that `W χ` is the simulated torque in every row.
    """
    q, dq, ddq, slip = (
        interpolate_rows(x, row)
        for x in (simulation.q, simulation.dq, simulation.ddq, simulation.slip)
    )
    full = regressor(replay.robot, q, dq, ddq)
    for column, values in slip_columns(replay.robot, slip):
        full[:, :, column] = values.T
    return full[:, :, replay.base.columns]


def observe_simulation(replay: ReplayProblem, simulation: Simulation) -> System:
    """
    Return the system `Y = W_δ χ + ρ` of one simulation, low-passed and decimated (eq. 48).

    Y and every column of W go through the same zero-phase Butterworth filter, whose cut-off is
    0.8 of the Nyquist frequency of the rows that are kept. The start, until the loops have
    forgotten their initial state, and rows without a measured torque are left out.
    """
    torque, keep = replay.torque, replay.decimation
    rows = np.flatnonzero(torque.valid & (torque.row >= replay.transient * replay.law.rate))
    blocks = [
        (*_decimated(replay, simulation, block, keep), block[0][block[1] :][: block[2] : keep])
        for run in _runs(rows)
        for block in _overlapping(run, keep)
    ]
    if not blocks:
        raise RecordingError(
            'no measured torque is left after the transient and the edges of the filter: record '
            'longer'
        )
    w = np.concatenate([block[0] for block in blocks], axis=1)
    y = np.concatenate([block[1] for block in blocks], axis=1)
    time = torque.row[np.concatenate([block[2] for block in blocks])] / replay.law.rate
    base, joints = replay.base, replay.robot.joints
    return System(base.names, base.units, joints, time, w, y, np.ones(y.shape, dtype=bool))


def _decimated(
    replay: ReplayProblem, simulation: Simulation, block: Block, keep: int
) -> tuple[Array, Array]:
    rows, skip, count = block
    w = columns(replay, simulation, replay.torque.row[rows])
    y = replay.torque.tau[rows].T
    if keep > 1:
        w, y = antialias(w, keep), antialias(y, keep)
    return w[:, skip : skip + count : keep].copy(), y[:, skip : skip + count : keep].copy()


def _runs(rows: Rows) -> list[Rows]:
    """Split rows where some are missing: no filter reaches across a gap."""
    return np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)


def _overlapping(rows: Rows, keep: int) -> Iterator[Block]:
    """
    Cut a run into pieces that overlap by what the filter remembers, so that memory stays small.

    Yields the rows of a piece, how many of them are overlap before it, and how many are its own.
    """
    overlap = FILTER_MEMORY * keep if keep > 1 else 0
    edge = FILTER_EDGE * keep if keep > 1 else 0
    own = max(BLOCK_ROWS, 4 * overlap) // keep * keep
    first, last = edge, rows.size - edge
    for start in range(first, last, own):
        stop = min(start + own, last)
        low, high = max(0, start - overlap), min(rows.size, stop + overlap)
        yield rows[low:high], start - low, stop - start
