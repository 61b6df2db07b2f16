"""Samples that cannot be used: missing, repeated, spikes, clipped; efforts, speeds of others."""

from collections.abc import Sequence
from itertools import combinations, compress
import warnings

import numpy as np

from ...exceptions import RecordingError
from ..arrays import Array, Indices, Mask
from ..findings import Finding, finding
from .recording import Recording

MAX_INVALID_SHARE = 0.2  # of samples, beyond which a fault is the sensor's or the driver's
# A spike goes and comes back by so many times the 99th percentile of the other steps, which real
# motions exceed by little; so many samples may be spikes, and so many lie in a row.
SPIKE_FACTOR, SPIKE_PERCENTILE, MAX_SPIKES, SPIKE_RUN = 10.0, 99.0, 0.05, 3
ZERO_FACTOR = 3.0  # of the same percentile, beyond which a step to exactly 0 is none of a motion
JUMP_FACTOR = 5.0  # usual steps by which a hung driver goes on; a joint starts smoothly
WRAP_TOLERANCE = 1.0  # off 2π of a turn: the most a joint moves between samples [rad]
# An effort is clipped when so large a share of samples is its very extreme, and so many times more
# than at the level beside it: the levels of a coarse sensor get rarer outwards.
MIN_CLIPPED_SHARE, MIN_CLIPPED_RATIO = 0.005, 3.0
MIN_LEVELS = 10  # fewer levels say nothing about which is an extreme
LIMIT_TOLERANCE = 1e-4  # of a known limit, an effort is at it: the rounding of drives and URDFs
MAX_COARSE_LEVELS = 40  # of an effort, whose rounding is no noise that averages out
# Efforts that repeat in more than this share of the samples are of a slower bus. What holds them
# for less time on average [s], as controllers do, is a delay.
MOST_HELD, LEAST_HOLD = 0.6, 0.02
FROZEN = 10  # samples in which a bus of efforts hangs
DEAD_STEPS = 1.5  # an effort whose first level is so many steps above zero has a dead zone
STEP_TOLERANCE = 0.1  # of levels and changes off the multiples of a step: rounded text
LEVEL_SAMPLES = 10_000  # samples that show the levels of an effort
# Relative residual below which one signal is another one times a constant. Logged velocities and
# accelerations leave at most 0.5 % of the positions' derivatives (UR10, TX-40, EMPS, encoders of
# 4096 counts, drives that filter for 10 ms); efforts of these robots leave 24 % or more, those of
# simulated robots 3.1 %, without dry friction 1.6 % (a SCARA).
ALIKE = 0.01
MAX_DELAY = 0.03  # a drive's filter makes a velocity later than its position by no more [s]
SPANS = (1, 5, 25, 125)  # of differences compared with integrals [samples]: more leave less noise
MANY, PARTS = 30_000, 30  # rows of a long log that are compared, from so many parts of it
MIN_ROWS = 50  # fewer look like anything
MIN_TRAVEL = 1e-3  # a joint that travels less is at rest [rad or m]
# Steps that are so many times this quantile of all are jumps: signals that share one look alike.
JUMP, USUAL = 20.0, 0.99
FAR = 7.0  # of that quantile, a lone step of a position is none of a motion: public logs have 6.1
STILL = 1e-6  # share of a signal below which its changes are rounding
ORDERS = ('the positions', 'the derivatives of the positions', 'the accelerations')


