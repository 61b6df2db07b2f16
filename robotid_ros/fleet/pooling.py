"""Pooled estimates of robots and of types; which robot differs from the others, or changes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
import dataclasses
from datetime import datetime
import hashlib
import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import f, t

from ..core.arrays import Array
from ..core.finding_codes import finding
from ..core.findings import Finding
from ..core.identification_settings import IdentificationSettings
from ..core.model.base_parameters import BaseParameters
from ..core.model.parameters import INERTIAL
from ..core.model.robot import Robot
from ..core.pipeline.estimation import as_asked
from ..core.pipeline.observation import stack_factors
from ..core.regression.estimate import agreement, holm
from ..core.regression.estimators import fit
from ..core.regression.observation_system import compress, Factors
from ..exceptions import RankDeficientError
from .session import estimate_columns, factors_of, IDENTIFIED, Row, UNDETERMINED
from .store import POOLED, Store

ROBOT, TYPE = 'robot', 'type'
# Batches of a pool, from whose scores σ follow; factors that are merged at once.
MOST_BATCHES, AT_ONCE = 512, 32
SESSION_COLUMNS = (
    *('status', 'configuration', 'version', 'time', 'residual', 'parameters'),
    'robot',
)


def merge(systems: Iterable[Factors]) -> Factors | None:
    """
    Merge triangular factors of the same columns, in any order and grouping; None of none.

    Of any number of them, so many are in memory at once as are merged.
    """
    total, rest = None, iter(systems)
    while waiting := list(itertools.islice(rest, AT_ONCE)):
        waiting = waiting if total is None else [total, *waiting]
        total = compress(stack_factors(waiting), MOST_BATCHES)
    return total


def main_group(store: Store, type_: str) -> tuple[str, str]:
    """Return configuration and version of most sessions of a type, whose factors fit together."""
    rows = store.current(('configuration', 'version'), (type_,))
    counts = Counter((row['configuration'], row['version']) for row in rows)
    return max(counts, key=lambda pair: (counts[pair], pair)) if counts else ('', '')


def sessions_of(
    store: Store, of: tuple[str, str], group: tuple[str, str], columns: Sequence[str] | None = None
) -> list[Row]:
    """Return the sessions of a type's robot that can be merged, of a `main_group`, by key."""
    rows = store.current(columns, of)
    return [
        row
        for row in rows
        if row['status'] in (IDENTIFIED, UNDETERMINED)
        and (row['configuration'], row['version']) == group
    ]


def pool(store: Store) -> list[Row]:
    """
    Pool the sessions that are in a store now, and add what came out to it.

    Returns rows of the table `pooled`: of each robot, then of its type. One robot is in memory at
    a time.
    """
    pooled: list[Row] = []
    for type_ in store.names():
        group = configuration, version = main_group(store, type_)
        if not configuration:
            continue
        settings = store.model(type_, configuration).build()[2]
        rows = _pool_type(store, type_, group, settings)
        keys = ' '.join(sorted({key for row in rows for key in row['sessions']}))
        key = hashlib.sha256(f'{version} {keys}'.encode()).hexdigest()
        for row in rows:
            row |= {'key': key, 'type': type_, 'configuration': configuration, 'version': version}
        if rows:
            store.add(POOLED, rows, key)
        pooled += rows
    return pooled


def _pool_type(
    store: Store, type_: str, group: tuple[str, str], settings: IdentificationSettings
) -> list[Row]:
    rows, every = list[Row](), list[str]()

    def robots() -> Iterator[Factors]:
        for robot in store.names(type_):
            own = sessions_of(store, (type_, robot), group)
            system = merge(map(factors_of, own))
            if system is not None:
                keys = [session['key'] for session in own]
                row = _pooled_row(ROBOT, robot, keys, system, settings)
                rows.extend([{**each, **_agreement(own)} for each in row])
                every.extend(keys)
                yield system

    total = merge(robots())
    return rows if total is None else [*rows, *_pooled_row(TYPE, type_, every, total, settings)]


def _pooled_row(
    level: str, name: str, keys: Sequence[str], system: Factors, settings: IdentificationSettings
) -> list[Row]:
    """Return the row of a pool; none where all its sessions do not determine the parameters."""
    try:
        estimate = fit(as_asked(system, settings), settings.method, settings.iterations)
    except RankDeficientError:
        return []
    row = {'level': level, 'name': name, 'sessions': list(keys)}
    return [row | estimate_columns(system, estimate)]


