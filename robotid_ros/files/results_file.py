"""The files of an identification: parameters.yaml, and torques.npz beside it."""

from collections.abc import Mapping, Sequence
import dataclasses
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints, TypeVar

import numpy as np

from ..exceptions import FileError
from .atomic import read_text, write_text
from .results import Comparison, Entry, Residual, Results
from .torques_file import read_torques, write_torques
from .yaml import dump_yaml, parse_yaml

PARAMETERS = 'parameters.yaml'
TORQUES = 'torques.npz'
REPORT = 'report.html'
FORMAT = 1
T = TypeVar('T')


def write_results(results: Results, folder: str | Path) -> Path:
    """
    Write `parameters.yaml` and `torques.npz`; every number reads back bit for bit.

    Returns
    -------
    Path of `parameters.yaml`.

    Raises
    ------
    FileError : the folder cannot be written

    """
    plain = {f.name: _plain(getattr(results, f.name)) for f in dataclasses.fields(results)}
    del plain['torques']
    if results.torques:
        write_torques(Path(folder) / TORQUES, results.torques)
    return write_text(Path(folder) / PARAMETERS, dump_yaml({'format': FORMAT, **plain}))


def read_results(path: str | Path) -> Results:
    """
    Read `parameters.yaml`, or the folder that holds it; torques too when they are beside it.

    Raises
    ------
    FileError : it is missing, or not what `write_results` writes

    """
    path = Path(path)
    path = path / PARAMETERS if path.is_dir() else path
    if not path.exists():
        raise FileError(
            f"no such file: '{path}'; give a {PARAMETERS}, or the folder that robotid identify "
            'wrote it to'
        )
    content = parse_yaml(read_text(path), str(path))
    if not isinstance(content, Mapping) or content.get('format') != FORMAT:
        raise FileError(f"'{path}' holds no identified parameters: give a {PARAMETERS}")
    try:
        values = {
            f.name: content[f.name] for f in dataclasses.fields(Results) if f.name in content
        }
        values |= _tables(values)
        if values.get('compared'):
            other = values['compared']
            values['compared'] = _checked(Comparison, {**other, **_tables(other)})
        for name in ('joints', 'warnings', 'history'):
            if not isinstance(values[name], list):
                raise TypeError(f'{name} is no list')
            values[name] = tuple(values[name])
        values['torques'] = read_torques(path.with_name(TORQUES))
        return _checked(Results, values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"'{path}' is damaged ({error}): identify again") from error


def _checked(kind: type[T], values: Mapping[str, Any]) -> T:
    """Make a dataclass of values that have the types it declares."""
    for name, hint in get_type_hints(kind).items():
        if name in values and not _fits(values[name], hint):
            raise TypeError(f'{name} is {values[name]!r:.80}')
    return kind(**values)


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of a declared type."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if origin is None:
        return isinstance(value, hint)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(_fits(v, inner[1]) for v in value.values())
    if origin in (tuple, Sequence):
        return isinstance(value, tuple | list) and all(_fits(v, inner[0]) for v in value)
    return any(_fits(value, kind) for kind in inner)


def _tables(content: Mapping[str, Any]) -> dict[str, Any]:
    """Read the tables that a result, or one to compare with, has."""
    kinds = {'base': Entry, 'standard': Entry, 'identification': Residual, 'validation': Residual}
    return {name: _entries(kind, content[name]) for name, kind in kinds.items() if name in content}


def _entries(kind: type[T], rows: Sequence[Mapping[str, Any]]) -> tuple[T, ...]:
    return tuple(_checked(kind, row) for row in rows)


def _plain(value: Any) -> Any:
    """Turn dataclasses, tuples and numpy numbers into what YAML knows."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
