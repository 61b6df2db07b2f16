"""State of a running search: the best so far, and when to stop."""

import time

import numpy as np

from ...arrays import Array
from ..results import Progress, ProgressCallback
from .feasibility import make_feasible
from .optimisation_problem import Problem


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
        """
        Keep the solver's point, report progress, and stop when asked to or at the time limit.

        Raises
        ------
        SearchStopped : the time is over, or the callback returned something true

        """
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
