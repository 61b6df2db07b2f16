"""What columns of numbers look like, and what they are where the numbers prove it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
import re

import numpy as np
import numpy.typing as npt

from ...core.finding_codes import select
from ...core.signals.derived_efforts import unlikeness
from ...exceptions import RecordingError, shortened
from .column_names import Key, match_names
from .column_selection import Column, FOLDER_HINT, Selection
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


EXAMPLES = {
    'time': 'time=t',
    'position': 'position=q{i}',
    'velocity': 'velocity=dq{i}',
    'effort': 'effort=tau{i}',
}


def missing(table: Table, quantity: str, selections: Mapping[str, Selection]) -> RecordingError:
    """Return the error for a table without a quantity: what its columns look like."""
    taken: Iterable[str] = (f'{k} {s.pattern}' for k, s in selections.items())
    known = f'; found: {", ".join(taken)}' if selections else ''
    known += f'; passed over: {shortened(table.passed_over)}' if table.passed_over else ''
    for note in select(table.notes, 'tables_joined'):
        if left_out := note.values['left_out']:
            known += f'; {shortened(left_out)} left out, of another length'
    example, hint = EXAMPLES[quantity], ''
    if all(table.widths.values()):
        example = f'{quantity}=NAME[FIRST:END]'
    if quantity in ('position', 'effort'):
        hint = f', or {FOLDER_HINT}'
    return RecordingError(
        f"'{table.source}' has no column that looks like {quantity} by its name (its "
        f"columns: {looks_of(table)}{known}): name it with --columns '{example}'{hint}"
    )


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


MOSTLY = 0.5  # share of the moving columns of a block that tell what the block is

Block = tuple[str, ...]


def guess_columns(table: Table, joints: Sequence[str]) -> dict[str, Selection]:
    """
    Find times, positions, velocities and efforts by their values.

    The form is that of most loggers: a time that grows or none, then one block per quantity, all
    joints in each, or all quantities of a joint together. Velocities are the derivatives of
    positions; without any, positions come first and are smoother than the efforts. Names of joints
    in columns of words count, as `ros2 topic echo --csv` writes them.

    Parameters
    ----------
    table : without a header
    joints : of the robot, which say how wide a block is

    Raises
    ------
    RecordingError : the table has another form, or holds no efforts; what its columns look like

    """
    columns = table.read(list(table.widths))
    names = [name for name, values in columns.items() if not np.isnan(values).all()]
    if (count := len(columns[names[0]])) < len(names):
        raise RecordingError(
            f"'{table.source}' has {len(names)} columns and {count} rows: give one row per sample"
        )
    told = list(match_names(list(table.texts.values()), joints))
    n = len(told or joints) or 6
    looks = look_at({name: columns[name] for name in names})
    if looks.kinds[:2] == ('counter', 'clock'):
        names = names[1:]
    times = _times(columns, names)
    rest = names[len(times) :]
    found: dict[str, Block] = {}
    efforts: list[Block] | None = None
    if not len(rest) % n:
        count = len(rest) // n
        blocks = [tuple(rest[k * n : (k + 1) * n]) for k in range(count)]
        turns = [tuple(rest[k::count]) for k in range(count)]
        found, efforts = _recognised(looks, blocks, ordered=bool(told))
        if not found and (other := _recognised(looks, turns))[0].get('velocity'):
            found, efforts = other
    if not (told or joints) or 'position' not in found or efforts is None or len(efforts) != 1:
        raise _refusal(table, looks, times, found, efforts, n)
    keys = told or (range(n) if n > 1 else (None,))
    chosen = {q: _selection(block, keys) for q, block in found.items() if q != 'acceleration'}
    chosen['effort'] = _selection(efforts[0], keys)
    return ({'time': _selection(times, (None,) * len(times))} if times else {}) | chosen


def _times(columns: Mapping[str, np.ndarray], names: Sequence[str]) -> list[str]:
    """Return the columns of the times: the first one, or seconds and nanoseconds, or none."""
    first, second = (columns[name] for name in (*names, names[0])[:2])
    if (np.diff(first) > 0.0).all():
        return [names[0]]
    whole = all((values == np.floor(values)).all() for values in (first, second))
    if whole and (np.diff(first + 1e-9 * second) > 0.0).all() and second.max() < 1e9:
        return list(names[:2])
    return []


def _recognised(
    looks: Looks, blocks: Sequence[Block], *, ordered: bool = False
) -> tuple[dict[str, Block], list[Block]]:
    """
    Return position, velocity and acceleration as far as values prove them, and possible efforts.

    Parameters
    ----------
    looks : of all columns
    blocks : columns of the joints, a block for each quantity
    ordered : whether they are position, velocity and effort of joint states, in this order

    """

    def leads(a: Block, b: Block) -> bool:
        return a != b and looks.share(looks.derivative, a, b) > MOSTLY

    def alike(a: Block, b: Block) -> bool:
        return a != b and looks.share(looks.same, a, b) > MOSTLY

    moving = [block for block in blocks if any(map(looks.moves, block))]
    if ordered and len(blocks) == 3:
        return {'position': blocks[0], 'velocity': blocks[1]}, [blocks[2]]
    first = [a for a in moving if not any(leads(b, a) for b in moving)]
    velocity = next((b for b in moving if any(leads(a, b) for a in first)), None)
    if velocity is None:
        two = len(moving) == len(blocks) == 2
        if two and not alike(*blocks) and _is_smoother(looks, *blocks):
            return {'position': blocks[0]}, [blocks[1]]
        return {}, moving
    positions = [a for a in first if leads(a, velocity)]
    accelerations = [b for b in moving if leads(velocity, b)]
    # What commands a position, and what derives from it, is as good as measured: nothing tells.
    followers = [b for b in moving for a in (velocity, *accelerations) if alike(a, b)]
    known = [*positions, velocity, *accelerations, *followers]
    found = {'velocity': velocity}
    if len(positions) == 1:
        found = {'position': positions[0], **found}
    if accelerations:
        found['acceleration'] = accelerations[0]
    return found, [block for block in moving if block not in known]


def _is_smoother(looks: Looks, first: Block, second: Block) -> bool:
    """Tell whether each column of a block is smoother than that of the same joint in another."""

    def margin(a: Block, b: Block) -> float:
        rough = looks.roughness[[looks.names.index(name) for name in (*a, *b)]]
        return float(np.min(rough[len(a) :] / rough[: len(a)]))

    turns = (first + second)[::2], (first + second)[1::2]  # as if a joint's were side by side
    own = margin(first, second)
    return own > 1.0 and (len(first) == 1 or own > margin(*turns))


def _refusal(
    table: Table,
    looks: Looks,
    times: Sequence[str],
    found: Mapping[str, Block],
    efforts: Sequence[Block] | None,
    n: int,
) -> RecordingError:
    """Return an error that shows the columns and asks for what they do not prove."""
    text = f"'{table.source}' has {len(looks.names)} columns without names ({looks}): "
    if found and not efforts:
        return RecordingError(
            f'{text}none of them can be efforts, for they follow from the motion or never change: '
            f'give a log of the efforts, or {FOLDER_HINT}; others are named with --columns'
        )
    given = {'time': tuple(times)} if times else {}
    given |= {q: block for q, block in found.items() if q in ('position', 'velocity')}
    named = {q: _pattern(block) for q, block in given.items()}
    named = {'position': 'FIRST..LAST', **named, 'effort': 'FIRST..LAST'}
    order = ('time', 'position', 'velocity', 'effort')
    example = ' '.join(f'{q}={named[q]}' for q in order if q in named)
    asked = 'the efforts' if 'position' in found else 'positions and efforts'
    may = [_pattern(block) for block in efforts or ()]
    which = f' (one of {", ".join(may)})' if found and len(may) > 1 else ''
    hint = f', or {FOLDER_HINT}' if len(looks.names) <= n + len(times) else ''
    return RecordingError(
        f'{text}nothing proves which are {asked}{which}: name them, as in --columns '
        f"'{example}'{hint}"
    )


def _pattern(block: Sequence[str]) -> str:
    """Return how `--columns` names a block: a range, or each column where others are between."""
    numbers = [int(name.removeprefix('column')) for name in block]
    if len(block) > 1 and numbers == list(range(numbers[0], numbers[0] + len(block))):
        return f'{block[0]}..{block[-1]}'
    return ','.join(block)


def _selection(block: Sequence[str], keys: Sequence[Key]) -> Selection:
    members = tuple((key, Column(name)) for key, name in zip(keys, block, strict=True))
    return Selection(_pattern(block), members)
