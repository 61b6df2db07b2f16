"""The delay between recorded positions and efforts: its estimate, and data without it."""

from collections.abc import Mapping
import contextlib
import dataclasses

import numpy as np

from ...exceptions import RankDeficientError, RobotIdError
from ..arrays import all_within, Array, Mask
from ..findings import Finding, finding
from ..model.friction import SHRUNK
from ..model.robot import BaseParameters, ElasticRobot, Robot
from ..signals.preparation import prepare, sampling_times_of, with_sampling_times
from ..signals.recording import Recording, Samples, SignalSettings
from .estimators import fit, weighted_values
from .observation_system import decimate, observe, Observed, Rows

# Decimated rows left out on either side of a velocity reversal, where stiction looks like a delay;
# the first margin that keeps at least this share of the valid rows is taken.
REVERSAL_MARGINS, SHARE_OF_ROWS = (4, 2, 1), 0.5
# A delay enters to first order: each pass starts from the torque without what was found so far,
# and is the last one when it moves no delay by more than this share of its σ.
PASSES, CONVERGED = 10, 0.3
# A joint has a delay of its own if it differs from the others by more than this many σ and
# seconds. With lower bounds, friction that the model lacks is taken for a delay.
OUTLIER_SIGMAS, OUTLIER_DELAY = 4.0, 4e-3
LONGEST_DELAY = 0.05  # [s]; more is no delay of a field bus, but a fault or an error of the model
# By how much the squared error has to fall without a longer delay of one joint, and with clocks of
# efforts and positions that run alike; these are compared where so much is left of the efforts.
CLEAR, MUCH_LEFT = 4.0, 0.05
# How long efforts are behind the positions [s], by joint; those that are not named are not.
Delays = Mapping[str, float]
# A delay is removed when it is this many times its σ, and this share of the time between samples.
# What the model lacks, springs above all, looks like a delay too: hence more than the usual 3 σ.
SIGNIFICANT_SIGMAS, SIGNIFICANT_SHARE = 5.7, 0.05
# Parts of the recording in which a delay has to show: an error of the model shows in some only.
BLOCKS = 8
# A reported effort is the command of at most so many updates before when both differ by no more
# than this share of its size, wherever both were recorded, which is so often at least.
MOST_UPDATES_HELD, LARGEST_MISMATCH, LEAST_MATCHES = 3, 0.1, 100
# An error of times that moves the estimate by less of what jitter would is not looked at.
NEGLIGIBLE = 0.01
# Ratio of two rates that differ by more than their clocks.
MORE_OFTEN = 1.5


@dataclasses.dataclass(frozen=True)
class DelayEstimate:
    """Delays of efforts behind positions."""

    delay: Array  # (n,) [s]
    sigma: Array  # (n,) [s]; infinite where a delay does not show
    common: float  # of the joints that agree [s]
    common_sigma: float
    outlier: Mask  # (n,) whether a joint does not
    rows: Mask  # (n, K) the decimated rows that tell
    residual: Array  # (n,) relative residuals in these with the delays


def estimate_delays(samples: Samples, system: Rows) -> DelayEstimate:
    """
    Estimate the delay of every joint's effort, and the one that most joints share.

    Y_j(t) = τ_j(t − δ_j) = W_j χ − δ_j d(W_j χ)/dt to first order: a delay is one more column, in
    the rows of its joint only. With the delays found removed the next pass is nearer to linear.
    """
    system = dataclasses.replace(system, valid=_away_from_reversals(samples))
    each = np.eye(len(system.joints))[:, :, None]
    total, sigma, residual = _converge(samples, system, each)
    agreed = _reject_outliers(total, sigma)
    return DelayEstimate(total, sigma, *agreed, system.valid, residual)


def _converge(samples: Samples, system: Rows, courses: Array) -> tuple[Array, Array, Array]:
    """
    Fit delays of the efforts along courses (k, n, N) of time; one that is constant has N = 1.

    Returns the delays and their standard deviation (k,) [s], and relative residuals (n,).
    """
    total, keep = np.zeros(len(courses)), samples.decimation
    for _ in range(PASSES):
        step, sigma, residual = _fit_delays(system, courses[:, :, ::keep])
        total = total + step
        if np.all(np.abs(step) < CONVERGED * sigma):
            break
        system = _advance(samples, system, np.tensordot(total, courses, 1))[1]
    return total, sigma, residual


