"""YAML as ROS reads it: `1e-3` is a number, and a key given twice is an error."""

import re
from typing import Any

import yaml

from ..exceptions import ConfigurationError

_Loader: type = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
_Dumper: type = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)


class _StrictLoader(_Loader):
    """Safe loader with YAML 1.2 numbers and unique keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key.value}' is given twice", key.start_mark
                )
            seen.add(key.value)
        return dict(super().construct_mapping(node, deep))


class _Dumper12(_Dumper):
    """Safe dumper: lists of plain values on one line, long text as blocks, no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _list(dumper: yaml.SafeDumper, items: list[Any] | tuple[Any, ...]) -> yaml.Node:
    flow = all(isinstance(item, int | float | str) for item in items)
    return dumper.represent_sequence('tag:yaml.org,2002:seq', items, flow_style=flow)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = '|' if '\n' in text else None
    return dumper.represent_scalar('tag:yaml.org,2002:str', text, style=style)


# YAML 1.1, which PyYAML follows, takes `1e-3` and `1.0e3` for text; ROS takes them for numbers.
_NUMBER = re.compile(r'^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$')
for _class in (_StrictLoader, _Dumper12):
    _class.add_implicit_resolver('tag:yaml.org,2002:float', _NUMBER, list('-+.0123456789'))
_Dumper12.add_representer(list, _list)
_Dumper12.add_representer(tuple, _list)
_Dumper12.add_representer(str, _text)


def parse_yaml(text: str, source: str) -> Any:
    """
    Read YAML text.

    Raises
    ------
    ConfigurationError : not YAML, or a key twice; names `source`, line and column

    """
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, 'problem_mark', None)
        where = f', line {mark.line + 1}, column {mark.column + 1}' if mark else ''
        problem = getattr(error, 'problem', None) or error
        raise ConfigurationError(f"'{source}'{where} is not valid YAML: {problem}") from error


def dump_yaml(values: Any) -> str:
    """Write plain values as YAML; every float reads back bit for bit, keys keep their order."""
    return str(
        yaml.dump(
            values,
            Dumper=_Dumper12,
            sort_keys=False,
            allow_unicode=True,
            width=99,
            default_flow_style=False,
        )
    )
