"""Ordinary working motions: what a model has to predict."""

import math

import numpy as np

from ..arrays import Array
from ..model.robot import ElasticRobot, Robot

# Moves from one random position to another, all joints start and stop together, along a quintic,
# as planners make them. The joint nearest to its limits peaks at a share of its velocity or
# acceleration limit.
MOVES, INSTANTS, SEED = 100, 6, 0
PEAK = (0.1, 0.6)
# Where the description has no acceleration limit: from rest to full speed in this time [s].
ACCELERATION_TIME = 0.5
# Largest distance from the middle of the range: gravity repeats [rad].
HALF_TURN = math.pi
# Peaks of the derivatives of 10 u³ − 15 u⁴ + 6 u⁵.
PEAK_SPEED, PEAK_ACCELERATION = 1.875, 10.0 / math.sqrt(3.0)
# Slower, friction has no model [rad/s or m/s].
STANDSTILL = 0.01
# The effort on other motions is at least this share of the recorded one: where parameters are
# uncertain, what they predict says little.
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
    n = robot.rigid.n if isinstance(robot, ElasticRobot) else robot.n
    limits, prismatic = robot.limits, robot.prismatic[:n]
    lower, upper, velocity, acceleration = (
        np.asarray(getattr(limits, name))[:n]
        for name in ('lower', 'upper', 'velocity', 'acceleration')
    )
    free = ~(np.isfinite(lower) & np.isfinite(upper) & (upper > lower))
    lower = np.where(free, lowest[:n], lower)
    upper = np.where(free, highest[:n], upper)
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    half = np.where(prismatic, half, np.minimum(half, HALF_TURN))
    slow = ~(np.isfinite(velocity) & (velocity > 0.0))
    velocity = np.maximum(np.where(slow, fastest[:n], velocity), 1e-9)
    soft = ~(np.isfinite(acceleration) & (acceleration > 0.0))
    acceleration = np.where(soft, velocity / ACCELERATION_TIME, acceleration)

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
    motion = [x.reshape(-1, n) for x in (q, dq, ddq)]
    if isinstance(robot, ElasticRobot):  # motors move as their links do: springs at rest
        own = np.arange(robot.n)
        own[robot.motors] = np.arange(n)
        motion = [x[:, own] for x in motion]
    names = zip(('position', 'velocity', 'acceleration'), (free, slow, soft), strict=True)
    return (*motion, tuple(name for name, lacking in names if lacking.any()))
