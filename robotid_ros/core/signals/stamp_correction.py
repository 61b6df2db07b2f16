"""Time stamps on one clock, without outliers, evenly spaced where only the stamps jitter."""

import dataclasses
import itertools

import numpy as np
import numpy.typing as npt

from ...exceptions import RecordingError
from ..arrays import Array, Mask, ReadOnlyArrays
from ..findings import Finding, finding

# A stamp that goes back further than this, or ahead of its reception by more than that [s], is an
# outlier or of a clock that was set: buses and schedulers delay by less.
MAX_STEP_BACK, MAX_STEP_AHEAD = 0.1, 5.0
SEPARATION = 0.2  # of parts where the position jumps too, longer than any bridged gap [s]
MIN_PART_SAMPLES = 100  # a part with fewer samples is taken for outliers
MIN_STAMPS = 20  # fewer different stamps tell no course of time
OFFSET_SAMPLES = 50  # samples at either end of a part whose median tells the offset of its clock
MAX_ODD_SHARE = 0.2  # of outliers, beyond which no stamp can be trusted, and all are left
JUMP_FACTOR = 5.0  # times the largest of the steps before: a position jumps
# Jitter below this share of a sample costs nothing. Stamps are of a grid where the mean of their
# unit vectors of phase is so long: 0.29 with Gaussian jitter of a quarter of a sample, hardly 0.2
# where there is no grid.
MIN_JITTER, MIN_CONCENTRATION = 0.01, 0.25
ROUGHNESS = 20.0  # variance of third differences of independent errors, over that of the errors
# A share of the jitter, or of its rest, that is taken for none; σ from which it is not known.
NEAR, UNKNOWN_SHARE = 0.02, 0.2
# A longer time without a sample [s] may change the phase. Time over which clocks run evenly [s]:
# long beside the motion, short beside the slewing of NTP.
LONGEST_PAUSE, STRETCH = 0.5, 2.0
MIN_STRETCH = 64  # fewest samples that tell a phase
# From this share of samples that differ and have the stamp of the one before, a clock is starved.
MIN_SHARE_STANDING = 0.02
LEAST_STATES = 100  # fewer tell no rate
ONE_PERIOD = 0.25  # share of a period by which steps that are one period may differ from it
MIN_GRID = 100_000  # shortest step of a simulation [ns]
SHARE_OF_SPEED = 0.1  # of the largest speed, from which a motion shows how much time passed
LOSSES_WINDOW = 21  # samples whose median tells what was lost before: more than are late in a row
BLOCK = 64  # third differences, of which few share samples with the next block


def undo_clock_jumps(
    stamp: Array, received: Array, position: Array, before: float = 0.0
) -> tuple[Array, Mask, npt.NDArray[np.float64], list[Finding]]:
    """
    Join the parts of a recording whose clock was set, by the times of reception (N,) [s].

    Where positions (N, n) jump with the clock, the robot was put somewhere else. Notes count from
    `before` these samples [s]. Returns stamps (N,) on the first part's clock, which of them to
    keep, the jumps taken back [s], and notes.
    """
    # The parts between outliers and clock jumps that are long enough to be used.
    step = np.diff(stamp)
    odd = (step < -MAX_STEP_BACK) | (step - np.diff(received) > MAX_STEP_AHEAD)
    edges = [0, *(np.flatnonzero(odd) + 1).tolist(), stamp.size]
    parts = [(a, b) for a, b in itertools.pairwise(edges) if b - a >= MIN_PART_SAMPLES]
    kept = np.zeros(stamp.size, dtype=bool)
    for start, stop in parts:
        kept[start:stop] = True
    unbroken = kept.all() and len(parts) < 2
    if unbroken or kept.sum() < (1.0 - MAX_ODD_SHARE) * stamp.size:
        return stamp, np.ones(stamp.size, dtype=bool), np.zeros(0), []
    time, jumps, notes = stamp.copy(), list[float](), list[Finding]()
    shift, offset = 0.0, stamp - received
    for (_, stop), (start, end) in itertools.pairwise(parts):
        new = np.median(offset[start : start + OFFSET_SAMPLES])
        jump = float(new - np.median(offset[stop - OFFSET_SAMPLES : stop]))
        if abs(jump) > MAX_STEP_BACK:
            # Positions that jump more than the steps before: a part of its own.
            recent = np.diff(position[max(0, stop - 1 - OFFSET_SAMPLES) : stop], axis=0)
            away = np.abs(position[start] - position[stop - 1])
            moved = away > JUMP_FACTOR * np.nanmax(np.abs(recent), axis=0) + 1e-4
            shift += SEPARATION * bool(np.any(moved)) - jump
            jumps.append(jump)
            since = before + time[stop - 1] - time[parts[0][0]]
            notes.append(finding('clock_jumped', jump=jump, since=since))
        time[start:end] += shift
    if not kept.all():
        notes.append(finding('stamps_far_off', count=int((~kept).sum())))
    return time, kept, np.array(jumps), notes


