"""From a recording as published to samples: repaired, even, filtered, with the rows to use."""

from __future__ import annotations

import dataclasses
from typing import Any, TYPE_CHECKING

import numpy as np

from ...exceptions import RecordingError, StandstillError
from ..arrays import all_within, Array, Indices, Mask
from ..findings import Finding, finding
from .filters import lowpass, motion_bandwidth
from .invalid_samples import (
    clipped_samples,
    dead_zones,
    find_held_efforts,
    find_usable_samples,
    position_steps,
    quantization_steps,
    refuse_derived_efforts,
    unwrap_angles,
    velocity_warnings,
)
from .recording import Recording, Samples, SignalSettings
from .stamp_correction import sampling_times, SamplingTimes, spread_equal_stamps

if TYPE_CHECKING:
    from ..model.robot import Robot

MIN_PERIODS = 1.99  # two periods, less the step after the last sample
TRANSIENT_PERIODS = 1  # periods at the start that may hold the controller's transient


def split_periods(values: Array, rate: float, period: float) -> Array:
    """Return whole periods of uniform samples (N, n) as (M, K, n), interpolated if need be."""
    length = max(1, int(np.floor(rate * period + 1e-6)))
    count = int(np.floor(len(values) / (rate * period) + 1e-6))
    wanted = np.arange(count)[:, None] * period + np.arange(length) * (period / length)
    time = np.arange(len(values)) / rate
    columns = [np.interp(wanted.ravel(), time, x).reshape(wanted.shape) for x in values.T]
    return np.stack(columns, axis=-1)


def settled_periods(values: Array, rate: float, period: float) -> Array:
    """Return the periods without the first ones, where two or more are left."""
    periods = split_periods(values, rate, period)
    return periods[TRANSIENT_PERIODS:] if len(periods) > TRANSIENT_PERIODS + 1 else periods


def noise_between_periods(values: Array, rate: float, period: float) -> Array | None:
    """Return σ (n,), σ² = 1/((M−1)K) Σ_k Σ_m (x_m(k) − x̄(k))² (MFS section 4.1), or None."""
    periods = settled_periods(values, rate, period)
    if len(periods) < 2:
        return None
    variance = np.sum((periods - periods.mean(axis=0)) ** 2, axis=(0, 1))
    return np.asarray(np.sqrt(variance / ((len(periods) - 1) * periods.shape[1])))


def find_period(recording: Recording) -> float | None:
    """Return the period of the recorded motion [s], where it is known and at least two fit."""
    recorded = {phase.name for phase in recording.phases}
    for name, trajectory in recording.trajectories.items():
        long_enough = recording.duration >= MIN_PERIODS * trajectory.period
        if long_enough and (not recorded or name in recorded):
            return float(trajectory.period)
    return None


def average_periods(
    recording: Recording, rate: float, period: float
) -> tuple[Recording, float, Mask]:
    """
    Replace uniform samples by the average of their periods, with half a period on either side.

    The halves repeat the average, so that filters have no edges; their rows carry no information.
    Returns the average, its rate [Hz], and (K,) True in the period itself.
    """
    both = np.concatenate([recording.position, recording.effort], axis=1)
    mean = settled_periods(both, rate, period).mean(axis=0)
    half, n, step = len(mean) // 2, len(recording.joints), period / len(mean)
    around = np.concatenate([mean[-half:], mean, mean[:half]])
    place = np.arange(len(around)) - half
    states: dict[str, Any] = {'position': around[:, :n], 'velocity': None, 'effort': around[:, n:]}
    average = dataclasses.replace(recording, time=recording.time[0] + step * place, **states)
    return average, 1.0 / step, (place >= 0) & (place < len(mean))


