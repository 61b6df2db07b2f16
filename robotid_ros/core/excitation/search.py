"""Search: from random points to better feasible trajectories; the best is always kept."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
import time

import numpy as np

from ..arrays import Array
from .problem import make_feasible, PENALTY_WEIGHTS, Problem, random_point

# Sharpness of the criterion and weight of what exceeds a bound, stage after stage. A condition
# number has a kink where singular values meet, and they meet at its optimum: smoothed at first, it
# is followed in few steps. Each stage gets a third of the iterations.
STAGES = ((6.0, 50.0), (16.0, 300.0))
STAGE_SHARE = 3
# Share of a bound from which it is penalised, so that shrinking into the bounds costs little.
BOUND_SHARE = 0.97
# Pairs of steps and gradients that approximate the Hessian: there are about 100 variables.
MEMORY = 40
# Share of a bound above which a peak of the motion joins the working set of constraints: at first,
# when the motion is small, and later: lower ones cost time, higher ones rounds that break bounds.
FIRST_PEAK_SHARE, PEAK_SHARE = 0.3, 0.6
# Largest coefficients: 1 is what one alone may reach.
MAX_COEFFICIENT = 1.0
# Iterations of a round: few at first, until the working set holds the peaks of the motion.
FIRST_ITERATIONS, MAX_ITERATIONS = 10, 40
# Most rounds, each of the first one's length, that only close what is left above a bound.
CLOSING_ROUNDS = 5
# Sharpness of the criterion that is refined, see `condition`: an exact kink stops a line search.
SHARPNESS = 64.0
# A round counts as so many iterations at least, so that rounds without progress end.
MIN_ROUND_COST = 5
# Random points of which the best begins a start: each costs an evaluation.
DRAWN_POINTS = 10


@dataclass(frozen=True)
class Progress:
    """State of a running design; `criterion` is the best feasible one so far, or None."""

    elapsed: float
    evaluations: int
    criterion: float | None
    phase: str
    fraction: float = 0.0


# Called as the design goes on; what is true stops it, and the best so far is kept.
ProgressCallback = Callable[[Progress], bool | None]


class SearchStopped(Exception):  # noqa: N818  (the best so far is a result, not an error)
    """The time limit is over, or the callback asked to stop."""


class Search:
    """State of a running design: the best feasible point, its history, and when to stop."""

    def __init__(self, problem: Problem, progress: ProgressCallback | None, end: float) -> None:
        self.problem, self.progress, self.end = problem, progress, end
        self.best: Array | None = None
        self.objective = np.inf
        self.latest: Array | None = None
        self.history: list[tuple[int, float]] = []
        self.evaluations = 0
        self.phase = 'starting'
        self.stopped = False
        self.budget = 1
        self._iterations = 0
        self._start_time = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the design began."""
        return time.monotonic() - self._start_time

    def keep_if_best(self, x: Array) -> None:
        """Make a point feasible and keep it if it is the best so far."""
        self.latest = None
        # Shrinking a motion worsens it: what is no better unshrunk is not worth the repair.
        if self.best is not None and self.problem.objective(x) >= self.objective:
            return
        repaired = make_feasible(self.problem, x)
        objective = self.problem.objective(repaired)
        if objective < self.objective:
            self.best, self.objective = repaired, objective
            self.history.append((self.evaluations, self.problem.criterion.report(objective)))

    def on_iteration(self, x: Array) -> None:
        """Keep the solver's point, report progress, and stop when asked to or in the end."""
        self.latest = np.array(x)
        self._iterations += 1
        if self.progress:
            best = self.problem.criterion.report(self.objective) if self.best is not None else None
            done = self._iterations / self.budget
            longest = self.end - self._start_time
            done = min(1.0, max(done, self.elapsed / longest if longest > 0.0 else 1.0))
            state = Progress(self.elapsed, self.evaluations, best, self.phase, done)
            if self.progress(state):
                raise SearchStopped
        self.check_time()

    def check_time(self) -> None:
        """Stop at the time limit."""
        if time.monotonic() > self.end:
            raise SearchStopped

    def value(self, x: Array) -> float:
        """Evaluate the problem and count it; stop at the time limit."""
        self.check_time()
        self.evaluations += 1
        return self.problem.value(x)


