"""Statistics of joint states, gathered chunk by chunk: travel, gaps in the data, faults."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....core.signals.recording import range_of_positions
from ...formats.joint_table import FIELDS, JointTable
from .joint_state_checks import check_joint_states, join_measured_joints, MIN_TRAVEL


@dataclass(frozen=True)
class Channel:
    """One joint: travel, and each quantity 'live', 'constant', '2 NaN' or 'absent'."""

    joint: str
    travel: float
    position: str
    velocity: str
    effort: str


class ChannelStatistics:
    """
    Counts, extremes and faults of joint states; memory grows by two stamps a message.

    Attributes
    ----------
    sets : how many messages there are of each set of joints
    findings : remarks, and why no identification is possible, of the first chunk in motion

    """

    def __init__(self) -> None:
        self.sets: dict[tuple[str, ...], int] = {}
        self._joints: tuple[str, ...] = ()
        self._stamps: list[np.ndarray] = []
        self._missing: dict[str, np.ndarray] = {}
        self._range: dict[str, np.ndarray] = {}
        self.findings: tuple[list[str], str] = ([], '')
        self._moved = False

    def add(self, tables: Sequence[JointTable]) -> JointTable | None:
        """Count a chunk; return the states of its fullest publisher, None where that paused."""
        for table in tables:
            self.sets[table.joints] = self.sets.get(table.joints, 0) + len(table.stamp)
        same = [table for table in tables if set(self._joints) <= set(table.joints)]
        if not same:
            return None
        states = max(same, key=lambda t: (t.has_effort, len(t.stamp)))
        states = states.columns(self._joints or states.joints)
        self._joints = states.joints
        self._stamps.append(np.stack([states.stamp, states.received]))
        for name in FIELDS:
            self._count(name, getattr(states, name))
        if not self._moved:
            self.findings = check_joint_states(join_measured_joints(tables))
            travel = self._range['position'][1] - self._range['position'][0]
            self._moved = bool((travel > MIN_TRAVEL).any())
        return states

    def _count(self, name: str, values: np.ndarray) -> None:
        extremes, missing = range_of_positions(values), (~np.isfinite(values)).sum(axis=0)
        if name in self._range:
            extremes = range_of_positions(np.concatenate([extremes, self._range[name]]))
            missing = missing + self._missing[name]
        self._range[name], self._missing[name] = extremes, missing

    def stamps(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all stamps and times of reception, as they came [ns]."""
        stamp, received = np.concatenate(self._stamps, axis=1)
        return stamp, received

    def channels(self) -> tuple[Channel, ...]:
        """Describe each joint."""
        low, high = self._range['position']
        travel = np.where(high >= low, high - low, 0.0)
        return tuple(
            Channel(joint, float(travel[j]), *(self._quality(name, j) for name in FIELDS))
            for j, joint in enumerate(self._joints)
        )

    def _quality(self, name: str, joint: int) -> str:
        total = sum(stamps.shape[1] for stamps in self._stamps)
        missing, (low, high) = int(self._missing[name][joint]), self._range[name][:, joint]
        if missing == total:
            return 'absent'
        if missing:
            return f'{missing} NaN'
        return 'constant' if low == high else 'live'
