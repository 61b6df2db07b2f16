"""The limits of a motion, and the last check of what will be sent."""

from dataclasses import asdict, dataclass, replace

import numpy as np

from ...exceptions import ConfigurationError, LimitError, TrajectoryError
from ..arrays import Array
from ..model.dynamics import inverse_dynamics
from ..model.robot import Limits, Robot
from .collision_scene import CollisionScene
from .settings import ExcitationSettings, Margins
from .trajectory import sample_waypoints, Trajectory, Waypoints

QUANTITIES = ('position', 'velocity', 'acceleration', 'jerk', 'effort')
SHARE_TOLERANCE = 1e-9  # what rounding may add to a share of a limit
LEAST_EFFORT = 1e-12  # what counts as none [N·m or N]: a limit may be none
MAX_POSITION = 1e6  # for a missing limit: middle and width must be finite [rad or m]
# Efforts are checked so often, as controllers run [Hz]; distances too where bodies are near.
RATE, DISTANCE_RATE = 1000.0, 50.0


@dataclass(frozen=True)
class Usage:
    """Largest share of each limit that a motion uses, (n,) per quantity; 1 is the limit itself."""

    position: tuple[float, ...]  # from the middle of the range
    velocity: tuple[float, ...]
    acceleration: tuple[float, ...]
    jerk: tuple[float, ...]
    effort: tuple[float, ...]
    distance: float | None = None  # smallest between bodies [m]; None: nothing to collide with


def motion_limits(robot: Robot, settings: ExcitationSettings) -> Limits:
    """
    Complete the robot's limits, or raise a ConfigurationError for one that is missing or wrong.

    A joint that turns without position limits is bounded by ±`amplitude`; a joint without
    acceleration limit gets `velocity/acceleration_time`, one without jerk limit
    `acceleration/jerk_time`.
    """
    limits = robot.limits
    for name, values in asdict(limits).items():
        for joint, value in zip(robot.joints, values, strict=True):
            if np.isnan(value) or (name in QUANTITIES and value < 0.0):
                raise ConfigurationError(
                    f'the {name} limit of {joint} is {value:g}: correct robot.{name}'
                )
            if name in ('velocity', 'effort') and not 0.0 < value < np.inf:
                raise ConfigurationError(
                    f'{joint} has no {name} limit in the robot description: set robot.{name}'
                )
    unbounded = robot.prismatic & ~(np.isfinite(limits.lower) & np.isfinite(limits.upper))
    if unbounded.any():
        raise ConfigurationError(
            f'{robot.joints[int(np.argmax(unbounded))]} slides and has no position limits in the '
            'robot description: write them there, or set robot.lower and robot.upper'
        )
    lower = np.where(np.isfinite(limits.lower), limits.lower, -settings.amplitude)
    upper = np.where(np.isfinite(limits.upper), limits.upper, settings.amplitude)
    if not (lower < upper).all():
        j = int(np.argmin(lower < upper))
        raise ConfigurationError(
            f'{robot.joints[j]} has a lower limit {lower[j]:g} that is not below its upper limit '
            f'{upper[j]:g}: correct robot.lower and robot.upper'
        )
    acceleration, _ = limits.filled('acceleration', limits.velocity / settings.acceleration_time)
    jerk, _ = limits.filled('jerk', acceleration / settings.jerk_time)
    return replace(limits, lower=lower, upper=upper, acceleration=acceleration, jerk=jerk)


def apply_margins(limits: Limits, margins: Margins) -> Limits:
    """Take the margins off the limits."""
    inset = 0.5 * margins.position * (limits.upper - limits.lower)
    kept = {k: getattr(limits, k) * (1.0 - getattr(margins, k)) for k in QUANTITIES[1:]}
    return replace(limits, lower=limits.lower + inset, upper=limits.upper - inset, **kept)


