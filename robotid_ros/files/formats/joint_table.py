"""Joint states as one table, whether a file of columns, a bag or a topic holds them."""

from collections.abc import Sequence
import dataclasses
from dataclasses import dataclass, field

import numpy as np

FIELDS = ('position', 'velocity', 'effort')
COLUMNS = ('stamp', 'received', *FIELDS, 'temperature')


@dataclass(frozen=True)
class JointTable:
    """
    Joint states in the order of recording, in SI; NaN where a value is missing.

    Attributes
    ----------
    joints : names of the columns
    stamp, received : (N,) times [ns]
    position, velocity, effort : (N, n)
    temperature : (N, n) [°C] where the table itself holds them, or None
    notes : what was found, assumed and done, in words

    """

    joints: tuple[str, ...]
    stamp: np.ndarray
    received: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    temperature: np.ndarray | None = None
    notes: tuple[str, ...] = field(default=(), kw_only=True)

    def columns(self, joints: Sequence[str]) -> 'JointTable':
        """Return these joints, in this order."""
        index = np.s_[:, [self.joints.index(joint) for joint in joints]]
        return self._at(index, COLUMNS[2:], joints=tuple(joints))

    def rows(self, index: np.ndarray | slice) -> 'JointTable':
        """Return these rows."""
        return self._at(index, COLUMNS)

    def _at(self, index: object, names: Sequence[str], **changes: object) -> 'JointTable':
        values = {name: getattr(self, name) for name in names}
        cut = {name: x if x is None else x[index] for name, x in values.items()}
        return dataclasses.replace(self, **cut, **changes)  # type: ignore[arg-type]

    @property
    def has_effort(self) -> bool:
        """Whether any effort was published."""
        return bool(np.isfinite(self.effort).any())


def concatenate(*tables: JointTable) -> JointTable:
    """Put the rows of tables with the same columns behind each other."""
    parts = {name: [getattr(table, name) for table in tables] for name in COLUMNS}
    joined = {k: None if v[0] is None else np.concatenate(v) for k, v in parts.items()}
    return dataclasses.replace(tables[-1], **joined)  # type: ignore[arg-type]