def _agreement(sessions: Sequence[Row]) -> Row:
    """Return the columns that say whether a robot's sessions agree."""
    own = [session for session in sessions if session['status'] == IDENTIFIED]
    if len(own) < 2:
        return {}
    p, parameter, outlier = agreement(table_of(own, 'value'), table_of(own, 'sigma'))
    return {
        'agreement_p': p,
        'agreement_parameter': own[0]['parameters'][parameter]['name'],
        'agreement_session': own[outlier]['key'],
    }


def table_of(rows: Sequence[Row], column: str) -> np.ndarray:
    """Return a column of the parameters of rows (K, b)."""
    return np.array([[p[column] for p in row['parameters']] for row in rows], dtype=float)


@dataclasses.dataclass(frozen=True)
class Robots:
    """The R robots of a type and their S sessions that were identified."""

    type: str
    model: Robot
    base: BaseParameters
    names: tuple[str, ...]
    values: Array  # (R, b) pooled estimates
    sigmas: Array
    agreement: Array  # (R,) p-values of the test that the sessions agree
    sessions: Array  # (S, b) estimates of single sessions
    session_sigmas: Array
    owner: npt.NDArray[np.intp]  # (S,) places of their robots
    times: tuple[datetime | None, ...]  # (S,) sorted within each robot

    @property
    def inertial(self) -> npt.NDArray[np.bool_]:
        """Which base parameters are of links (b,), the others of friction and offsets."""
        return np.array([self.model.parameters[k].symbol in INERTIAL for k in self.base.columns])

    @property
    def friction(self) -> npt.NDArray[np.bool_]:
        """Which base parameters are of friction (b,)."""
        symbols = [self.model.parameters[k].symbol for k in self.base.columns]
        return np.array([symbol.startswith('F') for symbol in symbols])

    def of(self, robot: int) -> npt.NDArray[np.intp]:
        """Return the places of the sessions of a robot, in the order of time."""
        return np.flatnonzero(self.owner == robot)


def read_robots(store: Store, type_: str, pooled: Sequence[Row]) -> Robots | None:
    """Gather the robots of a type among pooled rows, None where none was identified."""
    rows = [row for row in pooled if row['level'] == ROBOT and row['type'] == type_]
    if not rows:
        return None
    group = main_group(store, type_)
    model, base, _ = store.model(type_, group[0]).build()
    sessions: list[Row] = []
    owner: list[int] = []
    for place, row in enumerate(rows):
        own = sessions_of(store, (type_, row['name']), group, SESSION_COLUMNS)
        own = [session for session in own if session['status'] == IDENTIFIED]
        own.sort(key=lambda s: (s['time'] is None, s['time'] or 0, s['key']))
        sessions += own
        owner += [place] * len(own)
    b = base.rank
    return Robots(
        type_,
        model,
        base,
        tuple(row['name'] for row in rows),
        table_of(rows, 'value'),
        table_of(rows, 'sigma'),
        np.array([row.get('agreement_p') for row in rows], dtype=float),
        table_of(sessions, 'value').reshape(-1, b),
        table_of(sessions, 'sigma').reshape(-1, b),
        np.array(owner, dtype=int),
        tuple(session['time'] for session in sessions),
    )


def factors_of_robots(store: Store, robots: Robots) -> Iterator[Factors]:
    """Yield the merged factors of each robot."""
    group = main_group(store, robots.type)
    for name in robots.names:
        system = merge(map(factors_of, sessions_of(store, (robots.type, name), group)))
        assert system is not None
        yield system


# Chance that any robot of a fleet in which nothing is wrong is accused, of each kind.
SIGNIFICANT = 0.01
# Robots of a type below which none can differ from the others.
FEWEST = 4
# A joint's efforts are inverted where so large a share of them is explained once they are turned.
EXPLAINED = 0.5
# Names of findings. Their values have type and robot, and p of as much by chance, all robots and
# parameters counted.
SIGN, PAYLOAD = 'inverted_effort', 'undeclared_payload'
OUTLIER, DRIFT = 'outlier', 'friction_drift'
# Sessions of a robot below which nothing is said of its changes.
FEWEST_SESSIONS = 3
# Median of the variance of two values over its mean, for Gaussian noise: χ² with one degree.
MEDIAN_OF_SQUARES = 0.4549
# Degrees of freedom that a median of squares keeps, as a share of those of their mean.
EFFICIENCY = 0.37


