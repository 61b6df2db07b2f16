"""Bags in SQLite, read by rosbags with tables that end and paths of any characters."""

import contextlib
import os
from pathlib import Path
import sqlite3
from urllib.parse import quote

from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader


class SqliteReader(Sqlite3Reader):
    """That of rosbags, for paths of any characters and tables that are as large as their file."""

    notes: tuple[str, ...] = ()

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