def spread_equal_stamps(
    time: Array, values: Array, least: int = MIN_STAMPS
) -> tuple[Array, list[Finding]]:
    """
    Spread samples that share a stamp evenly, where stamps were rounded.

    Of stamps (N,) [s] and what was measured (N, m): samples that repeat one another are repeated
    messages. Returns times (N,), and a finding where something was changed. Raises RecordingError
    where most samples share a few stamps.
    """
    same = np.diff(time) == 0.0
    rounded = same.copy()
    rounded[same] = (values[1:][same] != values[:-1][same]).any(axis=1)
    if rounded.mean() <= MAX_ODD_SHARE:
        return time, []
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    if len(first) < least:
        raise RecordingError(
            f'{len(time)} samples share {len(first)} stamps: record the time of each sample, or '
            'give the rate of a table by --rate'
        )
    steps, rows, begun = np.diff(time[first]), np.arange(len(time)), first[1:]
    usual = float(np.median(steps))
    line = np.polynomial.Polynomial.fit(begun, time[begun], 1)
    spread = np.asarray(line(rows))
    if np.abs(spread - time)[begun].max() > usual:
        # Samples are missing: up to the next stamp, unless that lies behind a gap.
        spans = np.append(np.where((steps > 0.0) & (steps < 2.0 * usual), steps, usual), usual)
        counts = np.diff(np.append(first, len(time)))
        place = rows - np.repeat(first, counts)
        spread = np.repeat(time[first], counts) + place * np.repeat(spans / counts, counts)
    rate = 1.0 / float(np.median(np.diff(spread)))
    return spread, [finding('stamps_rounded', count=int(rounded.sum()), step=usual, rate=rate)]


def stamps_by_motion(
    stamp: npt.NDArray[np.int64], position: Array, velocity: Array
) -> tuple[npt.NDArray[np.int64], list[Finding]]:
    """
    Return the stamps (N,) of samples whose clock was starved, as their motion tells them [ns].

    The clock of a simulation may stand or lag while its samples go on: stamps repeat though the
    samples differ. Positions and velocities (N, n) of joints that move say how many periods lie
    between neighbours, `Σ dq Δq / Σ dq²`; at rest the stamps do. No sample is before its stamp.
    Raises RecordingError where the motion does not tell the time.
    """
    steps, moved = np.diff(stamp), np.diff(position, axis=0)
    stands = (steps == 0) & (moved != 0.0).any(axis=1)
    ahead = steps[steps > 0]
    if len(stamp) < LEAST_STATES or stands.mean() < MIN_SHARE_STANDING or not ahead.size:
        return stamp, []
    grid = int(np.gcd.reduce(ahead))
    # Rounded stamps, of which several samples share each, stand without lagging.
    if grid < MIN_GRID or np.ptp(stamp) < (1.0 - MAX_ODD_SHARE) * grid * len(steps):
        return stamp, []
    mean = 0.5 * (velocity[1:] + velocity[:-1])
    square = np.nan_to_num((mean**2).sum(axis=1))
    moving = square > (SHARE_OF_SPEED**2) * square.max(initial=0.0)
    elapsed = np.nan_to_num((mean * moved).sum(axis=1)) / np.where(moving, square, 1.0) * 1e9
    usual = float(np.median(elapsed[moving])) if moving.any() else 0.0
    period = grid * max(1, round(usual / grid))
    count = np.where(moving, elapsed / period, 1.0)
    whole = np.maximum(np.round(count), 1.0)
    if moving.sum() < LEAST_STATES or np.median(np.abs(count - whole)[moving]) > ONE_PERIOD / 2.0:
        raise RecordingError(
            f'{stands.mean():.0%} of the joint states have the stamp of the one before, as of a '
            'simulation whose clock lags, and the motion does not show their times: record '
            'velocities, at a lower real-time factor'
        )
    time = np.concatenate([[0.0], np.cumsum(whole)])
    late = np.maximum.accumulate((stamp - stamp[0]) / period - time)
    time += np.round(late)
    found = finding('clock_starved', share=float(stands.mean()), rate=1e9 / period)
    return stamp[0] + (period * time).astype(np.int64), [found]


