"""Feasible points: random ones, and others shrunk until they keep every bound."""

from collections.abc import Sequence

import numpy as np

from ...arrays import Array
from ...model.dynamics import inverse_dynamics
from ..trajectories.trajectory import Trajectory
from .optimisation_problem import Problem


def make_feasible(problem: Problem, x: Array) -> Array:
    """
    Shrink the motion about q0 until every bound holds.

    The linear bounds are met exactly on a dense grid, joint by joint; effort and scene by
    bisection on a common factor.
    """
    start, c = problem.unpack(shrink_into_bounds(problem, x, bases=problem.exact_bases))
    low, high = 0.0, 1.0
    if not _feasible(problem, start, c):
        for _ in range(12):
            middle = 0.5 * (low + high)
            inside = _feasible(problem, start, middle * c)
            low, high = (middle, high) if inside else (low, middle)
        c = low * c
    return problem.pack(start, c)


def shrink_into_bounds(
    problem: Problem, x: Array, share: float = 1.0, bases: Sequence[Array] = ()
) -> Array:
    """Shrink each joint's motion about q0 into its linear bounds, at the times of `bases`."""
    start, c = problem.unpack(x)
    middle, half = problem.middle, problem.half
    if problem.start is None:
        start = middle + np.clip(start - middle, -0.9 * half, 0.9 * half)
    factor = np.ones(len(start))
    for k, (basis, bound) in enumerate(
        zip(bases or problem.fine_bases, problem.bounds, strict=True)
    ):
        y = basis @ c
        offset = start - middle if k == 0 else np.zeros_like(start)
        room = np.stack([bound - offset, bound + offset])
        used = np.maximum(np.stack([y.max(axis=0), -y.min(axis=0)]), 1e-12)
        factor = np.minimum(factor, (share * room / used).min(axis=0))
    return problem.pack(start, c * np.maximum(factor, 0.0))


def _feasible(problem: Problem, start: Array, c: Array) -> bool:
    tau = problem.observation.matrix(problem.motion(start, c)) @ problem.prior
    within = bool((np.abs(tau) <= problem.design_limits.effort).all())
    return within and problem.scene.is_free(start + problem.dense_basis @ c)


def random_point(problem: Problem, rng: np.random.Generator) -> Array:
    """Draw a point whose motion keeps the linear bounds."""
    n, k = problem.robot.n, len(problem.scale)
    start = problem.start
    if start is None:
        start = problem.middle + 0.3 * problem.half * rng.uniform(-1.0, 1.0, n)
    c = rng.normal(size=(k, n)) * problem.scale
    return shrink_into_bounds(problem, problem.pack(start, c), 0.9)


def keeps_bounds(problem: Problem, trajectory: Trajectory) -> bool:
    """Return whether a trajectory keeps limits and distances at the dense times."""
    times, relaxed_limits = problem.dense_times, problem.relaxed_limits
    motion = trajectory.sample(times)
    tau = inverse_dynamics(problem.robot, problem.robot.prior, *motion)
    return bool(
        (motion.q >= relaxed_limits.lower).all()
        and (motion.q <= relaxed_limits.upper).all()
        and (np.abs(motion.dq) <= relaxed_limits.velocity).all()
        and (np.abs(motion.ddq) <= relaxed_limits.acceleration).all()
        and (np.abs(trajectory.jerk(times)) <= relaxed_limits.jerk).all()
        and (np.abs(tau) <= relaxed_limits.effort).all()
        and problem.scene.is_free(motion.q)
    )