def approach(search: Search, x: Array, iterations: int) -> Array:
    """
    Minimise by L-BFGS: no quadratic program, and hardly more evaluations than steps.

    The point that it returns may exceed its bounds by a little; `iterations` are those of a whole
    start, of which this is a part.
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
        how = {'method': 'L-BFGS-B', 'callback': search.on_iteration, 'options': options}
        x = minimize(objective, x, jac=True, **how).x
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


def gradient(search: Search, rng: np.random.Generator, iterations: int) -> None:
    """Approach a good point from a random one, then refine it by sequential programming."""
    drawn = [random_point(search.problem, rng) for _ in range(DRAWN_POINTS)]
    search.keep_if_best(drawn[0])
    x = min(drawn, key=search.value)
    x = approach(search, x, iterations)
    refine(search, x, max(1, iterations - len(STAGES) * iterations // STAGE_SHARE))


def refine(search: Search, x: Array, iterations: int) -> None:
    """
    Minimise by SLSQP under linear constraints at the peaks of the motion.

    Peaks that appear above a bound join the working set, round after round, so that the quadratic
    programs stay small whatever the number of samples.
    """
    problem = search.problem
    working: set[tuple[int, ...]] = set()
    left, length = iterations, FIRST_ITERATIONS
    search.keep_if_best(x)
    for stage in count():
        closing = left <= 0
        problem.set_penalty_stage(len(PENALTY_WEIGHTS) if closing else stage, SHARPNESS)
        new = find_peaks(problem.usage(x), PEAK_SHARE if stage else FIRST_PEAK_SHARE) - working
        working |= new
        # When the iterations are used up, short rounds bring the last new peaks within bounds.
        length = FIRST_ITERATIONS if closing else min(length, left)
        x, spent = _round(search, x, working, length)
        search.keep_if_best(x)
        left -= max(spent, MIN_ROUND_COST)
        kept = np.abs(problem.usage(x)).max() <= 1.0 + 1e-6
        settled = not new and spent < length and stage >= len(PENALTY_WEIGHTS)
        if settled or (left <= 0 and kept) or left <= -CLOSING_ROUNDS * FIRST_ITERATIONS:
            break
        length = min(2 * length, MAX_ITERATIONS)


def _round(
    search: Search, x: Array, working: set[tuple[int, ...]], iterations: int
) -> tuple[Array, int]:
    """Minimise under the working set from the nearest point within it; returns iterations too."""
    from scipy.optimize import minimize

    rows, offset = search.problem.linear_rows(np.array(sorted(working)).reshape(-1, 3))
    both, room = np.vstack([rows, -rows]), 1.0 - np.concatenate([offset, -offset])
    bounded = {
        'method': 'SLSQP',
        'bounds': [(-MAX_COEFFICIENT, MAX_COEFFICIENT)] * len(x),
        'constraints': {'type': 'ineq', 'fun': lambda x: room - both @ x, 'jac': lambda x: -both},
    }
    search.check_time()
    nearest = minimize(lambda y: 0.5 * np.sum((y - x) ** 2), x, jac=lambda y: y - x, **bounded)
    result = minimize(
        search.value,
        nearest.x,
        jac=search.problem.gradient,
        callback=search.on_iteration,
        options={'maxiter': iterations, 'ftol': 1e-5},
        **bounded,
    )
    return result.x if np.isfinite(result.x).all() else x, int(result.nit)


def find_peaks(usage: Array, share: float) -> set[tuple[int, ...]]:
    """Find the local maxima in time of |usage| (quantities, M, n) above a share of the bounds."""
    from scipy.signal import argrelextrema

    size = np.abs(usage)
    peaks = zip(*argrelextrema(size, np.greater_equal, axis=1), strict=True)
    return {tuple(map(int, index)) for index in peaks if size[index] > share}
