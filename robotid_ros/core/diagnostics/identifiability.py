"""What to doubt of an estimate: joints that hardly moved, parameters that the data hardly tell."""

import numpy as np

from ..model.robot import Robot
from ..regression.estimate import Estimate
from ..signals.samples import Samples

# Two methods disagree on a parameter with %σ below the first by more than the second.
WELL_DETERMINED, LARGEST_DIFFERENCE = 10.0, 0.05
UNCERTAIN = 100.0  # %σ above which a parameter is worth a warning
LEAST_MOVING_SHARE = 0.1  # share of the time that a joint should move at least
LISTED = 8  # parameters that are named


def identifiability_warnings(robot: Robot, samples: Samples, estimate: Estimate) -> list[str]:
    """Name the joints that hardly moved and the parameters that are smaller than their σ."""
    warnings = [
        f'{joint} hardly moved ({100 * moving:.0f} % of the time): record a motion that moves it, '
        'or name it in robot.locked'
        for joint, moving in zip(robot.joints, samples.valid.mean(axis=0), strict=True)
        if moving < LEAST_MOVING_SHARE
    ]
    percents = zip(estimate.names, estimate.relative_sigma, strict=True)
    unsure = [f'{name} (%σ {percent:.0f})' for name, percent in percents if percent > UNCERTAIN]
    if unsure:
        more = f' and {len(unsure) - LISTED} more' if len(unsure) > LISTED else ''
        warnings.append(
            f'smaller than their σ: {", ".join(unsure[:LISTED])}{more}; the motion does not tell '
            'them from zero: use the essential parameters, or excite these joints more'
        )
    return warnings


def disagreement_warnings(found: Estimate, other: Estimate) -> list[str]:
    """Say which parameters that both know well differ by more than their 3 σ and by much."""
    sure = (found.relative_sigma < WELL_DETERMINED) & (other.relative_sigma < WELL_DETERMINED)
    gap = np.abs(found.value - other.value)
    apart = gap > np.maximum(
        3.0 * np.hypot(found.sigma, other.sigma), LARGEST_DIFFERENCE * np.abs(found.value)
    )
    names = [found.names[k] for k in np.flatnonzero(sure & apart)]
    if not names:
        return []
    return [
        f'{found.method.upper()} and DIDIM disagree on {", ".join(names)}: noise of the positions '
        'spoils the one, wrong gains, delays or a slow control loop the other'
    ]