def check_trajectory(
    robot: Robot,
    motion: Trajectory | Waypoints,
    settings: ExcitationSettings,
    scene: CollisionScene | None = None,
) -> Usage:
    """
    Return the largest shares of the limits that a motion uses; raise an error if it leaves one.

    Exact extrema of the quintic segments for position, velocity, acceleration and jerk; effort by
    the prior model at `RATE`; distances in steps of 20 ms, and down to that of the rate where
    bodies are near enough to touch in between. The motion is what will be sent, a trajectory is
    first turned into its points; margins do not count. LimitError and CollisionError say what,
    where and when, a TrajectoryError that the motion is for other joints.
    """
    check_joints(robot, motion.joints)
    points = sample_waypoints(motion, settings.rate) if isinstance(motion, Trajectory) else motion
    # Positions of joints without limits are bounded in designs only.
    limits = replace(
        motion_limits(robot, settings), lower=robot.limits.lower, upper=robot.limits.upper
    )
    shares = {k: _check_derivative(points, limits, k, i) for i, k in enumerate(QUANTITIES[:4])}
    time = np.linspace(0.0, points.duration, int(np.ceil(points.duration * RATE)) + 1)
    samples = points.sample(time)
    tau = np.abs(inverse_dynamics(robot, robot.prior, *samples))
    shares['effort'] = (tau / np.maximum(limits.effort, LEAST_EFFORT)).max(axis=0)
    check_efforts(points.joints, time, tau, limits.effort)
    scene = scene or CollisionScene(robot, settings.workspace)
    distance = scene.check_path(samples.q, time, step=int(RATE / DISTANCE_RATE))
    return Usage(**{k: tuple(v.tolist()) for k, v in shares.items()}, distance=distance)


def check_efforts(joints: tuple[str, ...], time: Array, tau: Array, limits: Array) -> None:
    """Raise a `LimitError` for the effort (N, n) at times (N,) farthest above its limit (n,)."""
    share = np.abs(tau) / np.maximum(limits, LEAST_EFFORT)
    k, j = np.unravel_index(int(np.argmax(share)), share.shape)
    if not share[k, j] <= 1.0:
        raise LimitError(joints[j], 'effort', float(time[k]), float(tau[k, j]), float(limits[j]))


def check_joints(robot: Robot, joints: tuple[str, ...]) -> None:
    """Raise an error where a motion is not for the robot's joints, in their order."""
    if tuple(joints) != robot.joints:
        raise TrajectoryError(
            f'the trajectory moves {", ".join(joints)}, the robot has {", ".join(robot.joints)}, '
            'in this order: design it for this robot'
        )


def _check_derivative(points: Waypoints, limits: Limits, name: str, derivative: int) -> Array:
    """Check one derivative of the segments; returns the largest share per joint, (n,)."""
    from scipy.interpolate import PPoly

    if name == 'position':
        lower, upper = np.clip((limits.lower, limits.upper), -MAX_POSITION, MAX_POSITION)
    else:
        lower, upper = -getattr(limits, name), getattr(limits, name)
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    largest = np.zeros(len(points.joints))
    # Both sides of a point: a jerk jumps there.
    ends = np.concatenate([points.time[:-1], np.nextafter(points.time[1:], -np.inf)])
    for j, joint in enumerate(points.joints):
        quantity = PPoly(points.polynomial.c[:, :, j], points.time).derivative(derivative)
        peaks = quantity.derivative().roots(discontinuity=False, extrapolate=False)
        times = np.concatenate([ends, peaks[np.isfinite(peaks)]])
        values = quantity(times)
        k = int(np.argmax(np.abs(values - middle[j])))
        largest[j] = abs(values[k] - middle[j]) / half[j]
        if largest[j] > 1.0 + SHARE_TOLERANCE:
            bound = middle[j] + np.copysign(half[j], values[k] - middle[j])
            raise LimitError(joint, name, float(times[k]), float(values[k]), float(bound))
    return largest
