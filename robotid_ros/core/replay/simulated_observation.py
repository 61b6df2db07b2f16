"""
A simulation as a linear system of the parameters, beside the measured torque or position.

Output error is what DIDIM simplifies (DIDIM section III; Janot, Gautier, Jubien, Vandanjon 2014):
`min ‖y − y_s(χ)‖²` by Gauss-Newton, which is `Y = W χ + ρ` with the sensitivities W = ∂y_s/∂χ, a
simulation for each parameter, and `Y = y − y_s + W χ`. y is the torque ('clie'; DIDIM has W_δ in
place of the sensitivities), the position ('cloe'), or that of a robot that the measured torque
drives ('oe'): it needs no control law, but is not stable and starts anew every half second, from a
state that is estimated with the parameters.
"""

from collections.abc import Callable
import dataclasses

import numpy as np

from ..arrays import all_within, Array, Mask
from ..excitation.trajectory import Motion
from ..regression.observation_system import decimate, decimated_rows, NOISE_BAND, Rows
from .replay_problem import interpolate_rows, ReplayProblem
from .simulation import Simulation, slip_columns, slip_directions

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


def observe_simulation(replay: ReplayProblem, simulation: Simulation) -> Rows:
    """
    Return the system `Y = W_δ(q_ddm, q̇_ddm, q̈_ddm) χ + ρ` of one simulation (eq. 47, 48).

    Dry friction has the signs that acted in the simulation, also where the robot stood still, so
    that `W χ` is the simulated torque in every row. Y and every column of W go through the same
    zero-phase Butterworth filter, whose cut-off is 0.8 of the Nyquist frequency of the rows that
    are kept. The transient of the initial state and rows without a measured torque are left out.
    """
    robot, torque, parts = replay.robot, replay.torque, list[Array]()
    for run, kept in replay.runs:
        q, dq, ddq, _, slip = (interpolate_rows(x, torque.row[run]) for x in simulation)
        W, Y = decimated_rows(
            *(robot, replay.base.columns, (q, dq, ddq), torque.tau[run], replay.decimation),
            list(slip_columns(robot, slip)),
        )
        parts.append(np.concatenate([W, Y[:, :, None]], axis=2)[:, kept])
    row = replay.fitted_rows
    # What it takes to hold a joint is no function of the parameters: friction there is only known
    # to be larger. That of a joint that creeps is smaller on the robot, see `CREEPING`.
    directions = slip_directions(robot)
    held = np.abs(simulation.slip_sign) < 1.0
    speed = np.abs(simulation.dq @ directions.T)
    held |= speed < np.minimum(CREEPING, SLOW_SHARE * speed.max(axis=0))
    stuck = all_within(held, int(replay.decimation * replay.law.rate / torque.rate))
    held = (stuck @ (directions != 0.0) > 0)[np.rint(row).astype(int)]
    return _system(replay, np.concatenate(parts, axis=1), ~held.T)


def _system(replay: ReplayProblem, both: Array, valid: Mask) -> Rows:
    """Return the system of W and Y beside it, (n, N, b + 1), at the rows that are fitted."""
    base, time = replay.base, replay.fitted_rows / replay.law.rate
    band = NOISE_BAND if replay.decimation > 1 and not replay.restart else 1.0
    W, Y, joints = both[:, :, :-1], both[:, :, -1], replay.robot.joints
    return Rows(base.names, base.units, joints, W, Y, valid, time, band=band)


def with_all_rows(system: Rows) -> Rows:
    """Return a system with the rows, different in each simulation, where friction holds joints."""
    return dataclasses.replace(system, valid=np.ones_like(system.valid))


def low_passed(replay: ReplayProblem, values: Array) -> Array:
    """Return values (N, n) of the torque's rows at those that are fitted, filtered, (n, N')."""
    parts = []
    for run, kept in replay.runs:
        x, keep = values[run].T, replay.decimation
        x = x[:, ::keep] if replay.restart else decimate(x, keep)
        parts.append(x[:, kept])
    return np.concatenate(parts, axis=1)


