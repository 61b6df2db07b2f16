"""Trajectories with which joint_trajectory_controller stops and holds."""

from collections.abc import Sequence
from dataclasses import replace
import math

from ...simulation_settings import ConstraintSettings, JointConstraintSettings
from .interpolation import Goal, Point


class HoldTrajectory:
    """The goal that holds the robot; one message that is reused, as in the original."""

    def __init__(self, joints: Sequence[str]):
        zeros = [0.0] * len(joints)
        self._goal = Goal(tuple(joints), 0, [Point(0, list(zeros), [], [], list(zeros))])

    def at_position(self, positions: Sequence[float]) -> Goal:
        """Hold these positions; the other fields of the message stay as they are."""
        self._goal.points[0].positions = list(positions)
        return self._goal

    def at_end_of(self, goal: Goal) -> Goal:
        """Hold a goal's last point, with its velocity and effort."""
        self._goal.points[0] = replace(goal.points[-1], time=0)
        return self._goal


def decelerations(constraints: ConstraintSettings, joints: Sequence[str]) -> list[float]:
    """Return each joint's deceleration [rad/s²]; nothing where the controller stops at once."""
    ramps = [
        constraints.joints.get(joint, JointConstraintSettings()).max_deceleration_on_cancel
        for joint in joints
    ]
    return ramps if constraints.decelerate_on_cancel and min(ramps) > 0.0 else []


def stopping_points(state: Point, decelerations: Sequence[float], period: int) -> list[Point]:
    """
    Points that bring each joint to rest at its constant deceleration, one per update.

    Parameters
    ----------
    state : measured positions and velocities
    decelerations : per joint [rad/s²]
    period : of the updates [ns]

    """
    rows = list(zip(state.positions, state.velocities, decelerations, strict=True))
    longest = max(abs(v) / a for _, v, a in rows)
    count = math.ceil(longest / (period * 1e-9)) + 2
    return [_point(rows, index * period) for index in range(count)]


def _point(rows: Sequence[tuple[float, float, float]], time: int) -> Point:
    point = Point(time, [], [], [])
    for position, velocity, deceleration in rows:
        end = abs(velocity) / deceleration
        t = min(time * 1e-9, end)
        slope = -math.copysign(deceleration, velocity) if time * 1e-9 < end else 0.0
        braking = -math.copysign(deceleration, velocity)
        point.positions.append(position + velocity * t + 0.5 * braking * t * t)
        point.velocities.append(velocity + braking * t if slope else 0.0)
        point.accelerations.append(slope)
    return point
