"""The circle of the study: 100 mm in diameter, through inverse kinematics (MFS, section 5)."""

from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
import pinocchio as pin

from robotid_ros.core.arrays import Array
from robotid_ros.core.excitation.collision_scene import CollisionScene
from robotid_ros.core.excitation.limits import apply_margins, motion_limits
from robotid_ros.core.excitation.settings import ExcitationSettings
from robotid_ros.core.excitation.trajectory import Trajectory
from robotid_ros.core.model.pinocchio_model import tool_frame
from robotid_ros.core.model.robot import Limits, Robot
from robotid_ros.exceptions import TrajectoryError

# Diameter [m], largest speed [m/s] and turns of the circle.
DIAMETER, SPEED, TURNS = 0.1, 0.5, 3
# Points of a turn that are solved for, and the largest error of the tool's path [m].
TURN_POINTS, PATH_TOLERANCE = 100, 1e-6
# Least share of the wanted speed.
MIN_SPEED_SHARE = 0.1
# Configurations to start from that are tried after the given one.
RANDOM_STARTS = 20


def circle_trajectory(
    robot: Robot,
    settings: ExcitationSettings,
    start: Array,
    scene: CollisionScene,
) -> Trajectory:
    """
    Draw a circle with the tool from rest to rest, horizontal if the robot can, else upright.

    Speed rises and falls by a quintic in time; where a joint would be too fast for SPEED, the
    circle is run slower. It starts at `start`, or where that is too close to a singularity at a
    configuration drawn from the seed.

    Parameters
    ----------
    robot : with limits
    settings : frame of the tool, margins
    start : (n,) configuration to try first
    scene : what not to touch

    Raises
    ------
    TrajectoryError : the tool cannot follow such a circle from there

    """
    limits = apply_margins(motion_limits(robot, settings), settings.margins)
    rng, axes = np.random.default_rng(settings.seed), np.eye(3)
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    reach = np.minimum(0.6 * half, 1.5)
    drawn = (middle + reach * rng.uniform(-1.0, 1.0, robot.n) for _ in range(RANDOM_STARTS))
    angle = np.linspace(0.0, 2.0 * np.pi, TURN_POINTS + 1)
    # Planes and directions in turn, horizontal ones first.
    ways = list(product(((0, 1), (0, 2), (1, 2)), (1.0, -1.0)))
    for first in chain([start], drawn) if robot.n > 1 else ():
        for (one, two), sign in ways:
            turn = np.outer(1.0 - np.cos(angle), axes[one]) + np.outer(np.sin(angle), axes[two])
            offset = sign * (0.5 * DIAMETER) * turn
            path = _follow(robot, settings.workspace.frame, first, offset, limits)
            if path is not None:
                trajectory = _timed(robot, path, limits)
                if trajectory is not None and scene.is_free(path):
                    return trajectory
    raise TrajectoryError(f'the tool cannot draw a circle of {DIAMETER:g} m')


def _follow(robot: Robot, tool: str, start: Array, offset: Array, limits: Limits) -> Array | None:
    """Solve the inverse kinematics of one turn, (points, n); None where that fails."""
    from scipy.optimize import least_squares

    model, order = robot.model, robot.order
    data, frame = model.createData(), tool_frame(model, tool)

    def place(q: Array) -> Any:
        pin.framesForwardKinematics(model, data, q[order])
        return data.oMf[frame].copy()

    first, path = place(start), [np.array(start)]
    upright = 0.1 if robot.n >= 6 else 0.0
    for shift in offset[1:]:

        def error(q: Array, shift: Array = shift) -> Array:
            now = place(q)
            turn = upright * pin.log3(first.rotation.T @ now.rotation)
            still = 1e-4 * (q - path[-1])
            return np.concatenate([now.translation - first.translation - shift, turn, still])

        q = least_squares(error, path[-1], xtol=1e-12, ftol=1e-12, gtol=1e-12).x
        # The pull towards the last point must not cost accuracy: a second pass without it.
        q = _polish(model, data, frame, q, order, first.translation + shift)
        if q is None or (q < limits.lower).any() or (q > limits.upper).any():
            return None
        path.append(q)
    drift = path[-1] - path[0]
    if np.abs(drift).max() >= 1e-2:
        return None
    # What a turn fails to come back by (redundant joints drift) is spread over it.
    return np.asarray(np.array(path) - np.linspace(0.0, 1.0, len(path))[:, None] * drift)


def _polish(
    model: Any, data: Any, frame: int, q: Array, order: NDArray[np.intp], goal: Array
) -> Array | None:
    inner = q[order]
    for _ in range(20):
        pin.framesForwardKinematics(model, data, inner)
        miss = goal - data.oMf[frame].translation
        if np.abs(miss).max() < 1e-9:
            break
        pin.computeJointJacobians(model, data, inner)
        jacobian = pin.getFrameJacobian(
            model, data, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )[:3]
        inner = inner + np.linalg.lstsq(jacobian, miss, rcond=1e-3)[0]
    result = np.empty_like(q)
    result[order] = inner
    near = np.abs(miss).max() < PATH_TOLERANCE and np.abs(result - q).max() < 0.2
    return result if near else None


def _timed(robot: Robot, path: Array, limits: Limits) -> Trajectory | None:
    """
    Run the turns with the quintic time law, as slowly as the joints' limits ask for.

    None where that is slower than `MIN_SPEED_SHARE`: the path comes too close to a singularity.
    """
    from scipy.interpolate import make_interp_spline

    curve = make_interp_spline(np.linspace(0.0, 1.0, len(path)), path, k=5, bc_type='periodic')
    # The quintic's largest speed is 15/8 of the mean one.
    fastest = 1.875 * np.pi * DIAMETER * TURNS / SPEED
    for stretch in np.geomspace(1.0, 1.0 / MIN_SPEED_SHARE, 40):
        trajectory = _through_points(robot, curve, path[0], TURNS, stretch * fastest)
        times = np.arange(0.0, trajectory.period, 0.005)
        _, dq, ddq = trajectory.sample(times)
        used = (np.abs(dq) / limits.velocity).max(), (np.abs(ddq) / limits.acceleration).max()
        if max(used) <= 1.0 and (np.abs(trajectory.jerk(times)) <= limits.jerk).all():
            return trajectory
    return None


def _through_points(
    robot: Robot, curve: Any, start: Array, turns: int, duration: float
) -> Trajectory:
    """Return quintics through points of `turns` turns, rest to rest."""
    order = int(np.ceil(25.0 * duration))
    s = np.linspace(0.0, 1.0, order + 2)
    place = turns * (10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5)
    speed = turns * 30.0 * s**2 * (1.0 - s) ** 2 / duration
    change = turns * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / duration**2
    where = np.mod(place, 1.0)
    first, second = curve(where, nu=1), curve(where, nu=2)
    motion = (
        curve(where) - start,
        first * speed[:, None],
        second * speed[:, None] ** 2 + first * change[:, None],
    )
    points = np.stack(motion, axis=1)[1:-1].reshape(3 * order, robot.n)
    return Trajectory(robot.joints, 'quintic', duration, order, start, points)
