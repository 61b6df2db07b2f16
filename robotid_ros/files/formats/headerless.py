"""Tables without names: what their columns are, where the numbers prove it."""

from collections.abc import Sequence

import numpy as np

from ...exceptions import RecordingError
from .column_selection import Column, FOLDER_HINT, Selection
from .table import Table
from .units import derivative_ratios


def guess_columns(table: Table, joints: Sequence[str]) -> dict[str, Selection]:
    """
    Find times, positions, velocities and efforts by their values.

    The form is that of most loggers: a time that grows or none, then one block per quantity, all
    joints in each; positions come first, velocities are their derivatives, efforts come last.

    Parameters
    ----------
    table : without a header
    joints : of the robot, which say how wide a block is

    Raises
    ------
    RecordingError : the table has another form

    """
    names = list(table.widths)
    columns = table.read(names)
    has_time = bool((np.diff(columns[names[0]]) > 0.0).all())
    n = len(joints) or 6
    blocks, rest = divmod(len(names) - has_time, n)
    example = (
        f"name them, as in --columns 'time=column1 position=column2..column{n + 1} "
        f"effort=column{n + 2}..column{2 * n + 1}'"
    )
    if (count := len(columns[names[0]])) < len(names):
        raise RecordingError(
            f"'{table.source}' has {len(names)} columns and {count} rows: give one row per sample"
        )
    if not joints or rest or blocks not in (2, 3):
        hint = f', or {FOLDER_HINT}' if len(names) <= n else ''
        raise RecordingError(
            f"'{table.source}' has {len(names)} columns without names: {example}{hint}"
        )
    starts = [has_time + k * len(joints) for k in range(blocks)]
    parts = [names[start : start + len(joints)] for start in starts]
    alike = [k for k in range(1, blocks) if _is_derivative(columns, parts[0], parts[k])]
    if (blocks == 2 and alike) or (blocks == 3 and len(alike) != 1):
        raise RecordingError(
            f"'{table.source}' has columns without names that do not tell positions, velocities "
            f'and efforts apart: {example}'
        )
    found = {'time': [names[0]]} if has_time else {}
    found['position'] = parts[0]
    if alike:
        found['velocity'] = parts[alike[0]]
    found['effort'] = next(p for k, p in enumerate(parts) if k and k not in alike)
    return {quantity: _selection(part) for quantity, part in found.items()}


def _selection(names: Sequence[str]) -> Selection:
    if len(names) == 1:
        return Selection(names[0], ((None, Column(names[0])),))
    members = tuple((k, Column(name)) for k, name in enumerate(names))
    return Selection(f'{names[0]}..{names[-1]}', members)


def _is_derivative(
    columns: dict[str, np.ndarray], positions: Sequence[str], others: Sequence[str]
) -> bool:
    """Return whether most columns follow the derivatives of the positions."""
    count = len(columns[positions[0]])
    stacked = (np.column_stack([columns[name] for name in names]) for names in (positions, others))
    ratios = derivative_ratios(np.arange(count, dtype=float), *stacked)
    return bool(2 * np.isfinite(ratios).sum() > len(ratios))
