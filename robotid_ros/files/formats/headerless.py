"""Tables without names: what their columns are, where the numbers prove it."""

from collections.abc import Sequence

import numpy as np

from ...exceptions import RecordingError
from .column_names import Key
from .column_selection import Column, FOLDER_HINT, Selection
from .joint_matching import match_names
from .table import Table
from .units import derivative_ratios


def guess_columns(table: Table, joints: Sequence[str]) -> dict[str, Selection]:
    """
    Find times, positions, velocities and efforts by their values.

    The form is that of most loggers: a time that grows or none, then one block per quantity, all
    joints in each; positions come first, velocities are their derivatives, efforts come last.
    Names of joints in columns of words count, as `ros2 topic echo --csv` writes them.

    Parameters
    ----------
    table : without a header
    joints : of the robot, which say how wide a block is

    Raises
    ------
    RecordingError : the table has another form

    """
    columns = table.read(list(table.widths))
    names = [name for name, values in columns.items() if not np.isnan(values).all()]
    told = list(match_names(list(table.texts.values()), joints))
    n = len(told or joints) or 6
    times = _times(columns, names)
    blocks, rest = divmod(len(names) - len(times), n)
    example = (
        f"name them, as in --columns 'time=column1 position=column2..column{n + 1} "
        f"effort=column{n + 2}..column{2 * n + 1}'"
    )
    if (count := len(columns[names[0]])) < len(names):
        raise RecordingError(
            f"'{table.source}' has {len(names)} columns and {count} rows: give one row per sample"
        )
    if not (told or joints) or rest or blocks not in (2, 3):
        hint = f', or {FOLDER_HINT}' if len(names) <= n else ''
        raise RecordingError(
            f"'{table.source}' has {len(names)} columns without names: {example}{hint}"
        )
    starts = [len(times) + k * n for k in range(blocks)]
    parts = [names[start : start + n] for start in starts]
    alike = [k for k in range(1, blocks) if _is_derivative(columns, parts[0], parts[k])]
    alike = alike if not told else [1] if blocks == 3 else []  # the order of joint states
    if (blocks == 2 and alike) or (blocks == 3 and len(alike) != 1):
        raise RecordingError(
            f"'{table.source}' has columns without names that do not tell positions, velocities "
            f'and efforts apart: {example}'
        )
    found = {'position': parts[0]}
    if alike:
        found['velocity'] = parts[alike[0]]
    found['effort'] = next(p for k, p in enumerate(parts) if k and k not in alike)
    keys = told or (range(n) if n > 1 else (None,))
    chosen = {quantity: _selection(part, keys) for quantity, part in found.items()}
    return ({'time': _selection(times, (None,) * len(times))} if times else {}) | chosen


def _times(columns: dict[str, np.ndarray], names: Sequence[str]) -> list[str]:
    """Return the columns of the times: the first one, or seconds and nanoseconds, or none."""
    first, second = (columns[name] for name in (*names, names[0])[:2])
    if (np.diff(first) > 0.0).all():
        return [names[0]]
    whole = all((values == np.floor(values)).all() for values in (first, second))
    if whole and (np.diff(first + 1e-9 * second) > 0.0).all() and second.max() < 1e9:
        return list(names[:2])
    return []


def _selection(names: Sequence[str], keys: Sequence[Key]) -> Selection:
    members = tuple((key, Column(name)) for key, name in zip(keys, names, strict=True))
    return Selection('..'.join(dict.fromkeys((names[0], names[-1]))), members)


def _is_derivative(
    columns: dict[str, np.ndarray], positions: Sequence[str], others: Sequence[str]
) -> bool:
    """Return whether most columns follow the derivatives of the positions."""
    count = len(columns[positions[0]])
    stacked = (np.column_stack([columns[name] for name in names]) for names in (positions, others))
    ratios = derivative_ratios(np.arange(count, dtype=float), *stacked)
    return bool(2 * np.isfinite(ratios).sum() > len(ratios))
