"""Bags of ROS 1, read as if they were of ROS 2."""

from collections.abc import Collection, Iterator
import contextlib
from pathlib import Path
from typing import Any

from rosbags.interfaces import Connection
from rosbags.rosbag1 import Reader
from rosbags.typesys import get_types_from_msg, get_typestore, Stores
from rosbags.typesys.base import TypesysError


class Ros1Reader:
    """Reader of a ROS 1 bag whose messages are those of ROS 2 (CDR)."""

    def __init__(self, path: Path):
        self._reader = Reader(path)
        self._store: Any = get_typestore(Stores.ROS1_NOETIC)

    def open(self) -> None:
        """Read the index."""
        self._reader.open()
        for connection in self._reader.connections:
            with contextlib.suppress(TypesysError):
                types = get_types_from_msg(connection.msgdef.data, connection.msgtype)
                known = self._store.fielddefs
                self._store.register({k: v for k, v in types.items() if k not in known})

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    @property
    def connections(self) -> list[Connection]:
        """Topics, with the definitions that the bag embeds."""
        return list(self._reader.connections)

    def messages(
        self, connections: Collection[Any], start: int | None = None, stop: int | None = None
    ) -> Iterator[tuple[Connection, int, bytes]]:
        """Yield connection, time of reception [ns] and message, converted."""
        for connection, time, data in self._reader.messages(connections, start, stop):
            yield connection, time, bytes(self._store.ros1_to_cdr(data, connection.msgtype))
