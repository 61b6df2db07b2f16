"""
A simulation as a linear system of the parameters, beside the measured torque or position.

DIDIM takes the observation matrix along the simulated motion. Output error is what DIDIM
simplifies (DIDIM section III; Janot, Gautier, Jubien, Vandanjon 2014): `min ‖y − y_s(χ)‖²` by
Gauss-Newton, with the sensitivities ∂y_s/∂χ, which take one simulation a parameter:

- 'clie', closed-loop input error: y is the torque, the input of the robot. DIDIM is the same with
  the observation matrix W_δ in place of the sensitivities.
- 'cloe', closed-loop output error: y is the position.
- 'oe', open-loop output error: y is the position of a robot that the measured torque drives. It
  needs no control law, but such a simulation is not stable: it starts anew every half second,
  from a state that is estimated with the parameters.

Linearised at the newest parameters, each is a system `Y = W χ + ρ` with W the sensitivities and
`Y = y − y_s + W χ`, which the estimators, the covariances and the prior of all methods take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import dataclasses

import numpy as np
import numpy.typing as npt

from ...exceptions import RecordingError
from ..arrays import all_within, Array
from ..excitation.trajectory import Motion
from ..model.dynamics import regressor
from ..regression.observation_system import decimate, NOISE_BAND, Rows
from .direct_model import slip_columns, slip_directions
from .replay_problem import interpolate_rows, ReplayProblem
from .simulation import Simulation

Indices = npt.NDArray[np.intp]

# In units of the decimation: length of the filter's impulse response down to 1e-9, and the rows
# at both ends of a run that its transient distorts.
FILTER_MEMORY, FILTER_EDGE = 30, 3
# Rows per block: 4096 rows of 60 columns and six joints are 12 MB.
BLOCK_ROWS = 4096
# Step of the finite differences, over the prior's standard deviation of the parameter: far above
# the integrator's rounding, far below where an output bends.
RELATIVE_STEP = 1e-4
# Step of an initial state, over the joint's travel (a second of it, for a velocity).
STATE_STEP = 1e-5
# Slower than this all around, a joint creeps [rad/s or m/s]: noise that the robot's controller
# feeds back shakes its dry friction loose, which the simulation lacks. On a joint that moved at
# 17 mrad/s under 1 mrad/s of noise, viscous friction was 1.9 to 5.2 σ off in three draws of the
# noise, and is 0.2 to 2.0 σ off without these rows (benchmarks/studies/didim_poor_motion.py).
CREEPING = 0.004
# At most this share of the joint's fastest speed: an axis that is slow throughout keeps its rows.
SLOW_SHARE = 0.25


def observation_matrix(replay: ReplayProblem, simulation: Simulation, row: Array) -> Array:
    """
    Return W_δ(q_ddm, q̇_ddm, q̈_ddm) of the base parameters at rows (N,), (n, N, b) (eq. 47).

    Dry friction has the signs that acted in the simulation, also where the robot stood still, so
    that `W χ` is the simulated torque in every row.
    """
    run = simulation.q, simulation.dq, simulation.ddq, simulation.slip_sign
    q, dq, ddq, slip = (interpolate_rows(x, row) for x in run)
    full = regressor(replay.robot, q, dq, ddq)
    for column, values in slip_columns(replay.robot, slip):
        full[:, :, column] = values.T
    return full[:, :, replay.base.columns]


def observe_simulation(replay: ReplayProblem, simulation: Simulation) -> Rows:
    """
    Return the system `Y = W_δ χ + ρ` of one simulation, low-passed and decimated (eq. 48).

    Y and every column of W go through the same zero-phase Butterworth filter, whose cut-off is
    0.8 of the Nyquist frequency of the rows that are kept. The transient of the initial state and
    rows without a measured torque are left out.
    """
    torque = replay.torque

    def values(rows: Indices) -> Array:
        W = observation_matrix(replay, simulation, torque.row[rows])
        return np.concatenate([W, torque.tau[rows].T[:, :, None]], axis=2)

    both, row = low_passed(replay, values)
    held = _sticking(replay, simulation)[np.rint(row).astype(int)]
    return make_system(replay, row, both[:, :, :-1], both[:, :, -1], ~held.T)


def make_system(
    replay: ReplayProblem, row: Array, W: Array, Y: Array, valid: npt.NDArray[np.bool_]
) -> Rows:
    """Return the system of decimated rows (N,), (n, N, b), (n, N), with the prior."""
    base, time = replay.base, row / replay.law.rate
    band = NOISE_BAND if replay.filtered else 1.0
    joints = replay.robot.joints
    return Rows(base.names, base.units, joints, W, Y, valid, time, prior=replay.prior, band=band)


def with_all_rows(system: Rows) -> Rows:
    """Return a system with the rows, different in each simulation, where friction holds joints."""
    return dataclasses.replace(system, valid=np.ones_like(system.valid))


def low_passed(replay: ReplayProblem, values: Callable[[Indices], Array]) -> tuple[Array, Array]:
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


def _overlapping_blocks(rows: Indices, decimation: int) -> Iterator[tuple[Indices, int, int]]:
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
    reach = int(replay.decimation * replay.law.rate / replay.torque.rate)
    directions = slip_directions(replay.robot)
    held = np.abs(simulation.slip_sign) < 1.0
    speed = np.abs(simulation.dq @ directions.T)
    held |= speed < np.minimum(CREEPING, SLOW_SHARE * speed.max(axis=0))
    stuck = all_within(held, reach)
    return stuck @ (directions != 0.0) > 0


def linearise(
    replay: ReplayProblem, simulation: Simulation, chi: Array, gain_scale: Array
) -> tuple[Rows, Array, Array]:
    """
    Return the outputs of a simulation as a linear system of the base parameters, and errors (n,).

    Errors are relative: of the simulated output, ‖y − y_s‖ over ‖y‖, or over the distance of
    positions from their reference, of all rows, which alone simulations compare by; and of the
    torque, ‖τ − τ_s‖/‖τ‖ of the rows that are fitted, zero where it is the input.

    Parameters
    ----------
    replay : with its method and the prior
    simulation : with standard parameters `chi` (p,) and gains times `gain_scale` (n,)

    Raises
    ------
    RecordingError : the method needs positions that were not measured

    """
    value = replay.base.of(chi)
    if replay.method == 'didim':
        system = observe_simulation(replay, simulation)
        error = with_all_rows(system).relative_residual(value)
        return system, error, system.relative_residual(value)
    torque, row = low_passed(replay, lambda rows: replay.torque.tau[rows].T)
    measured = size = torque
    if replay.method != 'clie':
        if replay.measured is None:
            raise RecordingError(
                f"no position was measured, which method '{replay.method}' fits: use 'didim' or "
                "'clie'"
            )
        measured = _decimated(replay, replay.measured.q)
        rest = measured.mean(axis=1, keepdims=True)
        size = measured - (rest if replay.restart else _decimated(replay, replay.desired.q))
    output = _output(replay, simulation)
    W = _sensitivities(replay, chi, gain_scale, output)
    error = measured - output
    Y = error + W @ value
    if replay.restart:
        W, Y = _without_initial_states(replay, chi, output, row, W, Y)
    system = make_system(replay, row, W, Y, np.ones(Y.shape, dtype=bool))
    torque_error = np.zeros(replay.robot.n)
    if not replay.restart:
        torque_error = _relative(torque - _decimated(replay, simulation.tau), torque)
    return system, _relative(error, size), torque_error


def _relative(error: Array, size: Array) -> Array:
    """Return the relative size of errors (n, N), (n,)."""
    return np.linalg.norm(error, axis=1) / np.maximum(np.linalg.norm(size, axis=1), 1e-300)


def _decimated(replay: ReplayProblem, values: Array) -> Array:
    """Return values (K, n) of a simulation's rows, as the measured ones, (n, N)."""
    row = replay.torque.row
    return low_passed(replay, lambda rows: interpolate_rows(values, row[rows]).T)[0]


