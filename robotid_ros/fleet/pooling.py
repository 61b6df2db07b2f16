"""Pooled estimates of robots and of types; which robot differs from the others, or changes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
import contextlib
import dataclasses
from datetime import datetime
import hashlib
import itertools
from typing import Any

import numpy as np
from scipy.special import fdtrc, stdtr

from ..core.arrays import Array, Indices
from ..core.findings import Finding, finding
from ..core.model.robot import BaseParameters, INERTIAL, Robot
from ..core.pipeline.estimation import as_configured
from ..core.regression.estimate import agreement, holm
from ..core.regression.estimators import fit
from ..core.regression.observation_system import compress, Factors, stack_factors
from ..exceptions import RankDeficientError
from .session import estimate_columns, factors_of, IDENTIFIED, Row, UNDETERMINED
from .store import POOLED, Store

ROBOT, TYPE = 'robot', 'type'
# Batches of a pool, from whose scores σ follow; factors that are merged at once.
MOST_BATCHES, AT_ONCE = 512, 32
SESSION_COLUMNS = ('status', 'configuration', 'version', 'time', 'parameters')


def merge(systems: Iterable[Factors]) -> Factors | None:
    """Merge factors of the same columns in any order and grouping, some at once; None of none."""
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
    kept = {(status, *group) for status in (IDENTIFIED, UNDETERMINED)}
    rows = store.current(columns, of)
    return [r for r in rows if (r['status'], r['configuration'], r['version']) in kept]


def pool(store: Store) -> list[Row]:
    """Pool a store's sessions, one robot in memory at a time; add and return rows of `pooled`."""
    return [row for type_ in store.names() for row in _pool_type(store, type_)]


def _pool_type(store: Store, type_: str) -> list[Row]:
    group = configuration, version = main_group(store, type_)
    if not configuration:
        return []
    settings = store.model(type_, configuration).build()[2]
    rows, every = list[Row](), list[str]()

    def add(level: str, name: str, keys: list[str], system: Factors) -> None:
        """Add the row of a pool, unless its sessions together leave parameters undetermined."""
        with contextlib.suppress(RankDeficientError):
            estimate = fit(as_configured(system, settings), settings.method, settings.iterations)
            row = {'level': level, 'name': name, 'sessions': keys, 'type': type_}
            row |= {'configuration': configuration, 'version': version}
            rows.append(row | estimate_columns(system, estimate))

    def robots() -> Iterator[Factors]:
        for robot in store.names(type_):
            sessions = sessions_of(store, (type_, robot), group)
            if (system := merge(map(factors_of, sessions))) is None:
                continue
            keys, count = [session['key'] for session in sessions], len(rows)
            add(ROBOT, robot, keys, system)
            every.extend(keys)
            own = [session for session in sessions if session['status'] == IDENTIFIED]
            if len(own) > 1 and len(rows) > count:  # whether its sessions agree
                found = agreement(table_of(own, 'value'), table_of(own, 'sigma'))
                rows[-1]['agreement_p'], parameter, outlier = found
                rows[-1]['agreement_parameter'] = own[0]['parameters'][parameter]['name']
                rows[-1]['agreement_session'] = own[outlier]['key']
            yield system

    if (total := merge(robots())) is not None:
        add(TYPE, type_, every, total)
    if rows:
        keys = ' '.join(sorted({key for row in rows for key in row['sessions']}))
        key = hashlib.sha256(f'{version} {keys}'.encode()).hexdigest()
        for row in rows:
            row['key'] = key
        store.add(POOLED, rows, key)
    return rows


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
    owner: Indices  # (S,) places of their robots
    times: tuple[datetime | None, ...]  # (S,) sorted within each robot

    @property
    def symbols(self) -> list[str]:
        """Of the base parameters' first standard parameters (b)."""
        return [self.model.parameters[k].symbol for k in self.base.columns]

    @property
    def friction(self) -> list[int]:
        """Places of the base parameters that are of friction."""
        return [k for k, symbol in enumerate(self.symbols) if symbol.startswith('F')]

    def of(self, robot: int) -> Indices:
        """Return the places of the sessions of a robot, in the order of time."""
        return np.flatnonzero(self.owner == robot)