def _clock_warnings(samples: Samples, system: Rows, held: float) -> list[Finding]:
    """Tell that the efforts get later and later, where that explains nearly all that is left."""
    time, away = samples.time, dataclasses.replace(system, valid=_away_from_reversals(samples))
    length = float(time[-1] - time[0])
    course = np.stack([np.ones(len(time)), 2.0 * (time - time[0]) / length - 1.0])
    courses = np.repeat(course[:, None], len(system.joints), axis=1)
    (common, late), (_, sigma), _ = _converge(samples, away, courses)
    alike = _advance(samples, system, np.tensordot((common, late), courses, 1))[1]
    before, after = (_block_errors(each, system.valid) for each in (system, alike))
    if abs(late) < SIGNIFICANT_SIGMAS * sigma or CLEAR * after.sum() > before.sum():
        return []
    first, last = held + common - late, held + common + late
    sums = {'before': before, 'after': after}
    left = {name: np.sqrt(np.median(x.sum(axis=0))) for name, x in sums.items()}
    return [finding('clocks_differ', first=first, last=last, share=2.0 * late / length, **left)]


def advance(time: Array, values: Array, delay: Array) -> Array:
    """Return signals (N, n) earlier by delays (n,) or (n, N) [s]."""
    columns = zip(values.T, delay, strict=True)
    return np.column_stack([np.interp(time + d, time, column) for column, d in columns])


def _advance(samples: Samples, system: Rows, delay: Array) -> tuple[Samples, Rows]:
    """Return both without delays of the torques, see `advance`; W stays as it is."""
    samples = dataclasses.replace(samples, tau=advance(samples.time, samples.tau, delay))
    return samples, dataclasses.replace(system, Y=decimate(samples.tau.T, samples.decimation))


def _away_from_reversals(samples: Samples) -> Mask:
    """Return the rows (n, N) that lie away from velocity reversals of their joint."""
    moving = samples.valid.copy()
    moving[1:] &= samples.dq[1:] * samples.dq[:-1] > 0.0
    keep = samples.decimation
    for margin in REVERSAL_MARGINS:
        kept = all_within(moving, margin * keep)[::keep]
        if kept.sum() > SHARE_OF_ROWS * samples.valid[::keep].sum():
            return np.asarray(kept.T)
    return np.asarray(samples.valid[::keep].T)


def _fit_delays(system: Rows, courses: Array) -> tuple[Array, Array, Array]:
    """Return delays along courses (k, n, K) with their σ (k,) [s], and relative residuals (n,)."""
    b, count = len(system.names), len(courses)
    delay, sigma = np.zeros(count), np.full(count, np.inf)
    # A link behind a spring has no effort of its own.
    driven = (system.Y != 0.0).any(axis=1) & (system.equations > 0)
    used = np.flatnonzero((courses != 0.0).any(axis=2) @ driven)
    names = (*system.names, *(f'delay{k + 1}' for k in used))
    units = (*system.units, *('ms' for _ in used))
    try:
        rate = np.gradient(system.predict(weighted_values(system)), system.time, axis=1)
        # The scale of a column is that of its parameter's unit: a millisecond.
        columns = -1e-3 * (driven[:, None] * rate) * courses[used]
        W = np.concatenate([system.W, np.moveaxis(columns, 0, -1)], axis=2)
        found = fit(dataclasses.replace(system, names=names, units=units, W=W, Z=None))
    except RankDeficientError:
        return delay, sigma, np.zeros(len(system.joints))
    delay[used], sigma[used] = 1e-3 * found.value[b:], 1e-3 * found.sigma[b:]
    return delay, sigma, found.residual


def _reject_outliers(delay: Array, sigma: Array) -> tuple[float, float, Mask]:
    """Return the mean of the delays that agree, its σ, and which joints (n,) are outliers."""
    apart, sigma = np.zeros(delay.size, dtype=bool), np.maximum(sigma, 1e-12)
    while True:
        weight = np.where(apart, 0.0, sigma**-2.0)
        other_weight = np.maximum(weight.sum() - weight, 1e-300)
        others = (weight @ delay - weight * delay) / other_weight
        distance = np.abs(delay - others)
        deviation = distance / np.sqrt(sigma**2 + 1.0 / other_weight)
        deviation[apart | (distance < OUTLIER_DELAY) | (other_weight < 1e-200)] = 0.0
        if deviation.max(initial=0.0) < OUTLIER_SIGMAS:
            break
        apart[np.argmax(deviation)] = True
    total = max(float(weight.sum()), 1e-300)
    common = float(weight @ delay) / total
    return common, total**-0.5, apart


