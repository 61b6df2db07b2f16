"""Message definitions: from the recording itself, from the installed packages, from rosbags."""

from collections.abc import Iterable
import functools
import os
from pathlib import Path
import re
import sys
from typing import Any

from rosbags.interfaces import MessageDefinitionFormat
from rosbags.typesys import get_types_from_idl, get_types_from_msg, get_typestore, Stores

from ....exceptions import RecordingError

JOINT_STATE = 'sensor_msgs/msg/JointState'
TEMPERATURE = 'sensor_msgs/msg/Temperature'
STRING = 'std_msgs/msg/String'
STATUS = 'diagnostic_msgs/msg/DiagnosticStatus'
# Of one message type with all that it uses, and of all types of a recording together [characters]:
# those of MoveIt, the longest that are known, have 100 kB, and 1 MB takes a second.
MAX_DEFINITION, MAX_DEFINITIONS = 256 << 10, 1 << 20
CONTROLLER_STATE = 'control_msgs/msg/JointTrajectoryControllerState'


def typestore_of(connections: Iterable[Any]) -> Any:
    """
    Typestore for a recording: rosbags' own types, and the recording's where they are not known.

    Parameters
    ----------
    connections : rosbags connections, with the definitions that the recording embeds

    """
    store = get_typestore(Stores.ROS2_JAZZY)
    room = MAX_DEFINITIONS
    for connection in connections:
        size = len(str(connection.msgdef.data))
        if connection.msgtype not in store.fielddefs and size <= min(MAX_DEFINITION, room):
            _register(store, connection.msgtype, connection.msgdef)
            room -= size
    return store


@functools.cache
def definition(message_type: str) -> tuple[str, str]:
    """
    Definition of a type with all that it uses, and its type hash (REP-2011).

    Raises
    ------
    RecordingError : the package of the type is not installed

    """
    store = get_typestore(Stores.ROS2_JAZZY)
    _add_installed(store, message_type)
    if message_type not in store.fielddefs:
        package = message_type.split('/')[0]
        raise RecordingError(
            f'no definition of {message_type} was found: install the package {package} and '
            'source its workspace'
        )
    text, _ = store.generate_msgdef(message_type, ros_version=2)
    return text, store.hash_rihs01(message_type)


def _register(store: Any, message_type: str, embedded: Any) -> None:
    # The parser takes a time that grows with the square of the number of empty lines.
    text = re.sub(r'\n\s*\n', '\n', str(embedded.data or ''))
    try:
        if embedded.format == MessageDefinitionFormat.MSG:
            types = get_types_from_msg(text, message_type)
        elif embedded.format == MessageDefinitionFormat.IDL:
            types = _idl_types(text)
        else:
            _add_installed(store, message_type)
            return
        store.register({k: v for k, v in types.items() if k not in store.fielddefs})
    except Exception:  # rosbags raises whatever the text leads to
        # A definition that cannot be read only matters when its topic is asked for.
        return


def _idl_types(text: str) -> dict[str, Any]:
    separator = '=' * 80 + '\n'
    if not text.startswith(f'{separator}IDL: '):
        return dict(get_types_from_idl(text))
    types: dict[str, Any] = {}
    for part in text.split(separator)[1:]:
        types.update(get_types_from_idl(part.split('\n', 1)[1]))
    return types


def _add_installed(store: Any, message_type: str) -> None:
    """Register a type from the `.msg` files of installed packages, with the types it uses."""
    if message_type in store.fielddefs or (path := _installed_definition(message_type)) is None:
        return
    types = get_types_from_msg(path.read_text(), message_type)
    for _, fields in types.values():
        for _, description in fields:
            if (name := _nested_type(description)) is not None:
                _add_installed(store, name)
    store.register({k: v for k, v in types.items() if k not in store.fielddefs})


def _nested_type(description: Any) -> str | None:
    """Name of the message type that a field holds, None for numbers and strings."""
    node, detail = int(description[0]), description[1]
    if node == 1:
        return None
    return str(detail) if node == 2 else _nested_type(detail[0])


def _installed_definition(message_type: str) -> Path | None:
    package, _, name = message_type.partition('/msg/')
    if not re.fullmatch(r'\w+', package) or not re.fullmatch(r'\w+', name):
        return None
    prefixes = [p for p in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if p]
    for prefix in [*prefixes, sys.prefix]:
        path = Path(prefix, 'share', package, 'msg', f'{name}.msg')
        if path.is_file():
            return path
    return None
