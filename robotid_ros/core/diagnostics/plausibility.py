"""Plausibility: efforts, inertias, friction and residuals beside what a robot can have."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import Array, Mask, PREDICTED, rms
from ..findings import Finding, finding
from ..model.dynamics import regressor
from ..model.friction import FRICTION_TERMS, OF_POSITION
from ..model.robot import BaseParameters, ElasticRobot, INERTIAL, Robot
from ..regression.estimate import Estimate
from ..regression.least_squares import scaled_least_squares
from ..regression.observation_system import Rows
from ..signals.recording import Samples, STANDSTILL
from .data_quality import white_noise
from .trials import compare, folds_of, mass_diagonal_columns


class FittedModel(NamedTuple):
    """A robot, its base parameters, the systems of the fit, and the values (b,) that it gave."""

    robot: Robot
    base: BaseParameters
    systems: Sequence[Rows]
    value: Array


MAX_SAMPLES = 750  # that a check takes: enough for factors, in a fraction of a second
MIN_SAMPLES = 50  # of a joint; with fewer it is not checked
# Share of the variance that the URDF's masses must explain before a factor on them counts.
MIN_EXPLAINED = 0.5
MIN_GRAVITY_PART = 1e-4  # of the masses' power that no motor inertia or friction explains
LIMIT_MARGIN = 0.5  # beyond a limit [rad or m]: more than calibration, less than degrees for rad


def efforts_over_prior(robot: Robot, samples: Samples) -> Array:
    """Return measured efforts (n,) over what the URDF's masses make, 0 where that is not shown."""
    factors = np.zeros(robot.n)
    if robot.assumed_inertials:
        return factors
    moving = np.flatnonzero(samples.moving.any(axis=1))
    rows = moving[:: max(1, moving.size // MAX_SAMPLES)]
    W = regressor(robot, samples.q[rows], samples.dq[rows], samples.ddq[rows])
    masses = [k for k, p in enumerate(robot.parameters) if p.symbol in INERTIAL]
    weights = W[:, :, masses] @ robot.prior[masses]
    for j in range(robot.n):
        used = samples.moving[rows, j]
        if used.sum() < MIN_SAMPLES:
            continue
        tau, dq, ddq = (x[rows, j][used] for x in (samples.tau, samples.dq, samples.ddq))
        pair = np.column_stack([weights[j][used], tau])
        others = np.column_stack([ddq, dq, np.sign(dq), np.ones(dq.size)])
        predicted, measured = (pair - others @ np.linalg.lstsq(others, pair, rcond=None)[0]).T
        power, common = float(predicted @ predicted), float(predicted @ measured)
        total = power * float(measured @ measured)
        explained = total > 0.0 and common**2 > MIN_EXPLAINED * total
        if explained and power > MIN_GRAVITY_PART * float(np.sum(pair[:, 0] ** 2)):
            factors[j] = common / power
    return factors


def limit_warnings(robot: Robot, q: Array, margin: float = LIMIT_MARGIN) -> list[Finding]:
    """Name the joints whose positions (N, n) are far outside of their limits."""
    low, high, lower, upper = q.min(axis=0), q.max(axis=0), robot.limits.lower, robot.limits.upper
    with np.errstate(invalid='ignore'):  # of joints without limits
        turns = np.round((low + high - lower - upper) / (4.0 * np.pi))
    whole = np.isfinite(turns) & ~robot.prismatic
    shift = np.where(whole, 2.0 * np.pi * turns, 0.0)  # to the same pose, near the limits' middle
    rows = zip(robot.joints, low - shift, high - shift, lower, upper, strict=True)
    return [
        finding('beyond_limits', [joint], low=least, high=most, lower=lower, upper=upper)
        for joint, least, most, lower, upper in rows
        if least < lower - margin or most > upper + margin
    ]


# Effort that all but a few samples stay below, and by how much it may exceed the URDF's limit:
# drives peak at two to three times what they hold.
PERCENTILE, MAX_LIMIT_RATIO = 99.0, 3.0
SMALL = 0.03  # least effort over the largest one of what comes down to zero, and not below it
# By how much the squared error has to fall where signs are added; steps in which these settle;
# the least effort over the largest one, above which an offset is all that does not change.
UNSIGNED, SIGN_STEPS, MOST_STEADY = 2.0, 5, 0.8
# An inertia is absurd when it is, for sure, so many times the largest of the URDF's robot (rotors
# behind gears do not exceed links by more), or so small a share of that of the joint's own links.
MAX_INERTIA_RATIO, MIN_INERTIA_SHARE, SURE = 20.0, 0.1, 6.0
MAX_RESIDUAL = 0.1  # of a joint whose inertia may be taken at its word where it is negative
POSTURES = 20  # at which inertias are compared


def magnitude_warnings(
    robot: Robot, base: BaseParameters, samples: Samples, rows: Rows | None
) -> list[Finding]:
    """Name the joints where all efforts come down to zero and not below, or are magnitudes."""
    moving = np.flatnonzero(samples.moving.any(axis=0))
    least = np.percentile(samples.tau, 100.0 - PERCENTILE, axis=0)
    efforts = np.percentile(np.abs(samples.tau), PERCENTILE, axis=0)
    found = moving[least[moving] >= -SMALL * efforts[moving]]
    if len(moving) < 2 or len(found) < len(moving) or (least >= SMALL * efforts)[moving].any():
        # What friction keeps from zero, and one joint of several, has to show by a trial.
        prior = base.of(robot.prior)
        found = found[least[found] < MOST_STEADY * efforts[found]]
        shown = [bool(rows and _is_magnitude(rows, j, prior)) for j in found.tolist()]
        found = found[shown]
    return [finding('effort_magnitudes', [robot.joints[j] for j in found])] if len(found) else []


def _is_magnitude(rows: Rows, joint: int, prior: Array) -> bool:
    """Tell whether |W χ| fits the efforts of a joint better than W χ, on rows not fitted."""
    assert rows.dq is not None
    used = rows.valid[joint]
    if not used.any():
        return False
    W, Y, dq = rows.W[joint][used], rows.Y[joint][used], rows.dq[used, joint]
    parts = np.array([part[used] for part in folds_of(rows)])

    def fitted(others: Mask, target: Array) -> Array:
        return scaled_least_squares(W[others], target[others], PREDICTED)

    squares = []
    for part in parts:
        # The signs of friction or of the weight, then those that the fit itself gives.
        tried = [np.abs(Y - W @ fitted(~part, Y))]
        for start in (dq, W @ prior):
            signs = np.sign(start)
            for _ in range(SIGN_STEPS):
                predicted = W @ fitted(~part, signs * Y)
                signs = np.sign(predicted)
            tried.append(np.abs(Y - np.abs(predicted)))
        kept = [float(each[~part] @ each[~part]) for each in tried]
        own = tried[1 + int(np.argmin(kept[1:]))]
        squares.append([np.sum(each[part] ** 2) for each in (tried[0], own, Y)])
    before, after, powers = np.array(squares).T[:, :, None]
    return compare(before, after, powers, np.ones(1)).is_better(UNSIGNED)


def scale_warnings(
    robot: Robot, base: BaseParameters, samples: Samples, estimate: Estimate
) -> list[Finding]:
    """Name the joints with efforts of an implausible size."""
    found = list[Finding]()
    efforts = np.percentile(np.abs(samples.tau), PERCENTILE, axis=0)
    limit = robot.limits.effort[: len(efforts)]
    over = np.flatnonzero((limit > 0.0) & (efforts > MAX_LIMIT_RATIO * limit))
    if over.size:
        values = {'efforts': efforts[over], 'limits': limit[over]}
        found.append(finding('beyond_effort_limit', [robot.joints[j] for j in over], **values))
    if robot.assumed_inertials:
        return found
    rows = np.linspace(0, len(samples.time) - 1, POSTURES).astype(int)
    unit = mass_diagonal_columns(robot, samples.q[rows])
    prior = np.median(unit @ robot.of_links(robot.prior), axis=1)
    mean = unit[:, :, base.columns].mean(axis=1)
    shown = mean @ estimate.value
    error = SURE * np.sqrt(np.einsum('jb,bc,jc->j', mean, estimate.noise_covariance, mean))
    alike = robot.prismatic == robot.prismatic[:, None]
    largest = np.max(np.where(alike, prior, -np.inf), axis=1)
    high = (largest > 0.0) & (shown - error > MAX_INERTIA_RATIO * largest)
    # A spring makes an inertia look negative; where much is left, what is left tells of it.
    low = (shown > 0.0) | (estimate.residual < MAX_RESIDUAL)
    low &= (shown + error < MIN_INERTIA_SHARE * prior) & samples.moving.any(axis=0)
    high[over] = low[over] = False
    odd = np.flatnonzero(high | low)
    if odd.size:
        values = {'inertias': shown[odd], 'expected': np.where(high, largest, prior)[odd]}
        found.append(finding('implausible_inertia', [robot.joints[j] for j in odd], **values))
    return found


# Width of the crowd in standard deviations of the noise, and at least over the extreme.
NOISE_WIDTH, LEAST_WIDTH = 6.0, 0.02
# Share of the samples in the crowd, and how many times more than in the band below it.
MIN_SHARE, MIN_RATIO = 0.02, 1.5
# Where efforts are cut off, what the model expects goes beyond them and varies, unlike at a
# plateau of friction: by so much of the joint's effort on average, by so many times what it errs
# elsewhere, and by so much more than measured efforts there do.
MIN_EXCESS, MIN_OVER_USUAL, MIN_SPREAD_RATIO = 0.03, 2.0, 4.0
# Rows of the crowd, after decimation, and others over the number of columns.
MIN_ROWS, MIN_OTHERS = 5, 2


def saturation_warnings(robot: Robot, samples: Samples, system: Rows) -> list[Finding]:
    """Name the joints whose efforts are cut off near an extreme."""
    found, keep = list[Finding](), max(1, samples.decimation)
    if len(samples.time[::keep]) != system.Y.shape[1]:
        return found
    moving = samples.moving[::keep] & system.valid.T
    for j, joint in enumerate(robot.joints):
        efforts = samples.tau[:, j]
        crowds = {sign: _crowd(sign * efforts) for sign in (1.0, -1.0)}
        rows = {sign: crowd[::keep] & moving[:, j] for sign, crowd in crowds.items()}
        # The filter spreads what is cut off over the rows beside it.
        cut = np.convolve(rows[1.0] | rows[-1.0], np.ones(3), 'same') > 0.5
        share = 0.0
        for sign, own in rows.items():
            Y, W = sign * system.Y[j], system.W[j]
            # Where the other end may be cut off as well, fewer rows are left: these must be sure.
            sets = [(own, 0.0), (cut, SURE)] if rows[-sign].any() else [(own, 0.0)]
            if any(_goes_beyond(Y, W, own, moving[:, j] & ~away, sure) for away, sure in sets):
                share += float(crowds[sign].mean())
        if share:
            limit = float(np.percentile(np.abs(efforts), 99.0))
            found.append(finding('effort_saturation', [joint], limit=limit, share=share))
    return found


def _crowd(effort: Array) -> Mask:
    """Return which efforts (N,) crowd at the upper end, none if they do not."""
    noise = float(np.median(np.abs(np.diff(effort, n=2)))) / (0.6745 * np.sqrt(6.0))
    top = float(np.percentile(effort, 99.5))
    width = max(NOISE_WIDTH * noise, LEAST_WIDTH * top)
    crowd = effort > top - width
    below = (effort > top - 2.0 * width) & ~crowd
    share = float(crowd.mean())
    crowded = share >= MIN_SHARE and share >= MIN_RATIO * float(below.mean())
    return crowd if crowded and top > 2.0 * width else np.zeros_like(crowd)


def _goes_beyond(measured: Array, W: Array, rows: Mask, others: Mask, sure: float) -> bool:
    """Tell whether a fit of other rows expects more in these than measured, by so many σ."""
    if rows.sum() < MIN_ROWS or others.sum() < MIN_OTHERS * len(W[0]):
        return False
    # The joint alone, without these rows: what is wrong with others does not count here.
    expected = W @ scaled_least_squares(W[others], measured[others], PREDICTED)
    excess = float(np.mean(expected[rows] - measured[rows]))
    usual = rms(expected[others] - measured[others])
    if excess < max(MIN_EXCESS * rms(measured), MIN_OVER_USUAL * usual):
        return False
    if float(np.std(expected[rows])) <= MIN_SPREAD_RATIO * float(np.std(measured[rows])):
        return False
    # σ of the mean of what is expected.
    mean = W[rows].mean(axis=0)
    leverage = np.linalg.norm(np.linalg.lstsq(W[others].T, mean, rcond=None)[0])
    return excess >= sure * usual * float(leverage)


# Bins of one direction by speed, least rows of one: presliding gives energy back, means brake.
BINS, LEAST_ROWS = 20, 20
# A mean torque that pushes counts if it is so many σ below zero, and so large a share of the
# joint's effort: a joint without friction has either sign by chance.
SIGNIFICANT, LEAST_SHARE = 3.0, 1e-3
# Friction but for what position determines, and the offset: neither takes energy in the mean.
FRICTION = (
    frozenset(s for kind in FRICTION_TERMS.values() for s in kind.symbols) - OF_POSITION - {'off'}
)


def dissipation_warnings(fitted: FittedModel, covariance: Array) -> list[Finding]:
    """Name the joints whose friction gives energy, and where, of a covariance (b, b)."""
    (robot, base, systems, value), found = fitted, list[Finding]()
    systems = [s for s in systems if s.dq is not None and s.W.shape[2] == len(base.columns)]
    parameters = [robot.parameters[k] for k in base.columns]
    for j, joint in enumerate(robot.joints):
        own = np.array([p.joint == joint and p.symbol in FRICTION for p in parameters])
        if not systems or not own.any() or len(value) != len(own):
            continue
        W = np.concatenate([s.W[j][s.valid[j]][:, own] for s in systems])
        dq = np.concatenate([np.asarray(s.dq)[s.valid[j], j] for s in systems])
        least = LEAST_SHARE * rms(np.concatenate([s.rows(j)[1] for s in systems]))
        ranges = []
        for sign in (-1.0, 1.0):
            rows = np.flatnonzero(sign * dq >= STANDSTILL)
            order = rows[np.argsort(np.abs(dq[rows]))]
            count = min(BINS, len(order) // LEAST_ROWS)
            for part in np.array_split(order, count) if count else []:
                mean = sign * W[part].mean(axis=0)
                torque, variance = mean @ value[own], mean @ covariance[np.ix_(own, own)] @ mean
                sigma = np.sqrt(max(variance, 0.0))
                if torque < -max(SIGNIFICANT * sigma, least):
                    ranges.append((torque, sigma, dq[part].min(), dq[part].max()))
        if ranges:
            length, unit = robot.units[joint]
            torque, sigma, start, stop = min(ranges, key=lambda each: each[0])
            low, high = min(each[2] for each in ranges), max(each[3] for each in ranges)
            speeds = {'low': low, 'high': high, 'start': start, 'stop': stop, 'length': length}
            push = {'torque': -torque, 'sigma': sigma, 'unit': unit}
            found.append(finding('no_dissipation', [joint], **speeds, **push))
    return found


# Share of a joint's effort that the model leaves, and that is white noise: no measured effort has
# less. Steps of current sensors of 12 bits are 0.06 % of a typical effort, friction of gears
# changes by 1 %; EMPS, TX-40 and UR10 leave 2.6 % or more, robots that are simulated with the
# noise of `config/` 0.19 % or more (UR10), the same efforts without noise 0.01 to 0.5 %. Filters
# take noise from what is left, not from what is measured.
LEAST = 1e-3


def exact_fit_warnings(robot: Robot, samples: Samples, estimate: Estimate) -> list[Finding]:
    """Name the joints whose efforts are explained too well to be measured."""
    if isinstance(robot, ElasticRobot):
        return []
    size = np.sqrt(np.mean(samples.tau**2, axis=0))
    exact = (estimate.residual < LEAST) & (white_noise(samples.tau) < LEAST * size)
    found = np.flatnonzero(exact & samples.moving.any(axis=0))
    values = {'residuals': estimate.residual[found], 'least': LEAST}
    return [finding('exact_fit', [robot.joints[j] for j in found], **values)] if found.size else []
