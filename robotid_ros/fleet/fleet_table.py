"""The sessions and robots of one type as arrays, for the statistics of a report."""

from collections.abc import Iterator, Sequence
import dataclasses
from datetime import datetime

import numpy as np
import numpy.typing as npt

from ..core.arrays import Array
from ..core.model.base_parameters import BaseParameters
from ..core.model.parameters import INERTIAL
from ..core.model.robot import Robot
from ..core.regression.observation_system import Factors
from .pooling import main_group, merge, ROBOT, sessions_of, table_of
from .session import factors_of, IDENTIFIED, Row
from .store import Store

SESSION_COLUMNS = (
    *('status', 'configuration', 'version', 'time', 'temperature', 'residual', 'parameters'),
    'robot',
)


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
    temperatures: Array  # (S,) [°C], NaN where unknown

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
        np.array([session['temperature'] for session in sessions], dtype=float),
    )


def factors_of_robots(store: Store, robots: Robots) -> Iterator[Factors]:
    """Yield the merged factors of each robot."""
    group = main_group(store, robots.type)
    for name in robots.names:
        system = merge(map(factors_of, sessions_of(store, (robots.type, name), group)))
        assert system is not None
        yield system
