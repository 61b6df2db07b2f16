"""
Output error: what DIDIM simplifies (DIDIM section III; Janot, Gautier, Jubien, Vandanjon 2014).

`min ‖y − y_s(χ)‖²` by Gauss-Newton, with the sensitivities ∂y_s/∂χ of the simulation, which take
one simulation a parameter:

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

import dataclasses
from typing import NamedTuple

import numpy as np

from ...exceptions import RecordingError
from ..arrays import Array
from ..regression.observation_system import System
from .laws.control_loop import Desired
from .reference_and_torque import interpolate_rows
from .replay_problem import ReplayProblem
from .simulated_observation import low_passed, make_system, observe_simulation, with_all_rows
from .simulation.closed_loop import Simulation

# Step of the finite differences, over the prior's standard deviation of the parameter: far above
# the integrator's rounding, far below where an output bends.
RELATIVE_STEP = 1e-4
# Step of an initial state, over the joint's travel (a second of it, for a velocity).
STATE_STEP = 1e-5


class Linearised(NamedTuple):
    """
    A simulation as a linear system.

    Attributes
    ----------
    system : to solve for the next parameters
    error : (n,) relative error of the simulated output, ‖y − y_s‖ over ‖y‖, or over the distance
        of positions from their reference; of all rows, which alone simulations compare by
    torque_error : (n,) ‖τ − τ_s‖/‖τ‖ of the rows that are fitted; zero where it is the input

    """

    system: System
    error: Array
    torque_error: Array


def linearise(
    replay: ReplayProblem, simulation: Simulation, chi: Array, gain_scale: Array
) -> Linearised:
    """
    Return the outputs of a simulation as a linear function of the base parameters.

    Parameters
    ----------
    replay : with its method and the prior
    simulation : with standard parameters `chi` (p,) and gains times `gain_scale` (n,)

    Raises
    ------
    RecordingError : the method needs positions that were not measured

    """
    if replay.method == 'didim':
        system = observe_simulation(replay, simulation)
        value = replay.base.of(chi)
        error = with_all_rows(system).relative_residual(value)
        return Linearised(system, error, system.relative_residual(value))
    measured, size = _measured(replay)
    output, row = _decimated(replay, _output(replay, simulation))
    W = _sensitivities(replay, simulation, chi, gain_scale, output)
    error = measured - output
    Y = error + W @ replay.base.of(chi)
    if replay.restart:
        W, Y = _without_initial_states(replay, simulation, chi, output, row, W, Y)
    valid = np.ones(Y.shape, dtype=bool)
    relative = np.linalg.norm(error, axis=1) / size
    return Linearised(
        make_system(replay, row, W, Y, valid), relative, _torque_error(replay, simulation)
    )


def _output(replay: ReplayProblem, simulation: Simulation) -> Array:
    return simulation.tau if replay.method == 'clie' else simulation.q


def _measured(replay: ReplayProblem) -> tuple[Array, Array]:
    """Return the measured output, decimated (n, N), and what its errors are relative to (n,)."""
    if replay.method == 'clie':
        torque, _ = low_passed(replay, lambda rows: replay.torque.tau[rows].T)
        return torque, np.maximum(np.linalg.norm(torque, axis=1), 1e-300)
    if replay.measured is None:
        raise RecordingError(
            f"no position was measured, which method '{replay.method}' fits: use 'didim' or 'clie'"
        )
    q, _ = _decimated(replay, replay.measured[0])
    rest = q.mean(axis=1, keepdims=True)
    if not replay.restart:
        rest = _decimated(replay, replay.desired.q)[0]
    return q, np.maximum(np.linalg.norm(q - rest, axis=1), 1e-300)


def _decimated(replay: ReplayProblem, values: Array) -> tuple[Array, Array]:
    """Return values (K, n) of a simulation's rows, as the measured ones, (n, N), and the rows."""
    row = replay.torque.row
    return low_passed(replay, lambda rows: interpolate_rows(values, row[rows]).T)


def _torque_error(replay: ReplayProblem, simulation: Simulation) -> Array:
    if replay.restart:
        return np.zeros(replay.robot.n)
    measured, _ = low_passed(replay, lambda rows: replay.torque.tau[rows].T)
    simulated, _ = _decimated(replay, simulation.tau)
    size = np.maximum(np.linalg.norm(measured, axis=1), 1e-300)
    return np.asarray(np.linalg.norm(measured - simulated, axis=1) / size)


def _sensitivities(
    replay: ReplayProblem, simulation: Simulation, chi: Array, gain_scale: Array, output: Array
) -> Array:
    """Return ∂y_s/∂χ by forward differences, (n, N, b) (DIDIM eq. 30)."""
    assert replay.prior is not None
    steps = RELATIVE_STEP * np.sqrt(np.diag(replay.prior.covariance))
    columns = []
    for column, step in zip(replay.base.columns, steps, strict=True):
        moved = chi.copy()
        moved[column] += step
        run = replay.simulate(moved, gain_scale)
        columns.append((_decimated(replay, _output(replay, run))[0] - output) / step)
    return np.stack(columns, axis=2)


def _without_initial_states(
    replay: ReplayProblem,
    simulation: Simulation,
    chi: Array,
    output: Array,
    row: Array,
    W: Array,
    Y: Array,
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
        changed = dataclasses.replace(
            replay, desired=Desired(moved[0], moved[1], desired.ddq, desired.effort)
        )
        run = changed.simulate(chi, np.ones(n))
        columns.append((_decimated(replay, run.q)[0] - output) / step)
    X, both = np.stack(columns, axis=2), np.concatenate([W, Y[:, :, None]], axis=2)
    segments = row.astype(int) // replay.restart
    for segment in np.unique(segments):
        own = segments == segment
        Q = np.linalg.qr(X[:, own].reshape(-1, 2 * n) / travel.max())[0]
        rows = both[:, own].reshape(len(Q), -1)
        both[:, own] = (rows - Q @ (Q.T @ rows)).reshape(n, -1, both.shape[2])
    return both[:, :, :-1], both[:, :, -1]
