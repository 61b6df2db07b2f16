"""Identifiability: joints that hardly moved, parameters that the data hardly determine."""

import numpy as np

from ...exceptions import FEW, shortened
from ..model.robot import Robot
from ..regression.estimate import Estimate
from ..signals.samples import Samples
from .trials import Trial

# Two methods disagree on a parameter with %σ below the first in both, as `essential_sigma` is by
# default, when it differs by 3 σ and by more than the second, a share that users would notice.
WELL_DETERMINED, LARGEST_DIFFERENCE = 10.0, 0.05
UNCERTAIN = 100.0  # %σ above which a parameter is smaller than its σ
MIN_MOVING_SHARE = 0.1  # of the time; below it, a joint has few rows for its friction


def identifiability_warnings(
    robot: Robot, samples: Samples, estimate: Estimate, essential: Trial | None = None
) -> list[str]:
    """
    Name the joints that hardly moved and the parameters that are smaller than their σ.

    `essential` is what the essential parameters leave, where these predict better.
    """
    warnings = [
        f'{joint} hardly moved ({100 * moving:.0f} % of the time): record a motion that moves it, '
        'or name it in robot.locked'
        for joint, moving in zip(robot.joints, samples.moving.mean(axis=0), strict=True)
        if moving < MIN_MOVING_SHARE
    ]
    percents = zip(estimate.names, estimate.relative_sigma, strict=True)
    uncertain = [f'{name} (%σ {percent:.0f})' for name, percent in percents if percent > UNCERTAIN]
    if uncertain:
        joint = '' if essential is None else robot.joints[essential.joint]
        advice = (
            f': use the essential parameters ({essential.describe(joint)})' if essential else ''
        )
        warnings.append(
            f'smaller than their σ: {shortened(uncertain, FEW)}; the motion does not tell them '
            f'from zero{advice}'
        )
    return warnings


def disagreement_warnings(found: Estimate, other: Estimate) -> list[str]:
    """Name the parameters that both estimates determine well and that differ nevertheless."""
    determined = (found.relative_sigma < WELL_DETERMINED) & (
        other.relative_sigma < WELL_DETERMINED
    )
    difference = np.abs(found.value - other.value)
    different = difference > np.maximum(
        3.0 * np.hypot(found.sigma, other.sigma), LARGEST_DIFFERENCE * np.abs(found.value)
    )
    names = [found.names[k] for k in np.flatnonzero(determined & different)]
    if not names:
        return []
    return [
        f'{found.method.upper()} and DIDIM disagree on {", ".join(names)}: noise of the positions '
        'spoils the one, wrong gains, delays or a slow control loop the other'
    ]
