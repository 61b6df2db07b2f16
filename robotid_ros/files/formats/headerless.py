"""Tables without names: what their columns are, where the numbers prove it."""

from collections.abc import Mapping, Sequence

import numpy as np

from ...exceptions import RecordingError
from .column_looks import look_at, Looks
from .column_names import Key
from .column_selection import Column, FOLDER_HINT, Selection
from .joint_matching import match_names
from .table import Table

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
