"""Identifiability: joints that hardly moved, parameters that the data hardly determine."""

import numpy as np

from ...exceptions import FEW, shortened
from ..model.robot import Robot
from ..regression.estimate import Estimate
from ..regression.timing_error import TimingError
from ..signals.samples import Samples
from .remark import Remark
from .trials import Trial

HARDLY_MOVED, ONE_WAY = 'hardly_moved', 'one_way'
UNDETERMINED = 'smaller_than_sigma'
TIMING, DISAGREEMENT = 'uncertain_times', 'methods_disagree'
# Two methods disagree on a parameter with %σ below the first in both, as `essential_sigma` is by
# default, when it differs by 3 σ and by more than the second, a share that users would notice.
WELL_DETERMINED, LARGEST_DIFFERENCE = 10.0, 0.05
UNCERTAIN = 100.0  # %σ above which a parameter is smaller than its σ
MIN_MOVING_SHARE = 0.1  # of the time; below it, a joint has few rows for its friction
# Of its moving rows that a joint turns the other way; below it, few tell friction from an offset.
MIN_REVERSED_SHARE = 0.02


def identifiability_warnings(
    robot: Robot, samples: Samples, estimate: Estimate, essential: Trial | None = None
) -> list[Remark]:
    """
    Name the joints that hardly moved, or one way, and the parameters below their σ.

    `essential` is what the essential parameters leave, where these predict better.
    """
    warnings = [
        Remark(
            f'{joint} hardly moved ({100 * moving:.0f} % of the time): record a motion that moves '
            'it, or name it in robot.locked',
            code=HARDLY_MOVED,
            joints=[joint],
            share=float(moving),
        )
        for joint, moving in zip(robot.joints, samples.moving.mean(axis=0), strict=True)
        if moving < MIN_MOVING_SHARE
    ]
    ways = samples.moving[:, :, None] & (np.sign(samples.dq)[:, :, None] == (-1.0, 1.0))
    count = ways.sum(axis=0)
    warnings += [
        Remark(
            f'{joint} turned one way only ({100 * less / total:.1f} % of its motion the other '
            'way): its Coulomb friction and its offset are told apart by assumption only, their '
            'sum is identified; record a motion that turns it both ways',
            code=ONE_WAY,
            joints=[joint],
            share=float(less / total),
        )
        for joint, less, total in zip(
            robot.joints, count.min(axis=1), count.sum(axis=1), strict=True
        )
        if less < MIN_REVERSED_SHARE * total
    ]
    percents = zip(estimate.names, estimate.relative_sigma, strict=True)
    uncertain = [f'{name} (%σ {percent:.0f})' for name, percent in percents if percent > UNCERTAIN]
    if uncertain:
        joint = '' if essential is None else robot.joints[essential.joint]
        advice = (
            f': use the essential parameters ({essential.describe(joint)})' if essential else ''
        )
        text = (
            f'smaller than their σ: {shortened(uncertain, FEW)}; the motion does not tell them '
            f'from zero{advice}'
        )
        small = np.flatnonzero(estimate.relative_sigma > UNCERTAIN)
        names = [estimate.names[k] for k in small]
        warnings.append(Remark(text, code=UNDETERMINED, parameters=names))
    return warnings


def timing_warnings(timing: TimingError | None, estimate: Estimate) -> list[Remark]:
    """Name the parameter that errors of the samples' times move most, if by more than noise."""
    if timing is None or len(timing.change) != len(estimate.value):
        return []
    noise = np.sqrt(np.maximum(np.diag(estimate.noise_covariance), 1e-300))
    ratio = np.abs(timing.change) / noise
    worst = int(np.argmax(ratio))
    if ratio[worst] <= 1.0:
        return []
    text = (
        f'the stamps jitter by {1e3 * timing.jitter:.2f} ms, and the times of the samples are '
        f'known to {1e3 * timing.left:.2f} ms only: {estimate.names[worst]} may be off by '
        f'{abs(timing.change[worst]):.2g} {estimate.units[worst]} for that, {ratio[worst]:.1f} '
        'times what noise does. σ counts it. Record on a quiet machine, or give the process that '
        'reads the drives a real-time priority and a real-time kernel'
    )
    return [Remark(text, code=TIMING, parameters=[estimate.names[worst]])]


def disagreement_warnings(found: Estimate, other: Estimate) -> list[Remark]:
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
    text = (
        f'{found.method.upper()} and DIDIM disagree on {", ".join(names)}: noise of the positions '
        'spoils the one, wrong gains, delays or a slow control loop the other'
    )
    return [Remark(text, code=DISAGREEMENT, parameters=names)]