def read_robots(store: Store, type_: str, pooled: Sequence[Row]) -> Robots | None:
    """Gather the robots of a type among pooled rows, None where none was identified."""
    rows = [row for row in pooled if row['level'] == ROBOT and row['type'] == type_]
    if not rows:
        return None
    group = main_group(store, type_)
    model, base, _ = store.model(type_, group[0]).build()
    sessions, owner = list[Row](), list[int]()
    for place, row in enumerate(rows):
        own = sessions_of(store, (type_, row['name']), group, SESSION_COLUMNS)
        own = [session for session in own if session['status'] == IDENTIFIED]
        sessions += sorted(own, key=lambda s: (s['time'] is None, s['time'] or 0, s['key']))
        owner += [place] * len(own)
    names = tuple(row['name'] for row in rows)
    values, sigmas = table_of(rows, 'value'), table_of(rows, 'sigma')
    agreed = np.array([row.get('agreement_p') for row in rows], dtype=float)
    single, errors = (table_of(sessions, c).reshape(-1, base.rank) for c in ('value', 'sigma'))
    times, places = tuple(session['time'] for session in sessions), np.array(owner, dtype=int)
    pools = values, sigmas, agreed
    return Robots(type_, model, base, names, *pools, single, errors, places, times)


# Chance that any robot of a fleet in which nothing is wrong is accused, of each kind.
SIGNIFICANT = 0.01
FEWEST = 4  # robots of a type below which none can differ from the others
# A joint's efforts are inverted where so large a share of them is explained once they are turned.
EXPLAINED = 0.5
# Names of findings. Their values have type and robot, and p of as much by chance, all robots and
# parameters counted.
SIGN, PAYLOAD = 'inverted_effort', 'undeclared_payload'
OUTLIER, DRIFT = 'outlier', 'friction_drift'
FEWEST_SESSIONS = 3  # sessions of a robot below which nothing is said of its changes
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
    for parameter in robots.friction if places else ():
        values = robots.sessions[:, parameter]
        squares = np.concatenate([np.diff(values[own]) ** 2 / 2.0 for own in places])
        freedom = max(EFFICIENCY * len(squares), 1.0)
        floor = float(np.median(robots.session_sigmas[np.concatenate(places), parameter])) / 2.0
        sigma = max(float(np.sqrt(np.median(squares) / MEDIAN_OF_SQUARES)), floor)
        for own in places:
            count = len(own)
            k = np.arange(1, count)
            means = [(values[own[:i]].mean(), values[own[i:]].mean()) for i in k]
            before, after = np.array(means).T
            error = sigma * np.sqrt(1.0 / k + 1.0 / (count - k))
            z = (after - before) / np.maximum(error, 1e-300)
            place = int(np.argmax(np.abs(z)))
            step, mean, time = after - before, float(before[place]), robots.times[own[place + 1]]
            found = {
                'type': robots.type,
                'robot': robots.names[robots.owner[own[0]]],
                'parameter': robots.base.names[parameter],
                'unit': robots.base.units[parameter],
                'before': mean,
                'step': float(step[place]),
                'share': float(step[place]) / max(abs(mean), 1e-300),
                'since': f'{time:%Y-%m-%d}' if time else f'its session {place + 2}',
            }
            p = 2.0 * (count - 1) * float(stdtr(freedom, -abs(z[place])))
            yield float(z[place]), min(p, 1.0), found


def effort_gains(system: Factors, typical: Array) -> tuple[Array, Array]:
    """Return (n,) g of Y_j = g W_j χ + ρ, typical χ (b,), and the share of Y_j that is left."""
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