def prepare_without_delay(
    recording: Recording, robot: Robot, base: BaseParameters, settings: SignalSettings
) -> Observed[Rows]:
    """Prepare and observe a recording, without a significant delay of its efforts; note those."""
    wanted = settings.time_offset
    # An elastic robot has joints that its controller does not command.
    known = hold_delay(recording) if wanted and not isinstance(robot, ElasticRobot) else None
    # A log of the commands themselves does not say when the drives followed them.
    held = max(known or 0.0, 0.0)
    samples = prepare(remove_delay(recording, held, settings.stamps), robot, settings)
    system, notes = observe(samples, robot, base), list[Finding]()
    delays: Delays = {}
    # A fit without penalties has only what is not shrunk.
    symbols = [robot.parameters[k].symbol for k in base.columns]
    plain = [place for place, symbol in enumerate(symbols) if symbol not in SHRUNK]
    if wanted:
        fewer = system if len(plain) == base.rank else system.select(plain)
        samples, fewer, delays, notes = _without_confirmed_delays(samples, fewer, held)
        system = dataclasses.replace(system, Y=fewer.Y)
    times = sampling_times_of(recording) if settings.stamps == 'auto' else None
    share = 0.0 if times is None else times.error_share / max(times.share, 1.0 - times.share) ** 2
    if times is not None and share >= NEGLIGIBLE:
        # Errors of time enter W and, as controllers answer to them, efforts: what they change in
        # the estimate grows with their variance. It is that of the other extreme, stamps as
        # recorded or even times, scaled by the variances.
        time, change = np.full(recording.time.shape, np.nan), np.zeros(base.rank)
        time[recording.finite] = times.stamps if times.share < 0.5 else times.even
        signals = dataclasses.replace(
            settings, stamps='recorded', cutoff=samples.cutoff, decimation=samples.decimation
        )
        apart = dataclasses.replace(recording, time=time)
        with contextlib.suppress(RobotIdError):
            other = prepare_without_delay(apart, robot, base, signals).system
            extremes = [weighted_values(each.select(plain)) for each in (other, system)]
            change[plain] = share * (extremes[0] - extremes[1])
            system = dataclasses.replace(system, timing=change)
    return Observed(system, samples, (system,), delays, tuple(notes))


def _without_confirmed_delays(
    samples: Samples, system: Rows, held: float
) -> tuple[Samples, Rows, Delays, list[Finding]]:
    """Remove delays beyond those `held` [s] without which the torques are explained better."""
    joints, notes = system.joints, [finding('efforts_held', delay=held)] if held else []
    found = estimate_delays(samples, system)
    differ = np.median(found.residual) > MUCH_LEFT and _clock_warnings(samples, system, held)
    if differ:
        return samples, system, dict.fromkeys(joints, held) if held else {}, [*notes, *differ]
    total = {'delay': held + found.common, 'sigma': found.common_sigma}
    common, suspected = np.full(len(joints), found.common), []
    # Delays (n,), NaN of joints that are not concerned, that of most joints first; what is noted
    # where they are confirmed, whether they can be removed, the rows that show them, and by how
    # much the squared error has to fall; 0: by more than chance.
    if is_significant(found.common, found.common_sigma, samples.rate):
        suspected.append((common, finding('delay_removed', **total), True, found.rows, 0.0))
    elif abs(found.common) > max(SIGNIFICANT_SIGMAS * found.common_sigma, LONGEST_DELAY):
        suspected.append((common, finding('delay_too_long', **total), False, found.rows, 0.0))
    for j in np.flatnonzero(found.outlier):
        apart = abs(found.delay[j] - found.common)
        if apart > SIGNIFICANT_SIGMAS * np.hypot(found.sigma[j], found.common_sigma):
            own = {'delay': held + found.delay[j], 'sigma': found.sigma[j]}
            own['common'] = held + found.common
            alone = np.where(np.arange(len(joints)) == j, found.delay[j], np.nan)
            # So long a delay shows in the sign of the friction where the joint turns round.
            least = 0.0 if apart <= LONGEST_DELAY else CLEAR
            note = finding('joint_delay_removed', [joints[j]], **own)
            suspected.append((alone, note, True, system.valid, least))
    delays = np.zeros(len(joints))
    for each, note, removable, rows, least in suspected:
        concerned = ~np.isnan(each)
        trial = np.where(concerned, each, delays)
        before, after = (
            _block_errors(_advance(samples, system, d)[1], rows)[:, concerned]
            for d in (delays, trial)
        )
        if _is_less(after, before) and least * after.sum() <= before.sum():
            notes.append(note)
            delays = trial if removable else delays
    if not delays.any():
        return samples, system, dict.fromkeys(joints, held) if held else {}, notes
    removed = {j: held + d for j, d in zip(joints, delays.tolist(), strict=True) if held or d}
    return *_advance(samples, system, delays), removed, notes


