"""
Settings: each declared once, as a field of a frozen dataclass, read by nodes and command line.

A field carries its type, default, unit, description, bounds and choices; `parse` turns a nested
mapping (a configuration file's content, a node's parameters) into a checked instance.
"""

from collections.abc import Mapping
import dataclasses
import math
from types import UnionType
import typing
from typing import Any, TypeVar, Union

from .exceptions import ConfigurationError, use_one_of

T = TypeVar('T')
MISSING = dataclasses.MISSING


def setting(
    default: Any = MISSING,
    description: str = '',
    *,
    unit: str = '',
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    dynamic: bool = False,
    former: Mapping[str, Mapping[Any, Any]] | None = None,
) -> Any:
    """
    Declare one setting as a dataclass field; without a default it is required.

    A default may be a callable that makes it (a nested dataclass, `dict`). The description is one
    line, for `ros2 param describe` and messages; of a unit per joint 'rad' stands for 'm' on
    prismatic ones. Bounds are inclusive, of each element of arrays; a running node lets a
    `dynamic` one be changed. Of `former`, {key of earlier versions, or this one: {its value: the
    value now}}, None stands for an empty group.
    """
    metadata = {
        **{'description': description, 'unit': unit, 'minimum': minimum, 'maximum': maximum},
        **{'choices': choices, 'dynamic': dynamic, 'former': former or {}},
    }
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def parse(cls: type[T], values: Mapping[str, Any], path: str = '') -> T:
    """
    Build settings `cls` from a nested mapping; ConfigurationError: what is wrong with it.

    Supported field types: bool, int, float, str, tuple[float, ...], tuple[int, ...],
    tuple[str, ...], `X | None`, nested settings, and dict[str, X] keyed by a free name. Keys of
    earlier versions in `cls.RETIRED` are passed over.
    """
    if not isinstance(values, Mapping):
        raise ConfigurationError(f"'{path}' must be a group of keys, not {values!r}")
    prefix, types = f'{path}.' if path else '', typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    retired = getattr(cls, 'RETIRED', ())
    values = {key: value for key, value in values.items() if key not in retired}
    # Keys of earlier versions; where both are given, the present one counts.
    for name, field in fields.items():
        for old, meaning in field.metadata.get('former', {}).items():
            value = values.get(old)
            if isinstance(value, Mapping):
                value = MISSING if value else None
            if old in values and value in tuple(meaning):
                del values[old]
                values.setdefault(name, meaning[value])
    for key in values:
        if key not in fields:
            raise ConfigurationError(
                f"unknown key '{prefix}{key}': {use_one_of(str(key), fields)}"
            )
    arguments = {}
    for name, field in fields.items():
        if name in values:
            arguments[name] = _convert(types[name], values[name], f'{prefix}{name}', field)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ConfigurationError(
                f"'{prefix}{name}' is missing: {field.metadata.get('description', '')}"
            )
    try:
        return cls(**arguments)
    except ValueError as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"'{path}': {error}") from error


def _convert(kind: Any, value: Any, path: str, field: 'dataclasses.Field[Any]') -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, UnionType):
        inner = next(a for a in arguments if a is not type(None))
        return None if value is None else _convert(inner, value, path, field)
    if dataclasses.is_dataclass(kind):
        return parse(kind, value, path)  # type: ignore[arg-type]
    if origin is dict:
        if not isinstance(value, Mapping):
            raise ConfigurationError(f"'{path}' must be a group of names, not {value!r}")
        return {str(k): _convert(arguments[1], v, f'{path}.{k}', field) for k, v in value.items()}
    if origin is tuple:
        if isinstance(value, str | bytes) or not hasattr(value, '__iter__'):
            raise ConfigurationError(f"'{path}' must be a list, not {value!r}")
        return tuple(_scalar(arguments[0], v, path, field) for v in value)
    value = _scalar(kind, value, path, field)
    if value in (math.inf, -math.inf) and field.default not in (math.inf, -math.inf):
        raise ConfigurationError(f"'{path}' must be finite, not {value}")
    return value


def _scalar(kind: type, value: Any, path: str, field: 'dataclasses.Field[Any]') -> Any:
    meta = field.metadata
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ConfigurationError(f"'{path}' must be of type {kind.__name__}, not {value!r}")
    if isinstance(value, float) and value != value:
        raise ConfigurationError(f"'{path}' must be a number, not NaN")
    low, high, choices = meta.get('minimum'), meta.get('maximum'), meta.get('choices')
    if isinstance(value, int | float) and not isinstance(value, bool):
        if low is not None and value < low:
            raise ConfigurationError(f"'{path}' is {value!r}: it must be at least {low}")
        if high is not None and value > high:
            raise ConfigurationError(f"'{path}' is {value!r}: it must be at most {high}")
    if choices and value not in choices:
        raise ConfigurationError(f"'{path}' is {value!r}: {use_one_of(str(value), choices)}")
    return value