# With at least this many short gaps, and this share of the time in them, messages were lost
# throughout. Otherwise a gap is an interruption, and is left out.
LOSSES_GAPS, LOSSES_SHARE = 10, 0.1
# Longest gap that is bridged, of a period of the fastest motion: at a fifth of it, positions
# between samples are right to a few per mille of the motion; and in any case [s].
SHARE_OF_PERIOD, MAX_BRIDGED = 0.2, 0.5
POWER_SHARE = 0.95  # of the speeds that is motion: interpolation distorts the rest
MAX_GRID_GAP = 1.0  # what is left of a longer gap [s]: all of it would only fill memory
MIN_SAMPLES = 100  # fewer usable samples identify nothing
GRID_TOLERANCE = 1e-3  # of a sample: stamps so near to a uniform grid are not interpolated
BURSTS_GAPS, BURSTS_SHARE = 10, 0.5  # of the time: more leaves short bursts only
MIN_TRAVEL = 1e-3  # a joint that travels less is at rest [rad or m]
LEVEL = 1e-6  # relative: an effort at its least level is no smaller
MIN_CLIPPED_SHARE = 0.001  # share of clipped samples from which a note is worth reading


def akima(time: Array, values: Array, at: Array) -> Array:
    """Interpolate values (N, n) at increasing times (N,) by piecewise cubics (Akima 1970)."""
    from scipy.interpolate import Akima1DInterpolator

    return np.asarray(Akima1DInterpolator(time, values)(at))


def bridged_gap(
    time: Array, position: Array, usual: float, longest: float
) -> tuple[float, list[Finding]]:
    """
    Return the longest gap to bridge [s], longer where messages are missing, and notes on gaps.

    They are missing all over where gaps that could be bridged are many. Of samples (N,), (N, n),
    the `usual` time between neighbours, and the `longest` gap that is bridged anyway [s].
    """
    steps, notes = np.diff(time), list[Finding]()

    def missing_all_over(bridged: float) -> bool:
        gaps = (steps > longest) & (steps <= bridged)
        return bool(gaps.sum() >= LOSSES_GAPS and steps[gaps].sum() > LOSSES_SHARE * steps.sum())

    if missing_all_over(MAX_BRIDGED):
        squeezed = np.concatenate([[0.0], np.cumsum(np.minimum(steps, MAX_BRIDGED))])
        motion = akima(squeezed, position, np.arange(0.0, squeezed[-1], usual))
        bandwidth = motion_bandwidth(motion, 1.0 / usual, POWER_SHARE)
        bridged = min(MAX_BRIDGED, SHARE_OF_PERIOD / max(bandwidth, 1e-3))
        if missing_all_over(bridged):
            longest, rate = bridged, 1.0 / float(steps[steps <= bridged].mean())
            notes.append(finding('gaps_interpolated', rate=rate, longest=bridged))
    gaps = np.flatnonzero(steps > longest)
    if gaps.size:
        lost, share = float(steps[gaps].sum()), float(steps[gaps].sum()) / float(steps.sum())
        bursts = gaps.size >= BURSTS_GAPS and share > BURSTS_SHARE
        name = 'mostly_gaps' if bursts else 'gap_left_out'
        values = {'duration': lost, 'count': gaps.size, 'share': share}
        notes.append(finding(name, since=time[gaps[0]], **values))
    missing = int(np.sum(np.round(steps[steps <= longest] / usual) - 1.0))
    if missing > 0:
        notes.append(finding('samples_missing', count=missing, total=time.size + missing))
    return longest, notes