def _output(replay: ReplayProblem, simulation: Simulation) -> Array:
    """Return the simulated output that the method fits, as `_decimated`."""
    return _decimated(replay, simulation.tau if replay.method == 'clie' else simulation.q)


def _sensitivities(replay: ReplayProblem, chi: Array, gain_scale: Array, output: Array) -> Array:
    """Return ∂y_s/∂χ by forward differences, (n, N, b) (DIDIM eq. 30)."""
    assert replay.prior is not None
    steps = RELATIVE_STEP * np.sqrt(np.diag(replay.prior.covariance))
    columns = []
    for column, step in zip(replay.base.columns, steps, strict=True):
        moved = chi.copy()
        moved[column] += step
        run = replay.simulate(moved, gain_scale)
        columns.append((_output(replay, run) - output) / step)
    return np.stack(columns, axis=2)


def _without_initial_states(
    replay: ReplayProblem, chi: Array, output: Array, row: Array, W: Array, Y: Array
) -> tuple[Array, Array]:
    """
    Project rows off the sensitivities to the state at each start, so that it is estimated too.

    Rows of a start depend on its state alone: the least squares of all parameters and states is
    that of the parameters on what the states cannot explain (Golub and Pereyra 1973).
    """
    desired, n = replay.desired, replay.robot.n
    travel = np.maximum(np.ptp(desired.q, axis=0), 1e-9)
    columns = []
    for j in range(2 * n):
        step = STATE_STEP * travel[j % n]
        moved = [np.array(x) for x in desired[:2]]
        moved[j // n][:, j % n] += step
        changed = dataclasses.replace(replay, desired=Motion(moved[0], moved[1], desired.ddq))
        columns.append((_output(replay, changed.simulate(chi, np.ones(n))) - output) / step)
    X, both = np.stack(columns, axis=2), np.concatenate([W, Y[:, :, None]], axis=2)
    segments = row.astype(int) // replay.restart
    for segment in np.unique(segments):
        own = segments == segment
        Q = np.linalg.qr(X[:, own].reshape(-1, 2 * n) / travel.max())[0]
        rows = both[:, own].reshape(len(Q), -1)
        both[:, own] = (rows - Q @ (Q.T @ rows)).reshape(n, -1, both.shape[2])
    return both[:, :, :-1], both[:, :, -1]
