"""What is wrong with efforts, motion, gravity and names of joints: what leaves less when tried."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, column_sizes
from ..findings import Finding, finding
from ..model import regressor, Robot
from ..model.robot import BaseParameters, INERTIAL
from ..regression.goodness_of_fit import rigid_and_offset
from ..regression.observation_system import decimate, Rows
from ..signals.recording import EFFORT_UNITS, Samples
from .plausibility import efforts_over_prior
from .trials import (
    compare,
    Efforts,
    folds_of,
    normal_solution,
    possible_robots,
    refine,
    Trial,
    Trials,
)

# Names of findings.
SIGN, GAIN, SWAPPED = 'effort_sign', 'effort_gain', 'efforts_swapped'
SCALE, EFFORT_UNIT, BACKWARDS = 'effort_scale', 'effort_unit', 'played_backwards'
GRAVITY, COMPENSATED, TIME = 'gravity_direction', 'gravity_compensated', 'time_scale'
GEOMETRY = 'axis_reversed', 'other_zero', 'joints_exchanged', 'position_unit'
REVERSED, ZERO, EXCHANGED, POSITION_UNIT = GEOMETRY
# By how much the squared error has to fall. Signs and columns are either right or not; a gain may
# stand in for friction or geometry that the model lacks.
LEAST = {
    SIGN: 1.5, SWAPPED: 2.0, GAIN: 1.3, SCALE: 1.5, EFFORT_UNIT: 1.5, GRAVITY: 1.5,
    COMPENSATED: 1.5, REVERSED: 1.5, ZERO: 1.25, EXCHANGED: 1.5, POSITION_UNIT: 2.0, TIME: 1.25,
    BACKWARDS: 1.5,
}  # fmt: skip
# Least residual of a log that was played backwards. Friction that a driver compensates too much
# drives joints, too, and is small.
LEAST_BACKWARDS = 0.15
DESCRIBED = 'the masses of the URDF'
# Share by which the squared error of all joints together exceeds that of each alone, from which
# efforts contradict each other or robots that can exist; what is left otherwise has other causes.
CONTRADICTION = 0.15
MOST_ALONE = 0.3  # share of a joint's effort that it may leave alone, by its own rows
# Remedies that leave at most so many times what the best one leaves may be right as well: an axis
# of the base, as few robots stand on a slope, a right angle, and what comes first in a list.
AS_GOOD = 1.1
MAX_SCALE = 4.0  # by which masses of a URDF may be off: units are off by more
MODEL_ROWS = 1500  # rows, not many more, by which gravity and geometry are judged


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


def find_causes(robot: Robot, base: BaseParameters, samples: Samples, rows: Rows) -> list[Cause]:
    """Try what may be wrong with the efforts, and return what is."""
    factors = efforts_over_prior(robot, samples)
    # Efforts that are usually less than the masses need are currents, or hold no gravity.
    known = factors[factors > 0.0]
    currents = bool(known.size and np.median(known) < 1.0 / MAX_SCALE)
    possible = possible_robots(robot, base, rows)
    trials = Trials(rows, possible)
    found, efforts = list[Cause](), Efforts.as_recorded(robot.n)
    contradict = trials.contradiction(efforts) > CONTRADICTION
    if contradict:
        found, efforts = _effort_remedies(robot, trials)
        # In the opposite order of rows, velocities alone have the opposite sign, and friction has.
        friction = ~np.logical_or(*rigid_and_offset(robot, base.columns))
        turned = dataclasses.replace(rows, W=np.where(friction, -rows.W, rows.W))
        trial = trials.compare(trials.recorded, Trials(turned, possible).recorded)
        first = all(trial.gain > each.gain for each in found)
        if trial.before > LEAST_BACKWARDS and first and trial.is_better(LEAST[BACKWARDS]):
            return [_cause(BACKWARDS, robot, (), trial)]
    # Wrong units of positions leave much of each joint alone as well.
    wrong = contradict or trials.alone > MOST_ALONE
    # Where only samples near the ends move, the others show neither gravity nor geometry.
    if samples.moving.any() and (wrong or currents or min(factors) < 0.0):
        search = _ReadingSearch(robot, base, samples, trials.moving, efforts)
        others = search.gravity(found)
        others += search.times() if wrong else []
        # An arm that hangs is as likely as a zero that is off by half a turn, and has one remedy.
        least = max((each.gain for each in others), default=0.0) + np.log(AS_GOOD)
        geometry = search.geometry() if wrong else []
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


# --- efforts: other signs, columns and gains, one remedy upon the other ---

MOST_REMEDIES = 4
MIN_RESOLVED = 0.5  # share of the contradiction that remedies have to explain
MOST_SIGNS = 8  # joints up to which all signs are tried together; twice as many signs in full
# A gain that is nearer to 1 is what drives differ by; factors that are searched.
MIN_DEVIATION, FACTORS = 0.15, np.geomspace(1e-4, 1e4, 65)
SAME_UNIT = 0.02  # share of a unit within which a gain is it


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


def _only(n: int, joint: int, factor: float | Array) -> Array:
    """Return factors (n,) of which one joint's is not 1; (K, n) of several."""
    return np.where(np.arange(n) == joint, np.asarray(factor)[..., None], 1.0)


