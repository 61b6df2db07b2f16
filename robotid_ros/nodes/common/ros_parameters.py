"""
A node's ROS parameters and the package's configuration: the same settings, declared once.

And the parameters of other nodes, by their services.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import math
from pathlib import Path
from types import UnionType
import typing
from typing import Any, Union

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, ParameterEvent
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.parameter_client import AsyncParameterClient

from ...exceptions import ControllerError
from ...files.configuration import Configuration, from_mapping
from .waiting import answer_of

EVENTS = '/parameter_events'  # of all nodes


def configuration_from_overrides(
    overrides: Mapping[str, Any], folder: str | Path | None = None
) -> tuple[Configuration, dict[str, Any]]:
    """Check a node's overrides; return the configuration, and the mapping it was made of."""
    groups: dict[str, Any] = {}
    for name, value in overrides.items():
        # The description itself may come as a parameter, as robot_state_publisher takes it.
        if name == 'robot_description':
            continue
        *path, key = name.split('.')
        group = groups
        for part in path:
            group = group.setdefault(part, {})
        group[key] = value
    values = _undo_ros_yaml(Configuration, groups)
    return from_mapping(values, folder), values


def declare_settings(node: Node, configuration: Configuration, groups: Iterable[str]) -> None:
    """Declare the fields of these groups as parameters of the node, read-only but dynamic ones."""
    wanted = tuple(f'{group}.' for group in groups)
    rows = []
    for name, kind, value, field in iter_settings(configuration):
        element, is_list = _element_type(kind)
        if is_list:
            # Of an empty list only the type, as rclpy takes it for a list of bytes.
            value = list(value or ()) or Parameter.Type.from_parameter_value([element()])
        if name.startswith(wanted):
            rows.append((name, value, descriptor_of(kind, field)))
    node.declare_parameters('', rows, ignore_override=True)


def changed_parameters(event: ParameterEvent, node: str) -> dict[str, Any]:
    """Return the parameters that an event says a node, by its full name, has new or changed."""
    changed = (*event.new_parameters, *event.changed_parameters) if event.node == node else ()
    return {each.name: parameter_value_to_python(each.value) for each in changed}


class ParameterClient:
    """Parameter services of another node, for worker threads; `ControllerError`: no answer."""

    def __init__(self, node: Node, name: str, timeout: float):
        self.name, self.timeout = name, timeout
        self._services = AsyncParameterClient(node, name)
        self.is_ready = self._services.services_are_ready

    def list(self) -> list[str]:
        """Return the names of all parameters."""
        return sorted(self._answer(lambda: self._services.list_parameters([], 0)).result.names)

    def get(self, names: Sequence[str]) -> dict[str, Any]:
        """Read parameters; all of them must be known."""
        answer = self._answer(lambda: self._services.get_parameters([*names]))
        if len(answer.values) != len(names):
            # One unknown name empties the whole answer.
            raise ControllerError(f"'{self.name}' lacks one of the parameters {', '.join(names)}")
        return dict(zip(names, map(parameter_value_to_python, answer.values), strict=True))

    def set(self, values: Mapping[str, Any]) -> None:
        """Set parameters all at once or not at all."""
        given = [Parameter(name, value=value) for name, value in values.items()]
        result = self._answer(lambda: self._services.set_parameters_atomically(given)).result
        if not result.successful:
            reason = result.reason or 'no reason'
            raise ControllerError(f"'{self.name}' refused the new parameters: {reason}")

    def _answer(self, ask: Callable[[], Any]) -> Any:
        return answer_of(ask, self.timeout, f"'{self.name}'")


def _undo_ros_yaml(kind: Any, value: Any) -> Any:
    """Undo what ROS makes of YAML: `[]` comes as None, `null` as the text 'null'."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, UnionType):
        inner = next(a for a in arguments if a is not type(None))
        return None if value in (None, 'null', '~', '') else _undo_ros_yaml(inner, value)
    if origin is tuple:
        return [] if value is None else list(value) if hasattr(value, 'tolist') else value
    if not isinstance(value, Mapping):
        return value
    hints = typing.get_type_hints(kind) if dataclasses.is_dataclass(kind) else {}
    inner = arguments[1] if origin is dict else None
    return {key: _undo_ros_yaml(hints.get(key, inner), item) for key, item in value.items()}


Setting = tuple[str, Any, Any, Any]


def iter_settings(settings: Any, prefix: str = '') -> Iterator[Setting]:
    """All fields below, as (full name, type, value, dataclass field)."""
    hints = typing.get_type_hints(type(settings))
    for field in dataclasses.fields(settings):
        name, value = f'{prefix}{field.name}', getattr(settings, field.name)
        yield from _iter_values(name, hints[field.name], value, field)


def _iter_values(name: str, kind: Any, value: Any, field: Any) -> Iterator[Setting]:
    if dataclasses.is_dataclass(value):
        yield from iter_settings(value, f'{name}.')
    elif typing.get_origin(kind) is dict:
        for key, item in value.items():
            yield from _iter_values(f'{name}.{key}', typing.get_args(kind)[1], item, field)
    else:
        yield name, kind, value, field


def _element_type(kind: Any) -> tuple[type, bool]:
    """Python type of one element, and whether there is a list of them."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, UnionType):
        return _element_type(next(a for a in arguments if a is not type(None)))
    return (arguments[0], True) if origin is tuple else (kind, False)


def descriptor_of(kind: Any, field: Any) -> ParameterDescriptor:
    """Describe a field of this type as a parameter: meaning, unit, bounds."""
    meta = field.metadata
    element, is_list = _element_type(kind)
    low, high = meta.get('minimum'), meta.get('maximum')
    choices = ', '.join(meta.get('choices') or ())
    said = {'unit:': meta.get('unit'), 'at least': low, 'at most': high, 'one of': choices}
    descriptor = ParameterDescriptor(
        description=meta.get('description', ''),
        additional_constraints='; '.join(
            f'{what} {value}' for what, value in said.items() if value not in (None, '')
        ),
        read_only=not meta.get('dynamic', False),
        dynamic_typing=type(None) in typing.get_args(kind),
    )
    typed = element is float and not (is_list or descriptor.dynamic_typing)
    if typed and (low, high) != (None, None):
        low, high = -math.inf if low is None else low, math.inf if high is None else high
        descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return descriptor
