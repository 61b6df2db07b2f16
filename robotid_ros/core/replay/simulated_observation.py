"""The observation matrix along a simulated motion, beside the measured torque."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.ndimage import minimum_filter1d

from ...exceptions import RecordingError
from ..arrays import Array
from ..model.dynamics import regressor
from ..regression.observation_system import decimate, NOISE_BAND, System
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
# Slower than this all around, a joint creeps [rad/s or m/s]: noise that the robot's controller
# feeds back shakes its dry friction loose, which the simulation lacks. On a joint that moved at
# 17 mrad/s under 1 mrad/s of noise, viscous friction was 1.9 to 5.2 σ off in three draws of the
# noise, and is 0.2 to 2.0 σ off without these rows (benchmarks/didim_poor_motion.py, UR10).
CREEPING = 0.004


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
    torque = replay.torque

    def values(rows: Rows) -> Array:
        W = observation_matrix(replay, simulation, torque.row[rows])
        return np.concatenate([W, torque.tau[rows].T[:, :, None]], axis=2)

    both, row = low_passed(replay, values)
    held = _sticking(replay, simulation)[np.rint(row).astype(int)]
    return make_system(replay, row, both[:, :, :-1], both[:, :, -1], ~held.T)


def make_system(
    replay: ReplayProblem, row: Array, W: Array, Y: Array, valid: npt.NDArray[np.bool_]
) -> System:
    """Return the system of decimated rows (N,), (n, N, b), (n, N), with the prior."""
    base, band = replay.base, NOISE_BAND if replay.filtered else 1.0
    time = row / replay.law.rate
    return System(
        base.names,
        base.units,
        replay.robot.joints,
        time,
        W,
        Y,
        valid,
        prior=replay.prior,
        band=band,
    )


def with_all_rows(system: System) -> System:
    """
    Return a system with the rows in which dry friction holds a simulated joint.

    They are not fitted, but each simulation holds joints in other rows, and a wrong one where the
    robot moves.
    """
    return dataclasses.replace(system, valid=np.ones_like(system.valid))


def low_passed(replay: ReplayProblem, values: Callable[[Rows], Array]) -> tuple[Array, Array]:
    """
    Return values at the rows that are fitted, low-passed and decimated.

    Parameters
    ----------
    replay : which rows count, and their decimation
    values : of rows of the measured torque, (n, N, …)

    Returns
    -------
    the values (n, N', …) and their rows of the simulation (N',)

    """
    torque, decimation = replay.torque, replay.decimation
    rows = np.flatnonzero(torque.valid & (torque.row >= replay.transient * replay.law.rate))
    # A filter must not cross rows that are missing.
    runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    parts, kept_rows = list[Array](), list[Array]()
    for run in runs:
        for block, skip, count in _overlapping_blocks(run, decimation):
            kept = slice(skip, skip + count, decimation)
            x = values(block)
            own = slice(skip // decimation, -(-(skip + count) // decimation))
            parts.append(decimate(x, decimation)[:, own] if replay.filtered else x[:, kept].copy())
            kept_rows.append(torque.row[block][kept])
    if not parts:
        raise RecordingError(
            'no measured torque is left after the transient and the edges of the filter: record '
            'longer'
        )
    return np.concatenate(parts, axis=1), np.concatenate(kept_rows)


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
    Tell in which rows dry friction holds a joint all around, or lets it creep, (K, n).

    What it takes to hold a joint is no function of the parameters: friction there is only known to
    be larger. That of a joint that creeps is smaller on the robot, see `CREEPING`.
    """
    window = 2 * int(replay.decimation * replay.law.rate / replay.torque.rate) + 1
    directions = slip_directions(replay.robot)
    held = np.abs(simulation.slip_sign) < 1.0
    held |= np.abs(simulation.dq @ directions.T) < CREEPING
    stuck = minimum_filter1d(held.astype(np.int8), window, axis=0)
    return stuck @ (directions != 0.0) > 0