def find_usable_samples(recording: Recording, max_gap: float) -> tuple[Mask, list[Finding]]:
    """Find samples that can be used, (N,), with notes on others; a RecordingError of too many."""
    time, finite, notes = recording.time, recording.finite, list[Finding]()
    share = 1.0 - finite.mean() if finite.size else 0.0
    if share > MAX_INVALID_SHARE:
        for name in ('position', 'effort'):
            dead = ~np.isfinite(getattr(recording, name)).any(axis=0)
            if dead.any():
                joints = ', '.join(np.array(recording.joints)[dead])
                raise RecordingError(
                    f'every {name} of {joints} are not numbers or missing: record the '
                    f'{name} of all joints, or leave these out of robot.joints'
                )
        raise RecordingError(
            f'{100 * share:.0f} % of the samples of {", ".join(recording.joints)} are not '
            'numbers: check the sensor or leave the joint out of robot.joints'
        )
    if share:
        notes.append(finding('samples_not_finite', count=int((~finite).sum())))
    last = np.maximum.accumulate(np.where(finite, time, -np.inf))
    newer = np.concatenate([[True], time[1:] > last[:-1]])
    older = int((finite[1:] & (time[1:] < last[:-1])).sum())
    if older > MAX_INVALID_SHARE * time.size:
        raise RecordingError(
            f'the stamps of {recording.source or "the recording"} jump back in {older} of '
            f'{time.size} samples: record header stamps of one clock'
        )
    kept = finite & newer
    if (finite & ~newer).any():
        notes.append(finding('stamps_repeated', count=int((finite & ~newer).sum())))
    rows, spike = np.flatnonzero(kept), np.zeros(int(kept.sum()), dtype=bool)
    for name in ('position', 'effort'):
        for joint, column in zip(recording.joints, getattr(recording, name)[rows].T, strict=True):
            zeros = find_false_zeros(column)
            lone = find_spikes(column) & ~zeros
            for what, found in (('zeros_left_out', zeros), ('spikes', lone)):
                if found.any():
                    notes.append(finding(what, [joint], count=int(found.sum()), quantity=name))
                    spike |= found
    if (share := spike.mean() if spike.size else 0.0) > MAX_INVALID_SHARE:
        raise RecordingError(
            f'{share:.0%} of the samples are zeros or spikes that stand for no value: check the '
            'sensors, or leave joints that have them out of robot.joints'
        )
    kept[rows[spike]] = False
    rows = rows[~spike]
    notes += _one_for_two(recording.joints, recording.position[rows])
    stale = find_repeated(time[rows], recording.position[rows], recording.effort[rows], max_gap)
    stale |= find_frozen_efforts(recording.position[rows], recording.effort[rows])
    if stale.any():
        notes.append(finding('samples_repeated', count=int(stale.sum())))
        kept[rows[stale]] = False
    copies = find_copies(np.column_stack([recording.position, recording.effort])[kept])
    if copies.any():
        since = float(time[kept][copies][0] - time[0])
        notes.append(finding('rows_copied', count=int(copies.sum()), since=since))
        kept[np.flatnonzero(kept)[copies]] = False
    return kept, [*notes, *_jumps(recording, kept, max_gap)]


