"""Efforts at rest against the weight of the description's masses: sign, unit, zero."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.finding_codes import finding
from ...core.findings import Finding
from ...core.model.dynamics import inverse_dynamics
from ...core.model.robot import Robot
from ...files.formats.joint_table import JointTable
from .description_checks import described_robot
from .graph_snapshot import GraphSnapshot
from .joint_state_checks import moving_joints

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