def _best_signs(trials: Trials, state: Efforts) -> Efforts:
    """Return the efforts with the signs that fit robots that can exist best, of likely ones."""
    n = trials.n
    patterns = np.array(
        [*product((1.0, -1.0), repeat=n)][1:] if n <= MOST_SIGNS
        else [*(1.0 - 2.0 * np.eye(n)), -np.ones(n)]
    )  # fmt: skip
    # Without limits, all signs turned round leave as much.
    left = np.round(np.log(trials.fitted(state.scaled(patterns))), 2)
    order = np.lexsort([(patterns < 0.0).sum(axis=1), left])
    turned = [state.scaled(signs) for signs in patterns[order[: 2 * MOST_SIGNS]]]
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

    def left(logs: Array) -> Array:
        return trials.fitted(state.scaled(_only(trials.n, joint, np.exp(logs))))

    grid = np.log(FACTORS)
    best = grid[np.argmin(left(grid))]
    log, least = refine(left, best, grid[1] - grid[0], 1e-3)
    # The remedy is the unit, not what noise makes of it.
    factor = _or_unit(found := float(np.exp(log)), EFFORT_UNITS.values())
    return least if factor == found else float(left(np.log(factor))), joint, factor


def _or_unit(factor: float, units: Iterable[float]) -> float:
    """Return the unit that a factor is near, or the factor."""
    return next((size for size in units if abs(factor / size - 1.0) < SAME_UNIT), factor)


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
        units = {size: unit for unit, size in EFFORT_UNITS.items()}
        values['unit'] = units.get(_or_unit(factor, units))
    return _cause(name, robot, changed, trial, **values)


def _gains(robot: Robot, factors: Array) -> tuple[float, ...]:
    """Return the drive gains with which efforts are multiplied by factors (n,), where not 1."""
    return tuple(dict.fromkeys((robot.drive_gain * factors)[factors != 1.0].tolist()))


# --- other readings of a recording: its motion, its times, and gravity ---

FEW_ROWS = 500  # rows, not many more, by which readings are searched
TOGETHER = 8  # readings whose regressor is computed at once: calls cost more than few rows do
# A search goes on where one of its starts leaves so much less than the recording as it is.
PROMISING = 0.95
# From where the zero of a joint is searched, and how far [rad or m].
RIGHT = -0.5 * np.pi, 0.5 * np.pi, np.pi
ZEROS, ZERO_STEP = (-0.3, 0.3, *RIGHT), 0.8
# What positions are multiplied by that were read in a wrong unit, of degrees and turns, of mm; how
# far joints go with the right one, and not with one that is too large [rad or m].
SIZES = {False: (np.pi / 180.0, 180.0 / np.pi, 2.0 * np.pi), True: (1e-3, 1e3)}
RANGES = {False: (0.1, 4.0 * np.pi), True: (0.01, 3.0)}
# Where searches of other factors, and of the stamps' length, begin: logarithms, and their steps.
SCALE_STEP, LENGTH_STEP = np.log(4.0) / 3.0, np.log(16.0) / 8.0
SCALES = SCALE_STEP * np.array([-3, -2, -1, 1, 2, 3])
LENGTHS = LENGTH_STEP * np.array([*range(-8, 0), *range(1, 9)])


