"""What is wrong with efforts, zeros and names of joints: what leaves less when put right."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, column_sizes, Mask
from ..findings import Finding, finding
from ..model import regressor, Robot
from ..model.robot import BaseParameters, INERTIAL
from ..regression.observation_system import decimate, Rows
from ..signals.recording import EFFORT_UNITS, Samples
from .plausibility import efforts_over_prior
from .trials import compare, Efforts, folds_of, possible_robots, refine, Trial, Trials

# Another direction must leave so much less than the configured one does, and than springs do:
# where all axes are upright, a tilt of a thousandth and huge masses look like a spring.
LEFT, LEFT_BY_SPRINGS = 0.6, 0.9
# Directions that leave at most so many times what the best one leaves may be right as well: an
# axis of the base, as few robots stand on a slope, and the opposite one, with masses below zero.
AS_GOOD = 1.1
# Correlation of the efforts with the weight of the URDF's masses that is against gravity.
AGAINST = -0.7
AXES = np.kron(np.eye(3), [[1.0], [-1.0]])
GRAVITATION = 9.81  # [m/s²]
WEIGHTS = ('MX', 'MY', 'MZ', 'M')  # what gravity acts on
ACCURACY = 1e-3  # of the direction [rad]
STARTS = 3  # axes from which the direction is searched: there is more than one minimum


class _Fit:
    """
    The efforts as a function of gravity g, τ = (W_0 + Σ g_k G_k) χ.

    Rows are weighted by joint and compressed to the triangular factor of [W_0 G_1 G_2 G_3 S τ]
    with a spring's columns S of each joint, which weight along a horizontal axis resembles.
    """

    def __init__(self, robot: Robot, samples: Samples):
        moving = np.flatnonzero(samples.moving.any(axis=1))
        rows = moving[:: max(1, moving.size // GRAVITY_ROWS)]
        q, dq, ddq = samples.q[rows], samples.dq[rows], samples.ddq[rows]
        tau, used = samples.tau[rows].T, samples.moving[rows].T
        weight = used / np.maximum(np.sqrt(np.mean(tau**2, axis=1, keepdims=True)), 1e-300)
        model = robot.model.copy()
        turned = dataclasses.replace(robot, model=model)

        def weighted(gravity: Array) -> Array:
            model.gravity.linear = gravity
            W = regressor(turned, q, dq, ddq) * weight[:, :, None]
            return np.asarray(W.reshape(-1, robot.p))

        self._places = [k for k, p in enumerate(robot.parameters) if p.symbol in WEIGHTS]
        none, still = weighted(np.zeros(3))[:, self._places], weighted(robot.gravity)
        still[:, self._places] = none
        each = [weighted(axis)[:, self._places] - none for axis in np.eye(3)]
        columns = (weight[:, :, None] * _spring_columns(q)).reshape(-1, 2 * robot.n)
        table = np.hstack([still, *each, columns, (weight * tau).reshape(-1, 1)])
        edges = robot.p + len(self._places) * np.arange(4)
        split = np.split(np.linalg.qr(table, mode='r'), [*edges, -1], axis=1)
        self._still, *self._pulls, self._springs, target = split
        self._target, self._masses = target[:, 0], robot.prior[self._places]

    def unexplained(self, gravity: Array, springs: bool = False) -> float:
        """Return what the best parameters leave with this gravity [m/s²]."""
        W = self._still.copy()
        W[:, self._places] += np.tensordot(gravity, self._pulls, 1)
        return self._left(np.hstack([W, self._springs]) if springs else W)

    @property
    def least(self) -> float:
        """Return what is left at least, in whatever direction: each has parameters of its own."""
        return self._left(np.hstack([self._still, *self._pulls]))

    def agreement(self, gravity: Array) -> float:
        """Return the correlation of the efforts with the weight of the URDF's masses."""
        others = np.delete(self._still, self._places, axis=1)
        weight = np.tensordot(gravity, self._pulls, 1) @ self._masses
        pair = np.column_stack([weight, self._target])
        pair -= others @ np.linalg.lstsq(others, pair, rcond=1e-8)[0]
        size = float(np.prod(np.linalg.norm(pair, axis=0)))
        return float(pair[:, 0] @ pair[:, 1]) / max(size, 1e-300)

    def _left(self, W: Array) -> float:
        W = W / column_sizes(W)
        found = np.linalg.lstsq(W, self._target, rcond=1e-8)[0]
        return float(np.linalg.norm(self._target - W @ found))

    def refine(self, start: Array) -> Array:
        """Search the direction of gravity near one."""
        from scipy.optimize import minimize

        size = float(np.linalg.norm(start))
        sides = size * np.asarray(np.linalg.svd(start[None])[2])[1:]

        def turned(tilt: Array) -> Array:
            vector = start + tilt @ sides
            return np.asarray(size * vector / np.linalg.norm(vector))

        corners = [[0.0, 0.0], [0.3, 0.0], [0.0, 0.3]]
        options = {'xatol': ACCURACY, 'fatol': np.inf, 'initial_simplex': corners}

        def left(tilt: Array) -> float:
            return self.unexplained(turned(tilt))

        return turned(minimize(left, np.zeros(2), method='Nelder-Mead', options=options).x)


