"""What columns of numbers look like: for tables without names, and for those that are refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import re

import numpy as np
import numpy.typing as npt

from ...core.signals.derived_efforts import unlikeness
from .table import Columns, Table

# Relative residual below which a column follows another one, as positions their references, or its
# derivative, as velocities that may be noisy and late. Efforts leave more of velocities: 24 % on
# real robots, 15 % on simulated ones with dry friction.
FOLLOWS, LEADS = 0.05, 0.1
# The same for the derivative of a derivative: accelerations make nearly all efforts of light
# links, which leave 3 %.
ACCELERATES = 0.02
DELAY = 3.0  # of a velocity behind its position at most [rows]
# Columns of a table that are looked at, and whole numbers that are states of a machine.
MOST_COLUMNS, MOST_STATES = 64, 20
# Changes of the changes over the changes from one value to the next, at the best of these spans:
# from here a signal is rough. White noise has √3, a motion that takes ten samples a turn 0.6.
ROUGH, SPANS = 0.7, (1, 5, 25)
WIDER = 10.0  # a range that many times another one is told apart

_OF_ARRAY = re.compile(r'(.+)\[(\d+):(\d+)\]')

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Looks:
    """
    What columns look like.

    Attributes
    ----------
    names : of the columns
    kinds : each 'empty', 'constant', 'counter', 'clock', 'states', 'smooth' or 'rough'
    ranges : (C, 2) lowest and highest value
    roughness : (C,) as `ROUGH` says
    same : (C, C) whether a column is another one times a constant, but for an offset
    derivative : (C, C) whether column j is the derivative of column i times a constant, at [i, j]

    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    ranges: np.ndarray
    roughness: np.ndarray
    same: Mask
    derivative: Mask

    def moves(self, name: str) -> bool:
        """Tell whether a column may be a signal of a motion."""
        return self.kinds[self.names.index(name)] in ('smooth', 'rough')

    def share(self, relation: Mask, first: Sequence[str], second: Sequence[str]) -> float:
        """Return how many pairs of moving columns are in a relation, 0 to 1."""
        pairs = zip(map(self.names.index, first), map(self.names.index, second), strict=True)
        found = [relation[i, j] for i, j in pairs if self.moves(self.names[i])]
        return float(np.mean(found)) if found else 0.0

    def __str__(self) -> str:
        parts: list[tuple[str, int, list[int]]] = []
        for k in range(len(self.names)):
            kind, of = self._said(k)
            shift = of - k if of >= 0 else 0
            if parts and parts[-1][:2] == (kind, shift) and self._belongs(k, shift, parts[-1][2]):
                parts[-1][2].append(k)
            else:
                parts.append((kind, shift, [k]))
        return '; '.join(self._text(*part) for part in parts)

    def _belongs(self, k: int, shift: int, others: Sequence[int]) -> bool:
        """Tell whether a column continues others: of no other block, and of about their size."""
        if shift:
            return k + shift not in others and k - shift not in others
        first, own = np.ptp(self.ranges[[others[0], k]], axis=1)
        return bool(own <= WIDER * first and first <= WIDER * own)

    def _said(self, k: int) -> tuple[str, int]:
        """Return the kind of a column, and the number of the one that it follows or −1."""
        if self.moves(self.names[k]):
            for kind, relation in (('derivative', self.derivative), ('same', self.same)):
                # Of columns that are alike, the first one is what the others follow.
                of = np.flatnonzero(relation[:, k])
                if of.size and (kind == 'derivative' or of[0] < k):
                    return kind, int(of[0])
        return self.kinds[k], -1

    def _text(self, kind: str, shift: int, members: Sequence[int]) -> str:
        where = self._span(members)
        low, high = self.ranges[members, 0].min(), self.ranges[members, 1].max()
        if kind in ('derivative', 'same'):
            of = self._span([k + shift for k in members])
            return f'{where}: {"derivative of" if kind == "derivative" else "follows"} {of}'
        what = {
            'empty': 'no numbers',
            'constant': 'constant',
            'counter': 'counts the rows',
            'clock': f'grows like a clock from {low:.6g} to {high:.6g}',
            'states': f'few whole numbers from {low:.6g} to {high:.6g}',
        }
        return f'{where}: {what.get(kind, f"{kind}, from {low:.3g} to {high:.3g}")}'

    def _span(self, members: Sequence[int]) -> str:
        first, last = self.names[members[0]], self.names[members[-1]]
        ends = [_OF_ARRAY.fullmatch(name) for name in (first, last)]
        if ends[0] and ends[1] and ends[0][1] == ends[1][1]:
            return f'{ends[0][1]}[{ends[0][2]}:{ends[1][3]}]'
        return '..'.join(dict.fromkeys((first, last)))


