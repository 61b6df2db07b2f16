"""What an identification takes for granted of its data, looked at after the fit."""

from collections.abc import Sequence
import dataclasses
from itertools import chain

import numpy as np

from ..findings import Finding
from ..model.base_parameters import BaseParameters
from ..model.robot import ElasticRobot, Robot
from ..regression.estimate import Estimate
from ..regression.observation_system import Rows
from ..signals.samples import Samples
from .advice import COMPENSATED, EFFORT_UNIT, find_causes, GRAVITY, REVERSED, SWAPPED
from .plausibility import FittedModel, limit_warnings, saturation_warnings, scale_warnings
from .residual_reasons import LARGE, residual_warnings
from .stationarity import friction_jumps, joint_torques, stationarity_warnings
from .trials import trial_rows

# With a wrong gravity or sense, or efforts of other joints, every joint is off: nothing else can
# be said.
EVERYTHING = (COMPENSATED, GRAVITY, SWAPPED, REVERSED)


def data_warnings(
    robot: Robot,
    base: BaseParameters,
    samples: Samples,
    systems: Sequence[Rows],
    estimate: Estimate,
    whole: FittedModel | None = None,
) -> list[Finding]:
    """
    Check what the fit took for granted: limits, signs, columns and units of efforts, gravity.

    Then whether scale, limits and dynamics stayed the same, and what the residuals look like.

    Samples are those of the first system, the first part of the recording that is in memory;
    `whole` is the model with what is shrunk, whose friction may change as well.
    """
    beyond, count = limit_warnings(robot, samples.q), len(base.columns)
    fits = all(system.W.shape[2] == count for system in systems) and len(estimate.value) == count
    if not fits or isinstance(robot, ElasticRobot):
        return beyond
    rows = trial_rows(systems)
    causes = [] if rows is None else find_causes(robot, base, samples, rows)
    measured = None if whole is None else trial_rows(whole.systems)
    if rows and measured and np.sqrt(np.mean(estimate.residual**2)) > LARGE:
        # Of efforts that no model explains, what is shrunk may take what a remedy would explain.
        others = find_causes(robot, base, samples, dataclasses.replace(rows, Y=measured.Y))
        causes = max(causes, others, key=lambda c: max((x.gain for x in c), default=0.0))
    found = [*beyond, *(cause.finding for cause in causes)]
    if any(cause.name in EVERYTHING for cause in causes):
        return found
    known = {*chain.from_iterable(each.joints for each in found)}
    # Of efforts that are no torques, no size is plausible.
    torques = all(cause.name != EFFORT_UNIT for cause in causes)
    scales = scale_warnings(robot, base, samples, estimate) if torques else []
    limits = saturation_warnings(robot, samples, systems[0])
    sizes = [each for each in (*scales, *limits) if not known.issuperset(each.joints)]
    scaled = {*chain.from_iterable(each.joints for each in sizes)}
    whole = whole or FittedModel(robot, base, systems, estimate.value)
    steady = [t for t in joint_torques(whole) if robot.joints[t.joint] not in scaled]
    changes = stationarity_warnings(whole.robot, whole.base, steady)
    known |= scaled.union(*(each.joints for each in changes))
    if rows is not None:
        changes += friction_jumps(robot, base, rows, estimate.residual, known)
    known = known.union(*(each.joints for each in changes))
    residuals = residual_warnings(
        robot, samples, systems[0], estimate.value, estimate.residual, known
    )
    return [*found, *sizes, *changes, *residuals]
