"""How long the effort of each joint is behind the positions."""

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.ndimage import minimum_filter1d

from ...exceptions import RankDeficientError
from ..arrays import Array
from ..regression.estimators import fit
from ..regression.observation_system import decimated_torque, System
from ..signals.samples import Samples

# Decimated rows left out on either side of a velocity reversal, where stiction looks like a delay;
# the first margin that keeps at least this share of the valid rows is taken.
REVERSAL_MARGINS, SHARE_OF_ROWS = (4, 2, 1), 0.5
# A delay enters to first order: each pass starts from the torque without what was found so far,
# and is the last one when it moves no delay by more than this share of its σ.
PASSES, CONVERGED = 10, 0.3
# A joint's own delay differs from that of the others by so many σ and so much [s]; by all rows,
# with those near reversals, by more. Lower bounds find shorter delays, but also such that are
# friction the model lacks.
OUTLIER_SIGMAS, OUTLIER_DELAY, OUTLIER_DELAY_ALL_ROWS = 4.0, 4e-3, 10e-3
LONGEST_DELAY = 0.05  # [s]; more is no delay of a field bus, but a fault or an error of the model


@dataclasses.dataclass(frozen=True)
class DelayEstimate:
    """
    Delays of efforts behind positions.

    Attributes
    ----------
    delay, sigma : (n,) [s]; σ is infinite where a delay does not show
    common, common_sigma : of the joints that agree [s]
    outlier : (n,) whether a joint does not
    rows : (n, K) the decimated rows that tell

    """

    delay: Array
    sigma: Array
    common: float
    common_sigma: float
    outlier: npt.NDArray[np.bool_]
    rows: npt.NDArray[np.bool_]


def estimate_delays(samples: Samples, system: System, all_rows: bool = False) -> DelayEstimate:
    """
    Estimate the delay of every joint's effort, and the one that most joints share.

    Y_j(t) = τ_j(t − δ_j) = W_j χ − δ_j d(W_j χ)/dt to first order: a delay is one more column, in
    the rows of its joint only. With the delays found removed the next pass is nearer to linear.

    Parameters
    ----------
    samples, system : of one recording
    all_rows : use rows near standstill too: less exact, but where friction is most of a joint's
        torque only they show its delay

    """
    tau, total = samples.tau, np.zeros(len(system.joints))
    if not all_rows:
        system = dataclasses.replace(system, valid=_away_from_reversals(samples))
    for _ in range(PASSES):
        step, sigma = _fit_delays(system)
        total = total + step
        if all_rows or np.all(np.abs(step) < CONVERGED * sigma):
            break
        advanced = dataclasses.replace(samples, tau=advance(samples.time, tau, total))
        system = dataclasses.replace(system, Y=decimated_torque(advanced))
    threshold = OUTLIER_DELAY_ALL_ROWS if all_rows else OUTLIER_DELAY
    common, common_sigma, outlier = _reject_outliers(total, sigma, threshold)
    return DelayEstimate(total, sigma, common, common_sigma, outlier, system.valid)


def advance(time: Array, values: Array, delay: float | Array) -> Array:
    """Return signals (N, n) `delay` seconds earlier, one for all or (n,)."""
    each = np.broadcast_to(delay, values.shape[1:])
    columns = zip(values.T, each, strict=True)
    return np.column_stack([np.interp(time + d, time, column) for column, d in columns])


def _away_from_reversals(samples: Samples) -> npt.NDArray[np.bool_]:
    """Return the rows (n, N) that lie away from velocity reversals of their joint."""
    moving = samples.valid.copy()
    moving[1:] &= samples.dq[1:] * samples.dq[:-1] > 0.0
    keep = samples.decimation
    for margin in REVERSAL_MARGINS:
        kept = minimum_filter1d(moving, 2 * margin * keep + 1, axis=0)[::keep]
        if kept.sum() > SHARE_OF_ROWS * samples.valid[::keep].sum():
            return np.asarray(kept.T)
    return np.asarray(samples.valid[::keep].T)


def _fit_delays(system: System) -> tuple[Array, Array]:
    """Return the delay of each joint and its standard deviation (n,) [s]."""
    n, b = len(system.joints), len(system.names)
    delay, sigma = np.zeros(n), np.full(n, np.inf)
    # A link behind a spring has no effort of its own.
    driven = np.flatnonzero((system.Y != 0.0).any(axis=1) & (system.equations > 0))
    try:
        rate = np.gradient(system.predict(fit(system).value), system.time, axis=1)
        W = np.zeros((*system.W.shape[:2], b + len(driven)))
        W[:, :, :b] = system.W
        # The scale of a column is that of its parameter's unit: a millisecond.
        W[driven, :, b + np.arange(len(driven))] = -1e-3 * rate[driven]
        names = (*system.names, *(f'delay{j + 1}' for j in driven))
        units = (*system.units, *('ms' for _ in driven))
        found = fit(dataclasses.replace(system, names=names, units=units, W=W, Z=None))
    except RankDeficientError:
        return delay, sigma
    delay[driven], sigma[driven] = 1e-3 * found.value[b:], 1e-3 * found.sigma[b:]
    return delay, sigma


def _reject_outliers(
    delay: Array, sigma: Array, threshold: float
) -> tuple[float, float, npt.NDArray[np.bool_]]:
    """
    Average the delays by their σ, leaving the farthest out until the others agree.

    Returns
    -------
    The mean and its σ [s], and (n,) which joints are outliers

    """
    apart, sigma = np.zeros(delay.size, dtype=bool), np.maximum(sigma, 1e-12)
    while True:
        weight = np.where(apart, 0.0, sigma**-2.0)
        other_weight = np.maximum(weight.sum() - weight, 1e-300)
        others = (weight @ delay - weight * delay) / other_weight
        distance = np.abs(delay - others)
        deviation = distance / np.sqrt(sigma**2 + 1.0 / other_weight)
        deviation[apart | (distance < threshold) | (other_weight < 1e-200)] = 0.0
        if deviation.max(initial=0.0) < OUTLIER_SIGMAS:
            break
        apart[np.argmax(deviation)] = True
    total = max(float(weight.sum()), 1e-300)
    common = float(weight @ delay) / total
    # What is later than any delay is none; it only must not move the mean of the others.
    return common, total**-0.5, apart & (np.abs(delay - common) <= LONGEST_DELAY)
