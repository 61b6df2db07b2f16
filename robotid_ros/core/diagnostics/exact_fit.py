"""Efforts that fit a model better than measured ones can."""

import numpy as np

from ..model.robot import ElasticRobot, Robot
from ..regression.estimate import Estimate
from ..signals.samples import Samples
from .data_quality import white_noise
from .remark import Remark

EXACT_FIT = 'exact_fit'
# Share of a joint's effort that the model leaves, and that is white noise: no measured effort has
# less. Steps of current sensors of 12 bits are 0.06 % of a typical effort, friction of gears
# changes by 1 %; EMPS, TX-40 and UR10 leave 2.6 % or more, robots that are simulated with the
# noise of `config/` 0.19 % or more (UR10), the same efforts without noise 0.01 to 0.5 %. Filters
# take noise from what is left, not from what is measured.
LEAST = 1e-3


def exact_fit_warnings(robot: Robot, samples: Samples, estimate: Estimate) -> list[Remark]:
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
    pairs = zip(robot.joints, estimate.residual, exact, strict=True)
    each = [f'{joint} {100.0 * left:.2g} %' for joint, left, is_exact in pairs if is_exact]
    if not each:
        return []
    text = (
        f'the model leaves hardly anything of the effort of {", ".join(each)}, which has less '
        f'noise than any sensor ({100.0 * LEAST:g} %): efforts that are computed from a model '
        "give that model's parameters, not the robot's; record measured efforts"
    )
    joints = [joint for joint, is_exact in zip(robot.joints, exact, strict=True) if is_exact]
    return [Remark(text, code=EXACT_FIT, joints=joints)]
