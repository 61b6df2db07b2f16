"""The last check of what will be sent: every limit, at every time, also between the points."""

from dataclasses import replace
from math import comb

import numpy as np

from ....exceptions import LimitError, TrajectoryError
from ...arrays import Array
from ...model.dynamics import inverse_dynamics
from ...model.robot import Limits, Robot
from ..results import Usage
from ..settings import ExcitationSettings
from ..trajectories.trajectory import Motion, Trajectory
from ..trajectories.waypoints import sample_waypoints, Waypoints
from .collision_scene import CollisionScene
from .motion_limits import motion_limits

# What rounding may add to a share of a limit.
SHARE_TOLERANCE = 1e-9
# Stands for a missing position limit, whose middle and width must be finite [rad or m].
MAX_POSITION = 1e6
# Distances are measured so often [Hz], and oftener where bodies are near.
DISTANCE_RATE = 50.0
DERIVATIVES = ('position', 'velocity', 'acceleration', 'jerk')


def check_trajectory(
    robot: Robot,
    motion: Trajectory | Waypoints,
    settings: ExcitationSettings,
    rate: float = 1000.0,
    scene: CollisionScene | None = None,
) -> Usage:
    """
    Raise an error for a motion that leaves a limit, as the controller will interpolate it.

    Exact extrema of the quintic segments for position, velocity, acceleration and jerk; effort
    by the prior model at the controller's rate; distances in steps of 20 ms, and down to the
    controller's where bodies are near enough to touch in between.

    Parameters
    ----------
    robot : with limits and prior
    motion : what will be sent; a trajectory is first turned into its points
    settings : `rate`, missing limits and the workspace; margins are not used
    rate : of the controller [Hz]
    scene : bodies to avoid; None: made from the settings

    Returns
    -------
    Largest shares of the limits.

    Raises
    ------
    TrajectoryError : it is for other joints, or in another order
    LimitError : names joint, quantity, time, value and limit
    CollisionError : names the two bodies and the time

    """
    check_joints(robot, motion.joints)
    points = sample_waypoints(motion, settings.rate) if isinstance(motion, Trajectory) else motion
    # Positions of joints without limits are bounded in designs only.
    limits = replace(
        motion_limits(robot, settings), lower=robot.limits.lower, upper=robot.limits.upper
    )
    shares = {k: _check_derivative(points, limits, k, i) for i, k in enumerate(DERIVATIVES)}
    time = np.linspace(0.0, points.duration, int(np.ceil(points.duration * rate)) + 1)
    samples = points.sample(time)
    shares['effort'] = _check_effort(robot, points, time, samples, limits)
    scene = scene or CollisionScene(robot, settings.workspace)
    distance = scene.check_path(samples.q, time, step=max(1, int(rate / DISTANCE_RATE)))
    return Usage(**{k: tuple(v.tolist()) for k, v in shares.items()}, distance=distance)


def check_joints(robot: Robot, joints: tuple[str, ...]) -> None:
    """Raise an error where a motion is not for the robot's joints, in their order."""
    if tuple(joints) != robot.joints:
        raise TrajectoryError(
            f'the trajectory moves {", ".join(joints)}, the robot has {", ".join(robot.joints)}, '
            'in this order: design it for this robot'
        )


def _check_derivative(points: Waypoints, limits: Limits, name: str, derivative: int) -> Array:
    """Check one derivative of the quintic segments; returns the largest share per joint, (n,)."""
    powers = np.polynomial.polynomial.polyder(points.segments(), derivative, axis=1)
    powers = powers / (np.diff(points.time) ** derivative)[:, None, None]
    if name == 'position':
        lower = np.maximum(limits.lower, -MAX_POSITION)
        upper = np.minimum(limits.upper, MAX_POSITION)
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    else:
        middle, half = np.zeros(powers.shape[2]), np.asarray(getattr(limits, name))
    powers[:, 0] -= middle
    # Only segments whose convex hull exceeds the largest value at a point can hold the extremum.
    hull = np.abs(np.einsum('bk,pkn->pbn', _bernstein(powers.shape[1]), powers)).max(axis=1)
    ends = np.maximum(np.abs(powers[:, 0]), np.abs(powers.sum(axis=1)))
    largest = np.zeros(powers.shape[2])
    for j in range(powers.shape[2]):
        where, value = 0.0, 0.0
        known = ends[:, j].max()
        for p in np.flatnonzero(hull[:, j] >= known * (1.0 - SHARE_TOLERANCE)):
            s, y = _extremum(powers[p, :, j])
            if abs(y) > abs(value):
                where, value = points.time[p] + s * (points.time[p + 1] - points.time[p]), y
        largest[j] = abs(value) / half[j]
        if largest[j] > 1.0 + SHARE_TOLERANCE:
            bound = middle[j] + np.copysign(half[j], value)
            raise LimitError(points.joints[j], name, where, float(middle[j] + value), float(bound))
    return largest


def _bernstein(size: int) -> Array:
    """Return the matrix from powers of s to Bernstein coefficients, (size, size)."""
    degree = size - 1
    return np.array(
        [
            [comb(i, k) / comb(degree, k) if k <= i else 0.0 for k in range(size)]
            for i in range(size)
        ]
    )


def _extremum(powers: Array) -> tuple[float, float]:
    """Return place and value of a polynomial's largest absolute value on [0, 1]."""
    polynomial = np.polynomial.Polynomial(powers)
    roots = polynomial.deriv().roots() if len(powers) > 1 else np.empty(0)
    inner = roots.real[(np.abs(roots.imag) < 1e-6) & (roots.real > 0.0) & (roots.real < 1.0)]
    places = np.concatenate([[0.0, 1.0], inner])
    values = polynomial(places)
    best = int(np.argmax(np.abs(values)))
    return float(places[best]), float(values[best])


def _check_effort(
    robot: Robot, points: Waypoints, time: Array, samples: Motion, limits: Limits
) -> Array:
    share = np.abs(inverse_dynamics(robot, robot.prior, *samples)) / limits.effort
    k, j = np.unravel_index(int(np.argmax(share)), share.shape)
    if share[k, j] > 1.0:
        limit = float(limits.effort[j])
        raise LimitError(
            points.joints[j], 'effort', float(time[k]), float(share[k, j]) * limit, limit
        )
    largest: Array = share.max(axis=0)
    return largest
