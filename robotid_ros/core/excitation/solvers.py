"""Solvers: from random points to ever better feasible trajectories, the best always at hand."""

from collections.abc import Callable
import time

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from .problem import Problem
from .results import Progress, ProgressCallback

Array = NDArray[np.float64]
# Share of a bound above which a peak of the motion enters the first working set of constraints.
FIRST_SHARE = 0.3
# Iterations of a round: few at first, until the working set knows where the peaks are.
FIRST_ROUND, ROUND = 10, 40
POPULATION = 40


class Stopped(Exception):  # noqa: N818  (the best so far is a result, not an error)
    """The time is over or the caller has had enough."""


class Search:
    """What a running design knows: the best feasible point, its history, and when to stop."""

    def __init__(self, problem: Problem, progress: ProgressCallback | None, limit: float) -> None:
        self.problem, self.progress, self.limit = problem, progress, limit
        self.best: Array | None = None
        self.objective = np.inf
        self.last: Array | None = None
        self.history: list[tuple[float, float]] = []
        self.evaluations = 0
        self.phase = 'starting'
        self.stopped = False
        self.budget = 1
        self._ticks = 0
        self._begin = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the design began."""
        return time.monotonic() - self._begin

    def offer(self, x: Array) -> None:
        """Make a point feasible and keep it if it is the best so far."""
        repaired = self.problem.repair(x)
        objective = self.problem.objective(repaired)
        self.last = None
        if objective < self.objective:
            self.best, self.objective = repaired, objective
            self.history.append((self.elapsed, self.problem.criterion.report(objective)))

    def tick(self, x: Array) -> None:
        """
        Note where the solver is, show progress, and stop when it is time.

        Raises
        ------
        Stopped : the time is over, or the callback returned something true

        """
        self.last = np.array(x)
        self._ticks += 1
        if self.progress:
            best = self.problem.criterion.report(self.objective) if self.best is not None else None
            state = Progress(self.elapsed, self.evaluations, best, self.phase, self._fraction())
            if self.progress(state):
                raise Stopped
        if self.elapsed > self.limit:
            raise Stopped

    def _fraction(self) -> float:
        done = self._ticks / self.budget
        return min(1.0, max(done, self.elapsed / self.limit if self.limit else 1.0))

    def value(self, x: Array) -> float:
        """Evaluate the problem and count it."""
        self.evaluations += 1
        return self.problem.value(x)


def gradient(search: Search, rng: np.random.Generator, iterations: int) -> None:
    """Sequential quadratic programming from one random start."""
    refine(search, search.problem.random(rng), iterations)


def refine(search: Search, x: Array, iterations: int) -> None:
    """
    Minimise by SLSQP under linear constraints at the peaks of the motion.

    Peaks that appear above a bound join the working set, round after round, so that the quadratic
    programs stay small whatever the number of samples.
    """
    problem = search.problem
    working: set[tuple[int, ...]] = set()
    share, left, length = FIRST_SHARE, iterations, FIRST_ROUND
    search.offer(x)
    while left > 0:
        new = peaks(problem.usage(x), share) - working
        working |= new
        rows = problem.rows(np.array(sorted(working)).reshape(-1, 3))
        constraint = np.vstack([rows, -rows])
        result = minimize(
            search.value,
            x,
            jac=problem.gradient,
            method='SLSQP',
            constraints={
                'type': 'ineq',
                'fun': lambda x, a=constraint: 1.0 - a @ x,
                'jac': lambda x, a=constraint: -a,
            },
            callback=search.tick,
            options={'maxiter': min(length, left), 'ftol': 1e-5},
        )
        if np.isfinite(result.x).all():
            x = result.x
        search.offer(x)
        left -= max(int(result.nit), 5)
        if not new and result.nit < length and share > FIRST_SHARE:
            break
        share, length = 0.98, min(2 * length, ROUND)


def peaks(usage: Array, share: float) -> set[tuple[int, ...]]:
    """Find the local maxima in time of |usage| (quantities, M, n) above a share of the bounds."""
    size = np.abs(usage)
    edge = np.full_like(size[:, :1], -1.0)
    after = np.concatenate([size[:, 1:], edge], axis=1)
    before = np.concatenate([edge, size[:, :-1]], axis=1)
    found = np.argwhere((size >= after) & (size >= before) & (size > share))
    return {tuple(index) for index in found.tolist()}


def genetic(search: Search, rng: np.random.Generator, iterations: int) -> None:
    """
    Genetic algorithm (MFS, section 3): roulette selection, arithmetic crossover, mutation, elite.

    Every individual is shrunk into the linear bounds, so that the population stays feasible.
    """
    problem = search.problem
    population = np.stack([problem.random(rng) for _ in range(POPULATION)])
    fitness = np.array([search.value(x) for x in population])
    for generation in range(iterations):
        ranks = np.argsort(np.argsort(-fitness)) + 1.0
        parents = rng.choice(POPULATION, size=(2, POPULATION), p=ranks / ranks.sum())
        blend = rng.uniform(-0.1, 1.1, (POPULATION, 1))
        children = blend * population[parents[0]] + (1.0 - blend) * population[parents[1]]
        mutated = rng.random(children.shape) < 2.0 / children.shape[1]
        width = 0.3 * (1.0 - generation / iterations) * (population.std(axis=0) + 0.02)
        children += mutated * rng.normal(size=children.shape) * 3.0 * width
        children = np.stack([problem.repair_linear(x) for x in children])
        scores = np.array([search.value(x) for x in children])
        everyone = np.concatenate([population, children])
        scores = np.concatenate([fitness, scores])
        chosen = np.argsort(scores, kind='stable')[:POPULATION]
        population, fitness = everyone[chosen], scores[chosen]
        if generation % 10 == 9 or generation == iterations - 1:
            search.offer(population[0])
        search.tick(population[0])


def hybrid(search: Search, rng: np.random.Generator, iterations: int) -> None:
    """Search genetically for a short while, then go on from the best by SQP."""
    genetic(search, rng, max(1, iterations // 3))
    if search.best is not None:
        refine(search, search.best, iterations)


SOLVERS: dict[str, Callable[[Search, np.random.Generator, int], None]] = {
    'gradient': gradient,
    'genetic': genetic,
    'hybrid': hybrid,
}
