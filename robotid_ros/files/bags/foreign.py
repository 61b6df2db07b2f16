"""Bags of ROS 1, read as if they were of ROS 2, and those in SQLite, of any path."""

from collections.abc import Collection, Generator
import contextlib
import functools
import os
from pathlib import Path
import sqlite3
from typing import Any
from urllib.parse import quote

from rosbags.interfaces import Connection
from rosbags.rosbag1 import Reader
from rosbags.rosbag1.reader import decompressors
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader

from ...core.findings import Finding
from ..bounded import MAX_CHUNK, unpack, unpack_limit
from .messages import typestore_of


class Ros1Reader(Reader):
    """That of rosbags for ROS 1, whose messages become those of ROS 2 (CDR)."""

    notes: tuple[Finding, ...] = ()

    def open(self) -> None:
        """Read the index."""
        super().open()
        limit = min(MAX_CHUNK, unpack_limit(self.path.stat().st_size))
        names = {function: name for name, function in decompressors.items()}
        for position, chunk in self.chunks.items():
            name = names[chunk.decompressor].removeprefix('none')
            bounded = functools.partial(unpack, kind=name, limit=limit)
            self.chunks[position] = chunk._replace(decompressor=bounded)
        # Of ROS 2, whose headers have no `seq`: that is what the conversion leaves out.
        self._store = typestore_of(self.connections)

    def messages(
        self, connections: Collection[Any] = (), start: int | None = None, stop: int | None = None
    ) -> Generator[tuple[Connection, int, bytes], None, None]:
        """Yield connection, time of reception [ns] and message, converted."""
        for connection, time, data in super().messages(connections, start, stop):
            yield connection, time, bytes(self._store.ros1_to_cdr(data, connection.msgtype))


class SqliteReader(Sqlite3Reader):
    """That of rosbags, for paths of any characters and tables that are as large as their file."""

    notes: tuple[Finding, ...] = ()

    def __init__(self, path: Path):
        # It takes a path for a part of an address.
        super().__init__(Path(quote(os.fsencode(path))))

    def open(self) -> None:
        """Open the database."""
        address = f'file:{self.path}?mode=ro&immutable=1'
        with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
            # Views and virtual tables may have rows without end.
            query = "SELECT name FROM sqlite_master WHERE type = 'view' OR sql LIKE '%VIRTUAL%'"
            if found := database.execute(query).fetchone():
                raise ValueError(f'{found[0]} is no table')
        super().open()