def _spring_columns(q: Array) -> Array:
    """Return the columns (n, N, 2 n) of a spring at each joint: its position and the square."""
    away = (q - q.mean(axis=0)).T
    own = np.eye(len(away))[:, None, :, None] * np.stack([away, away**2], axis=2)[:, :, None]
    return np.asarray(own.reshape(*away.shape, -1))


def _other_gravity(robot: Robot, samples: Samples, may_hang: bool) -> Array | None:
    """Return gravity (3,) in another direction that explains the efforts better."""
    fit, size = _Fit(robot, samples), float(np.linalg.norm(robot.gravity)) or GRAVITATION
    known = fit.unexplained(robot.gravity)
    springs = LEFT_BY_SPRINGS * fit.unexplained(robot.gravity, springs=True)
    limit = min(LEFT * known, springs)
    # Upside down, masses below zero explain them as well.
    if may_hang and fit.agreement(robot.gravity) < AGAINST and springs > limit:
        limit = AS_GOOD * known
    if fit.least > limit:
        return None
    # By masses above zero.
    axes = sorted(size * AXES, key=fit.unexplained)
    best = min(map(fit.refine, axes[:STARTS]), key=fit.unexplained)
    least = fit.unexplained(best)
    if fit.unexplained(axes[0]) <= AS_GOOD * least:
        best = axes[0]
    if fit.agreement(best) < 0.0 and fit.unexplained(-best) <= AS_GOOD * least:
        best = -best
    return None if fit.unexplained(best) > limit or np.allclose(best, robot.gravity) else best


# Names of findings.
SIGN, GAIN, SWAPPED = 'effort_sign', 'effort_gain', 'efforts_swapped'
SCALE, GRAVITY, DESCRIBED = 'effort_scale', 'gravity_direction', 'the masses of the URDF'
EFFORT_UNIT, COMPENSATED = 'effort_unit', 'gravity_compensated'
GEOMETRY = 'axis_reversed', 'other_zero', 'joints_exchanged', 'position_unit'
REVERSED, ZERO, EXCHANGED, POSITION_UNIT = GEOMETRY
TIME = 'time_scale'
# By how much the squared error has to fall. Signs and columns are either right or not; a gain may
# stand in for friction or geometry that the model lacks.
LEAST = {
    SIGN: 1.5, SWAPPED: 2.0, GAIN: 1.3, SCALE: 1.5, EFFORT_UNIT: 1.5, GRAVITY: 1.5,
    COMPENSATED: 1.5, REVERSED: 1.5, ZERO: 1.25, EXCHANGED: 1.5, POSITION_UNIT: 2.0, TIME: 1.25,
}  # fmt: skip
# Share by which the squared error of all joints together exceeds that of each alone, from which
# efforts contradict each other or robots that can exist; what is left otherwise has other causes.
CONTRADICTION = 0.15
MOST_ALONE = 0.3  # share of a joint's effort that it may leave alone, by its own rows
MIN_RESOLVED = 0.5  # share of the contradiction that remedies have to explain
# A gain that is nearer to 1 is what drives differ by; factors that are searched.
MIN_DEVIATION, FACTORS = 0.15, np.geomspace(1e-4, 1e4, 65)
MOST_REMEDIES = 4  # one upon the other
MOST_SIGNS = 8  # joints up to which all signs are tried together, and signs tried in full
SAME_UNIT = 0.02  # share of a unit within which a gain is it
MAX_APART = 0.3  # logarithm of a gain over the unit that all joints have: URDFs err by as much
MAX_SCALE = 4.0  # by which masses of a URDF may be off: units are off by more
# From where the zero of a joint is searched, and how far [rad or m].
RIGHT = -0.5 * np.pi, 0.5 * np.pi, np.pi
ZEROS, ZERO_STEP = (-0.3, 0.3, *RIGHT), 0.8
GRAVITY_ROWS, MODEL_ROWS = 500, 1500  # that tell the direction of gravity, and that judge it
LENGTHS = np.geomspace(1.0 / 16.0, 16.0, 17)  # of stamps over what they should be, that are tried
# What positions are multiplied by that were read in a wrong unit, of degrees and turns, of mm; how
# far joints go with the right one, and not with one that is too large [rad or m].
SIZES = {False: (np.pi / 180.0, 180.0 / np.pi, 2.0 * np.pi), True: (1e-3, 1e3)}
SCALES = np.geomspace(0.25, 4.0, 7)  # of a joint's positions that have no unit of these
RANGES = {False: (0.1, 4.0 * np.pi), True: (0.01, 3.0)}