def find_changes(
    robots: Robots, kept: Sequence[int]
) -> Iterator[tuple[float, float, dict[str, Any]]]:
    """
    Yield the likeliest change of each friction parameter of each robot that is kept.

    Its step over the error of that, p of so large a step by chance, all places in time counted,
    and the values of its finding.

    Sessions are compared with how much those of one robot differ anyway: σ of successive
    differences, by their median over the robots of the type, which few that change do not move.
    """
    places = [robots.of(robot) for robot in kept]
    places = [own for own in places if len(own) >= FEWEST_SESSIONS]
    if not places:
        return
    for parameter in np.flatnonzero(robots.friction):
        values = robots.sessions[:, parameter]
        squares = np.concatenate([np.diff(values[own]) ** 2 / 2.0 for own in places])
        freedom = max(EFFICIENCY * len(squares), 1.0)
        floor = float(np.median(robots.session_sigmas[np.concatenate(places), parameter])) / 2.0
        sigma = max(float(np.sqrt(np.median(squares) / MEDIAN_OF_SQUARES)), floor)
        for own in places:
            number, before, step, z, p = _largest_step(values[own], sigma, freedom)
            time = robots.times[own[number]]
            yield (
                z,
                p,
                {
                    'type': robots.type,
                    'robot': robots.names[robots.owner[own[0]]],
                    'parameter': robots.base.names[parameter],
                    'unit': robots.base.units[parameter],
                    'before': before,
                    'step': step,
                    'share': step / max(abs(before), 1e-300),
                    'since': f'{time:%Y-%m-%d}' if time else f'its session {number + 1}',
                },
            )


def _largest_step(
    values: Array, sigma: float, freedom: float
) -> tuple[int, float, float, float, float]:
    """Return place, mean before, step, step over its error, and p of the largest step."""
    count = len(values)
    steps = []
    for k in range(1, count):
        before, after = float(values[:k].mean()), float(values[k:].mean())
        error = sigma * np.sqrt(1.0 / k + 1.0 / (count - k))
        steps.append((k, before, after - before, (after - before) / max(error, 1e-300)))
    number, mean, step, z = max(steps, key=lambda each: abs(each[3]))
    p = 2.0 * (count - 1) * float(t.sf(abs(z), freedom))
    return number, mean, step, float(z), min(p, 1.0)


def effort_gains(system: Factors, typical: Array) -> tuple[Array, Array]:
    """
    Compare the efforts of a robot with what typical parameters (b,) predict.

    Returns (n,) g of Y_j = g W_j χ + ρ by least squares, and the share of Y_j that g W_j χ leaves.
    """
    predicted = np.asarray(system.W @ typical)
    power = np.maximum((predicted**2).sum(axis=1), 1e-300)
    gain = (predicted * system.Y).sum(axis=1) / power
    rest = np.linalg.norm(system.Y - gain[:, None] * predicted, axis=1)
    return gain, rest / np.maximum(np.linalg.norm(system.Y, axis=1), 1e-300)


def inverted_joints(robots: Robots, systems: Iterable[Factors]) -> list[Finding]:
    """Find joints whose efforts have the opposite sign of the other robots'."""
    if len(robots.names) < FEWEST:
        return []
    typical = np.median(robots.values, axis=0)
    return [
        finding(SIGN, [joint], type=robots.type, robot=name, gain=gain)
        for name, system in zip(robots.names, systems, strict=True)
        for joint, gain, left in zip(system.joints, *effort_gains(system, typical), strict=True)
        if gain < 0.0 and left < 1.0 - EXPLAINED
    ]


def deviation(robots: Robots, robot: int, others: Sequence[int]) -> tuple[Array, Array]:
    """Return the difference of a robot from the mean of others (b,), and its scale (b,)."""
    values = robots.values[list(others)]
    noise = np.median(robots.sigmas, axis=0)
    scale = np.maximum(values.std(axis=0, ddof=1), noise) * np.sqrt(1.0 + 1.0 / len(values))
    return robots.values[robot] - values.mean(axis=0), scale


