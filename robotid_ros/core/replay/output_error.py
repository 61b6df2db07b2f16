"""
Output error: the closed loop is simulated until its motion (or torque) is the measured one.

The baseline of DIDIM (eq. 27-34): the same simulation, but every step needs the sensitivities to
all parameters, one simulation each, and it converges only from nearby initial parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...exceptions import DivergenceError, RecordingError
from ..arrays import Array
from ..regression.estimate import Estimate
from .reference_and_torque import interpolate_rows
from .replay_problem import ReplayProblem

# Relative step of the finite differences, near the square root of the integrator's error.
RELATIVE_STEP = 1e-5
# Levenberg-Marquardt: damping relative to the scaled JᵀJ, its changes after a step that was
# accepted and one that was refused, and where it gives up. A larger start costs steps near the
# solution, a smaller one simulations far from it.
INITIAL_DAMPING, DAMPING_DECREASE, DAMPING_INCREASE, MAX_DAMPING = 1e-3, 0.2, 5.0, 1e8


class _Problem(NamedTuple):
    """Simulated output of base parameters (b,), the measured one and its weight (n, 1)."""

    simulated: Callable[[Array], Array]
    target: Array
    weight: Array

    def relative_error(self, output: Array) -> float:
        return float(np.linalg.norm(self.target - output) / np.linalg.norm(self.target))

    def weighted_error(self, output: Array) -> Array:
        return ((self.target - output) * self.weight).ravel()

    def jacobian(self, value: Array, output: Array) -> Array:
        """Return ∂y_s/∂χ, weighted, by forward differences, (n N, b) (eq. 30)."""
        steps = RELATIVE_STEP * np.maximum(np.abs(value), 0.01 * np.abs(value).max())
        columns = [
            ((self.simulated(value + step * unit) - output) / step * self.weight).ravel()
            for step, unit in zip(steps, np.eye(value.size), strict=True)
        ]
        return np.array(columns).T


def output_error(
    replay: ReplayProblem, value: Array, solver: str = 'lm', output: str = 'position'
) -> tuple[Estimate, list[float]]:
    """
    Fit base parameters to the simulated output by Gauss-Newton or Levenberg-Marquardt.

    `min ‖y − y_s(χ)‖²`, y the joints' positions (OE) or torques (the closed-loop output error that
    DIDIM linearises), each joint's error over its own standard deviation.

    Parameters
    ----------
    replay : with `measured` where positions are fitted
    value : (b,) base parameters to start from: an IDIM or DIDIM solution, or CAD
    solver : 'gn' or 'lm'
    output : 'position' or 'torque'

    Returns
    -------
    the estimate, and the relative error of the output at the start and after every step

    Raises
    ------
    RecordingError : positions are to be fitted but were not measured
    DivergenceError : no step makes the error smaller; it holds the last good estimate

    """
    simulated, target = _outputs(replay, output)
    value = np.array(value, dtype=float)
    current = simulated(value)
    weight = 1.0 / np.maximum((target - current).std(axis=1, keepdims=True), 1e-300)
    problem = _Problem(simulated, target, weight)
    norms = [problem.relative_error(current)]
    damping = INITIAL_DAMPING if solver == 'lm' else 0.0
    for number in range(1, replay.settings.iterations + 1):
        jacobian = problem.jacobian(value, current)
        found = _find_descent_step(problem, value, current, jacobian, damping)
        if found is None:
            raise DivergenceError(
                f'step {number} of the output error does not reduce it: start from an IDIM or '
                'DIDIM solution',
                number,
                _estimate(replay, problem, value, current, jacobian, solver),
            )
        step, current, damping = found
        value = value + step
        norms.append(problem.relative_error(current))
        if _converged(replay, norms, step, value):
            break
    return _estimate(replay, problem, value, current, jacobian, solver), norms


def _find_descent_step(
    problem: _Problem, value: Array, current: Array, jacobian: Array, damping: float
) -> tuple[Array, Array, float] | None:
    """
    Find a step (b,) that reduces the weighted error; without damping only the first is tried.

    Returns
    -------
    the step, the output there (n, N) and the next damping, or None

    """
    scale = np.maximum(np.linalg.norm(jacobian, axis=0), 1e-300)
    error, undamped = problem.weighted_error(current), damping == 0.0
    while damping <= MAX_DAMPING:
        step = _step(jacobian / scale, error, damping) / scale
        try:
            output = problem.simulated(value + step)
            reduced = np.linalg.norm(problem.weighted_error(output))
            if reduced <= np.linalg.norm(error) * (1.0 + 1e-9):
                return step, output, DAMPING_DECREASE * damping
        except DivergenceError:
            pass
        if undamped:
            return None
        damping *= DAMPING_INCREASE
    return None


def _outputs(replay: ReplayProblem, output: str) -> tuple[Callable[[Array], Array], Array]:
    """Return the simulated output as a function of base parameters, and the measured, (n, N)."""
    torque = replay.torque
    start = replay.transient * replay.law.rate
    row = torque.row[torque.valid & (torque.row >= start)][:: replay.decimation]
    if output == 'position' and replay.measured is None:
        raise RecordingError('no position was measured: use DIDIM, or fit the torque')
    target = (
        interpolate_rows(replay.measured[0], row).T
        if output == 'position' and replay.measured is not None
        else torque.tau[np.isin(torque.row, row)].T
    )

    def simulated(value: Array) -> Array:
        chi = replay.standard_parameters(value)
        run = replay.simulate(chi, np.ones(replay.robot.n))
        return interpolate_rows(run.q if output == 'position' else run.tau, row).T

    return simulated, target


def _step(jacobian: Array, error: Array, damping: float) -> Array:
    b = jacobian.shape[1]
    rows = np.vstack([jacobian, np.sqrt(damping) * np.eye(b)]) if damping else jacobian
    right = np.concatenate([error, np.zeros(b)]) if damping else error
    return np.asarray(np.linalg.lstsq(rows, right, rcond=None)[0], dtype=float)


def _converged(replay: ReplayProblem, norms: list[float], step: Array, value: Array) -> bool:
    settings = replay.settings
    return bool(
        abs(norms[-1] - norms[-2]) <= settings.residual_tolerance * norms[-2] + 1e-12
        and np.all(np.abs(step) <= settings.parameter_tolerance * np.abs(value) + 1e-12)
    )


def _estimate(
    replay: ReplayProblem,
    problem: _Problem,
    value: Array,
    current: Array,
    jacobian: Array,
    solver: str,
) -> Estimate:
    target, residual = problem.target, problem.target - current
    error = problem.weighted_error(current)
    variance = float(np.sum(error**2)) / max(error.size - value.size, 1)
    covariance: Array = np.asarray(variance * np.linalg.pinv(jacobian.T @ jacobian), dtype=float)
    scaled = jacobian / np.linalg.norm(jacobian, axis=0)
    return Estimate(
        names=replay.base.names,
        units=replay.base.units,
        value=value,
        covariance=covariance,
        classical=covariance,
        residual=np.linalg.norm(residual, axis=1) / np.linalg.norm(target, axis=1),
        total_residual=problem.relative_error(current),
        sigma_torque=residual.std(axis=1),
        rows=np.full(target.shape[0], target.shape[1]),
        condition_number=float(np.linalg.cond(scaled)),
        method=f'oe-{solver}',
    )
