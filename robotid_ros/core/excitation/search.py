"""Search: from random points to better feasible trajectories; the best is always kept."""

from collections.abc import Callable
from dataclasses import dataclass
import time

import numpy as np

from ..arrays import Array
from .problem import make_feasible, Problem, random_point

# Sharpness of the criterion and weight of what exceeds a limit, stage after stage. A condition
# number has a kink where singular values meet, and they meet at its optimum: smoothed at first, it
# is followed in few steps. Small weights let a start in collision find its way out, large ones
# leave no contact.
STAGES = ((6.0, 100.0), (16.0, 500.0), (64.0, 2000.0))
# Pairs of steps and gradients that approximate the Hessian: there are about 100 variables.
MEMORY = 40
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

    def evaluate(self, x: Array) -> tuple[float, Array]:
        """Evaluate the problem and count it; stop at the time limit."""
        self.check_time()
        self.evaluations += 1
        return self.problem.evaluate(x)


def descend(search: Search, rng: np.random.Generator, iterations: int) -> None:
    """Minimise by L-BFGS from the best of some random points, so many iterations in all stages."""
    from scipy.optimize import minimize

    problem, steps = search.problem, max(1, iterations // len(STAGES))
    options = {'maxiter': steps, 'maxfun': 2 * steps, 'maxcor': MEMORY, 'ftol': 1e-9}
    how = {'method': 'L-BFGS-B', 'callback': search.on_iteration, 'options': options}
    problem.sharpness, problem.weight = STAGES[0]
    drawn = [random_point(problem, rng) for _ in range(DRAWN_POINTS)]
    search.keep_if_best(drawn[0])
    x = min(drawn, key=lambda point: search.evaluate(point)[0])
    for problem.sharpness, problem.weight in STAGES:
        x = minimize(search.evaluate, x, jac=True, **how).x
        search.keep_if_best(x)
