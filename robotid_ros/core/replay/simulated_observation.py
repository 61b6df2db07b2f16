"""The observation matrix along a simulated motion, beside the measured torque."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...exceptions import RecordingError
from ..arrays import Array
from ..model.dynamics import regressor
from ..regression.observation_system import decimated, System
from .reference_and_torque import at_rows
from .replay_problem import Replay
from .simulation.closed_loop import Simulation
from .simulation.direct_model import slip_columns

Rows = npt.NDArray[np.intp]
# Rows, how many of them are overlap before the piece, and how many are its own.
Piece = tuple[Rows, int, int]

# In units of the decimation: what the filter remembers to 1e-9, and the edge it spoils.
SETTLED, EDGE = 30, 3
# Rows that are observed at once.
PIECE = 4096


def columns(replay: Replay, simulation: Simulation, row: Array) -> Array:
    """
    Return W_δ(q_ddm, q̇_ddm, q̈_ddm) of the base parameters at rows (N,), (n, N, b) (eq. 47).

    Dry friction has the signs that acted in the simulation, also where the robot stood still, so
    that `W χ` is the simulated torque in every row.
    """
    q, dq, ddq, slip = (
        at_rows(x, row) for x in (simulation.q, simulation.dq, simulation.ddq, simulation.slip)
    )
    full = regressor(replay.robot, q, dq, ddq)
    for column, values in slip_columns(replay.robot, slip):
        full[:, :, column] = values.T
    return full[:, :, replay.base.columns]


def observe(replay: Replay, simulation: Simulation) -> System:
    """
    Return the system `Y = W_δ χ + ρ` of one simulation, low-passed and decimated (eq. 48).

    Y and every column of W go through the same zero-phase Butterworth filter, whose cut-off is
    0.8 of the Nyquist frequency of the rows that are kept. The start, until the loops have
    forgotten their initial state, and rows without a measured torque are left out.
    """
    torque, keep = replay.torque, replay.decimation
    rows = np.flatnonzero(torque.valid & (torque.row >= replay.transient * replay.law.rate))
    pieces = [
        (*_decimated(replay, simulation, piece, keep), piece[0][piece[1] :][: piece[2] : keep])
        for run in _runs(rows)
        for piece in _overlapping(run, keep)
    ]
    if not pieces:
        raise RecordingError(
            'no measured torque is left after the transient and the edges of the filter: record '
            'longer'
        )
    w = np.concatenate([piece[0] for piece in pieces], axis=1)
    y = np.concatenate([piece[1] for piece in pieces], axis=1)
    time = torque.row[np.concatenate([piece[2] for piece in pieces])] / replay.law.rate
    base, joints = replay.base, replay.robot.joints
    return System(base.names, base.units, joints, time, w, y, np.ones(y.shape, dtype=bool))


def _decimated(
    replay: Replay, simulation: Simulation, piece: Piece, keep: int
) -> tuple[Array, Array]:
    rows, skip, count = piece
    w = columns(replay, simulation, replay.torque.row[rows])
    y = replay.torque.tau[rows].T
    if keep > 1:
        w, y = decimated(w, keep), decimated(y, keep)
    return w[:, skip : skip + count : keep].copy(), y[:, skip : skip + count : keep].copy()


def _runs(rows: Rows) -> list[Rows]:
    """Split rows where some are missing: no filter reaches across a gap."""
    return np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)


def _overlapping(rows: Rows, keep: int) -> Iterator[Piece]:
    """
    Cut a run into pieces that overlap by what the filter remembers, so that memory stays small.

    Yields the rows of a piece, how many of them are overlap before it, and how many are its own.
    """
    overlap = SETTLED * keep if keep > 1 else 0
    edge = EDGE * keep if keep > 1 else 0
    own = max(PIECE, 4 * overlap) // keep * keep
    first, last = edge, rows.size - edge
    for start in range(first, last, own):
        stop = min(start + own, last)
        low, high = max(0, start - overlap), min(rows.size, stop + overlap)
        yield rows[low:high], start - low, stop - start