def _block_errors(system: Rows, rows: Mask) -> Array:
    """Return squared residuals of blocks (K, n) over the joint's, of given rows (n, N)."""
    system = dataclasses.replace(system, valid=rows)
    squares = np.where(rows, system.Y - system.predict(weighted_values(system)), 0.0) ** 2
    power = np.where(rows, system.Y, 0.0) ** 2
    sums = [block.sum(axis=1) for block in np.array_split(squares, BLOCKS, axis=1)]
    return np.asarray(np.array(sums) / np.maximum(power.sum(axis=1), 1e-300))


def _is_less(errors: Array, others: Array) -> bool:
    """Tell whether errors are less than others by more than their standard error over blocks."""
    gain = ((others - errors) / np.maximum(others.sum(axis=0), 1e-300)).sum(axis=1)
    return bool(gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)))


def hold_delay(recording: Recording) -> float | None:
    """
    Return how long before its stamp a reported effort acted, where efforts are commands [s].

    A controller's command is held for a period T. Hardware that reports what it applied shows at a
    stamp the command of k updates before, which acted on average (k − ½) T before that stamp.
    Where states are reported more often than the controller updates, T is their own period. None
    where the controller's commands were not recorded or do not match.
    """
    reference, controller = recording.reference, recording.controller
    if reference is None or reference.command is None or controller is None:
        return None
    given = controller.command_interfaces
    if not controller.rate or len(reference.time) < 2 or (given and 'effort' not in given):
        return None
    update = 1.0 / controller.rate
    # Rates are not exact: states as often as updates have the period of these.
    often = recording.rate > MORE_OFTEN * controller.rate
    period = 1.0 / recording.rate if often else update
    inside = (recording.time > reference.time[0]) & (recording.time <= reference.time[-1])
    time, effort = recording.time[inside], recording.effort[inside]
    if len(time) < LEAST_MATCHES or not np.isfinite(effort).all():
        return None
    errors = np.full(MOST_UPDATES_HELD + 1, np.inf)
    for k in range(len(errors)):
        # The stamps of the two messages of one update differ by some ten microseconds.
        row = np.searchsorted(reference.time, time - (k - 0.3) * period, side='right') - 1
        age = time - k * period - reference.time[row]
        fresh = (age > -0.5 * period) & (age < update - 0.5 * period)
        # Commands that were not recorded do not match.
        if np.sum(fresh) >= LEAST_MATCHES:
            errors[k] = np.mean((effort[fresh] - reference.command[row[fresh]]) ** 2)
    best = int(np.argmin(errors))
    if errors[best] > LARGEST_MISMATCH**2 * float(np.mean(effort**2)):
        return None
    return (best - 0.5) * period


def is_significant(delay: float, sigma: float, rate: float) -> bool:
    """Return whether a delay is worth removing: known well, not tiny, not implausibly long."""
    return max(SIGNIFICANT_SIGMAS * sigma, SIGNIFICANT_SHARE / rate) < abs(delay) < LONGEST_DELAY


def remove_delay(recording: Recording, delay: float | Delays, stamps: str = 'auto') -> Recording:
    """Return the recording with efforts earlier, by linear interpolation; a number: of all [s]."""
    delays = delay if isinstance(delay, Mapping) else dict.fromkeys(recording.joints, delay)
    each = np.array([delays.get(joint, 0.0) for joint in recording.joints])
    good = recording.finite
    if not each.any() or good.sum() < 2 or np.any(np.diff(recording.time[good]) <= 0.0):
        return recording
    if stamps == 'auto':  # stamps that jitter would take efforts from beside their time
        recording = with_sampling_times(recording)
    time = recording.time[good]
    effort: Array = np.full(recording.effort.shape, np.nan)
    effort[good] = advance(time, recording.effort[good], each)
    return dataclasses.replace(recording, effort=effort)
