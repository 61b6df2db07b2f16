"""Goals of FollowJointTrajectory as waypoints of a robot, and back."""

from array import array
from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...core.arrays import Array
from ...core.excitation.trajectory import CubicWaypoints, Waypoints
from ...core.model import Robot
from ...exceptions import TrajectoryError
from ..excitation.trajectory_goal import duration_message

AT_REST = 1e-6  # speed of a reference that is held [rad/s or m/s]


def read_goal(
    trajectory: Any, robot: Robot, start: tuple[Array, Array]
) -> tuple[Waypoints, float]:
    """
    Read a trajectory as a controller does.

    Where it does not begin at once, its first segment goes from the reference. That is held at
    rest, and becomes a point of its own, whose effort the controller would make up otherwise. In
    motion it is another one when the goal arrives: the controller has to find it itself.

    `start` are positions and velocities (n,) of the reference now. Returns the waypoints, in the
    order of the robot's joints, and the time from which they can be sent [s]. A trajectory that
    efforts cannot be added to is a TrajectoryError, which says what would be one.
    """
    names, points, joints = list(trajectory.joint_names), trajectory.points, robot.joints
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
    first = 0.0
    if time[0] > 0.0:
        moving = bool(np.abs(start[1]).max() > AT_REST)
        first = float(time[0]) if moving else 0.0
        # A controller counts joints without limits from the turn that is nearest to the goal.
        turns = np.round((q[0] - start[0]) / (2.0 * np.pi))
        endless = ~np.isfinite(robot.limits.upper - robot.limits.lower) & ~robot.prismatic
        begin = start[0] + np.where(endless, 2.0 * np.pi * turns, 0.0)
        time = np.insert(time, 0, 0.0)
        q, dq, ddq = (
            np.insert(values, 0, own, axis=0)
            for values, own in ((q, begin), (dq, start[1]), (ddq, np.zeros(robot.n)))
        )
    if not all(np.isfinite(values).all() for values in (time, q, dq, ddq)):
        raise TrajectoryError('the goal holds a value that is not a number')
    if len(time) < 2:
        raise TrajectoryError('the goal has no duration')
    kind = Waypoints if with_accelerations else CubicWaypoints
    return kind(tuple(joints), time, q, dq, ddq), first


def goal_trajectory(trajectory: Any, points: Waypoints, first: float) -> JointTrajectory:
    """Return a trajectory with the header of the one that came and points from a time [s] on."""
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
        if time >= first - 1e-9
    ]
    return message
