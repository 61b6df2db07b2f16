"""Ordinary working motions of a robot, and how well parameters predict their efforts."""

import math

import numpy as np

from ..arrays import Array
from ..model.robot import BaseParameters, Robot
from .trajectory import PEAK_ACCELERATION, PEAK_SPEED

# Moves between random positions along a quintic, all joints together, as planners make them. The
# joint nearest to its limits peaks at a share of its velocity or acceleration limit.
MOVES, INSTANTS, SEED = 100, 6, 0
PEAK = (0.1, 0.6)
ACCELERATION_TIME = 0.5  # rest to full speed where there is no acceleration limit [s]
HALF_TURN = math.pi  # largest distance from the middle of the range: gravity repeats [rad]
SLOWEST = 0.01  # slower, friction has no model [rad/s or m/s]
# Least effort on other motions over the recorded one: uncertain parameters predict it badly.
LEAST_EFFORT = 0.5


def working_motion(
    robot: Robot, lowest: Array, highest: Array, fastest: Array
) -> tuple[Array, Array, Array, tuple[str, ...]]:
    """
    Draw states of ordinary working motions within the robot's limits, always the same ones.

    Where the description has no limit, positions are between `lowest` and `highest`, velocities
    reach `fastest`, (n,) each as recorded, and accelerations take `ACCELERATION_TIME` to full
    speed. Returns q, dq, ddq (N, n), and which of 'position', 'velocity' and 'acceleration' the
    description does not limit.
    """
    n, limits = robot.rigid.n, robot.rigid.limits
    lower, upper = np.asarray(limits.lower), np.asarray(limits.upper)
    free = ~(np.isfinite(lower) & np.isfinite(upper) & (upper > lower))
    lower, upper = np.where(free, (lowest[:n], highest[:n]), (lower, upper))
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    half = np.where(robot.prismatic[:n], half, np.minimum(half, HALF_TURN))
    velocity, slow = limits.filled('velocity', np.maximum(fastest[:n], 1e-9))
    acceleration, soft = limits.filled('acceleration', velocity / ACCELERATION_TIME)
    rng = np.random.default_rng(SEED)
    start, end = (middle + half * rng.uniform(-1.0, 1.0, (MOVES, n)) for _ in range(2))
    way, peak = end - start, rng.uniform(*PEAK, MOVES)
    duration = np.maximum(
        np.max(PEAK_SPEED * np.abs(way) / velocity, axis=1) / peak,
        np.sqrt(np.max(PEAK_ACCELERATION * np.abs(way) / acceleration, axis=1) / peak),
    )[:, None, None]
    u, way = rng.uniform(size=(MOVES, INSTANTS, 1)), way[:, None]
    q = start[:, None] + way * u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    dq = way * 30.0 * u**2 * (1.0 - u) ** 2 / duration
    ddq = way * 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / duration**2
    own = np.arange(robot.n)
    own[robot.motors] = np.arange(n)  # motors move as their links do: springs at rest
    motion = [x.reshape(-1, n)[:, own] for x in (q, dq, ddq)]
    names = zip(('position', 'velocity', 'acceleration'), (free, slow, soft), strict=True)
    return (*motion, tuple(name for name, lacking in names if lacking.any()))


def working_errors(
    robot: Robot, base: BaseParameters, value: Array, covariance: Array,
    reached: tuple[Array, Array, Array], recorded: Array,
) -> tuple[Array, Array, tuple[str, ...]]:  # fmt: skip
    """
    Return the relative error (n,) of base parameters on working motions, and what weighs it.

    That is √(E[w C wᵀ]/E[τ²]) = √(tr(G C)) of each joint, NaN: not known; its G (n, b, b); and
    which limits the description lacks. Of a value (b,), its covariance (b, b), what was `reached`,
    as `working_motion` has it, and the root mean square (n,) of the recorded effort.
    """
    from ..model.dynamics import regressor  # thresholds are read without dynamics

    q, dq, ddq, unlimited = working_motion(robot, *reached)
    W, moving = regressor(robot, q, dq, ddq, columns=base.columns), np.abs(dq) > SLOWEST

    def mean(squares: Array) -> Array:
        return np.sum(squares, axis=0, where=moving) / np.maximum(moving.sum(axis=0), 1)

    error = np.maximum(mean(np.sum((W @ covariance) * W, axis=2).T), 0.0)
    # What uncertain parameters predict is too large by their own error.
    effort = np.maximum(mean((W @ value).T ** 2) - error, (LEAST_EFFORT * recorded) ** 2)
    known = moving.any(axis=0) & (effort > 0.0)
    result = np.sqrt(np.divide(error, effort, out=np.full(robot.n, math.nan), where=known))
    result[moving.any(axis=0) & ~np.isfinite(error)] = math.inf
    weight = (moving & known) / np.sqrt(np.maximum(effort * moving.sum(axis=0), 1e-300))
    rows = W * weight.T[:, :, None]
    return result, rows.swapaxes(1, 2) @ rows, unlimited
