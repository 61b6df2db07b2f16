"""Goals of FollowJointTrajectory as waypoints of a robot, and back."""

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...core.arrays import Array
from ...core.excitation import CubicWaypoints, Waypoints
from ...exceptions import TrajectoryError
from ..excitation.trajectory_goal import duration_message


def read_goal(trajectory: Any, joints: Sequence[str], start: tuple[Array, Array]) -> Waypoints:
    """
    Read a trajectory as a controller does.

    Parameters
    ----------
    trajectory : trajectory_msgs/JointTrajectory
    joints : of the robot, whose order the waypoints have
    start : positions and velocities (n,) of the reference now, from which the first segment goes
        where the trajectory does not begin at once

    Raises
    ------
    TrajectoryError : it is not one that efforts can be added to; says what would be

    """
    names, points = list(trajectory.joint_names), trajectory.points
    if sorted(names) != sorted(joints):
        raise TrajectoryError(
            f'the goal names the joints {", ".join(names) or "none"}: efforts are known for '
            f'{", ".join(joints)} together'
        )
    if not points:
        raise TrajectoryError('the goal has no points')
    order = [names.index(joint) for joint in joints]
    with_accelerations = all(len(point.accelerations) for point in points)
    parts = []
    for field in ('positions', 'velocities', *['accelerations'] * with_accelerations):
        rows = [getattr(point, field) for point in points]
        if any(len(row) != len(names) for row in rows):
            raise TrajectoryError(
                f'a point of the goal lacks {field} of some joint: efforts follow from smooth '
                'motion, let the planner fill in positions and velocities'
            )
        parts.append(np.array(rows, dtype=float)[:, order])
    stamps = (point.time_from_start for point in points)
    time = np.array([stamp.sec + stamp.nanosec * 1e-9 for stamp in stamps])
    q, dq, ddq = (*parts, np.zeros_like(parts[0]))[:3]
    if time[0] > 0.0:
        time = np.insert(time, 0, 0.0)
        rest = np.zeros(len(joints))
        q, dq, ddq = (
            np.insert(values, 0, first, axis=0)
            for values, first in ((q, start[0]), (dq, start[1]), (ddq, rest))
        )
    if not all(np.isfinite(values).all() for values in (time, q, dq, ddq)):
        raise TrajectoryError('the goal holds a value that is not a number')
    if len(time) < 2:
        raise TrajectoryError('the goal has no duration')
    kind = Waypoints if with_accelerations else CubicWaypoints
    return kind(tuple(joints), time, q, dq, ddq)


def goal_trajectory(trajectory: Any, points: Waypoints) -> JointTrajectory:
    """Return a trajectory with the header of the one that came and the points of another."""
    # Arrays: the message would look at each number of a list.
    empty = array('d')
    cubic = isinstance(points, CubicWaypoints)
    tau = points.tau
    assert tau is not None
    message = JointTrajectory(header=trajectory.header, joint_names=list(points.joints))
    message.points = [
        JointTrajectoryPoint(
            positions=array('d', points.q[k]),
            velocities=array('d', points.dq[k]),
            accelerations=empty if cubic else array('d', points.ddq[k]),
            effort=array('d', tau[k]),
            time_from_start=duration_message(float(time)),
        )
        for k, time in enumerate(points.time)
    ]
    return message