@dataclasses.dataclass(frozen=True)
class SamplingTimes(ReadOnlyArrays):
    """
    When samples were taken, as far as their stamps and their positions tell.

    A stamp is late by e = c + j: c is how late the sample was taken, j how much later it was
    stamped. Positions change with c alone. The share is
    var(c)/var(e), from 0 to 1, sigma its standard deviation.
    """

    stamps: Array
    even: Array
    share: float
    sigma: float

    @property
    def jitter(self) -> float:
        """Standard deviation of the stamps about even times [s]."""
        return float(np.std(self.stamps - self.even))

    @property
    def time(self) -> Array:
        """The likeliest times of the samples (N,): even + share · e [s]."""
        rest = self.stamps - self.even
        return self.stamps if self.share == 1.0 else self.even + self.share * rest

    @property
    def error_share(self) -> float:
        """Variance of the errors of `time` / that of the jitter, share (1 − share) + sigma²."""
        return self.share * (1.0 - self.share) + min(self.sigma, 1.0) ** 2

    @property
    def findings(self) -> list[Finding]:
        """What `time` changes in the stamps, nothing where they are right."""
        if self.share == 1.0:
            return []
        return [finding('stamps_jitter', jitter=self.jitter, share=self.share)]


def sampling_times(time: Array, position: Array, step: float) -> SamplingTimes | None:
    """Tell stamps (N,) that jitter from samples that do; None: little jitter, or no even times."""
    if np.abs(np.diff(time) - step).max() <= MIN_JITTER * step:
        return None
    even, number = _even_times(time, step)
    e = (time - even) / step
    # Jitter is what neighbours do not have alike: a loop that sleeps drifts, with its samples.
    rough = np.diff(e, 3)[number[3:] - number[:-3] == 3]
    if np.sum(rough**2) <= ROUGHNESS * MIN_JITTER**2 * len(rough):
        return None
    share, sigma = _share_of_samples(e, number, position)
    near = max(NEAR, 3.0 * sigma)
    if sigma > UNKNOWN_SHARE:  # of two times that are alike, those that were recorded win
        share = 1.0
    else:
        share = 0.0 if share < near else 1.0 if share > 1.0 - near else share
    return SamplingTimes(time, even, share, sigma)