class Cause(NamedTuple):
    """What is wrong, by the name of its finding, what its remedy gained (`Trial`), the finding."""

    name: str
    gain: float
    finding: Finding


def _cause(
    name: str, robot: Robot, joints: Iterable[int], trial: Trial, masses: str = 'any masses', /,
    **values: Any,
) -> Cause:  # fmt: skip
    """Return a cause at some joints, with what its remedy left when it was tried."""
    tried = trial.values(robot.joints[trial.joint], masses)
    found = finding(name, [robot.joints[j] for j in joints], **values, **tried)
    return Cause(name, trial.gain, found)


def _gains(robot: Robot, factors: Array) -> tuple[float, ...]:
    """Return the drive gains with which efforts are multiplied by factors (n,), where not 1."""
    return tuple(dict.fromkeys((robot.drive_gain * factors)[factors != 1.0].tolist()))


def _only(n: int, joint: int, factor: float) -> Array:
    """Return factors (n,) of which one joint's is not 1."""
    return np.where(np.arange(n) == joint, factor, 1.0)


def find_causes(robot: Robot, base: BaseParameters, samples: Samples, rows: Rows) -> list[Cause]:
    """Try what may be wrong with the efforts, and return what is."""
    factors = efforts_over_prior(robot, samples)
    # Efforts that are usually less than the masses need are currents, or hold no gravity.
    known = factors[factors > 0.0]
    currents = bool(known.size and np.median(known) < 1.0 / MAX_SCALE)
    trials = Trials(rows, possible_robots(robot, base, rows))
    found, efforts = list[Cause](), Efforts.as_recorded(robot.n)
    contradict = trials.contradiction(efforts) > CONTRADICTION
    if contradict:
        found, efforts = _effort_remedies(robot, trials)
    # Wrong units of positions leave much of each joint alone as well.
    wrong = contradict or trials.alone > MOST_ALONE
    # Where only samples near the ends move, the others show neither gravity nor geometry.
    if samples.moving.any() and (wrong or currents or min(factors) < 0.0):
        others = _gravity(robot, samples, found, efforts)
        others += _times(robot, samples, efforts) if wrong else []
        # An arm that hangs is as likely as a zero that is off by half a turn, and has one remedy.
        least = max((each.gain for each in others), default=0.0) + np.log(AS_GOOD)
        geometry = _geometry(robot, samples, trials.moving, efforts) if wrong else []
        others += [each for each in geometry if each.gain > least]
        if others:
            return [max(others, key=lambda each: each.gain)]
    if all(cause.name == GAIN for cause in found):
        # Of all joints alike, or of a joint alone, only the description tells a unit.
        unit = _by_description(robot, samples, factors, currents, trials)
        told = {joint for cause in found for joint in cause.finding.joints}
        if unit and not told.issuperset(unit[0].finding.joints):
            return unit
    return found


