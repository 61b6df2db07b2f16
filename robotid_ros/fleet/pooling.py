"""Pooled estimates of robots and of types, by merging the factors of their sessions."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
import dataclasses
from datetime import datetime
import hashlib
import itertools

import numpy as np
import numpy.typing as npt

from ..core.arrays import Array
from ..core.identification_settings import IdentificationSettings
from ..core.model.base_parameters import BaseParameters
from ..core.model.parameters import INERTIAL
from ..core.model.robot import Robot
from ..core.pipeline.estimation import as_asked
from ..core.pipeline.observation import stack_factors
from ..core.regression.estimate import agreement
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