def payload_columns(robots: Robots) -> Array:
    """Return what mass and first moments at the last link add to the base parameters (b, 4)."""
    last = robots.model.joints[-1]
    symbols = ('M', 'MX', 'MY', 'MZ')
    known = {(p.joint, p.symbol): k for k, p in enumerate(robots.model.parameters)}
    columns = [robots.base.matrix[:, known[last, s]] for s in symbols if (last, s) in known]
    return np.column_stack(columns) if columns else np.zeros((robots.base.rank, 0))


def payload_test(
    robots: Robots, difference: Array, scale: Array, freedom: int
) -> tuple[float, float]:
    """
    Return p that a body at the last link explains a `deviation` by chance, and its mass [kg].

    F of the squares that the body explains, over those of others' spread; parameters of links
    alone, in units of their scale. p is 1 where a body explains less than half of the squares.
    """
    use = robots.inertial & (scale > 0.0)
    columns = payload_columns(robots)[use] / scale[use, None]
    z = difference[use] / scale[use]
    size = np.linalg.norm(columns, axis=0)
    if not size.any():
        return 1.0, 0.0
    size[size == 0.0] = 1.0
    solution, _, rank, _ = np.linalg.lstsq(columns / size, z, rcond=1e-9)
    explained = float(np.sum((columns @ (solution / size)) ** 2))
    if explained < EXPLAINED * float(z @ z):
        return 1.0, 0.0
    count = max(int(rank), 1)
    return float(f.sf(explained / count, count, freedom)), float(solution[0] / size[0])


def unlike_the_others(robots: Robots, left_out: set[str], level: float) -> list[Finding]:
    """
    Find robots whose parameters are not those of the others, but those that are left out.

    The robot that differs most is taken away first, so that it does not hide the next one. `level`
    is the chance of accusing any of them wrongly.
    """
    rest = [k for k, name in enumerate(robots.names) if name not in left_out]
    found: list[Finding] = []
    while len(rest) >= FEWEST:
        freedom = len(rest) - 2
        own = [deviation(robots, robot, [k for k in rest if k != robot]) for robot in rest]
        bodies = [payload_test(robots, *each, freedom) for each in own]
        payloads = holm(np.array([p for p, _ in bodies]))
        times = np.abs([difference / scale for difference, scale in own])
        singles = holm(2.0 * t.sf(times, freedom))
        worst = int(np.argmin(np.minimum(payloads, singles.min(axis=1))))
        whose = {'type': robots.type, 'robot': robots.names[rest[worst]]}
        k = int(np.argmin(singles[worst]))
        if payloads[worst] <= level:
            last, mass = robots.model.joints[-1], bodies[worst][1]
            found.append(finding(PAYLOAD, [last], mass=mass, p=payloads[worst], **whose))
        elif singles[worst, k] <= level:
            parameter = {'parameter': robots.base.names[k], 'unit': robots.base.units[k]}
            size = {'difference': own[worst][0][k], 'times': times[worst, k]}
            found.append(finding(OUTLIER, p=singles[worst, k], **whose, **parameter, **size))
        else:
            break
        del rest[worst]
    return found


def find_all(types: Sequence[tuple[Robots, Iterable[Factors]]]) -> list[Finding]:
    """Find all that is wrong in a fleet: robots of each type, and the merged factors of each."""
    found: list[Finding] = []
    kept = []
    for robots, systems in types:
        own = inverted_joints(robots, systems)
        left_out = {each.values['robot'] for each in own}
        own += unlike_the_others(robots, left_out, SIGNIFICANT / len(types))
        kept.append((robots, left_out))
        found += own
    return [*found, *drifts(kept)]


def drifts(types: Sequence[tuple[Robots, set[str]]]) -> list[Finding]:
    """
    Find robots whose friction changed: of each the clearest change, all of them counted.

    Robots of each type, and the names of those that are left out.
    """
    every = [
        change
        for robots, left_out in types
        for change in find_changes(
            robots, [k for k, name in enumerate(robots.names) if name not in left_out]
        )
    ]
    adjusted = holm(np.array([p for _, p, _ in every]))
    best: dict[tuple[str, str], tuple[float, Finding]] = {}
    for (z, _, values), p in zip(every, adjusted.tolist(), strict=True):
        whose = values['type'], values['robot']
        if p <= SIGNIFICANT and (whose not in best or best[whose][0] < abs(z)):
            best[whose] = abs(z), finding(DRIFT, p=p, **values)
    return [drift for _, drift in best.values()]