def _effort_remedies(robot: Robot, trials: Trials) -> tuple[list[Cause], Efforts]:
    """Put efforts right one remedy after the other, as long as one helps; return these as well."""
    states, found = [Efforts.as_recorded(robot.n)], list[Cause]()
    before = trials.errors(states[0])
    for _ in range(MOST_REMEDIES):
        state = states[-1]
        tried = [
            (trials.compare(before, errors), name, after, errors)
            for name, after in _candidates(trials, state)
            for errors in [trials.errors(after)]
        ]
        good = [each for each in tried if each[0].is_better(LEAST[each[1]])]
        if not good:
            break
        trial, name, after, before = max(good, key=lambda each: each[0].gain)
        found.append(_named(robot, trials, state, name, after, trial, before))
        states.append(after)
    # The last remedies resolve their share of what the first ones leave, as they would have to in
    # a log that these had put right: a wrong gain stood in for geometry after a right sign.
    left = [trials.contradiction(state) for state in states]
    unresolved = (left[-1] >= (1.0 - MIN_RESOLVED) * x or x <= CONTRADICTION for x in left)
    count = next(k for k, last in enumerate(unresolved) if last)
    return found[:count], states[count]


def _candidates(trials: Trials, state: Efforts) -> Iterator[tuple[str, Efforts]]:
    """Yield the best change of signs, of two columns and of one gain."""
    least = trials.fitted(state, possible=True)
    signs = _best_signs(trials, state)
    if trials.fitted(signs, possible=True) < least:
        yield SIGN, signs
    pairs = [state.swapped(*pair) for pair in combinations(trials.moving, 2)]
    if pairs:
        yield SWAPPED, min(pairs, key=trials.fitted)
        error, joint, factor = min(_gain(trials, state, j) for j in trials.moving)
        # One beyond those that are searched leaves the joint without efforts.
        deviates = np.log1p(MIN_DEVIATION) < abs(np.log(factor)) < np.log(FACTORS[-1])
        if error < least and deviates:
            yield GAIN, state.scaled(_only(trials.n, joint, factor))


def _best_signs(trials: Trials, state: Efforts) -> Efforts:
    """Return the efforts with the signs that fit robots that can exist best, of likely ones."""
    n = trials.n
    each, every = (tuple(_only(n, j, -1.0).tolist()) for j in range(n)), (-1.0,) * n
    patterns = [*product((1.0, -1.0), repeat=n)][1:] if n <= MOST_SIGNS else [*each, every]

    @cache
    def left(signs: tuple[float, ...]) -> float:
        return trials.fitted(state.scaled(np.array(signs)))

    # All signs turned round leave as much: without limits one of both is enough.
    either = {p: p if p[0] > 0.0 else tuple(-x for x in p) for p in patterns}
    patterns.sort(key=lambda p: (round(np.log(left(either[p])), 2), p.count(-1.0)))
    turned = [state.scaled(np.array(p)) for p in patterns[: 2 * MOST_SIGNS]]
    best = min(turned, key=lambda efforts: trials.fitted(efforts, possible=True))
    changed = np.flatnonzero(best.factors != state.factors)
    if set(trials.moving).issubset(changed.tolist()):
        return best  # one sense of all efforts is likelier than that of some
    # Of some joints, those whose sign these data do not show keep theirs.
    for j in changed.tolist():
        other = best.scaled(_only(n, j, -1.0))
        if not trials.compare(trials.errors(other), trials.errors(best)).is_better(1.0):
            best = other
    return best


def _gain(trials: Trials, state: Efforts, joint: int) -> tuple[float, int, float]:
    """Return what the best gain of a joint leaves, the joint, and the gain."""

    def left(log: float) -> float:
        return trials.fitted(state.scaled(_only(trials.n, joint, float(np.exp(log)))))

    grid = np.log(FACTORS)
    log, least = refine(left, min(grid, key=left), grid[1] - grid[0], 1e-3)
    factor = float(np.exp(log))
    for size in EFFORT_UNITS.values():  # the remedy is the unit, not what noise makes of it
        if abs(factor / size - 1.0) < SAME_UNIT:
            return left(float(np.log(size))), joint, size
    return least, joint, factor