def resample_uniformly(
    recording: Recording, settings: SignalSettings
) -> tuple[Recording, float, Mask, list[Finding]]:
    """
    Bring a recording onto a uniform time grid, or raise a RecordingError.

    Returns it, its rate [Hz], (N,) whether a sample lies between measured ones that are closer
    than `max_gap`, and notes on what was repaired.
    """
    values = np.column_stack([recording.position, recording.effort])
    stamps, spread = spread_equal_stamps(recording.time, values)
    if spread:
        recording = dataclasses.replace(recording, time=stamps)
    kept, unusable = find_usable_samples(recording, settings.max_gap)
    notes = [*recording.notes, *spread, *unusable]
    if kept.sum() < MIN_SAMPLES:
        raise RecordingError(
            f'{recording.source or "the recording"} has {int(kept.sum())} usable samples: record '
            f'at least {MIN_SAMPLES}'
        )
    time, effort = recording.time[kept], recording.effort[kept]
    position, jumps = unwrap_angles(recording.position[kept], recording.joints)
    velocity = None if recording.velocity is None else recording.velocity[kept]
    notes += velocity_warnings(recording.joints, time, position, velocity)
    if settings.stamps == 'auto':
        times = sampling_times(time, position, _sampling_period(time))
        if times is not None and times.findings:
            time, notes = times.time, [*notes, *times.findings]
    usual = _sampling_period(time)
    step = usual if settings.rate == 0.0 else 1.0 / settings.rate
    longest = max(settings.max_gap, 1.5 * max(step, usual))
    longest, gaps = bridged_gap(time, position, usual, longest)
    notes += [*jumps, *gaps]
    steps = np.minimum(np.diff(time), max(MAX_GRID_GAP, longest))
    short = np.concatenate([[0.0], np.cumsum(steps)]) + time[0]
    grid = time[0] + step * np.arange(int(np.floor((short[-1] - short[0]) / step + 0.5)) + 1)
    if grid.size != time.size or np.abs(grid - short).max() >= GRID_TOLERANCE * step:
        # Smooth for the position, which is differentiated; without overshoot for the effort.
        position = akima(short, position, np.clip(grid, short[0], short[-1]))
        if find_held_efforts(time, effort).any():
            effort = effort[np.searchsorted(short, grid + GRID_TOLERANCE * step, 'right') - 1]
        else:
            effort = np.column_stack([np.interp(grid, short, column) for column in effort.T])
    covered = np.ones(grid.size, dtype=bool)
    for gap in np.flatnonzero(np.diff(time) > longest):
        first = np.searchsorted(grid, short[gap], 'right')
        covered[first : np.searchsorted(grid, short[gap + 1])] = False
    stamps = grid if short[-1] == time[-1] else np.interp(grid, short, time)
    result = Recording(recording.joints, stamps, position, effort, source=recording.source)
    return result, 1.0 / step, covered, notes


def sampling_times_of(recording: Recording) -> SamplingTimes | None:
    """Return when the finite samples were taken; None as of `sampling_times`, and out of order."""
    good = recording.finite
    time = recording.time[good]
    if time.size < MIN_SAMPLES or np.any(np.diff(time) <= 0.0):
        return None
    position, _ = unwrap_angles(recording.position[good], recording.joints)
    return sampling_times(time, position, _sampling_period(time))


def with_sampling_times(recording: Recording) -> Recording:
    """Return the recording without the jitter of its stamps that samples do not have, noted."""
    times = sampling_times_of(recording)
    if times is None or not times.findings:
        return recording
    time: Array = np.full(recording.time.shape, np.nan)
    time[recording.finite] = times.time
    notes = (*recording.notes, *times.findings)
    return dataclasses.replace(recording, time=time, notes=notes)


def _sampling_period(time: Array) -> float:
    """Return the time between neighbours: the mean, as stamps since 1970 resolve 0.2 µs only."""
    steps = np.diff(time)
    usual = np.median(steps)
    return float(np.mean(steps[np.abs(steps - usual) <= 0.5 * usual]))


@dataclasses.dataclass(frozen=True)
class UniformRecording:
    """A recording on a uniform time grid, before it is filtered."""

    recording: Recording  # positions and efforts, as published
    rate: float  # [Hz]
    measured: Mask  # (N,) in no gap, and in the one period of averages
    unusable: Mask  # (N, n) efforts are clipped, or read 0 in a dead zone
    noise: Array | None  # (n,) of the torques, from the differences between periods
    notes: tuple[Finding, ...]  # what was repaired
    fresh: Indices  # (N,) the row in which each effort was measured, which a slower bus holds


