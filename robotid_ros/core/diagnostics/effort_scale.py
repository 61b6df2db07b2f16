"""Scale of each joint's effort, against the description's limits and inertias."""

import numpy as np

from ..model.base_parameters import BaseParameters
from ..model.parameters import INERTIAL
from ..model.robot import Robot
from ..regression.estimate import Estimate
from ..signals.samples import Samples
from .remark import joints_of, Remark
from .trials import inertia_columns

EFFORT_LIMIT, INERTIA = 'beyond_effort_limit', 'implausible_inertia'
# Effort that all but a few samples stay below, and by how much it may exceed the URDF's limit:
# drives peak at two to three times what they hold.
PERCENTILE, MAX_LIMIT_RATIO = 99.0, 3.0
# An inertia that joints show is absurd when it is, for sure, so many times the largest of the
# URDF's robot (rotors behind gears do not exceed links by more), or so small a share of what the
# joint's own links have.
MAX_INERTIA_RATIO, MIN_INERTIA_SHARE, SURE = 20.0, 0.1, 6.0
MAX_RESIDUAL = 0.1  # of a joint whose inertia may be taken at its word where it is negative
POSTURES = 20  # at which inertias are compared


def scale_warnings(
    robot: Robot, base: BaseParameters, samples: Samples, estimate: Estimate
) -> list[Remark]:
    """Name the joints with efforts of an implausible size."""
    found = _beyond_limits(robot, samples)
    if robot.assumed_inertials:
        return found
    named = {joint for remark in found for joint in joints_of(remark)}
    return found + _absurd_inertias(robot, base, samples, estimate, named)


def _beyond_limits(robot: Robot, samples: Samples) -> list[Remark]:
    largest = np.percentile(np.abs(samples.tau), PERCENTILE, axis=0)
    limit = robot.limits.effort[: len(largest)]
    over = np.flatnonzero((limit > 0.0) & (largest > MAX_LIMIT_RATIO * limit))
    if not over.size:
        return []
    each = ', '.join(f'{robot.joints[j]} {largest[j]:.3g} ({limit[j]:.3g})' for j in over)
    text = (
        f"efforts far beyond the URDF's effort limits: {each}: their unit or drive gain, or the "
        'limits, are not those of this robot'
    )
    return [Remark(text, code=EFFORT_LIMIT, joints=[robot.joints[j] for j in over])]


def _absurd_inertias(
    robot: Robot, base: BaseParameters, samples: Samples, estimate: Estimate, named: set[str]
) -> list[Remark]:
    rows = np.linspace(0, len(samples.time) - 1, POSTURES).astype(int)
    masses = np.array([p.symbol in INERTIAL for p in robot.parameters])
    links = np.where(masses, robot.prior, 0.0)
    unit = inertia_columns(robot, samples.q[rows])
    prior = np.median(unit @ links, axis=1)
    mean = unit[:, :, base.columns].mean(axis=1)
    shown = mean @ estimate.value
    error = SURE * np.sqrt(np.einsum('jb,bc,jc->j', mean, estimate.noise_covariance, mean))
    odd: dict[str, str] = {}
    for j, joint in enumerate(robot.joints):
        largest = prior[robot.prismatic == robot.prismatic[j]].max()
        high = shown[j] - error[j] > MAX_INERTIA_RATIO * largest > 0.0
        low = shown[j] + error[j] < MIN_INERTIA_SHARE * prior[j]
        # A spring makes an inertia look negative; where much is left, what is left tells of it.
        low &= shown[j] > 0.0 or estimate.residual[j] < MAX_RESIDUAL
        if (high or low) and joint not in named and samples.moving[:, j].any():
            what = f'at most {largest:.2g}' if high else f'{prior[j]:.2g}'
            odd[joint] = f'{joint} {shown[j]:.2g} (URDF: {what})'
    if not odd:
        return []
    text = (
        f'joints move like inertias of {", ".join(odd.values())} kg·m² (prismatic: kg): unit or '
        'drive gain of their efforts, the unit of the times or the inertias of the URDF are not '
        'those of this robot, or the joints are elastic'
    )
    return [Remark(text, code=INERTIA, joints=odd)]
