"""Identifiability: joints that hardly moved, parameters that the data hardly determine."""

import numpy as np

from ..finding_codes import finding
from ..findings import Finding
from ..model.robot import Robot
from ..regression.estimate import Estimate
from ..regression.timing_error import TimingError
from ..signals.samples import Samples
from .trials import Trial

# Two methods disagree on a parameter with %σ below the first in both, as `essential_sigma` is by
# default, when it differs by 3 σ and by more than the second, a share that users would notice.
WELL_DETERMINED, LARGEST_DIFFERENCE = 10.0, 0.05
UNCERTAIN = 100.0  # %σ above which a parameter is smaller than its σ
MIN_MOVING_SHARE = 0.1  # of the time; below it, a joint has few rows for its friction
# Of its moving rows that a joint turns the other way; below it, few tell friction from an offset.
MIN_REVERSED_SHARE = 0.02


def identifiability_warnings(
    robot: Robot, samples: Samples, estimate: Estimate, essential: Trial | None = None
) -> list[Finding]:
    """
    Name the joints that hardly moved, or one way, and the parameters below their σ.

    `essential` is what the essential parameters leave, where these predict better.
    """
    found = [
        finding('hardly_moved', [joint], share=moving)
        for joint, moving in zip(robot.joints, samples.moving.mean(axis=0), strict=True)
        if moving < MIN_MOVING_SHARE
    ]
    ways = samples.moving[:, :, None] & (np.sign(samples.dq)[:, :, None] == (-1.0, 1.0))
    count = ways.sum(axis=0)
    found += [
        finding('one_way', [joint], share=less / total)
        for joint, less, total in zip(
            robot.joints, count.min(axis=1), count.sum(axis=1), strict=True
        )
        if less < MIN_REVERSED_SHARE * total
    ]
    small = np.flatnonzero(estimate.relative_sigma > UNCERTAIN)
    if small.size:
        joint = '' if essential is None else robot.joints[essential.joint]
        tried = {} if essential is None else essential.values(joint, 'essential parameters')
        names, percent = [estimate.names[k] for k in small], estimate.relative_sigma[small]
        found.append(finding('smaller_than_sigma', parameters=names, percent=percent, **tried))
    return found


def timing_warnings(timing: TimingError | None, estimate: Estimate) -> list[Finding]:
    """Name the parameter that errors of the samples' times move most, if by more than noise."""
    if timing is None or len(timing.change) != len(estimate.value):
        return []
    noise = np.sqrt(np.maximum(np.diag(estimate.noise_covariance), 1e-300))
    ratio = np.abs(timing.change) / noise
    worst = int(np.argmax(ratio))
    if ratio[worst] <= 1.0:
        return []
    return [
        finding(
            'uncertain_times',
            jitter=timing.jitter,
            left=timing.left,
            parameter=estimate.names[worst],
            change=abs(timing.change[worst]),
            unit=estimate.units[worst],
            ratio=ratio[worst],
        )
    ]


def disagreement_warnings(found: Estimate, other: Estimate) -> list[Finding]:
    """Name the parameters that both estimates determine well and that differ nevertheless."""
    determined = (found.relative_sigma < WELL_DETERMINED) & (
        other.relative_sigma < WELL_DETERMINED
    )
    difference = np.abs(found.value - other.value)
    different = difference > np.maximum(
        3.0 * np.hypot(found.sigma, other.sigma), LARGEST_DIFFERENCE * np.abs(found.value)
    )
    names = [found.names[k] for k in np.flatnonzero(determined & different)]
    method = found.method.upper()
    return [finding('methods_disagree', method=method, parameters=names)] if names else []
