"""Which trajectories joint_trajectory_controller (Jazzy) accepts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .interpolation import Goal, Point, Values
from .tolerances import EPSILON


@dataclass(frozen=True)
class AcceptanceRules:
    """Parameters that decide what is accepted, and whether efforts are commanded."""

    partial_joints: bool = False
    nonzero_end_velocity: bool = False
    integration: bool = False
    effort: bool = True


def rejection_reason(goal: Goal, joints: Sequence[str], now: int, rules: AcceptanceRules) -> str:
    """Return why a goal is rejected, or ''. Values, NaN ones too, are not checked."""
    if not rules.partial_joints and len(goal.joints) != len(joints):
        return "the goal's joints are not the controller's"
    if not goal.joints:
        return 'the goal names no joints'
    if not goal.points:
        return 'the goal has no points'
    for name in goal.joints:
        if name not in joints:
            return f"joint '{name}' is not one of the controller's"
    if not rules.nonzero_end_velocity and any(
        abs(velocity) > EPSILON for velocity in goal.points[-1].velocities
    ):
        return 'the velocity of the last point is not zero'
    if goal.stamp and goal.stamp + goal.points[-1].time < now:
        return 'the trajectory ends in the past'
    return _invalid_points(goal, rules)


def _invalid_points(goal: Goal, rules: AcceptanceRules) -> str:
    count = len(goal.joints)
    for index, point in enumerate(goal.points):
        if index and point.time <= goal.points[index - 1].time:
            return f'the times of points {index - 1} and {index} do not increase'
        fields = {
            'positions': point.positions,
            'velocities': point.velocities,
            'accelerations': point.accelerations,
        }
        if point.effort and not rules.effort:
            return f'point {index} has efforts, which are not commanded'
        if rules.integration and not any(fields.values()):
            return f'point {index} is empty'
        for name, values in fields.items():
            required = name == 'positions' and not rules.integration
            if len(values) != count and (required or values):
                return f'point {index} has {len(values)} {name} for {count} joints'
    return ''


def sort_to_local_joint_order(goal: Goal, joints: Sequence[str], position: Values) -> Goal:
    """
    Sort a goal's joints; joints that a partial goal leaves out stay at `position`.

    An effort array of the wrong length is left as it is, as in the original.
    """
    names = list(goal.joints)
    missing = [joint for joint in joints if joint not in names]
    if not missing and names == list(joints):
        return goal
    positions = [position[list(joints).index(joint)] for joint in missing]
    order = [(names + missing).index(joint) for joint in joints]

    def sort(values: Values, missing_values: Values) -> Values:
        full = [*values, *missing_values] if values else []
        return [full[i] for i in order] if len(full) == len(order) else full

    zeros = [0.0] * len(missing)
    added = {'positions': positions, 'velocities': zeros, 'accelerations': zeros, 'effort': zeros}
    points = [
        Point(p.time, *(sort(getattr(p, name), values) for name, values in added.items()))
        for p in goal.points
    ]
    return replace(goal, joints=tuple(joints), points=points)
