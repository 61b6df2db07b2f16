"""Scale of each joint's effort, against the description's limits and inertias."""

import numpy as np

from ..finding_codes import finding
from ..findings import Finding
from ..model.base_parameters import BaseParameters
from ..model.parameters import INERTIAL
from ..model.robot import Robot
from ..regression.estimate import Estimate
from ..signals.samples import Samples
from .trials import inertia_columns

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
) -> list[Finding]:
    """Name the joints with efforts of an implausible size."""
    found = _beyond_limits(robot, samples)
    if robot.assumed_inertials:
        return found
    named = {joint for each in found for joint in each.joints}
    return found + _absurd_inertias(robot, base, samples, estimate, named)


def _beyond_limits(robot: Robot, samples: Samples) -> list[Finding]:
    largest = np.percentile(np.abs(samples.tau), PERCENTILE, axis=0)
    limit = robot.limits.effort[: len(largest)]
    over = np.flatnonzero((limit > 0.0) & (largest > MAX_LIMIT_RATIO * limit))
    if not over.size:
        return []
    joints = [robot.joints[j] for j in over]
    return [finding('beyond_effort_limit', joints, efforts=largest[over], limits=limit[over])]


def _absurd_inertias(
    robot: Robot, base: BaseParameters, samples: Samples, estimate: Estimate, named: set[str]
) -> list[Finding]:
    rows = np.linspace(0, len(samples.time) - 1, POSTURES).astype(int)
    masses = np.array([p.symbol in INERTIAL for p in robot.parameters])
    links = np.where(masses, robot.prior, 0.0)
    unit = inertia_columns(robot, samples.q[rows])
    prior = np.median(unit @ links, axis=1)
    mean = unit[:, :, base.columns].mean(axis=1)
    shown = mean @ estimate.value
    error = SURE * np.sqrt(np.einsum('jb,bc,jc->j', mean, estimate.noise_covariance, mean))
    odd: dict[str, tuple[float, float]] = {}
    for j, joint in enumerate(robot.joints):
        largest = prior[robot.prismatic == robot.prismatic[j]].max()
        high = shown[j] - error[j] > MAX_INERTIA_RATIO * largest > 0.0
        low = shown[j] + error[j] < MIN_INERTIA_SHARE * prior[j]
        # A spring makes an inertia look negative; where much is left, what is left tells of it.
        low &= shown[j] > 0.0 or estimate.residual[j] < MAX_RESIDUAL
        if (high or low) and joint not in named and samples.moving[:, j].any():
            odd[joint] = float(shown[j]), float(largest if high else prior[j])
    if not odd:
        return []
    inertias, expected = zip(*odd.values(), strict=True)
    return [finding('implausible_inertia', odd, inertias=inertias, expected=expected)]