def resample(recording: Recording, robot: Robot, settings: SignalSettings) -> UniformRecording:
    """Put a recording on a uniform time grid, averaged over periods where that is set."""
    if robot.elastic_joints.size:
        recording = dataclasses.replace(recording, effort=robot.motor_efforts(recording.effort))
    known = settings.max_gap, settings.stamps, settings.rate
    if known not in recording.resampled:
        found = resample_uniformly(recording, settings)
        even = found[0].time, found[0].effort
        coarse = quantization_steps(even[1]), dead_zones(recording.effort)
        recording.resampled[known] = *found, *coarse, find_held_efforts(*even)
    grid, rate, measured, notes, steps, least, held = recording.resampled[known]
    notes = list(notes)
    _check_efforts(grid, robot)
    if (check := (refuse_derived_efforts, *known)) not in recording.passed:
        rows, source = (recording.position, recording.effort, recording.velocity), recording.source
        # The second check finds what the first one does in the same positions.
        if recording.velocity is not None or not np.array_equal(rows[0], grid.position):
            refuse_derived_efforts(recording.joints, *rows, where=source)
        refuse_derived_efforts(grid.joints, grid.position, grid.effort, rate=rate, where=source)
        recording.passed.add(check)
    cut = clipped_samples(grid.effort, robot.largest_efforts)
    clipped = cut.mean(axis=0)
    dead = np.abs(grid.effort) < (1.0 - LEVEL) * least
    told = (
        ('effort_clipped', clipped >= MIN_CLIPPED_SHARE, {'share': clipped}),
        ('effort_steps', steps > 0.0, {'step': steps}),
        ('effort_dead_zone', dead.any(axis=0), {'least': least, 'share': dead.mean(axis=0)}),
    )
    notes += [
        finding(name, [robot.joints[j]], **{key: x[j] for key, x in values.items()})
        for name, found, values in told
        for j in np.flatnonzero(found)
    ]
    cut |= dead
    period, noise = find_period(recording), None
    if period is not None:
        noise = noise_between_periods(robot.efforts_to_torques(grid.effort), rate, period)
    if settings.averaging and period is not None and measured.all() and not cut.any():
        grid, rate, measured = average_periods(grid, rate, period)
        cut, held = (np.zeros(x.shape, dtype=bool) for x in (grid.position, grid.time))
        notes.append(finding('periods_averaged', period=period))
    if held.any():
        notes.append(finding('efforts_slower', rate=rate * (1.0 - held.mean())))
    fresh = np.maximum.accumulate(np.where(held, 0, np.arange(len(held))))
    return UniformRecording(grid, rate, measured, cut, noise, tuple(notes), fresh)


def _check_efforts(recording: Recording, robot: Robot) -> None:
    """Raise an error where an effort never changes although its joint moves."""
    dead = np.ptp(recording.effort, axis=0) == 0.0
    still = np.ptp(recording.position, axis=0) <= MIN_TRAVEL
    where = recording.source or 'the recording'
    if dead.all() and still.all():
        raise StandstillError(
            f'neither positions nor efforts of {where} change, as with brakes on: record a motion'
        )
    if dead.all():
        raise RecordingError(
            f'{where} has no effort that changes: give the joint_state_broadcaster the effort '
            'interfaces, or name other columns of a table with --columns'
        )
    for j in np.setdiff1d(np.flatnonzero(dead & ~still), robot.elastic_joints):
        raise RecordingError(
            f'the effort of {robot.joints[j]} never changes while it moves, its channel is '
            'dead: repair it and record again, or record with this joint at rest and name it '
            'in robot.locked'
        )