class _Reading(NamedTuple):
    """Another way to read a recording: its motion, and the efforts of its joints."""

    name: str  # of the finding
    joints: tuple[int, ...]
    samples: Samples
    efforts: Efforts
    values: dict[str, Any]


class _Tried(NamedTuple):
    """What a reading left: compared with the recording as it is, and by part (K, n)."""

    reading: _Reading
    trial: Trial
    errors: Array

    def is_better(self) -> bool:
        """Whether it left enough less than the recording as it is."""
        return self.trial.is_better(LEAST[self.reading.name])


Zeros = Mapping[int, float]  # by joint, what has to be added to its positions [rad or m]


class _ReadingSearch:
    """
    Looks for readings that explain more than the recording as it is, by any masses.

    They have to explain more than remedies of its `efforts` do, too, and than springs at all
    joints, which look like weight on another axis.
    """

    def __init__(
        self, robot: Robot, base: BaseParameters, samples: Samples, moving: Sequence[int],
        efforts: Efforts,
    ):  # fmt: skip
        self._robot, self._columns = robot, base.columns
        self._moving, self._remedied = moving, efforts
        self._rate, self._samples = samples.rate, _thinned(samples)
        self._rows, self._same = _sample_rows(robot, self._samples), Efforts.as_recorded(robot.n)
        self._parts = folds_of(self._rows)
        self._recorded = Trials(self._rows, parts=self._parts)

    def _try(self, reading: _Reading, robot: Robot | None = None) -> _Tried:
        """Compare a reading with the recording as it is."""
        rows = _sample_rows(robot or self._robot, reading.samples)
        rows = dataclasses.replace(rows, valid=self._rows.valid[reading.efforts.columns])
        errors = Trials(rows, parts=self._parts).errors(reading.efforts)
        return _Tried(reading, self._recorded.compare(self._recorded.recorded, errors), errors)

    def _explains_most(self, errors: Array) -> bool:
        """Tell whether a reading explains more than remedies of efforts, and than springs."""
        assert self._rows.q is not None
        springs = np.concatenate([self._rows.W, _spring_columns(self._rows.q)], axis=2)
        sprung = Trials(dataclasses.replace(self._rows, W=springs), parts=self._parts)
        others = self._recorded.errors(self._remedied), sprung.recorded
        return all(self._recorded.compare(other, errors).is_better(1.0) for other in others)

    def _left(self, readings: Sequence[_Reading]) -> Array:
        """Return what fits of a few rows to each of some readings leave (K,), in units of σ."""
        few, result = slice(None, None, 1 + len(self._samples.time) // FEW_ROWS), list[Array]()
        tau, moving = self._samples.tau[None, few], self._samples.moving[None, few]
        for start in range(0, len(readings), TOGETHER):
            some = readings[start : start + TOGETHER]
            motion = (
                np.concatenate([getattr(each.samples, name)[few] for each in some])
                for name in ('q', 'dq', 'ddq')
            )
            columns = np.stack([each.efforts.columns for each in some])[:, None]
            factors = np.stack([each.efforts.factors for each in some])[:, None]
            weights = np.take_along_axis(moving, columns, axis=2) / self._recorded.sigma[columns]
            y = np.take_along_axis(tau, columns, axis=2) * weights
            K, N, n = y.shape
            # Other columns are combinations of these, whatever the motion.
            W = regressor(self._robot, *motion, columns=self._columns).reshape(n, K, N, -1)
            W = np.einsum('jkna,knj->kajn', W, weights / factors).reshape(K, -1, n * N)
            y = y.swapaxes(1, 2).reshape(K, n * N, 1)
            value = normal_solution(W @ W.swapaxes(1, 2), (W @ y)[..., 0])
            result.append(np.sum((y[..., 0] - (value[:, None] @ W)[:, 0]) ** 2, axis=1))
        return np.concatenate(result)

    def _search(
        self, read: Callable[[float], _Reading], starts: Sequence[float] | Array, step: float
    ) -> float:
        """Return where near some starts a reading leaves least, 0 where none explains more."""
        known, *left = self._left([read(x) for x in (0.0, *starts)])
        k = int(np.argmin(left))
        if left[k] > PROMISING * known:
            return 0.0
        found, least = refine(lambda some: self._left([*map(read, some)]), starts[k], step, 1e-3)
        # A right angle is likelier than one beside it.
        return starts[k] if starts[k] in RIGHT and left[k] < AS_GOOD * least else found

    def gravity(self, found: Sequence[Cause]) -> list[Cause]:
        """Return no gravity, and another direction of it, where one explains more."""
        robot, samples, causes = self._robot, self._samples, list[Cause]()
        # Where none seemed the best, it may have another direction.
        choices = [(COMPENSATED, np.zeros(3))] if robot.gravity.any() else []
        if not robot.assumed_inertials:
            may_hang = not any(cause.name == SIGN for cause in found)
            direction = _other_gravity(robot, self._rows, may_hang)
            choices += [] if direction is None else [(GRAVITY, direction)]
        for name, gravity in choices:
            other = _with_gravity(robot, gravity)
            tried = self._try(_Reading(name, (), samples, self._same, {}), other)
            trial, masses, better = tried.trial, 'any masses', False
            if tried.is_better():
                better = self._explains_most(tried.errors)
            elif name == GRAVITY:  # which the URDF's masses may show
                drive = Trials(_drive_rows(robot, self._rows))
                turned = Trials(_drive_rows(other, _sample_rows(other, samples)))
                powers = self._recorded.powers
                trial = compare(drive.recorded, turned.recorded, powers, drive.sigma)
                better = trial.gain >= max((each.gain for each in found), default=0.0)
                better, masses = better and trial.is_better(LEAST[name]), DESCRIBED
            if better:
                rounded = [round(x, 6) + 0.0 for x in gravity.tolist()]
                values = {'direction': rounded} if name == GRAVITY else {}
                causes.append(_cause(name, robot, (), trial, masses, **values))
        return causes

    def times(self) -> list[Cause]:
        """
        Return stamps that are too far apart, or too close.

        As accelerations are too small then, gravity acts on the same bodies as if it were larger.
        """
        samples, ends = self._samples, LENGTHS[[0, -1]]

        def retimed(log: float) -> _Reading:
            """Return the motion with velocities and accelerations of other stamps."""
            size = float(np.exp(log))
            other = dataclasses.replace(samples, dq=size * samples.dq, ddq=size**2 * samples.ddq)
            values = {'length': size, 'share': size**-2.0, 'rate': self._rate * size}
            return _Reading(TIME, (), other, self._same, values)

        log = self._search(retimed, LENGTHS, LENGTH_STEP) if self._robot.gravity.any() else 0.0
        if log == 0.0 or not ends[0] < log < ends[1]:
            return []
        tried = self._try(retimed(log))
        if not tried.is_better() or not self._explains_most(tried.errors):
            return []
        return [_cause(TIME, self._robot, (), tried.trial, **tried.reading.values)]

    def geometry(self) -> list[Cause]:
        """Return other senses, zeros, units and columns of joints that explain more."""
        recorded, robot = self._recorded, self._robot
        readings = [*self._readings()] if len(self._moving) > 1 else []
        known, *left = self._left([_Reading('', (), self._samples, self._same, {}), *readings])
        tried = [
            self._try(each)
            for each, few in zip(readings, left, strict=True)
            if LEAST[each.name] * few <= known
        ]
        good = better = [each for each in tried if each.is_better()]
        if not good:
            return []
        while better:  # zeros and order of a table are off together
            best = max(better, key=lambda each: each.trial.gain)
            least = LEAST[best.reading.name]
            better = [
                more
                for more in map(self._try, self._further(best.reading))
                if recorded.compare(best.errors, more.errors).is_better(least)
            ]
        if not self._explains_most(best.errors):
            return []
        (name, joints, *_, values), others = best.reading, list[str]()
        for each in good:
            if each.reading.name == name and each.reading.joints != joints:
                if not recorded.compare(each.errors, best.errors).is_better(1.0):
                    others = [robot.joints[j] for j in each.reading.joints]
        instead = {'instead': ' and '.join(others)} if others else {}
        return [_cause(name, robot, joints, best.trial, **values, **instead)]

    def _readings(self) -> Iterator[_Reading]:
        """Yield joints the other way round, in other units, from other zeros, and exchanged."""
        robot, samples, same = self._robot, self._samples, self._same
        span, others = np.ptp(samples.q, axis=0), dict[float, list[int]]()
        for j in self._moving:
            least, most = RANGES[bool(robot.prismatic[j])]
            for size in dict.fromkeys((*SIZES[bool(robot.prismatic[j])], self._size(j))):
                right = abs(np.log(size)) <= SCALES[-1] or size > 1.0 or span[j] > most
                if size != 1.0 and least < size * span[j] < most and right:
                    others.setdefault(size, []).append(j)
        for size, joints in others.items():
            for chosen in {(j,) for j in joints} | {tuple(joints)}:
                factors = np.where(np.isin(np.arange(robot.n), chosen), size, 1.0)
                scaled = _read_as(same.scaled(factors), samples)
                yield _Reading(POSITION_UNIT, chosen, scaled, same, {'size': size})
        for j in self._moving:
            both = same.scaled(_only(robot.n, j, -1.0))
            turned = _read_as(both, samples)
            # An effort whose sense is the URDF's has to be turned with the axis.
            for sense, taken in ((-1.0, same), (1.0, both)):
                gains = [sense * robot.drive_gain[j]]
                yield _Reading(REVERSED, (j,), turned, taken, {'gains': gains})
        yield from map(self._with_zeros, self._more_zeros({}))
        yield from self._exchanged(same)

    def _further(self, reading: _Reading) -> Iterator[_Reading]:
        """Yield a reading with one zero or one exchange of joints more."""
        if reading.name == EXCHANGED:
            yield from self._exchanged(reading.efforts)
        if reading.name == ZERO:
            zeros = dict(zip(reading.joints, reading.values['shifts'], strict=True))
            for each in self._more_zeros(zeros):
                *_, i, j = each
                # Or with right angles at the last two joints.
                right = ({i: one, j: other} for one, other in product(RIGHT, repeat=2))
                tried = [self._with_zeros({**each, **pair}) for pair in ({}, *right)]
                yield tried[np.argmin(self._left(tried))]

    def _exchanged(self, efforts: Efforts) -> Iterator[_Reading]:
        """
        Yield each two joints exchanged in an order of all columns, and the opposite order.

        Both of positions and efforts, and of positions alone, which may be of another topic.
        """
        joints, samples = self._robot.joints, self._samples
        orders = [efforts.swapped(*pair) for pair in combinations(self._moving, 2)]
        for taken in (*orders, efforts._replace(columns=efforts.columns[::-1])):
            moved = np.flatnonzero(taken.columns != np.arange(len(joints)))
            columns, motion = [joints[k] for k in taken.columns[moved]], _read_as(taken, samples)
            for what, own in (('Positions and efforts', taken), ('Positions', self._same)):
                values = {'what': what, 'columns': columns}
                yield _Reading(EXCHANGED, tuple(moved.tolist()), motion, own, values)

    def _with_zeros(self, zeros: Zeros) -> _Reading:
        """Return samples read with other zeros."""
        shift = np.zeros(self._robot.n)
        shift[[*zeros]] = [*zeros.values()]
        units = [self._robot.units[self._robot.joints[j]][0] for j in zeros]
        values = {'shifts': tuple(zeros.values()), 'units': units}
        moved = dataclasses.replace(self._samples, q=self._samples.q + shift)
        return _Reading(ZERO, tuple(zeros), moved, self._same, values)

    def _more_zeros(self, zeros: Zeros) -> Iterator[Zeros]:
        """Yield zeros and that of one joint more."""
        for j in (joint for joint in self._moving if joint not in zeros):

            def read(shift: float, joint: int = j) -> _Reading:
                return self._with_zeros({**zeros, joint: shift})

            if shift := self._search(read, ZEROS, ZERO_STEP):
                yield {**zeros, j: shift}

    def _size(self, joint: int) -> float:
        """Return what positions of a joint have to be multiplied by, 1: nothing explains more."""

        def read(log: float) -> _Reading:
            scaled = self._same.scaled(_only(self._robot.n, joint, float(np.exp(log))))
            motion = _read_as(scaled, self._samples)
            return _Reading(POSITION_UNIT, (joint,), motion, self._same, {})

        size = float(np.exp(self._search(read, SCALES, SCALE_STEP)))
        return _or_unit(size, SIZES[bool(self._robot.prismatic[joint])])


def _read_as(efforts: Efforts, samples: Samples) -> Samples:
    """Return samples whose motion has the columns and signs of these efforts."""
    q, dq, ddq = (
        x[:, efforts.columns] * efforts.factors for x in (samples.q, samples.dq, samples.ddq)
    )
    return dataclasses.replace(samples, q=q, dq=dq, ddq=ddq)


def _spring_columns(q: Array) -> Array:
    """Return the columns (n, N, 2 n) of a spring at each joint: its position and the square."""
    away = (q - q.mean(axis=0)).T
    own = np.eye(len(away))[:, None, :, None] * np.stack([away, away**2], axis=2)[:, :, None]
    return np.asarray(own.reshape(*away.shape, -1))


def _thinned(samples: Samples) -> Samples:
    """Return the samples that are rows, with filtered efforts."""
    keep = samples.decimation
    return samples.thinned(keep, decimate(samples.tau.T, keep).T)


def _sample_rows(robot: Robot, samples: Samples) -> Rows:
    """Return rows of all standard parameters, not many more than `MODEL_ROWS`."""
    few = slice(None, None, 1 + len(samples.time) // MODEL_ROWS)
    q, dq, tau, moving = samples.q[few], samples.dq[few], samples.tau[few], samples.moving[few]
    W, time = regressor(robot, q, dq, samples.ddq[few]), samples.time[few]
    return Rows((), (), robot.joints, W, tau.T, moving.T, time, q=q, dq=dq)


def _drive_rows(robot: Robot, rows: Rows, gains: Array | float = 1.0) -> Rows:
    """Return rows of the drives' parameters, without the torque of the URDF's masses."""
    masses = np.array([p.symbol in INERTIAL for p in robot.parameters])
    Y = (gains * rows.Y.T).T - rows.W[:, :, masses] @ robot.prior[masses]
    return dataclasses.replace(rows, W=rows.W[:, :, ~masses], Y=Y)


# --- the direction of gravity ---

# Another direction must leave so much less than the configured one does, and than springs do:
# where all axes are upright, a tilt of a thousandth and huge masses look like a spring.
LEFT, LEFT_BY_SPRINGS = 0.6, 0.9
# Correlation of the efforts with the weight of the URDF's masses that is against gravity.
AGAINST = -0.7
AXES = np.kron(np.eye(3), [[1.0], [-1.0]])
GRAVITATION = 9.81  # [m/s²]
WEIGHTS = ('MX', 'MY', 'MZ', 'M')  # what gravity acts on
ACCURACY = 1e-3  # of the direction [rad]
STARTS = 3  # axes from which the direction is searched: there is more than one minimum


class _GravityFit:
    """
    The efforts as a function of gravity g, τ = (W + Σ (g − g_0)_k G_k) χ.

    Rows are weighted by joint and compressed to the triangular factor of [W G_1 G_2 G_3 S τ] with
    a spring's columns S of each joint, which weight along a horizontal axis resembles.
    """

    def __init__(self, robot: Robot, rows: Rows):
        few, self._gravity = slice(None, None, 1 + len(rows.time) // FEW_ROWS), robot.gravity
        q, still = np.asarray(rows.q)[few], np.zeros((len(rows.time[few]), robot.n))
        size = np.sqrt(np.mean(rows.Y[:, few] ** 2, axis=1, keepdims=True))
        weight = (rows.valid[:, few] / np.maximum(size, 1e-300))[:, :, None]
        places = np.array([k for k, p in enumerate(robot.parameters) if p.symbol in WEIGHTS])
        pulls = [
            regressor(_with_gravity(robot, axis), q, still, still, columns=places)
            for axis in np.eye(3)
        ]
        parts = rows.W[:, few], *pulls, _spring_columns(q), rows.Y[:, few, None]
        table = np.concatenate(parts, axis=2) * weight
        edges = np.cumsum([part.shape[2] for part in parts[:-1]])
        factor = np.linalg.qr(table.reshape(-1, table.shape[2]), mode='r')
        self._W, *self._pulls, self._springs, target = np.split(factor, edges, axis=1)
        self._places, self._target, self._masses = places, target[:, 0], robot.prior[places]

    def unexplained(self, gravity: Array, springs: bool = False) -> float:
        """Return what the best parameters leave with this gravity [m/s²]."""
        W = self._W.copy()
        W[:, self._places] += np.tensordot(gravity - self._gravity, self._pulls, 1)
        return self._left(np.hstack([W, self._springs]) if springs else W)

    @property
    def least(self) -> float:
        """Return what is left at least, in whatever direction: each has parameters of its own."""
        return self._left(np.hstack([self._W, *self._pulls]))

    def agreement(self, gravity: Array) -> float:
        """Return the correlation of the efforts with the weight of the URDF's masses."""
        others = np.delete(self._W, self._places, axis=1)
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
        found = minimize(
            lambda tilt: self.unexplained(turned(tilt)), np.zeros(2), method='Nelder-Mead',
            options=options,
        )  # fmt: skip
        return turned(found.x)


def _with_gravity(robot: Robot, gravity: Array) -> Robot:
    """Return the robot with another gravity (3,) [m/s²]."""
    other = dataclasses.replace(robot, model=robot.model.copy())
    other.model.gravity.linear = gravity
    return other


def _other_gravity(robot: Robot, rows: Rows, may_hang: bool) -> Array | None:
    """Return gravity (3,) in another direction that explains the efforts better."""
    fit, size = _GravityFit(robot, rows), float(np.linalg.norm(robot.gravity)) or GRAVITATION
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


# --- the masses of the description ---

MAX_APART = 0.3  # logarithm of a gain over the unit that all joints have: URDFs err by as much


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
    # One sense of all efforts is likelier than that of those which carry weight.
    silent = np.isin(np.arange(robot.n), trials.moving) & (factors == 0.0)
    if silent.any() and (factors <= 0.0).all() and alike[off].all():
        every = np.where(silent, -1.0, factors)
        if found := _by_description(robot, samples, every, currents, trials):
            return found
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
    rows = _sample_rows(robot, _thinned(samples))
    before, after = (Trials(_drive_rows(robot, rows, each)) for each in (1.0, gains))
    powers = Trials(rows).powers  # of which residuals are shares
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
