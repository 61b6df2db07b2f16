"""The observation matrix along a simulated motion, beside the measured torque."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.ndimage import minimum_filter1d

from ...exceptions import RecordingError
from ..arrays import Array
from ..model.dynamics import regressor
from ..regression.observation_system import antialias, NOISE_BAND, System
from .reference_and_torque import interpolate_rows
from .replay_problem import ReplayProblem
from .simulation.closed_loop import Simulation
from .simulation.direct_model import slip_columns, slip_directions

Rows = npt.NDArray[np.intp]
# Rows, how many of them are overlap before the block, and how many are its own.
Block = tuple[Rows, int, int]

# In units of the decimation: length of the filter's impulse response down to 1e-9, and the rows
# at both ends of a run that its transient distorts.
FILTER_MEMORY, FILTER_EDGE = 30, 3
# Rows per block: 4096 rows of 60 columns and six joints are 12 MB.
BLOCK_ROWS = 4096


def observation_matrix(replay: ReplayProblem, simulation: Simulation, row: Array) -> Array:
    """
    Return W_δ(q_ddm, q̇_ddm, q̈_ddm) of the base parameters at rows (N,), (n, N, b) (eq. 47).

    Dry friction has the signs that acted in the simulation, also where the robot stood still, so
    that `W χ` is the simulated torque in every row.
    """
    q, dq, ddq, slip = (
        interpolate_rows(x, row)
        for x in (simulation.q, simulation.dq, simulation.ddq, simulation.slip_sign)
    )
    full = regressor(replay.robot, q, dq, ddq)
    for column, values in slip_columns(replay.robot, slip):
        full[:, :, column] = values.T
    return full[:, :, replay.base.columns]


def observe_simulation(replay: ReplayProblem, simulation: Simulation) -> System:
    """
    Return the system `Y = W_δ χ + ρ` of one simulation, low-passed and decimated (eq. 48).

    Y and every column of W go through the same zero-phase Butterworth filter, whose cut-off is
    0.8 of the Nyquist frequency of the rows that are kept. The transient of the initial state and
    rows without a measured torque are left out.
    """
    torque, decimation = replay.torque, replay.decimation
    rows = np.flatnonzero(torque.valid & (torque.row >= replay.transient * replay.law.rate))
    # A filter must not cross rows that are missing.
    runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    blocks = [
        _observe_block(replay, simulation, block, decimation)
        for run in runs
        for block in _overlapping_blocks(run, decimation)
    ]
    if not blocks:
        raise RecordingError(
            'no measured torque is left after the transient and the edges of the filter: record '
            'longer'
        )
    w = np.concatenate([block[0] for block in blocks], axis=1)
    y = np.concatenate([block[1] for block in blocks], axis=1)
    time = np.concatenate([block[2] for block in blocks]) / replay.law.rate
    base, joints = replay.base, replay.robot.joints
    valid = ~_sticking(replay, simulation)[np.rint(time * replay.law.rate).astype(int)].T
    band = NOISE_BAND if decimation > 1 else 1.0
    return System(base.names, base.units, joints, time, w, y, valid, band=band, prior=replay.prior)


def _observe_block(
    replay: ReplayProblem, simulation: Simulation, block: Block, decimation: int
) -> tuple[Array, Array, Array]:
    """Return W (n, N, b), Y (n, N) and the rows (N,) of the torque that a block keeps."""
    rows, skip, count = block
    row = replay.torque.row[rows]
    w, y = observation_matrix(replay, simulation, row), replay.torque.tau[rows].T
    if decimation > 1:
        w, y = antialias(w, decimation), antialias(y, decimation)
    kept = slice(skip, skip + count, decimation)
    return w[:, kept].copy(), y[:, kept].copy(), row[kept]


def _overlapping_blocks(rows: Rows, decimation: int) -> Iterator[Block]:
    """
    Cut a run into blocks that overlap by the filter's memory: few rows are held at once.

    Yields the rows of a block, how many of them are overlap before it, and how many are its own.
    """
    overlap = FILTER_MEMORY * decimation if decimation > 1 else 0
    edge = FILTER_EDGE * decimation if decimation > 1 else 0
    own = max(BLOCK_ROWS, 4 * overlap) // decimation * decimation
    first, last = edge, rows.size - edge
    for start in range(first, last, own):
        stop = min(start + own, last)
        low, high = max(0, start - overlap), min(rows.size, stop + overlap)
        yield rows[low:high], start - low, stop - start


def _sticking(replay: ReplayProblem, simulation: Simulation) -> Array:
    """
    Tell in which rows dry friction holds a joint all around, (K, n).

    What it takes to hold a joint is no function of the parameters: friction there is only known to
    be larger.
    """
    window = 2 * int(replay.decimation * replay.law.rate / replay.torque.rate) + 1
    stuck = minimum_filter1d((np.abs(simulation.slip_sign) < 1.0).astype(np.int8), window, axis=0)
    return stuck @ (slip_directions(replay.robot) != 0.0) > 0