EDGE_PERIODS = 3.0  # of the lowest cut-off that a filter's transient takes at the ends
# Those after which it is below 3 % (the slowest pole of the positions' filter falls by e^-2.4 a
# period): after one period it is 9 %, which turned the sign of a slow joint's speed and biased a
# parameter of arm3 by 0.3 σ of 1 % noise.
INNER_PERIODS = 1.5
MIN_MOVING_SHARE = 0.01  # a joint that moves for less of the time is at rest
# Standstill is a share of an axis' high speed where that is less (a linear axis never passes a
# tenth of a metre in a second), but not far below what encoders resolve.
FASTEST, SLOW_SHARE, SLOW_FACTOR = 0.99, 0.05, 0.1
# A kept row stands for `decimation` samples. A third of these on either side of it must not be at
# standstill. With half of them, real logs lose up to a per cent; with none, simulated ones, whose
# friction is as sharp as its model, have residuals twice as large.
CLEAR = 3
ROUNDING = 1e-6  # relative: a rate that stamps give is never exact

# Automatic cut-off over the motion's bandwidth: lower distorts accelerations, higher lets noise of
# the encoders pass; and the least one [Hz], for recordings of a slow motion.
CUTOFF_FACTOR, MIN_CUTOFF = 10.0, 5.0
# A position is coarse where a step in a period of the cut-off is such a share of its mean speed.
COARSE = 0.1
SMOOTH = 1e6  # what the positions' filter takes off at the band limit of samples
MAX_CUTOFF_SHARE = 0.4  # of a rate: filters need room below Nyquist's half
MIN_MEASURED_SHARE = 0.5  # less away from gaps, and these are why no row is left


