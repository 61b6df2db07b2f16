"""Records of named values, as of JSON: a line each, a list of them, or one of whole signals."""

from collections.abc import Iterable, Iterator, Mapping
import itertools
import json
from pathlib import Path
import re
from typing import Any

import numpy as np

from ...exceptions import RecordingError, RobotIdError
from ..atomic import read_text
from ..yaml import parse_yaml
from .table import from_arrays, Table
from .text_cells import convert, is_date, number

# What names an item of a list better than its number.
_NAMES = ('name', 'joint', 'joint_name', 'id')
# A list of so many items at most is a value of one record, not a signal.
_LONGEST = 256

Value = float | str | tuple[float, ...] | tuple[str, ...]


def read_json(path: Path) -> Table:
    """
    Read JSON: records, one a line or in a list, or an object of whole signals.

    Raises
    ------
    RecordingError : it is no JSON, or holds no numbers

    """
    text = read_text(path)
    try:
        content = json.loads(text)
    except ValueError:
        return from_records(str(path), _lines(path, text))
    except RecursionError as error:
        raise RecordingError(f"'{path}' is nested too deeply: give another file") from error
    lists = [*_lists_of_records(content)]
    if len(lists) == 1:
        return from_records(str(path), lists[0])
    found = {} if lists else dict(_arrays(content))
    arrays = {name: np.array(items) for name, items in found.items() if name}
    kept = {k: v for k, v in arrays.items() if v.dtype.kind in 'biufU'}
    if not any(v.dtype.kind in 'biuf' and v.size > 1 for v in kept.values()):
        raise RecordingError(
            f"'{path}' holds {_shape(content)}, no table of numbers: give one record per sample, "
            'or one list per signal'
        )
    return from_arrays(str(path), kept)


def read_yaml_documents(path: Path) -> Table:
    """
    Read documents of YAML behind each other, as `ros2 topic echo` writes messages.

    Raises
    ------
    RobotIdError : the first one is no YAML, or they hold no numbers

    """
    texts = [text for text in re.split(r'(?m)^---\s*$', read_text(path)) if text.strip()]

    def documents() -> Iterator[Any]:
        for place, text in enumerate(texts):
            try:
                yield parse_yaml(text, str(path))
            except RobotIdError:
                if not place:
                    raise
                # one that was cut short

    return from_records(str(path), documents())


def from_records(source: str, records: Iterable[Any]) -> Table:
    """
    Make a table of records {name: number, text, list or further names}.

    Columns are called after the path to their values, `joints.elbow.position`, and are left out
    where their number changes from record to record.

    Raises
    ------
    RecordingError : no numbers are in them

    """
    columns: dict[str, list[Value | None]] = {}
    count = 0
    for record in records:
        if not isinstance(record, Mapping):
            continue
        for name, value in _values(record):
            column = columns.setdefault(name, [])
            column.extend(itertools.repeat(None, count - len(column)))
            column.append(value)
        count += 1
    arrays: dict[str, np.ndarray] = {}
    units: dict[str, str] = {}
    for name, column in columns.items():
        column.extend(itertools.repeat(None, count - len(column)))
        found = _column(column)
        if found is not None:
            arrays[name] = found
            if is_date(next((x for x in column if isinstance(x, str)), '')):
                units[name] = 's'
    return from_arrays(source, arrays, units)


def _lines(path: Path, text: str) -> Iterator[Any]:
    for place, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                if place > 1:  # cut short, or a line of the logger's own
                    continue
                raise RecordingError(
                    f"'{path}' is no JSON ({error}): export it again, or as CSV"
                ) from error


def _lists_of_records(content: Any, inside: bool = False) -> Iterator[list[Any]]:
    """Yield the lists of records of a document; a short one inside it is of joints."""
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        if len(content) > _LONGEST // 4 or not inside:
            yield content
    elif isinstance(content, Mapping):
        for value in content.values():
            yield from _lists_of_records(value, True)


def _shape(content: Any) -> str:
    """Describe what is nested in what, for messages."""
    if isinstance(content, Mapping):
        each = [f'{key}: {_shape(value)}' for key, value in itertools.islice(content.items(), 8)]
        return '{' + ', '.join(each) + (', …}' if len(content) > len(each) else '}')
    if isinstance(content, list):
        return f'a list of {len(content)}' + (f', each {_shape(content[0])}' if content else '')
    return 'a text' if isinstance(content, str) else 'a number'


def _arrays(content: Any, name: str = '') -> Iterator[tuple[str, Any]]:
    """Yield the lists of numbers or words of one document."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from _arrays(value, f'{name}.{key}' if name else str(key))
    elif isinstance(content, list) and content and isinstance(content[0], Mapping):
        for key, item in _by_own_names(content):
            yield from _arrays(item, f'{name}.{key}' if name else key)
    elif isinstance(content, list) and _is_regular(content):
        yield name, content


def _is_regular(items: list[Any]) -> bool:
    rows = [item for item in items if isinstance(item, list)]
    return not rows or (len(rows) == len(items) and len({len(row) for row in rows}) == 1)


def _values(value: Any, name: str = '') -> Iterator[tuple[str, Value]]:
    """Yield the numbers, texts and short lists of a record with the path to each."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _values(item, f'{name}.{key}' if name else str(key))
    elif isinstance(value, int | float | str):
        yield name, value
    elif isinstance(value, list | tuple) and 0 < len(value) <= _LONGEST:
        kinds = {str if isinstance(item, str) else type(item) for item in value}
        if kinds <= {int, float, bool} or kinds == {str}:
            yield name, tuple(value)
        elif kinds <= {int, float, type(None)}:
            yield name, tuple(np.nan if item is None else item for item in value)
        else:
            for own, item in _by_own_names(value):
                yield from _values(item, f'{name}.{own}')


def _by_own_names(items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield items with the name that each has inside, else its number."""
    for k, item in enumerate(items):
        keys = item.keys() & set(_NAMES) if isinstance(item, Mapping) else set()
        yield next((str(item[key]) for key in _NAMES if key in keys), str(k)), item


def _column(values: list[Value | None]) -> np.ndarray | None:
    """Return numbers (N,) or (N, n), words (N,) or those of all rows (n,), None for others."""
    first = next(value for value in values if value is not None)
    if isinstance(first, str):
        words = [value if isinstance(value, str) else '' for value in values]
        if is_date(first):
            return convert(words, False)
        found = np.array([number(word) for word in words])
        return np.array(words) if np.isnan(found).any() else found
    if not isinstance(first, tuple):
        numbers = [value if isinstance(value, int | float) else np.nan for value in values]
        return np.array(numbers)
    if isinstance(first[0], str):
        same = all(value == first for value in values if value is not None)
        return np.array(first) if same else None
    empty = (np.nan,) * len(first)
    rows = [empty if value is None else value for value in values]
    regular = all(isinstance(row, tuple) and len(row) == len(first) for row in rows)
    return np.array(rows) if regular else None
