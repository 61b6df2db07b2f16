"""
A table, read as if it were a bag of joint states.

So everything that reads bags reads tables: in chunks, repaired, inspected, converted.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)

from ...formats.joint_table import QUANTITIES
from ...formats.open_table import open_table
from ...formats.read_options import ReadOptions
from ..schema.message_definitions import JOINT_STATE
from ..schema.session_header import JOINT_STATES_TOPIC
from .joint_state_messages import serialize_joint_states


class TableReader:
    """Reader of one topic, `/joint_states`, in the manner of those of `rosbags`."""

    def __init__(self, path: Path, options: ReadOptions):
        self.path, self.options = path, options
        self.connections: list[Connection] = []
        self.notes: tuple[str, ...] = ()

    def open(self) -> None:
        """Read the table."""
        self._table = open_table(self.path, self.options)
        self.notes = self._table.notes
        definition = MessageDefinition(MessageDefinitionFormat.NONE, '')
        kind = ConnectionExtRosbag2('cdr', [])
        count = len(self._table.stamp)
        self.connections = [
            Connection(0, JOINT_STATES_TOPIC, JOINT_STATE, definition, '', count, kind, self)
        ]

    def close(self) -> None:
        """Nothing is held open."""

    def messages(
        self, connections: Collection[Any], start: int | None = None, stop: int | None = None
    ) -> Iterator[tuple[Connection, int, bytes]]:
        """Yield connection, time of reception [ns] and message of each row between times."""
        table = self._table
        received = np.maximum.accumulate(table.stamp)
        first = 0 if start is None else int(np.searchsorted(received, start))
        last = len(received) if stop is None else int(np.searchsorted(received, stop))
        fields = [getattr(table, quantity)[first:last] for quantity in QUANTITIES]
        data = serialize_joint_states(table.joints, table.stamp[first:last], fields)
        for time, message in zip(received[first:last].tolist(), data, strict=True):
            yield self.connections[0], time, message