def _even_times(time: Array, step: float) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return the even times (N,) next to stamps, and the number of each sample."""
    even, number = time.copy(), np.arange(time.size)
    edges = np.flatnonzero(np.diff(time) > LONGEST_PAUSE) + 1
    for start, stop in itertools.pairwise([0, *edges.tolist(), time.size]):
        if stop - start >= MIN_STRETCH:
            part = slice(start, stop)
            even[part], number[part] = _even_stretch(time[part], step)
        if start:  # a pause is no sample
            number[start:stop] += number[start - 1] + 2 - number[start]
    return even, number


def _even_stretch(time: Array, step: float) -> tuple[Array, npt.NDArray[np.int64]]:
    """
    Return the same of a stretch without a pause.

    The phase of stamps on a grid is a circular mean: it needs no numbers, which lost samples and
    late stamps make uncertain. The clock's course is that of the phase, second by second.
    """
    local, order = time - time[0], np.arange(time.size)
    for robust in (True, False):
        centre, phase, _ = _phases(local, step, MIN_STRETCH)
        if len(centre) > 2:
            slopes = np.diff(phase) / np.diff(centre)
            slope = np.median(slopes) if robust else np.polyfit(centre, phase, 1)[0]
            step *= 1.0 + step * float(slope)
    centre, phase, concentration = _phases(local, step, max(MIN_STRETCH, round(STRETCH / step)))
    if np.median(concentration) < MIN_CONCENTRATION:
        return time, order
    course = np.interp(local, centre, phase)
    number = order + _lost_before(local / step - course - order)
    return time[0] + step * (number + course), number


def _lost_before(excess: Array) -> npt.NDArray[np.int64]:
    """
    Return how many samples were lost before each, from its place on the grid less its order (N,).

    A stamp that is late by half a period looks like a loss that is taken back: these are found
    by a running median, and then put where the sum of all distances from the grid is least.
    """
    lost = np.round(excess).astype(np.int64)
    if np.any(np.diff(lost) < 0):
        from scipy.ndimage import median_filter  # takes longer to import than most logs to read

        lost = np.maximum.accumulate(median_filter(lost, LOSSES_WINDOW, mode='nearest'))
    places = [0, *(np.flatnonzero(np.diff(lost)) + 1).tolist(), lost.size]
    for first, place, last in zip(places, places[1:], places[2:], strict=False):
        window = slice(max(first, place - LOSSES_WINDOW), min(last, place + LOSSES_WINDOW))
        before, after = lost[place - 1], lost[place]
        worse = np.abs(excess[window] - before) - np.abs(excess[window] - after)
        split = int(np.argmin(np.concatenate([[0.0], np.cumsum(worse)])))
        lost[window][:split], lost[window][split:] = before, after
    return lost


def _phases(local: Array, step: float, length: int) -> tuple[Array, Array, Array]:
    """Return times, phases in steps and their concentration, of blocks of so many stamps."""
    blocks = np.array_split(np.arange(local.size), max(1, local.size // length))
    starts, sizes = np.array([(block[0], block.size) for block in blocks]).T
    total = np.add.reduceat(np.exp(2j * np.pi * local / step), starts)
    phase = np.unwrap(np.angle(total)) / (2.0 * np.pi)
    return np.add.reduceat(local, starts) / sizes, phase, np.abs(total) / sizes


def _share_of_samples(
    e: Array, number: npt.NDArray[np.int64], position: Array
) -> tuple[float, float]:
    """
    Return how much of the jitter e (N,), in steps, the samples have, and the σ of that.

    Third differences of positions leave dq Δ³c of a smooth motion: least squares of these on
    dq Δ³e, joints weighted by their noise.
    """
    row = np.flatnonzero(number[3:] - number[:-3] == 3)
    if len(row) < MIN_STRETCH:
        return 1.0, np.inf
    rough = np.diff(e, 3)[row]
    product, square = np.zeros((2, len(row)))
    for column in position.T:
        error = np.diff(column, 3)[row]
        noise = float(np.mean(error**2))
        if noise > 0.0:
            shown = (column[3:] - column[:-3])[row] / 3.0 * rough
            product += shown * error / noise
            square += shown**2 / noise
    if (total := float(square.sum())) <= 0.0:
        return 1.0, np.inf
    share = float(product.sum()) / total
    # Neighbours share samples: sums of blocks are independent.
    left = np.add.reduceat(product - share * square, np.arange(0, len(row), BLOCK))
    return share, float(np.linalg.norm(left)) / total


SAME_RATE = 0.05  # rates so near to one another are the same: a parameter has no noise
# Ratio from which a rate is more than rounded, as ros2_control rounds to three quarters at least,
# and from which the rates of two publishers are more than their losses apart.
CLEARLY_FEWER = 1.5
# Share of distances that show a nominal period: few updates of a slower controller are so early.
SHARE_OF_SINGLE_PERIODS = 0.1
MAX_SHARE_REPEATED = 0.1  # of stamps that repeat, from which on states show no rate


def observed_update_rate(nominal: float, stamp: Array, joint_state_rate: float) -> float:
    """
    Return the update rate of a controller, from the stamps (K,) [s] of its states [Hz].

    ros2_control rounds a controller's rate to that of controller_manager over an integer, and
    leaves the parameter as it was. One state is published at every update: their median distance
    is its period. The `nominal` parameter, 0 where it is not known, stands where states are
    missing: some still are one of its periods apart, or joint states are more frequent, hence also
    the updates. Both thinned out alike are taken for those of a slower controller.
    """
    steps = np.diff(stamp)
    if len(stamp) < LEAST_STATES or np.mean(steps <= 0.0) > MAX_SHARE_REPEATED:
        return nominal
    rate = 1.0 / float(np.median(steps))
    if abs(rate - nominal) <= SAME_RATE * nominal:
        return nominal
    if not nominal or rate * CLEARLY_FEWER < nominal:
        single = np.mean(np.abs(steps * nominal - 1.0) < ONE_PERIOD)
        if single > SHARE_OF_SINGLE_PERIODS or joint_state_rate > CLEARLY_FEWER * rate:
            return nominal
    return rate
