"""
A table, read as if it were a bag of joint states.

So everything that reads bags reads tables: in chunks, repaired, inspected, converted.
"""

from collections.abc import Collection, Iterator
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)

from ....core.signals.clock_correction import MAX_STEP_BACK, MIN_PART_SAMPLES
from ...formats.joint_table import JointTable
from ...formats.open_table import open_table
from ...formats.read_options import ReadOptions
from ...formats.readers.parquet_table import EPISODE_GAP
from ...formats.unit_choice import QUANTITIES
from ..schema.message_definitions import JOINT_STATE, TEMPERATURE
from ..schema.session_header import JOINT_STATES_TOPIC
from .joint_state_messages import serialize_joint_states, serialize_temperature

# Temperatures change within minutes: so many of each joint are enough [1/s].
TEMPERATURE_RATE = 1.0


class TableReader:
    """
    Reader in the manner of those of `rosbags`.

    Its topics are that of the joint states, and `/joint_temperatures/<joint>` of joints whose
    temperature is known.

    Parameters
    ----------
    path : of the table
    options : how to read it
    made : joint states that are read already
    topic : what to call it

    """

    def __init__(
        self,
        path: Path,
        options: ReadOptions,
        made: JointTable | None = None,
        topic: str = JOINT_STATES_TOPIC,
    ):
        self.path, self.options, self.topic, self._made = path, options, topic, made
        self.connections: list[Connection] = []
        self.notes: tuple[str, ...] = ()

    def open(self) -> None:
        """Read the table."""
        table = self._made or open_table(self.path, self.options)
        stamp, self.notes = join_trials(table.stamp), table.notes
        if stamp is not table.stamp:
            self.notes += (
                f"the times of '{self.path}' start again within it: taken for trials one after "
                f'another, {EPISODE_GAP:g} s apart',
            )
        self._table = dataclasses.replace(table, stamp=stamp)
        definition = MessageDefinition(MessageDefinitionFormat.NONE, '')
        kind = ConnectionExtRosbag2('cdr', [])
        count = len(self._table.stamp)
        self.connections = [
            Connection(0, self.topic, JOINT_STATE, definition, '', count, kind, self)
        ]
        self._warm = self._temperature_messages()
        for k, (joint, messages) in enumerate(self._warm.items(), start=1):
            topic, number = f'/joint_temperatures/{joint}', len(messages)
            self.connections.append(
                Connection(k, topic, TEMPERATURE, definition, '', number, kind, self)
            )

    def close(self) -> None:
        """Nothing is held open."""

    def messages(
        self, connections: Collection[Any], start: int | None = None, stop: int | None = None
    ) -> Iterator[tuple[Connection, int, bytes]]:
        """Yield connection, time of reception [ns] and message of each row between times."""
        for connection, messages in zip(self.connections[1:], self._warm.values(), strict=True):
            if connection in connections:
                for time, message in messages:
                    if (start is None or time >= start) and (stop is None or time < stop):
                        yield connection, time, message
        if self.connections[0] in connections:
            yield from self._joint_states(start, stop)

    def _joint_states(
        self, start: int | None, stop: int | None
    ) -> Iterator[tuple[Connection, int, bytes]]:
        table = self._table
        received = np.maximum.accumulate(table.stamp)
        first = 0 if start is None else int(np.searchsorted(received, start))
        last = len(received) if stop is None else int(np.searchsorted(received, stop))
        fields = [getattr(table, quantity)[first:last] for quantity in QUANTITIES]
        data = serialize_joint_states(table.joints, table.stamp[first:last], fields)
        for time, message in zip(received[first:last].tolist(), data, strict=True):
            yield self.connections[0], time, message

    def _temperature_messages(self) -> dict[str, list[tuple[int, bytes]]]:
        """Return times of reception [ns] and messages of each joint whose temperature is known."""
        table, found = self._table, dict[str, list[tuple[int, bytes]]]()
        if table.temperature is None:
            return found
        received = np.maximum.accumulate(table.stamp)
        for joint, column in zip(table.joints, table.temperature.T, strict=True):
            known = np.flatnonzero(np.isfinite(column))
            turns = (received[known] - received[0]) // round(1e9 / TEMPERATURE_RATE)
            rows = known[np.unique(turns, return_index=True)[1]]
            stamps, values = received[rows].tolist(), column[rows].tolist()
            if stamps:
                found[joint] = [
                    (t, serialize_temperature(joint, t, v))
                    for t, v in zip(stamps, values, strict=True)
                ]
        return found


def join_trials(stamp: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """
    Let the times of trials that are appended to one another go on after a pause.

    No times of reception say how long passed between them. Steps ahead nearby that make up for a
    step back are those of stamps that are far off: they stay.

    Parameters
    ----------
    stamp : (N,) [ns], which start again with each trial

    Returns
    -------
    (N,) [ns]; the same array where none starts again

    """
    step = np.diff(stamp)
    back = step < -MAX_STEP_BACK * 1e9
    if not back.any():
        return stamp
    from scipy.ndimage import maximum_filter1d

    restart = back & (2 * maximum_filter1d(step, 2 * MIN_PART_SAMPLES + 1) < -step)
    if not restart.any():
        return stamp
    shift = np.where(restart, round(EPISODE_GAP * 1e9) - step, 0)
    return stamp + np.concatenate([[0], np.cumsum(shift)])