def valid_rows(
    grid: UniformRecording,
    robot: Robot,
    dq: Array,
    band: float,
    decimation: int,
    settings: SignalSettings,
) -> Mask:
    """Return the rows (N, n) to use of a recording filtered to a band [Hz] and decimated."""
    turning = is_moving(dq, settings.standstill)
    for coupling in robot.couplings:  # a joint moves where every motor does that it shares
        shared = is_moving(dq @ coupling.ratios[:, None], settings.standstill)
        turning[:, coupling.ratios != 0.0] &= shared
    every = measured_rows(grid, band)
    if settings.rows == 'every':
        return every
    # Of the joints that move: noise of one that never does has a sign too.
    every &= turning.mean(axis=0) > MIN_MOVING_SHARE
    # Measured, moving, away from ends, gaps and clipping.
    edge = _edge_samples(grid, band)
    moving = away_from_gaps(grid, band)[:, None] & ~grid.unusable & turning
    # Only a decimation mixes more than neighbours.
    moving = all_within(moving, int(np.ceil(settings.guard * decimation)) if decimation > 1 else 1)
    moving[:edge] = moving[len(moving) - edge :] = False
    if settings.rows == 'moving':
        return moving
    # Of friction that jumps where a joint turns round, rows without standstill: the samples that
    # weigh most in a kept row, the middle two thirds of its own, have to have the same sign.
    steps = np.array([any(term.has_step for term in terms) for terms in robot.friction])
    clear = np.where(steps, every & all_within(turning, decimation // CLEAR), every)
    if settings.rows == 'smooth':
        return clear
    # A friction's shape at low speed shows in the slow rows alone: without those beside standstill
    # the variance of its parameters is some twenty to two hundred times as large (arm3).
    shaped = np.array(
        [any(t.constants and not t.kind.of_position for t in terms) for terms in robot.friction]
    )
    # Hardly any transient of the recording's ends reaches the inner rows.
    short, row = int(INNER_PERIODS * grid.rate / band), np.arange(grid.measured.size)
    inner = (row >= short) & (row < row.size - short)
    return np.where(shaped, clear & inner[:, None], moving)


def away_from_gaps(grid: UniformRecording, band: float) -> Mask:
    """Return the rows (N,) that no transient of a filter for this band [Hz] reaches."""
    return all_within(grid.measured, _edge_samples(grid, band))


def _edge_samples(grid: UniformRecording, band: float) -> int:
    return int(np.ceil(EDGE_PERIODS * grid.rate / band - ROUNDING))


def measured_rows(grid: UniformRecording, band: float) -> Mask:
    """Return the rows (N, n) that hold what was measured, after a filter for this band [Hz]."""
    edge = int(grid.rate / band)
    good = grid.measured[:, None] & ~grid.unusable
    good[:1] = good[-1:] = False
    return all_within(good, edge)


def is_moving(dq: Array, standstill: float) -> Mask:
    """Return where joints are faster than standstill, which is less for a slow axis, (N, n)."""
    fastest = np.quantile(np.abs(dq), FASTEST, axis=0)
    least = np.clip(SLOW_SHARE * fastest, SLOW_FACTOR * standstill, standstill)
    return np.asarray(np.abs(dq) >= np.where(fastest > standstill, least, standstill))


def prepare(
    recording: Recording, robot: Robot, settings: SignalSettings, ends: bool = False
) -> Samples:
    """
    Turn a recording into samples (DIDIM section II).

    The position is low-passed without phase, its derivatives are central differences. The torque
    stays as it is: it is filtered together with the columns of W (parallel decimation). With
    `ends`, rows count that a filter's transients reach. Raises RecordingError where the recording
    cannot be used, UnknownNameError for a joint that it lacks.
    """
    recording = recording.select(robot.joints)
    grid = resample(recording, robot, settings)
    position, steps = grid.recording.position, position_steps(recording.position)
    # Noise larger than steps lets these average out, and counts as speed here.
    speed = grid.rate * np.mean(np.abs(np.diff(position, axis=0)), axis=0)
    cutoff = settings.cutoff or max(
        MIN_CUTOFF, CUTOFF_FACTOR * motion_bandwidth(position, grid.rate)
    )
    cutoff = min(cutoff, MAX_CUTOFF_SHARE * grid.rate)
    hidden = np.where(steps * cutoff > COARSE * speed, steps * cutoff, 0.0)
    band = min(settings.band or cutoff, cutoff)
    # Whose filter passes what is below the band.
    decimation = settings.decimation or max(1, int(MAX_CUTOFF_SHARE * grid.rate / band + ROUNDING))
    q = lowpass(position, cutoff, grid.rate, settings.order)
    dq = np.gradient(q, 1.0 / grid.rate, axis=0)
    ddq = np.gradient(dq, 1.0 / grid.rate, axis=0)
    valid = valid_rows(grid, robot, dq, np.inf if ends else band, decimation, settings)
    if not valid.any():
        where, share = grid.recording.source or 'the recording', away_from_gaps(grid, band).mean()
        if share < MIN_MEASURED_SHARE:
            raise StandstillError(
                f'messages of {where} are missing: only {100 * share:.0f} % of it lie '
                f'{EDGE_PERIODS / band:.2g} s or more away from a gap; record without losses, or '
                'raise signals.max_gap'
            )
        raise StandstillError(
            f'no joint of {where} moves faster than '
            f'{settings.standstill:g} rad/s: record a motion, or lower signals.standstill'
        )
    # Of efforts that are held, the motion is that of when they were measured.
    q, dq, ddq = (x[grid.fresh] for x in (q, dq, ddq))
    valid = valid[grid.fresh]
    return Samples(
        robot.joints,
        grid.recording.time,
        q,
        dq,
        ddq,
        robot.efforts_to_torques(grid.recording.effort),
        grid.rate,
        valid,
        grid.noise,
        decimation,
        notes=grid.notes,
        cutoff=cutoff,
        measured=np.asarray(measured_rows(grid, band).any(axis=1)),
        hidden=hidden,
        band_limit=cutoff * SMOOTH ** (0.5 / settings.order),
    )
