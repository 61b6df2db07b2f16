"""From a random point to a good one: quasi-Newton steps, with bounds as penalties."""

import numpy as np

from ...arrays import Array
from .optimisation_problem import Problem
from .search import Search

# Sharpness of the criterion and weight of what exceeds a bound, stage after stage. A condition
# number has a kink where singular values meet, and they meet at its optimum: smoothed at first, it
# is followed in few steps. Each stage gets a third of the iterations.
STAGES = ((6.0, 50.0), (16.0, 300.0))
STAGE_SHARE = 3
# Share of a bound from which it is penalised, so that shrinking into the bounds costs little.
BOUND_SHARE = 0.97
# Pairs of steps and gradients that approximate the Hessian: there are about 100 variables.
MEMORY = 40


def approach(search: Search, x: Array, iterations: int) -> Array:
    """
    Minimise by L-BFGS: no quadratic program, and hardly more evaluations than steps.

    Parameters
    ----------
    search : keeps the best point
    x : where to begin
    iterations : of a whole start, of which this is a part

    Returns
    -------
    A point that may exceed its bounds by a little.

    """
    from scipy.optimize import minimize

    problem = search.problem
    for stage, (sharpness, weight) in enumerate(STAGES):
        problem.set_penalty_stage(stage, sharpness)

        def objective(x: Array, weight: float = weight) -> tuple[float, Array]:
            excess, slope = bound_excess(problem, x)
            return search.value(x) + weight * excess, problem.gradient(x) + weight * slope

        steps = max(1, iterations // STAGE_SHARE)
        options = {'maxiter': steps, 'maxfun': 2 * steps, 'maxcor': MEMORY, 'ftol': 1e-7}
        found = minimize(
            objective,
            x,
            jac=True,
            method='L-BFGS-B',
            callback=search.on_iteration,
            options=options,
        )
        x = found.x
        search.keep_if_best(x)
    return x


def bound_excess(problem: Problem, x: Array) -> tuple[float, Array]:
    """Return the mean over time of `Σ max(0, |u| − BOUND_SHARE)²`, u of `usage`, with gradient."""
    usage = problem.usage(x)
    excess = np.sign(usage) * np.maximum(0.0, np.abs(usage) - BOUND_SHARE)
    count = usage.shape[1]
    slopes = 2.0 / count * excess
    terms = zip(problem.fine_bases, slopes, problem.bounds, strict=True)
    by_coefficients = sum(basis.T @ (slope / bound) for basis, slope, bound in terms)
    gradient = (by_coefficients * problem.scale).ravel()
    if problem.start is None:
        gradient = np.concatenate([slopes[0].sum(axis=0), gradient])
    return float(np.sum(excess**2)) / count, gradient