def payload_test(
    robots: Robots, difference: Array, scale: Array, freedom: int
) -> tuple[float, float]:
    """
    Return p that a body at the last link explains a difference by chance, and its mass [kg].

    F of the squares that the body explains, over those of others' spread; parameters of links
    alone, in units of their scale. p is 1 where a body explains less than half of the squares.
    """
    use = np.isin(robots.symbols, list(INERTIAL)) & (scale > 0.0)
    # What mass and first moments there add to the base parameters.
    known = {(p.joint, p.symbol): k for k, p in enumerate(robots.model.parameters)}
    places = [known.get((robots.model.joints[-1], symbol)) for symbol in ('M', 'MX', 'MY', 'MZ')]
    body = robots.base.matrix[:, [place for place in places if place is not None]]
    columns, z = body[use] / scale[use, None], difference[use] / scale[use]
    size = np.linalg.norm(columns, axis=0)
    if not size.any():
        return 1.0, 0.0
    size[size == 0.0] = 1.0
    solution, _, rank, _ = np.linalg.lstsq(columns / size, z, rcond=1e-9)
    explained = float(np.sum((columns @ (solution / size)) ** 2))
    if explained < EXPLAINED * float(z @ z):
        return 1.0, 0.0
    count = max(int(rank), 1)
    return float(fdtrc(count, freedom, explained / count)), float(solution[0] / size[0])


def unlike_the_others(robots: Robots, left_out: set[str], level: float) -> list[Finding]:
    """
    Find robots whose parameters are not those of the others, but those that are left out.

    The robot that differs most is taken away first, so that it does not hide the next one. `level`
    is the chance of accusing any of them wrongly.
    """
    rest = [k for k, name in enumerate(robots.names) if name not in left_out]
    found, noise = list[Finding](), np.median(robots.sigmas, axis=0)
    while len(rest) >= FEWEST:
        freedom, count = len(rest) - 2, len(rest) - 1
        others = [robots.values[[k for k in rest if k != robot]] for robot in rest]
        difference = robots.values[rest] - [each.mean(axis=0) for each in others]
        spread = np.maximum([each.std(axis=0, ddof=1) for each in others], noise)
        scale = spread * np.sqrt(1.0 + 1.0 / count)
        pairs = zip(difference, scale, strict=True)
        bodies = [payload_test(robots, *each, freedom) for each in pairs]
        payloads = holm(np.array([p for p, _ in bodies]))
        times = np.abs(difference / scale)
        singles = holm(2.0 * stdtr(freedom, -times))
        worst = int(np.argmin(np.minimum(payloads, singles.min(axis=1))))
        whose = {'type': robots.type, 'robot': robots.names[rest[worst]]}
        k = int(np.argmin(singles[worst]))
        if payloads[worst] <= level:
            last, mass = robots.model.joints[-1], bodies[worst][1]
            found.append(finding(PAYLOAD, [last], mass=mass, p=payloads[worst], **whose))
        elif singles[worst, k] <= level:
            parameter = {'parameter': robots.base.names[k], 'unit': robots.base.units[k]}
            size = {'difference': difference[worst, k], 'times': times[worst, k]}
            found.append(finding(OUTLIER, p=singles[worst, k], **whose, **parameter, **size))
        else:
            break
        del rest[worst]
    return found


def find_all(store: Store, types: Sequence[Robots]) -> list[Finding]:
    """Find all that is wrong in a fleet, among the robots of each type."""
    found, kept = list[Finding](), []
    for robots in types:
        group = main_group(store, robots.type)
        systems = (
            merge(map(factors_of, sessions_of(store, (robots.type, name), group)))
            for name in robots.names
        )
        own = inverted_joints(robots, filter(None, systems))
        kept.append((robots, {each.values['robot'] for each in own}))
        found += [*own, *unlike_the_others(*kept[-1], SIGNIFICANT / len(types))]
    return [*found, *drifts(kept)]


def drifts(types: Sequence[tuple[Robots, set[str]]]) -> list[Finding]:
    """Find robots whose friction changed, all counted, but for names that are left out."""
    every = list[tuple[float, float, dict[str, Any]]]()
    for robots, left_out in types:
        kept = [k for k, name in enumerate(robots.names) if name not in left_out]
        every += find_changes(robots, kept)
    adjusted = holm(np.array([p for _, p, _ in every]))
    best: dict[tuple[str, str], tuple[float, Finding]] = {}
    for (z, _, values), p in zip(every, adjusted.tolist(), strict=True):
        whose = values['type'], values['robot']
        if p <= SIGNIFICANT and (whose not in best or best[whose][0] < abs(z)):
            best[whose] = abs(z), finding(DRIFT, p=p, **values)
    return [drift for _, drift in best.values()]
