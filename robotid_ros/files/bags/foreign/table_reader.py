"""A table as a bag of joint states: what reads bags reads, cuts, inspects and converts it."""

import dataclasses
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)

from ....core.signals.clock_correction import MAX_STEP_BACK, MIN_PART_SAMPLES
from ...formats.arrays import EPISODE_GAP
from ...formats.joint_table import JointTable
from ...formats.open_table import open_table
from ...formats.read_options import ReadOptions
from ..schema.message_definitions import JOINT_STATE
from ..schema.session_header import JOINT_STATES_TOPIC


class TableReader:
    """
    Reader in the manner of those of `rosbags`, whose one topic is a table instead of messages.

    Parameters
    ----------
    path : of the table
    options : how to read it
    made : joint states that are read already
    topic : what to call it

    """

    table: JointTable

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
        received = np.maximum.accumulate(stamp)
        warm = _steady(received, table.temperature)
        self.table = dataclasses.replace(
            table, stamp=stamp, received=received, temperature=warm, notes=()
        )
        definition = MessageDefinition(MessageDefinitionFormat.NONE, '')
        kind = ConnectionExtRosbag2('cdr', [])
        self.connections = [
            Connection(0, self.topic, JOINT_STATE, definition, '', len(stamp), kind, self)
        ]

    def close(self) -> None:
        """Nothing is held open."""


def once_a_second(passed: np.ndarray) -> np.ndarray:
    """Return the first row of each second of times [ns]: temperatures change within minutes."""
    return np.unique(passed // 10**9, return_index=True)[1]


def _steady(received: np.ndarray, temperature: np.ndarray | None) -> np.ndarray | None:
    """Return temperatures (N, n) by one value a second, None where there are none."""
    if temperature is None or np.isnan(temperature).all():
        return None
    result, passed = np.full_like(temperature, np.nan), received - received[0]
    for own, column in zip(result.T, temperature.T, strict=True):
        known = np.flatnonzero(np.isfinite(column))
        if known.size:
            rows = known[once_a_second(passed[known])]
            own[:] = np.interp(passed, passed[rows], column[rows])
    return result


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
