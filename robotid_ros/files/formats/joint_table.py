"""Joint states as one table, whether a file of columns, a bag or a topic holds them."""

from collections.abc import Sequence
import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.findings import Finding

FIELDS = ('position', 'velocity', 'effort')
COMMAND = 'command'
COLUMNS = ('stamp', 'received', *FIELDS, COMMAND)


@dataclass(frozen=True)
class JointTable:
    """Joint states in the order of recording, in SI; NaN where a value is missing."""

    joints: tuple[str, ...]  # names of the columns
    stamp: np.ndarray  # (N,) [ns]
    received: np.ndarray  # (N,) [ns]
    position: np.ndarray  # (N, n)
    velocity: np.ndarray  # (N, n)
    effort: np.ndarray  # (N, n)
    # (N, n) commanded positions, None where these were not asked for.
    command: np.ndarray | None = field(default=None, kw_only=True)
    notes: tuple[Finding, ...] = field(default=(), kw_only=True)  # what was found and done

    def columns(self, joints: Sequence[str]) -> 'JointTable':
        """Return these joints, in this order."""
        if tuple(joints) == self.joints:
            return self
        places = [self.joints.index(joint) for joint in joints]
        held = {name: getattr(self, name) for name in (*FIELDS, COMMAND)}
        values = {name: x[:, places] for name, x in held.items() if x is not None}
        return dataclasses.replace(self, joints=tuple(joints), **values)

    def rows(self, index: np.ndarray | slice) -> 'JointTable':
        """Return these rows."""
        held = {name: getattr(self, name) for name in COLUMNS}
        values = {name: x[index] for name, x in held.items() if x is not None}
        return dataclasses.replace(self, **values)

    @property
    def fullness(self) -> tuple[bool, int]:
        """Whether any effort was published, and how many rows there are: the fullest counts."""
        return bool(np.isfinite(self.effort).any()), len(self.stamp)


def concatenate(*tables: JointTable) -> JointTable:
    """Put the rows of tables with the same columns behind each other."""
    held = {name: [getattr(table, name) for table in tables] for name in COLUMNS}
    values: dict[str, Any] = {
        name: np.concatenate(parts) for name, parts in held.items() if parts[-1] is not None
    }
    return dataclasses.replace(tables[-1], **values)