def _named(
    robot: Robot, trials: Trials, state: Efforts, name: str, after: Efforts, trial: Trial,
    errors: Array,
) -> Cause:  # fmt: skip
    """Name the joints of a remedy, and what explains as much."""
    ratio = after.factors / state.factors
    changed = np.flatnonzero((ratio != 1.0) | (state.columns != after.columns))
    values: dict[str, Any] = {} if name == SWAPPED else {'gains': _gains(robot, ratio)}
    if name != GAIN:
        return _cause(name, robot, changed, trial, **values)
    joint, factor = changed[0], float(ratio[changed[0]])
    values['factor'] = 1.0 / factor
    # Another joint and the factor on its effort that explains as much.
    for other in (j for j in trials.moving if j != joint):
        gain = _gain(trials, state, other)[2]
        same = trials.errors(state.scaled(_only(robot.n, other, gain)))
        if not trials.compare(same, errors).is_better(1.0):
            values |= {'other': robot.joints[other], 'other_gain': gain}
            break
    else:
        units = (k for k, x in EFFORT_UNITS.items() if abs(factor / x - 1.0) < SAME_UNIT)
        values['unit'] = next(units, None)
    return _cause(name, robot, changed, trial, **values)


def _gravity(robot: Robot, samples: Samples, found: list[Cause], efforts: Efforts) -> list[Cause]:
    """Try no gravity, and another direction of it, where one explains more than the `efforts`."""

    def tried(name: str, gravity: Array) -> list[Cause]:
        other = dataclasses.replace(robot, model=robot.model.copy())
        other.model.gravity.linear = gravity
        direction = [round(x, 6) + 0.0 for x in gravity.tolist()]
        values = {'direction': direction} if name == GRAVITY else {}
        here, there = (Trials(_sample_rows(each, samples)) for each in (robot, other))
        trial, masses = here.compare(here.recorded, there.recorded), 'any masses'
        if trial.is_better(LEAST[name]):
            better = here.compare(here.errors(efforts), there.recorded).is_better(1.0)
        elif name == COMPENSATED:  # which needs no URDF's masses to show
            better = False
        else:
            drive, turned = (Trials(_drive_rows(each, samples)) for each in (robot, other))
            trial = compare(drive.recorded, turned.recorded, here.powers, drive.sigma)
            better = trial.gain >= max((each.gain for each in found), default=0.0)
            better, masses = better and trial.is_better(LEAST[name]), DESCRIBED
        return [_cause(name, robot, (), trial, masses, **values)] if better else []

    # Where none seemed the best, it may have another direction.
    remedies = tried(COMPENSATED, np.zeros(3)) if robot.gravity.any() else []
    if not robot.assumed_inertials:
        may_hang = not any(cause.name == SIGN for cause in found)
        direction = _other_gravity(robot, samples, may_hang)
        remedies += [] if direction is None else tried(GRAVITY, direction)
    return remedies