def linearise(
    replay: ReplayProblem, simulation: Simulation, chi: Array, gain_scale: Array
) -> tuple[Rows, Array, Array]:
    """
    Return the outputs of a simulation as a linear system of the base parameters, and errors (n,).

    Errors are relative: of the simulated output, ‖y − y_s‖ over ‖y‖, or over the distance of
    positions from their reference, of all rows, which alone simulations compare by; and of the
    torque, ‖τ − τ_s‖/‖τ‖ of the rows that are fitted, zero where it is the input. The simulation
    is of standard parameters χ (p,) and gains times a scale (n,).
    """
    value = replay.base.of(chi)
    if replay.method == 'didim':
        system = observe_simulation(replay, simulation)
        error = with_all_rows(system).relative_residual(value)
        return system, error, system.relative_residual(value)
    torque = low_passed(replay, replay.torque.tau)
    measured = size = torque
    if replay.method != 'clie':
        measured = _decimated(replay, replay.measured.q)
        rest = measured.mean(axis=1, keepdims=True)
        size = measured - (rest if replay.restart else _decimated(replay, replay.desired.q))

    def output_of(run: Simulation) -> Array:
        """Return the simulated output that the method fits."""
        return _decimated(replay, run.tau if replay.method == 'clie' else run.q)

    def sensitivity(problem: ReplayProblem, chi: Array, step: float) -> Array:
        """Return a forward difference of the output (DIDIM eq. 30)."""
        return (output_of(problem.simulate(chi, gain_scale)) - output) / step

    output = output_of(simulation)
    error = measured - output

    steps = RELATIVE_STEP * np.sqrt(np.diag(replay.prior.covariance))
    moves = np.eye(len(chi))[replay.base.columns] * steps[:, None]
    pairs = zip(moves, steps, strict=True)
    W = np.stack([sensitivity(replay, chi + move, step) for move, step in pairs], axis=2)
    both = np.concatenate([W, (error + W @ value)[:, :, None]], axis=2)
    torque_error = np.zeros(replay.robot.n)
    if replay.restart:
        _project_off_initial_states(replay, both, lambda each, h: sensitivity(each, chi, h))
    else:
        torque_error = relative_size(torque - _decimated(replay, simulation.tau), torque)
    system = _system(replay, both, np.ones(torque.shape, dtype=bool))
    return system, relative_size(error, size), torque_error


def relative_size(error: Array, size: Array) -> Array:
    """Return the relative size of errors (n, N), (n,)."""
    return np.linalg.norm(error, axis=1) / np.maximum(np.linalg.norm(size, axis=1), 1e-300)


def _decimated(replay: ReplayProblem, values: Array) -> Array:
    """Return values (K, n) of a simulation's rows, as the measured ones, (n, N)."""
    return low_passed(replay, interpolate_rows(values, replay.torque.row))


def _project_off_initial_states(
    replay: ReplayProblem,
    both: Array,
    sensitivity: Callable[[ReplayProblem, float], Array],
) -> None:
    """Project rows (n, N, b + 1) off the sensitivities to the state at each start, in place."""
    # Rows of a start depend on its state alone: the least squares of all parameters and states is
    # that of the parameters on what the states cannot explain (Golub and Pereyra 1973).
    desired, n = replay.desired, replay.robot.n
    travel = np.maximum(np.ptp(desired.q, axis=0), 1e-9)
    columns = []
    for part in (0, 1):
        for j, step in enumerate(STATE_STEP * travel):
            moved = [np.array(x) for x in desired]
            moved[part][:, j] += step
            other = dataclasses.replace(replay, desired=Motion(*moved))
            columns.append(sensitivity(other, step))
    X = np.stack(columns, axis=2)
    starts = replay.fitted_rows.astype(int) // replay.restart
    for start in np.unique(starts):
        own = starts == start
        Q = np.linalg.qr(X[:, own].reshape(-1, 2 * n) / travel.max())[0]
        rows = both[:, own].reshape(len(Q), -1)
        both[:, own] = (rows - Q @ (Q.T @ rows)).reshape(n, -1, both.shape[2])
