"""Every key of a configuration with default, unit, bounds and meaning, as declared."""

from collections.abc import Iterator
import dataclasses
import typing
from typing import Any

from ...settings import MISSING
from ..configuration import Configuration
from .commented_yaml import Entry, parameter_file

# Stands for a name that the user chooses.
FREE_NAME = 'NAME'
HEAD = (
    "Every key of a configuration, with its default: a robot's file needs only those that differ. "
    'Above each: what it means, its type, unit and bounds. Units with rad, N·m and kg·m² are '
    'those of revolute joints; on prismatic ones they are m, N and kg. One file serves all nodes '
    'and the command line. Where a key is a group of names of your own, NAME shows what is below '
    'each.'
)


def settings_reference() -> str:
    """Return a configuration that holds every key at its default; what it says is a comment."""
    return parameter_file(_entries(Configuration), HEAD)


def _entries(cls: type) -> Iterator[Entry]:
    types = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        kind = types[field.name]
        comment = _comment(field, kind)
        if dataclasses.is_dataclass(kind):
            yield Entry(field.name, tuple(_entries(typing.cast(type, kind))), comment)
            continue
        value = field.default if field.default is not MISSING else None
        yield Entry(field.name, _plain({} if value is None and _free(kind) else value), comment)
        if _free(kind):
            yield from _example(field.name, typing.get_args(kind)[1])


def _free(kind: Any) -> bool:
    """Whether a setting is a group of names that the user chooses."""
    return typing.get_origin(kind) is dict


def _example(name: str, kind: Any) -> Iterator[Entry]:
    """Show what is below a free name, where that is a group of settings."""
    if dataclasses.is_dataclass(kind):
        inside = tuple(_entries(typing.cast(type, kind)))
        yield Entry(name, (Entry(FREE_NAME, inside),), hidden=True)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _comment(field: 'dataclasses.Field[Any]', kind: Any) -> str:
    meta = field.metadata
    low, high = meta['minimum'], meta['maximum']
    facts = [meta['unit']] if meta['unit'] else []
    if low is not None and high is not None:
        facts.append(f'{low:g} to {high:g}')
    elif low is not None:
        facts.append(f'at least {low:g}')
    elif high is not None:
        facts.append(f'at most {high:g}')
    if meta['choices']:
        facts.append('one of ' + ', '.join(filter(None, meta['choices'])))
    if not dataclasses.is_dataclass(kind):
        facts.insert(0, _type_name(kind))
    return f'{meta["description"]} [{"; ".join(facts)}]' if facts else meta['description']


def _type_name(kind: Any) -> str:
    """Return a type in words: 'number', 'list of numbers', 'group by name'."""
    words = {float: 'number', int: 'whole number', str: 'text', bool: 'true or false'}
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return f'list: {words[arguments[0]]}'
    if origin is dict:
        return 'by name'
    if type(None) in arguments:
        return f'{words[arguments[0]]} or null'
    return words[kind]
