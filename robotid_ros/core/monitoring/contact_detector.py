"""When something touches the robot, and at which joint it shows."""

from collections.abc import Sequence
import dataclasses

import numpy as np

from ..arrays import Array
from .contact_thresholds import ContactThresholds
from .external_effort import ExternalEffort

# A contact ends when all efforts have stayed for so long [s] below so large a share of their
# thresholds: one that goes on is told once.
RELEASE_TIME, RELEASE_SHARE = 0.2, 0.5


@dataclasses.dataclass(frozen=True)
class Contact:
    """
    The last contact.

    Attributes
    ----------
    joint : where the external effort was largest beside its threshold
    stamp : when it was beyond it first [ns]
    effort, threshold : of this joint then [N·m or N]
    number : how many there were until then
    present : whether it goes on

    """

    joint: str
    stamp: int
    effort: float
    threshold: float
    number: int
    present: bool


class ContactDetector:
    """
    Compares external efforts with thresholds, one sample after another.

    Parameters
    ----------
    joints : names
    thresholds : where friction is known; what it may hide is added to them

    Attributes
    ----------
    threshold : (n,) of the last sample, in the direction of its external effort [N·m or N]
    contact : the last one, or None

    """

    def __init__(self, joints: Sequence[str], thresholds: ContactThresholds):
        self._joints, self._thresholds = joints, thresholds
        self._quiet_since = 0
        self.threshold: Array = np.full(len(joints), np.inf)
        self.contact: Contact | None = None

    def take(self, seen: ExternalEffort) -> bool:
        """Take in one sample; return whether a contact began or ended."""
        hidden = np.where(seen.effort > 0.0, seen.below, seen.above)
        self.threshold = self._thresholds.at(seen.speed, seen.inertia) + hidden
        share = np.abs(seen.effort) / self.threshold
        joint = int(np.argmax(share))
        before = self.contact
        if share[joint] > RELEASE_SHARE:
            self._quiet_since = seen.stamp
        if before is not None and before.present:
            if abs(seen.stamp - self._quiet_since) * 1e-9 > RELEASE_TIME:
                self.contact = dataclasses.replace(before, present=False)
        elif share[joint] > 1.0:
            self.contact = Contact(
                self._joints[joint],
                seen.stamp,
                float(seen.effort[joint]),
                float(self.threshold[joint]),
                (before.number if before is not None else 0) + 1,
                True,
            )
        return self.contact is not before