def _times(robot: Robot, samples: Samples, efforts: Efforts) -> list[Cause]:
    """
    Try stamps that are too far apart, or too close, where that explains more than the `efforts`.

    With stamps k times as long, accelerations are 1/k² of what they were: the same efforts are
    those of bodies k² times as heavy, on which gravity is 1/k² as strong.
    """
    if not robot.gravity.any():
        return []
    floating = dataclasses.replace(robot, model=robot.model.copy())
    floating.model.gravity.linear = np.zeros(3)
    same = Efforts.as_recorded(robot.n)

    def reader(most: int) -> tuple[Rows, Callable[[float], Trials]]:
        """Return not many more rows than `most`, and what gives their trials by the length."""
        rows, none = (_sample_rows(each, samples, most) for each in (robot, floating))
        sigma, parts = Trials(rows).sigma, folds_of(rows)

        def trials(length: float) -> Trials:
            W = none.W + (rows.W - none.W) / length**2
            return Trials(dataclasses.replace(rows, W=W), parts=parts, sigma=sigma)

        return rows, trials

    _, few = reader(GRAVITY_ROWS)

    def left(log: float) -> float:
        return few(np.exp(log)).fitted(same)

    grid = np.log(LENGTHS)
    best = min(grid, key=left)
    if best in grid[[0, len(grid) // 2, -1]]:
        return []
    length = float(np.exp(refine(left, best, grid[1] - grid[0], 1e-3)[0]))
    rows, trials = reader(MODEL_ROWS)
    recorded, parts = Trials(rows), folds_of(rows)
    errors = trials(length).recorded
    trial = recorded.compare(recorded.recorded, errors)
    # Where gravity is hidden or huge as well, it is what does not fit; a spring resembles it.
    others = [trials(end).recorded for end in LENGTHS[[0, -1]]]
    others += [recorded.errors(efforts), _with_springs(rows, parts)]
    if not trial.is_better(LEAST[TIME]) or not all(
        recorded.compare(other, errors).is_better(1.0) for other in others
    ):
        return []
    values = {'length': length, 'share': length**-2.0, 'rate': samples.rate * length}
    return [_cause(TIME, robot, (), trial, **values)]


class _Reading(NamedTuple):
    """Another way to read a recording: its motion, and the efforts of its joints."""

    name: str  # of the finding
    joints: tuple[int, ...]
    samples: Samples
    efforts: Efforts
    values: dict[str, Any]


def _geometry(
    robot: Robot, samples: Samples, moving: Sequence[int], efforts: Efforts
) -> list[Cause]:
    """Try other senses, zeros and columns of joints that explain more than the `efforts` do."""
    # Once for all readings.
    samples = samples.thinned(keep := samples.decimation, decimate(samples.tau.T, keep).T)
    rows = _sample_rows(robot, samples)
    assert rows.q is not None
    recorded, parts = Trials(rows), folds_of(rows)
    limit = _left(robot, samples, recorded.sigma)
    tried = list[tuple[Trial, _Reading, Array]]()
    for reading in _readings(robot, samples, moving, recorded.sigma) if len(moving) > 1 else ():
        few = _left(robot, reading.samples, recorded.sigma, reading.efforts)
        if LEAST[reading.name] * few > limit:
            continue
        after = Trials(_sample_rows(robot, reading.samples), parts=parts)
        errors = after.errors(reading.efforts)
        tried.append((recorded.compare(recorded.recorded, errors), reading, errors))
    good = [each for each in tried if each[0].is_better(LEAST[each[1].name])]
    if not good:
        return []
    trial, reading, errors = max(good, key=lambda each: each[0].gain)
    while reading.name in (ZERO, EXCHANGED):  # zeros and order of a table are off together
        further = list[tuple[Trial, _Reading, Array]]()
        for more in _further(robot, samples, reading, moving, recorded.sigma):
            left = Trials(_sample_rows(robot, more.samples), parts=parts).errors(more.efforts)
            if recorded.compare(errors, left).is_better(LEAST[more.name]):
                further.append((recorded.compare(recorded.recorded, left), more, left))
        if not further:
            break
        trial, reading, errors = max(further, key=lambda each: each[0].gain)
    # A spring looks like weight on another axis.
    others = recorded.errors(efforts), _with_springs(rows, parts)
    if not all(recorded.compare(other, errors).is_better(1.0) for other in others):
        return []
    values = dict(reading.values)
    for _, other, left in good:
        if other.name == reading.name and other.joints != reading.joints:
            if not recorded.compare(left, errors).is_better(1.0):
                values['instead'] = ' and '.join(robot.joints[j] for j in other.joints)
    return [_cause(reading.name, robot, reading.joints, trial, **values)]


def _with_springs(rows: Rows, parts: Mask) -> Array:
    """Return the squared errors (K, n) that springs at all joints leave on parts (K, N)."""
    assert rows.q is not None
    W = np.concatenate([rows.W, _spring_columns(rows.q)], axis=2)
    return Trials(dataclasses.replace(rows, W=W), parts=parts).recorded


def _left(robot: Robot, samples: Samples, sigma: Array, efforts: Efforts | None = None) -> float:
    """Return what a fit to a few samples leaves, in units of σ (n,)."""
    trials = Trials(_sample_rows(robot, samples, GRAVITY_ROWS), sigma=sigma)
    return trials.fitted(efforts or Efforts.as_recorded(robot.n))


def _readings(
    robot: Robot, samples: Samples, moving: Sequence[int], sigma: Array
) -> Iterator[_Reading]:
    """Yield joints the other way round, in other units, from other zeros, and exchanged."""
    same, span = Efforts.as_recorded(robot.n), np.ptp(samples.q, axis=0)
    others = dict[float, list[int]]()
    for j in moving:
        least, most = RANGES[bool(robot.prismatic[j])]
        sizes = (*SIZES[bool(robot.prismatic[j])], _size(robot, samples, j, sigma))
        for size in dict.fromkeys(sizes):
            right = SCALES[0] < size < SCALES[-1] or size > 1.0 or span[j] > most
            if size != 1.0 and least < size * span[j] < most and right:
                others.setdefault(size, []).append(j)
    for size, joints in others.items():
        for chosen in {(j,) for j in joints} | {tuple(joints)}:
            factors = np.where(np.isin(np.arange(robot.n), chosen), size, 1.0)
            scaled = _read_as(same.scaled(factors), samples)
            yield _Reading(POSITION_UNIT, chosen, scaled, same, {'size': size})
    for j in moving:
        both = same.scaled(_only(robot.n, j, -1.0))
        turned = _read_as(both, samples)
        # An effort whose sense is the URDF's has to be turned with the axis.
        for sense, taken in ((-1.0, same), (1.0, both)):
            gains = [sense * robot.drive_gain[j]]
            yield _Reading(REVERSED, (j,), turned, taken, {'gains': gains})
    for zeros in _more_zeros(robot, samples, {}, moving, sigma):
        yield _with_zeros(robot, samples, zeros)
    yield from _exchanged(robot, samples, same, moving)


def _further(
    robot: Robot, samples: Samples, reading: _Reading, moving: Sequence[int], sigma: Array
) -> Iterator[_Reading]:
    """Yield a reading with one zero or one exchange of joints more."""
    if reading.name == EXCHANGED:
        yield from _exchanged(robot, samples, reading.efforts, moving)
        return
    zeros = dict(zip(reading.joints, reading.values['shifts'], strict=True))
    for each in _more_zeros(robot, samples, zeros, moving, sigma):
        yield _right_angles(robot, samples, each, sigma)


def _exchanged(
    robot: Robot, samples: Samples, efforts: Efforts, moving: Sequence[int]
) -> Iterator[_Reading]:
    """Yield each two joints exchanged in an order of all columns, and the opposite order."""
    orders = [efforts.swapped(*pair) for pair in combinations(moving, 2)]
    for taken in (*orders, efforts._replace(columns=efforts.columns[::-1])):
        joints = np.flatnonzero(taken.columns != np.arange(robot.n))
        values = {'columns': [robot.joints[k] for k in taken.columns[joints]]}
        where = _read_as(taken, samples)
        yield _Reading(EXCHANGED, tuple(joints.tolist()), where, taken, values)


def _read_as(efforts: Efforts, samples: Samples) -> Samples:
    """Return samples whose motion has the columns and signs of these efforts."""
    q, dq, ddq = (
        x[:, efforts.columns] * efforts.factors for x in (samples.q, samples.dq, samples.ddq)
    )
    return dataclasses.replace(samples, q=q, dq=dq, ddq=ddq)


Zeros = Mapping[int, float]  # by joint, what has to be added to its positions [rad or m]


def _with_zeros(robot: Robot, samples: Samples, zeros: Zeros) -> _Reading:
    """Return samples read with other zeros."""
    shift, same = np.zeros(robot.n), Efforts.as_recorded(robot.n)
    shift[[*zeros]] = [*zeros.values()]
    units = [robot.units[robot.joints[j]][0] for j in zeros]
    values = {'shifts': tuple(zeros.values()), 'units': units}
    moved = dataclasses.replace(samples, q=samples.q + shift)
    return _Reading(ZERO, tuple(zeros), moved, same, values)


def _more_zeros(
    robot: Robot, samples: Samples, zeros: Zeros, joints: Iterable[int], sigma: Array
) -> Iterator[Zeros]:
    """Yield zeros and that of one joint more."""
    known = _with_zeros(robot, samples, zeros).samples
    for j in (joint for joint in joints if joint not in zeros):
        if shift := _zero(robot, known, j, sigma):
            yield {**zeros, j: shift}


def _right_angles(robot: Robot, samples: Samples, zeros: Zeros, sigma: Array) -> _Reading:
    """Return the reading with these zeros, or with right angles at the last two joints."""
    *_, i, j = zeros
    right = [{i: one, j: other} for one, other in product(RIGHT, repeat=2)]
    tried = [_with_zeros(robot, samples, {**zeros, **pair}) for pair in ({}, *right)]
    return min(tried, key=lambda each: _left(robot, each.samples, sigma))


def _zero(robot: Robot, samples: Samples, joint: int, sigma: Array) -> float:
    """Return what has to be added to the positions of a joint, 0 where nothing explains more."""

    def left(shift: float) -> float:
        return _left(robot, _with_zeros(robot, samples, {joint: shift}).samples, sigma)

    if (best := min((0.0, *ZEROS), key=left)) == 0.0:
        return best
    shift, least = refine(left, best, ZERO_STEP, 1e-2)
    # A right angle is likelier than one beside it.
    return best if abs(best) > 1.0 and left(best) < AS_GOOD * least else shift


def _size(robot: Robot, samples: Samples, joint: int, sigma: Array) -> float:
    """Return what positions of a joint have to be multiplied by, 1 where nothing explains more."""

    def left(log: float) -> float:
        factors = Efforts.as_recorded(robot.n).scaled(_only(robot.n, joint, float(np.exp(log))))
        return _left(robot, _read_as(factors, samples), sigma)

    grid = np.log(SCALES)
    best = min(grid, key=left)
    if best == grid[len(grid) // 2]:
        return 1.0
    size = float(np.exp(refine(left, best, grid[1] - grid[0], 1e-3)[0]))
    units = (x for x in SIZES[bool(robot.prismatic[joint])] if abs(size / x - 1.0) < SAME_UNIT)
    return next(units, size)


def _by_description(
    robot: Robot, samples: Samples, factors: Array, currents: bool, trials: Trials
) -> list[Cause]:
    """
    Try efforts that the URDF's masses explain, where these are far from doing so.

    What costs robots of any masses that can exist more than it gains by those of the URDF is none.
    """
    size = np.abs(factors)
    alike = (size >= 1.0 / MAX_SCALE) & (size <= MAX_SCALE)
    off = np.flatnonzero((factors < 0.0) | (factors > 0.0) & ~alike)
    if not off.size:
        return []
    gains = np.ones(robot.n)
    gains[off] = np.where(alike[off], -1.0, 1.0 / factors[off])
    name, values = SIGN if alike[off].all() else SCALE, dict[str, Any]()
    if currents and not robot.drive_gain_given:  # these are no torques of an arm at all
        name = EFFORT_UNIT
    if name != SIGN:
        values['factors'] = 1.0 / gains[off]
    if name == EFFORT_UNIT:
        values |= {'factor': 1.0 / np.median(gains[off]), 'unit': '?'}
    elif (gains > 0.0).all() and (unit := _unit_of_all(gains[off])):
        gains[:], values['unit'] = EFFORT_UNITS[unit], unit
    before, after = (Trials(_drive_rows(robot, samples, each)) for each in (None, gains))
    powers = Trials(_sample_rows(robot, samples)).powers  # of which residuals are shares
    trial = compare(before.recorded, after.recorded / gains**2, powers, before.sigma)
    scaled = trials.errors(Efforts.as_recorded(robot.n).scaled(gains))
    lost = trials.compare(scaled, trials.recorded).gain
    if lost > trial.gain or not trial.is_better(LEAST[name]):
        return []
    values['gains'] = _gains(robot, gains)
    return [_cause(name, robot, off, trial, DESCRIBED, **values)]


def _unit_of_all(gains: Array) -> str:
    """Return the only unit that gains of several joints are near, '' where there is none."""
    apart = {name: np.abs(np.log(gains / size)) for name, size in EFFORT_UNITS.items()}
    near = [name for name, each in apart.items() if each.min() < MAX_APART]
    sure = len(gains) > 1 and len(near) == 1 and apart[near[0]].max() < MAX_APART
    return near[0] if sure else ''


def _sample_rows(robot: Robot, samples: Samples, most: int = MODEL_ROWS) -> Rows:
    """Return rows of all standard parameters, not many more than `most`."""
    keep, count = samples.decimation, -(-len(samples.time) // samples.decimation)
    stride = 1 + count // most
    chosen = slice(None, None, keep * stride)
    q, dq, ddq = samples.q[chosen], samples.dq[chosen], samples.ddq[chosen]
    Y = decimate(samples.tau.T, keep)[:, ::stride]
    W = regressor(robot, q, dq, ddq)
    valid, time = samples.moving[chosen].T, samples.time[chosen]
    return Rows((), (), robot.joints, W, Y, valid, time, q=q, dq=dq)


def _drive_rows(robot: Robot, samples: Samples, gains: Array | None = None) -> Rows:
    """Return rows of the drives' parameters, without the torque of the URDF's masses."""
    rows = _sample_rows(robot, samples)
    masses = np.array([p.symbol in INERTIAL for p in robot.parameters])
    Y = rows.Y if gains is None else gains[:, None] * rows.Y
    Y = Y - rows.W[:, :, masses] @ robot.prior[masses]
    return dataclasses.replace(rows, W=rows.W[:, :, ~masses], Y=Y)