def _one_for_two(joints: Sequence[str], columns: Array) -> list[Finding]:
    """Name joints that have the same positions (N, n) in every digit, of those that change."""
    few = columns[:: max(1, len(columns) // MIN_ROWS)]
    changes = np.flatnonzero(np.ptp(few, axis=0) > 0.0).tolist() if len(few) >= MIN_ROWS else []
    pairs = [(i, j) for i, j in combinations(changes, 2) if np.array_equal(few[:, i], few[:, j])]
    same = [pair for pair in pairs if np.array_equal(*columns[:, list(pair)].T)]
    named = [[joints[k] for k in pair] for pair in same]
    return [finding('column_for_two', pair) for pair in named]


def _jumps(recording: Recording, kept: Mask, max_gap: float) -> list[Finding]:
    """Name joints whose position is another one from a sample on: rows lack or repeat."""
    position, _ = unwrap_angles(recording.position[kept], recording.joints)
    time = recording.time[kept]
    pause = np.diff(time)
    step = np.abs(np.diff(position, axis=0))
    step /= np.maximum(pause / max(np.median(pause), 1e-300), 1.0)[:, None]  # of rows that lack
    step[pause > max_gap] = 0.0
    if len(step) < MIN_ROWS or all(_is_usual(x.max(), x, FAR, 1.0 - USUAL) for x in step.T):
        return []
    # Of a joint that starts to move, the steps beside a large one are large, too.
    beside = np.pad(step, ((1, 1), (0, 0)))
    alone = step > JUMP_FACTOR * np.maximum(beside[:-2], beside[2:])
    far = alone & (step > FAR * _usual_steps(step, USUAL))
    if not far.any():
        return []
    rows, joints = far.any(axis=1), far.any(axis=0)
    values = {'count': int(rows.sum()), 'since': float(time[1:][rows][0] - recording.time[0])}
    return [finding('position_jumps', list(compress(recording.joints, joints)), **values)]


def find_false_zeros(values: Array) -> Mask:
    """
    Find zeros (N,) that stand for no value: most runs of them begin and end with a jump.

    Below a dead zone, which reads 0 as well, no other value lies.
    """
    zero = values == 0.0
    usual = np.abs(np.diff(values))[~(zero[1:] | zero[:-1])] if zero.any() else values[:0]
    # Of a simulated joint that rests for long, 0 is what it needs.
    if usual.size < MIN_ROWS or zero.mean() > MAX_INVALID_SHARE:
        return zero & False
    ends = np.concatenate([[np.inf], np.abs(values), [np.inf]])
    first, over = _runs(zero).T
    nearest = np.minimum(ends[first], ends[over + 1])  # before and after each run
    far = nearest > ZERO_FACTOR * np.percentile(usual, SPIKE_PERCENTILE)
    lower = np.abs(values[~zero]) < 0.5 * np.median(nearest)
    return zero & bool(far.mean() > 0.5 and lower.mean() > MIN_CLIPPED_SHARE)


def find_spikes(values: Array) -> Mask:
    """Find samples (N,) that lie alone or in short runs, far from both sides on the same side."""
    found, size = np.zeros(values.size, dtype=bool), np.abs(np.diff(values))
    if _is_usual(size.max(initial=0.0), size):
        return found
    for every in (1, SPIKE_RUN):  # in one sample of so many, a run lies alone
        for first in range(every):
            found[first::every] |= _alone(values[first::every])
    return found


def _is_usual(
    largest: float, size: Array, factor: float = SPIKE_FACTOR, share: float = 2.0 * MAX_SPIKES
) -> bool:
    """
    Tell that this share of steps is at most so many times smaller than the largest of some.

    Most columns then need no percentile, which takes far longer.
    """
    return bool(np.count_nonzero(size >= largest / factor) >= share * size.size + 2.0)


def _alone(values: Array) -> Mask:
    """Find samples (N,) that lie alone, far from both neighbours on the same side."""
    found, step = np.zeros(values.size, dtype=bool), np.diff(values)
    size = np.abs(step)
    # How far each sample lies from the nearer neighbour, where both are on the same side.
    turns = np.signbit(step[:-1]) != np.signbit(step[1:])
    alone = np.where(turns, np.minimum(size[:-1], size[1:]), 0.0)
    if _is_usual(alone.max(initial=0.0), size):
        return found
    # Steps to and from what lies alone are no usual ones; of several in a row, each is.
    far = alone > SPIKE_FACTOR * np.quantile(size, 1.0 - 2.0 * MAX_SPIKES)
    beside = np.concatenate([[False], far, [False]])
    far &= ~(beside[:-2] | beside[2:])
    usual = size[~(np.append(far, False) | np.append(False, far))]
    limit = SPIKE_FACTOR * np.percentile(usual, SPIKE_PERCENTILE) if usual.size else 0.0
    if limit > 0.0:
        found[1:-1] = alone > limit
    return found


def find_repeated(time: Array, position: Array, effort: Array, max_gap: float) -> Mask:
    """
    Find samples (N,) that repeat the one before, although time went on.

    Drivers that are slower than their publisher, or hang, do so, or of positions alone. A robot at
    rest does too: longer runs count only where the position then jumps.
    """
    stale = np.zeros(time.size, dtype=bool)
    moved = np.abs(np.diff(position, axis=0))
    same = np.logical_and.reduce([x[1:] == x[:-1] for x in (*position.T, *effort.T)])
    held = _held(moved)
    if not (same | held).any() or same.all():
        return stale
    stale[1:] = same
    usual = _usual_steps(moved)
    for start, stop in _runs(stale).tolist():
        if time[min(stop, time.size - 1)] - time[start - 1] > max_gap:
            jumps = stop < time.size and np.any(moved[stop - 1] > JUMP_FACTOR * usual)
            stale[start:stop] = jumps
    stale[1:] |= held
    return stale


def find_frozen_efforts(position: Array, effort: Array) -> Mask:
    """
    Find samples (N,) in which the efforts of several joints stay the same though one moves.

    Coarse efforts do in slow motion, and then go on by a usual step. All of a slower bus do most
    of the time.
    """
    frozen = np.zeros(len(effort), dtype=bool)
    step = np.abs(np.diff(effort, axis=0))
    same = np.append(False, ~step.any(axis=1))
    if effort.shape[1] > 1 and same.mean() < MOST_HELD:
        usual, runs = _usual_steps(step), _runs(same)
        for start, stop in runs[np.diff(runs)[:, 0] >= FROZEN].tolist():
            travels = np.ptp(position[start - 1 : stop], axis=0).max() > MIN_TRAVEL
            jumps = stop < len(effort) and np.any(step[stop - 1] > JUMP_FACTOR * usual)
            frozen[start:stop] = travels and jumps
    return frozen


def _runs(mask: Mask) -> Indices:
    """Return where each run of a mask (N,) begins, and where it is over (runs, 2)."""
    return np.flatnonzero(np.diff(mask, prepend=False, append=False)).reshape(-1, 2)


def _usual_steps(step: Array, quantile: float = 0.5) -> Array:
    """Return the quantile of each signal's steps (N, n) that are not zero, inf without any."""
    used = (x[x > 0.0] for x in step.T)
    return np.array([np.quantile(x, quantile) if x.size else np.inf for x in used])


def _held(moved: Array) -> Mask:
    """
    Find rows of steps (N, n) within which positions of a slower bus wait for the next ones.

    Coarse encoders in slow motion repeat, too, but then step by one count; rests are longer.
    """
    held, longest = np.ones(len(moved), dtype=bool), 0.0
    for step in moved.T:
        if not MIN_ROWS < np.count_nonzero(step) < 0.7 * len(step):
            continue  # counting is quick: most logs are left here
        places = np.flatnonzero(step)
        wait = float(np.median(np.diff(places)))
        if wait > 1.0 and np.median(step[places]) > JUMP_FACTOR * step[places].min():
            held, longest = held & (step == 0.0), max(longest, 2.0 * wait)
    runs = _runs(held)
    for start, stop in runs[np.diff(runs)[:, 0] > longest].tolist():
        held[start:stop] = False
    return held


def find_copies(rows: Array, others: Array | None = None) -> Mask:
    """
    Find rows (N, m) that are copies of earlier ones, or of other rows (K, m), in every digit.

    So many of them have to follow each other as they do there, while most of them differ: single
    rows of coarse sensors repeat, and a robot at rest does.
    """
    keys = _digest(rows)
    if others is None and np.diff(np.sort(keys)).all():  # sorts without places are quick
        return np.zeros(len(keys), dtype=bool)
    known = keys if others is None else _digest(others)
    values, first = np.unique(known, return_index=True)
    place = np.searchsorted(values, keys).clip(max=len(values) - 1)
    distance = np.arange(len(keys)) - first[place]
    copied = values[place] == keys
    if others is None:
        copied &= distance > 0
    found = np.zeros(len(keys), dtype=bool)
    ends = np.flatnonzero((np.diff(distance) != 0) | (np.diff(copied) != 0)) + 1
    starts, stops = np.r_[0, ends], np.r_[ends, len(keys)]
    long = copied[starts] & (stops - starts >= MIN_ROWS)
    for start, stop in zip(starts[long], stops[long], strict=True):
        found[start:stop] = 2 * len(np.unique(keys[start:stop])) > stop - start
    return found


def _digest(rows: Array) -> Array:
    """Return a number of each row (N, m) that only equal rows share, but for chance."""
    weights = np.cos(np.arange(1.0, rows.shape[1] + 1.0) ** 2)  # in no simple ratio
    digest = np.zeros(len(rows))
    for weight, column in zip(weights, rows.T, strict=True):  # the same of each row, to the bit
        digest += weight * column
    return digest


def unwrap_angles(position: Array, joints: Sequence[str]) -> tuple[Array, list[Finding]]:
    """Take jumps of 2π out of angles (N, n); other jumps are no turns."""
    step = np.diff(position, axis=0)
    if max(step.max(initial=0.0), -step.min(initial=0.0)) <= 2.0 * np.pi - WRAP_TOLERANCE:
        return position, []
    turns = np.where(np.abs(np.abs(step) - 2.0 * np.pi) < WRAP_TOLERANCE, np.sign(step), 0.0)
    jumps = np.abs(turns).sum(axis=0) > 0.0
    if not jumps.any():
        return position, []
    position = position.copy()
    position[1:] -= 2.0 * np.pi * np.cumsum(turns, axis=0)
    return position, [finding('angles_unwrapped', list(compress(joints, jumps)))]


def find_held_efforts(time: Array, effort: Array) -> Mask:
    """Find rows (N,) at times (N,) [s] in which a slower bus holds all efforts (N, n)."""
    step = np.abs(np.diff(effort, axis=0))
    held = np.append(False, _held(step) & ~step.any(axis=1))
    slow = (time[-1] - time[0]) > LEAST_HOLD * (~held).sum()
    return held if slow and held.mean() > MOST_HELD else held & False


def clipped_samples(effort: Array, limit: Array | None = None) -> Mask:
    """Find where efforts (N, n) crowd at their extremes, as clipped, or reach a limit (n,)."""
    found = np.zeros(effort.shape, dtype=bool)
    most = MIN_CLIPPED_SHARE * len(effort)
    limit = np.full(effort.shape[1], np.inf) if limit is None else limit
    for j, column in enumerate(effort.T):
        for sign in (1.0, -1.0):
            values = sign * column
            largest = values.max(initial=0.0)
            limited = abs(largest - limit[j]) < LIMIT_TOLERANCE * limit[j]
            if largest <= 0.0 or not (limited or np.count_nonzero(values == largest) > most):
                continue
            levels, counts = np.unique(values[values > 0.0], return_counts=True)
            if levels.size < MIN_LEVELS:
                continue
            if counts[-1] > max(most, MIN_CLIPPED_RATIO * counts[-2]):
                found[:, j] |= values >= largest
            elif limited:
                found[:, j] |= values >= (1.0 - LIMIT_TOLERANCE) * limit[j]
    return found


def dead_zones(effort: Array) -> Array:
    """Return the least effort (n,) that is reported where smaller ones read 0, else 0."""
    found = np.zeros(effort.shape[1])
    for j, column in enumerate(effort.T):
        levels = _levels(np.abs(column))
        levels = levels[levels > 0.0]
        if levels.size >= MIN_LEVELS and np.mean(column == 0.0) >= MIN_CLIPPED_SHARE:
            step = float(np.median(np.diff(levels)))
            if _whole(levels, step) and levels[0] > DEAD_STEPS * step:
                found[j] = levels[0]
    return found


def quantization_steps(effort: Array) -> Array:
    """Return the steps (n,) in which efforts come where they have few levels, else 0."""
    levels = [_levels(column) for column in effort.T]
    few = [1 < x.size <= MAX_COARSE_LEVELS for x in levels]
    pairs = zip(levels, few, strict=True)
    return np.array([float(np.median(np.diff(x))) if coarse else 0.0 for x, coarse in pairs])


def position_steps(position: Array) -> Array:
    """Return the steps (n,) of which positions change by multiples only, else 0."""
    steps = np.zeros(position.shape[1])
    for j, changes in enumerate(np.abs(np.diff(position, axis=0)).T):
        changes = changes[(changes > 0.0) & (changes < np.pi)]
        if changes.size >= MIN_LEVELS and _whole(changes, changes.min()):
            steps[j] = changes.min()
    return steps


def _levels(column: Array) -> Array:
    return np.unique(column[:: max(1, column.size // LEVEL_SAMPLES)])


def _whole(values: Array, step: float) -> bool:
    """Return whether values are multiples of a step, as text that was rounded."""
    return bool(np.abs(values / step - np.round(values / step)).max() < STEP_TOLERANCE)


def refuse_derived_efforts(
    joints: tuple[str, ...],
    position: Array,
    effort: Array,
    velocity: Array | None = None,
    rate: float = 0.0,
    where: str = '',
) -> None:
    """
    Raise an error where efforts follow from the motion alone.

    Those of all joints that move are positions, velocities or accelerations times constants, or
    one of them is a copy. That one alone is a multiple proves nothing: a light joint may have
    hardly more than viscous friction. Rows (N, n) are evenly spread, of a rate [Hz], 0: unknown.
    """
    if len(position) < MIN_ROWS:
        return
    signals: list[tuple[tuple[str, ...], Array]] = [(ORDERS, position)]
    signals += [] if velocity is None else [(('the velocities',), velocity)]
    said = np.full(len(joints), '', dtype=object)
    for kinds, values in signals:
        orders = unlikeness(values, effort, len(kinds), MAX_DELAY * rate)
        for what, left in zip(kinds, orders, strict=True):
            said[(left < ALIKE).any(axis=0) & (said == '')] = what
    with np.errstate(all='ignore'), warnings.catch_warnings():
        warnings.simplefilter('ignore', RuntimeWarning)  # joints without a number
        moving = np.nanmax(position, axis=0) - np.nanmin(position, axis=0) > MIN_TRAVEL
    derived = moving & (said != '')
    if derived.any() and not derived[moving].all():
        known = position if velocity is None else np.hstack([position, velocity])
        derived &= [
            any(np.array_equal(column, x, equal_nan=True) for x in known.T) for column in effort.T
        ]
    if derived.any():
        names = {what: np.array(joints)[derived & (said == what)] for what in said[derived]}
        each = ' and '.join(f'of {", ".join(own)} are {what}' for what, own in names.items())
        raise RecordingError(
            f'{where}{": " if where else ""}the efforts {each} times a constant, so they are no '
            "torques: give those that were measured, of a table as in --columns 'effort=NAME'"
        )


def unlikeness(signals: Array, others: Array, orders: int = 1, delay: float = 0.0) -> Array:
    """
    Return how much of others (N, k) is no derivative of signals (N, m) times a constant.

    Differences of the one are compared with integrals of the other, which noise matters least in;
    1 where one of them does not change. Of order 0 they are the signals themselves with an offset,
    of 1 and 2 their derivatives, which are at most a delay [rows] behind the signals. Returns
    (orders, m, k).
    """
    rows = np.isfinite(signals).all(axis=1) & np.isfinite(others).all(axis=1)
    # Parts (m, P, L) of a long log, or one: sums over what lies side by side are quick.
    length = MANY // PARTS if (count := int(rows.sum())) > MANY else count
    starts = np.linspace(0, count - length, PARTS if count > MANY else 1).astype(int)
    index = np.flatnonzero(rows)[starts[:, None] + np.arange(length)]
    a, b = (np.take(values.T, index, axis=1) for values in (signals, others))
    least = np.ones((orders, len(a), len(b)))
    if count < MIN_ROWS:
        return least
    steps = np.abs(np.diff(a, prepend=a[..., :1]))
    # Whether all are plainly usual: quantiles take longer.
    large = steps >= steps.max(axis=(1, 2), keepdims=True, initial=0.0) / JUMP
    even = (large.sum(axis=(1, 2)) >= (1.0 - USUAL) * steps[0].size + 2.0).all()
    usual = np.quantile(steps, USUAL, axis=(1, 2), keepdims=True) if not even else np.zeros(())
    jumps = ((steps > JUMP * usual) & (usual > 0.0)).any(axis=0).cumsum(axis=1)
    for order in range(orders):
        if order:
            b = np.cumsum(0.5 * (b[..., 1:] + b[..., :-1]), axis=2)
            b = np.concatenate([np.zeros_like(b[..., :1]), b], axis=2)
        for span in SPANS if order else (0,):
            if order * span > length // 5:
                break
            x, y, width = a, b, order * span
            for _ in range(order):
                x, y = x[..., span:] - x[..., :-span], y[..., span:] - y[..., :-span]
            clear = jumps[:, width:] == jumps[:, : length - width]
            if clear.sum() < MIN_ROWS:
                continue
            d = np.gradient(x, axis=2) if order and delay else np.zeros_like(x)
            whole = clear.all()
            x, y, d = (v.reshape(len(v), -1) if whole else v[:, clear] for v in (x, y, d))
            # Relative residuals (m, k) of y = c (x − T d) + offset, |T| ≤ delay, rows (·, N).
            means = [v.mean(axis=1, keepdims=True) for v in (x, y, d)]
            x, y, d = (v - mean for v, mean in zip((x, y, d), means, strict=True))
            # einsum multiplies and adds without an array between.
            xx, xd, dd, yy = (
                np.einsum('ij,ij->i', u, v)[:, None] for u, v in ((x, x), (x, d), (d, d), (y, y))
            )
            xy, dy = x @ y.T, d @ y.T
            with np.errstate(all='ignore'):
                late = -np.nan_to_num((xx * dy - xd * xy) / (dd * xy - xd * dy))
                late = np.clip(late, -delay, delay)
                alike = (xy - late * dy) ** 2 / ((xx - 2.0 * late * xd + late**2 * dd) * yy.T)
            left = np.sqrt(np.clip(1.0 - np.nan_to_num(alike), 0.0, 1.0))
            still_x, still_y = (
                squares <= STILL**2 * (squares + x.shape[1] * mean**2)
                for squares, mean in ((xx, means[0]), (yy, means[1]))
            )
            left[still_x | still_y.T] = 1.0
            least[order] = np.fmin(least[order], left)
    return least


# A velocity that is a multiple of the position's derivative: correlation, share of slopes.
MIN_CORRELATION, WITHOUT_JUMPS = 0.9, 0.99
# Samples over which both are compared where neighbours are too noisy, or polled and repeated.
SPAN_OF_SPEEDS = 5
# A factor that is nearer to 1 is the filter of a drive. Velocities in other units of all joints,
# degrees, turns a minute or a second, are no fault: no identification uses their size.
MIN_DEVIATION, SAME_UNIT = 0.15, 0.02
OTHER_UNITS = np.array([180.0, 30.0, 0.5]) / np.pi


def velocity_ratios(time: Array, position: Array, other: Array) -> Array:
    """Return the ratios (n,) of values to the derivatives of positions, (N, n) at times (N,)."""
    if len(time) > MANY:  # parts of it all over tell as much
        parts = np.linspace(0, len(time) - MANY // PARTS, PARTS).astype(int)
        rows = (parts[:, None] + np.arange(MANY // PARTS)).ravel()
        time, position, other = time[rows], position[rows], other[rows]
    ratios = np.full(position.shape[1], np.nan)
    # Differences of neighbours, else over more samples.
    for span in (1, SPAN_OF_SPEEDS):
        steps = (time[span:] - time[:-span])[:, None]
        with np.errstate(all='ignore'):
            slope = (position[span:] - position[:-span]) / steps
            areas = 0.5 * (other[1:] + other[:-1]) * np.diff(time)[:, None]
            middle = sum(areas[k : k + len(steps)] for k in range(span)) / steps
            for k in np.flatnonzero(np.isnan(ratios)):
                a, b = slope[:, k], middle[:, k]
                good = np.isfinite(a) & np.isfinite(b) & (steps[:, 0] > 0.0)
                if good.sum() < 10:
                    continue
                # Jumps of the position have no part in its velocity.
                good &= np.abs(a) <= np.quantile(np.abs(a[good]), WITHOUT_JUMPS)
                if np.corrcoef(a[good], b[good])[0, 1] > MIN_CORRELATION:
                    ratios[k] = np.std(b[good]) / np.std(a[good])
    return ratios


def velocity_warnings(
    joints: tuple[str, ...], time: Array, position: Array, velocity: Array | None
) -> list[Finding]:
    """Name the joints whose velocities (N, n) are not the derivatives of their positions."""
    if velocity is None:
        return []
    ratios = velocity_ratios(time, position, velocity)
    known = np.isfinite(ratios)
    off = known & (np.abs(np.log(np.where(known, ratios, 1.0))) > np.log1p(MIN_DEVIATION))
    if not off.any():
        return []
    usual = float(np.median(ratios[known]))
    alike = bool((np.abs(ratios[known] / usual - 1.0) < MIN_DEVIATION).all())
    if alike and (np.abs(usual / OTHER_UNITS - 1.0) < SAME_UNIT).any():
        return []
    rate = usual / float(np.median(np.diff(time))) if alike else None
    names = [joints[j] for j in np.flatnonzero(off)]
    return [finding('velocities_unlike', names, ratios=ratios[off], rate=rate)]
