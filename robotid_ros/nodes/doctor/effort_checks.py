"""Efforts: there, alive, and at rest beside the weight of the masses of the description."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.finding_codes import finding
from ...core.findings import Finding, Severity
from ...core.model.dynamics import inverse_dynamics
from ...core.model.robot import Robot
from ...files.formats.joint_table import JointTable
from .description_checks import described_robot
from .graph_snapshot import GraphSnapshot
from .joint_state_checks import moving_joints


def effort_findings(snapshot: GraphSnapshot, robot: Robot | None) -> Iterator[Finding]:
    """Check efforts; without a robot only whether there are any."""
    stream = snapshot.states
    if stream is None:
        return
    joints = [j for j in snapshot.joints or stream.joints if j in stream.joints]
    effort = stream.columns(joints).effort
    finite = np.isfinite(effort)
    states = snapshot.controller_states
    commanded = states is not None and states.commands_effort
    if not finite.any() or (commanded and not np.nan_to_num(effort).any()):
        what = 'an effort of exactly 0' if finite.any() else 'no effort'
        yield finding('commands_for_efforts' if commanded else 'no_efforts', what=what)
        return
    known_throughout = np.all(finite, axis=0).tolist()
    if bad := [joint for joint, ok in zip(joints, known_throughout, strict=True) if not ok]:
        yield finding('effort_not_a_number', bad)
        return
    known = robot if robot is not None and set(robot.joints) <= set(stream.joints) else None
    if not effort.any():
        bearing = known is not None and bool(compare_weights(stream, known).heavy)
        found = finding('efforts_all_zero', bears='bears' if bearing else None)
        yield found.at(Severity.ERROR) if bearing else found
        return
    dead = [joint for joint, column in zip(joints, effort.T, strict=True) if not column.any()]
    if dead:
        yield finding('effort_zero', dead)
    elif len(effort) > 1 and (effort == effort[0]).all():
        yield finding('efforts_frozen')
    if known is not None:
        yield from weight_findings(stream, known, dead)


# Weight that shows in an effort at rest: more than these shares of the effort limit and of the
# largest weight, and than twice the description's dry friction, all of which friction may hide.
FRICTION_SHARE, LEAST_SHARE, FRICTION_FACTOR = 0.05, 0.05, 2.0
# An effort that bears no weight exceeds what friction may hide by so much.
OFFSET_FACTOR = 2.0
# Reported over predicted effort: masses of a description may be off by a factor of two, units and
# gears by more; what is below a fifth holds no weight.
MAX_SCALE, NO_WEIGHT = 2.5, 0.2


@dataclass(frozen=True)
class WeightComparison:
    """
    Efforts at rest and what the description makes of them.

    Attributes
    ----------
    joints, units : names, and 'N·m' or 'N'
    measured, weight : (n,) reported effort with its drive gain, and what bears the masses
    hidden : (n,) what friction may take of it
    limited : (n,) whether the effort limit of the joint is known

    """

    joints: tuple[str, ...]
    units: tuple[str, ...]
    measured: Array
    weight: Array
    hidden: Array
    limited: np.ndarray

    @property
    def heavy(self) -> list[int]:
        """Joints that bear a weight which shows."""
        return np.flatnonzero(np.abs(self.weight) > self.hidden).tolist()

    @property
    def offset(self) -> list[int]:
        """Joints whose effort is more than weight and friction."""
        rest = np.abs(self.measured - self.weight) > OFFSET_FACTOR * self.hidden
        light = np.abs(self.weight) <= self.hidden
        return np.flatnonzero(rest & light & self.limited).tolist()

    def ratio(self, index: list[int]) -> Array:
        """Return reported over predicted effort of these joints."""
        return np.asarray(self.measured[index] / self.weight[index])

    def finding(self, name: str, index: Collection[int], **values: Any) -> Finding:
        """Return a finding on these joints, with both efforts."""
        chosen = list(index)
        return finding(
            name,
            [self.joints[j] for j in chosen],
            efforts=self.measured[chosen],
            weights=self.weight[chosen],
            units=[self.units[j] for j in chosen],
            **values,
        )


def compare_weights(stream: JointTable, robot: Robot) -> WeightComparison:
    """Compare efforts at rest with the weight of the description's masses."""
    states = stream.columns(robot.joints)
    q = states.position.mean(axis=0, keepdims=True)
    rest = np.zeros_like(q)
    weight = inverse_dynamics(robot, robot.prior, q, rest, rest)[0]
    limited = np.isfinite(robot.limits.effort)
    hidden = FRICTION_SHARE * np.where(limited, robot.limits.effort, 0.0)
    hidden = np.maximum(hidden, FRICTION_FACTOR * robot.dry_friction)
    return WeightComparison(
        robot.joints,
        tuple('N' if prismatic else 'N·m' for prismatic in robot.prismatic),
        states.effort.mean(axis=0) * robot.drive_gain,
        weight,
        np.maximum(hidden, LEAST_SHARE * np.abs(weight).max()) + 1e-9,
        limited,
    )


def effort_kind(snapshot: GraphSnapshot) -> str:
    """Return what efforts at rest show themselves to be, a value of `robot.effort_kind`."""
    robot, stream = described_robot(snapshot)[0], snapshot.states
    if robot is None or stream is None or not set(robot.joints) <= set(stream.joints):
        return 'auto'
    compared = compare_weights(stream, robot)
    if moving_joints(stream, robot.joints) or not np.isfinite(compared.measured).all():
        return 'auto'
    if not compared.measured.any():  # of drives without sensors
        return 'auto'
    ratio = compared.ratio(compared.heavy)
    if not ratio.size:
        return 'auto'
    if (np.abs(ratio) < NO_WEIGHT).all():
        return 'without_gravity'
    fits = (ratio > 1.0 / MAX_SCALE) & (ratio < MAX_SCALE)
    return 'joint_torque' if fits.all() else 'auto'


def weight_findings(stream: JointTable, robot: Robot, dead: Collection[str]) -> Iterator[Finding]:
    """Check sign, unit and zero of efforts, but for those of joints that are `dead`."""
    if moving := moving_joints(stream, robot.joints):
        yield finding('moves', moving)
        return
    compared = compare_weights(stream, robot)
    if not np.isfinite(compared.weight).all():
        return
    heavy = [j for j in compared.heavy if robot.joints[j] not in dead]
    if heavy:
        yield from _compare(compared, heavy)
    else:
        yield finding('no_weight')
    if offset := compared.offset:
        yield compared.finding('efforts_beyond_weight', offset)


def _compare(compared: WeightComparison, heavy: list[int]) -> Iterator[Finding]:
    ratio = compared.ratio(heavy)
    size = np.abs(ratio)

    def those(mask: np.ndarray) -> list[int]:
        return [j for j, chosen in zip(heavy, mask, strict=True) if chosen]

    if (size < NO_WEIGHT).all():
        yield compared.finding('efforts_without_weight', heavy)
        return
    opposite = ratio < -NO_WEIGHT
    scaled = ~opposite & ((size > MAX_SCALE) | (size < 1.0 / MAX_SCALE))
    if opposite.any():
        arm = 'arm' if opposite.all() else None
        yield compared.finding('efforts_opposite', those(opposite), arm=arm)
    if scaled.any():
        yield compared.finding('efforts_unlike_weight', those(scaled))
    if not (opposite | scaled).any():
        yield compared.finding('efforts_like_weight', heavy)
