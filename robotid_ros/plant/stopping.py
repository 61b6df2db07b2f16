"""Stopping along a ramp: joint_trajectory_controller's `decelerate_on_cancel`."""

from collections.abc import Sequence
import math

from .interpolation import Point


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