def look_at(columns: Mapping[str, np.ndarray]) -> Looks:
    """
    Return what columns (N,) look like.

    A column is a clock, counts, is constant, has few whole numbers, is the derivative of another
    one or follows it, or is a smooth or rough signal.
    """
    names = tuple(columns)
    values = np.column_stack([np.asarray(columns[name], dtype=float) for name in names])
    kinds = tuple(_kind(column) for column in values.T)
    finite = np.where(np.isfinite(values), values, np.nan)
    filled = np.isfinite(values).any(axis=0)
    ranges = np.zeros((len(names), 2))
    ranges[filled] = np.column_stack(
        [np.nanmin(finite[:, filled], axis=0), np.nanmax(finite[:, filled], axis=0)]
    )
    moving = np.array([kind in ('smooth', 'rough') for kind in kinds])
    same, derivative = np.zeros((2, len(names), len(names)), dtype=bool)
    if moving.any():
        own = values[:, moving]
        pairs = np.ix_(moving, moving)
        same[pairs] = unlikeness(own, own, signed=True) < FOLLOWS
        rest = unlikeness(own, own, 1, DELAY, signed=True)
        np.fill_diagonal(rest, 1.0)
        leads = rest < LEADS
        leads[leads.any(axis=0)] &= rest[leads.any(axis=0)] < ACCELERATES
        derivative[pairs] = leads
        np.fill_diagonal(same, val=False)
    roughness = np.array([_roughness(column) for column in values.T])
    return Looks(names, kinds, ranges, roughness, same, derivative)


def looks_of(table: Table) -> str:
    """Describe the columns of a table, those of arrays each, for messages."""
    few, count = [], 0
    for name, width in table.widths.items():
        count += width or 1
        if count <= MOST_COLUMNS:
            few.append(name)
    columns: Columns = {}
    for name, values in table.read(few).items():
        if values.ndim == 1:
            columns[name] = values
        else:
            columns |= {f'{name}[{k}:{k + 1}]': column for k, column in enumerate(values.T)}
    if not columns:
        return table.known
    more = f', … ({count} in all)' if count > MOST_COLUMNS else ''
    return f'{look_at(columns)}{more}'


def _kind(column: np.ndarray) -> str:
    known = column[np.isfinite(column)]
    if not known.size:
        return 'empty'
    steps = np.diff(known)
    if not steps.any():
        return 'constant'
    if (steps == 1.0).all() and known[0] in (0.0, 1.0):
        return 'counter'
    if (steps >= 0.0).all() and 2 * np.count_nonzero(steps) > len(steps):
        return 'clock'
    if (known == np.round(known)).all() and len(np.unique(known)) <= MOST_STATES:
        return 'states'
    return 'rough' if _roughness(column) > ROUGH else 'smooth'


def _roughness(column: np.ndarray) -> float:
    known = column[np.isfinite(column)]
    found = [np.inf]
    for span in SPANS:
        first = known[span:] - known[:-span]
        second = first[span:] - first[:-span]
        if second.size and first.any():
            found.append(float(np.sqrt(np.mean(second**2) / np.mean(first**2))))
    return min(found)


def are_successive(values: np.ndarray) -> bool:
    """
    Tell whether columns (N, n) are samples of one signal behind each other, and not joints.

    Read row by row they are smooth: steps are an n-th of those between rows, and hardly change.
    """
    values = values[np.isfinite(values).all(axis=1)]
    if values.shape[1] < 2 or len(values) < 3:
        return False
    steps = np.diff(values.ravel())
    sizes = [np.sqrt(np.mean(x**2)) for x in (steps, np.diff(steps), np.diff(values, axis=0))]
    return bool(sizes[1] < 0.5 * sizes[0] and sizes[0] * values.shape[1] < 1.5 * sizes[2])
