"""Efforts that fit a model better than measured ones can."""

import numpy as np

from ..finding_codes import finding
from ..findings import Finding
from ..model.robot import ElasticRobot, Robot
from ..regression.estimate import Estimate
from ..signals.samples import Samples
from .data_quality import white_noise

# Share of a joint's effort that the model leaves, and that is white noise: no measured effort has
# less. Steps of current sensors of 12 bits are 0.06 % of a typical effort, friction of gears
# changes by 1 %; EMPS, TX-40 and UR10 leave 2.6 % or more, robots that are simulated with the
# noise of `config/` 0.19 % or more (UR10), the same efforts without noise 0.01 to 0.5 %. Filters
# take noise from what is left, not from what is measured.
LEAST = 1e-3


def exact_fit_warnings(robot: Robot, samples: Samples, estimate: Estimate) -> list[Finding]:
    """
    Name the joints whose efforts are explained too well to be measured.

    Parameters
    ----------
    robot, samples, estimate : the model, what was fitted, or a part of it, and the fit

    """
    if isinstance(robot, ElasticRobot):
        return []
    size = np.sqrt(np.mean(samples.tau**2, axis=0))
    exact = (estimate.residual < LEAST) & (white_noise(samples.tau) < LEAST * size)
    exact &= samples.moving.any(axis=0)
    if not exact.any():
        return []
    joints = [joint for joint, is_exact in zip(robot.joints, exact, strict=True) if is_exact]
    return [finding('exact_fit', joints, residuals=estimate.residual[exact], least=LEAST)]
