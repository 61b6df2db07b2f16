"""Pooled estimates of each robot and of each type, by merging the factors of their sessions."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
import hashlib
import itertools

import numpy as np

from ..core.identification_settings import IdentificationSettings
from ..core.pipeline.estimation import as_asked
from ..core.pipeline.observation import stack_factors
from ..core.regression.estimators import fit
from ..core.regression.observation_system import Factors
from ..core.regression.random_effects import agreement
from ..core.regression.triangular_factors import compress
from ..exceptions import RankDeficientError
from .session import estimate_columns, factors_of, IDENTIFIED, Row, UNDETERMINED
from .store import POOLED, Store

ROBOT, TYPE = 'robot', 'type'
# Batches of a pool, from whose scores σ follow; factors that are merged at once.
MOST_BATCHES, AT_ONCE = 512, 32


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
