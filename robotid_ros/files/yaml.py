"""YAML as ROS reads it: `1e-3` is a number, a key given twice and an alias are errors."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import dataclasses
import functools
import re
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict, Never, TypeVar, Union

import numpy as np
import yaml

from ..exceptions import ConfigurationError

_Loader: type = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
_Dumper: type = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)
# Nesting of a configuration is below ten, that of results below six.
MAX_DEPTH = 64
# Of a line that is not to be broken: what the library in C takes.
MAX_LINE = 2**31 - 1
# What constructors of PyYAML raise on `!!int "a"` and others.
_BUILT = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError)
# Fields of earlier results, which nothing reads.
EARLIER = {f'rows_{what}' for what in ('total', 'used', 'bridged', 'standstill', 'beside')}
T = TypeVar('T')


def _problem(text: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=mark)


class _StrictLoader(_Loader):
    """Safe loader with YAML 1.2 numbers, integers of 64 bits and unique plain keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _problem('a key must be plain text', key.start_mark)
            if key.value in seen:
                raise _problem(f"the key '{key.value}' is given twice", key.start_mark)
            seen.add(key.value)
        return dict(super().construct_mapping(node, deep))

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        value = int(super().construct_yaml_int(node))
        if value.bit_length() > 64:
            raise _problem('a whole number has too many digits', node.start_mark)
        return value


class _Dumper12(_Dumper):
    """Safe dumper: lists of plain values on one line, long text as blocks, no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _list(dumper: yaml.SafeDumper, items: list[Any] | tuple[Any, ...]) -> yaml.Node:
    flow = all(isinstance(item, int | float | str) for item in items)
    return dumper.represent_sequence('tag:yaml.org,2002:seq', items, flow_style=flow)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = '|' if '\n' in text else None
    text = text.encode(errors='backslashreplace').decode()  # of a path that is not UTF-8
    return dumper.represent_scalar('tag:yaml.org,2002:str', text, style=style)


# YAML 1.1, which PyYAML follows, takes `1e-3` and `1.0e3` for text; ROS takes them for numbers.
_NUMBER = re.compile(r'^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$')
for _class in (_StrictLoader, _Dumper12):
    _class.add_implicit_resolver('tag:yaml.org,2002:float', _NUMBER, list('-+.0123456789'))
_StrictLoader.add_constructor('tag:yaml.org,2002:int', _StrictLoader.construct_yaml_int)
_Dumper12.add_representer(list, _list)
_Dumper12.add_representer(tuple, _list)
_Dumper12.add_representer(str, _text)
_Dumper12.add_multi_representer(str, _text)  # of a finding
_dump = functools.partial(yaml.dump, Dumper=_Dumper12, sort_keys=False, allow_unicode=True)


def parse_yaml(text: str, source: str) -> Any:
    """Read YAML text; ConfigurationError, with `source`, line and column: it is none."""
    try:
        _check_structure(text)
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, 'problem_mark', None)
        where = f', line {mark.line + 1}, column {mark.column + 1}' if mark else ''
        problem = getattr(error, 'problem', None) or error
        raise ConfigurationError(
            f"'{source}'{where} is not valid YAML ({problem}): correct it, or give another file"
        ) from error
    except _BUILT as error:
        raise ConfigurationError(
            f"a value in '{source}' is not valid YAML ({error}): correct it"
        ) from error


def _check_structure(text: str) -> None:
    """Raise an error on deep nesting, which overruns the loader in C, and on aliases."""
    depth = 0
    event: Any
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            problem = f'write out what the alias *{event.anchor} stands for'
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            problem = 'it is nested too deeply' if depth > MAX_DEPTH else ''
        else:
            depth -= isinstance(event, yaml.CollectionEndEvent)
            continue
        if problem:
            raise _problem(problem, event.start_mark)


def dump_yaml(values: Any) -> str:
    """Write plain values as YAML; every float reads back bit for bit, keys keep their order."""
    return str(_dump(values, width=99, default_flow_style=False))


def dump_flow(value: Any) -> str:
    """Write one plain value, list or mapping on one line: `[1.0, 2.0]`, `{p: 3.0}`."""
    text = str(_dump(value, width=MAX_LINE, default_flow_style=True))
    return text.removesuffix('...\n').strip()


def to_plain(value: Any, change: Callable[[Any], Any] = lambda value: value) -> Any:
    """Turn dataclasses, arrays and the like into what YAML knows; each value by `change` first."""
    value = change(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        value = change(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): to_plain(item, change) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [to_plain(item, change) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def from_plain(kind: type[T], values: Mapping[str, Any]) -> T:
    """Make a dataclass of plain values of the declared types; TypeError names a wrong field."""
    hints = get_type_hints(kind)
    known = {name: value for name, value in values.items() if name not in EARLIER}
    return kind(**{name: _made(hints.get(name), value, name) for name, value in known.items()})


def _made(hint: Any, value: Any, name: str) -> Any:
    """Return a value as the type that is declared for a field; raises as `from_plain`."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint in (Any, None):
        return value
    if origin in (UnionType, Union):
        for kind in inner:
            with contextlib.suppress(TypeError):
                return _made(kind, value, name)
    elif isinstance(value, Mapping):
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return from_plain(hint, value)
        if origin is Mapping:
            return {key: _made(inner[1], item, name) for key, item in value.items()}
        if is_typeddict(hint) and (kinds := get_type_hints(hint)).keys() <= value.keys():
            return {k: _made(kinds.get(k, Any), item, name) for k, item in value.items()}
    elif origin is np.ndarray and isinstance(value, list):
        return np.array(value, dtype=float)
    elif origin in (tuple, Sequence) and isinstance(value, tuple | list):
        items = [_made(inner[0], item, name) for item in value]
        return tuple(items) if origin is tuple else items
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return value
    elif hint not in (float, Never) and isinstance(hint, type) and not is_typeddict(hint):
        if isinstance(value, hint):
            return value
    raise TypeError(f'{name} is {value!r:.80}')
