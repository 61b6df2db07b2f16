"""What a verification found, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...core.verification.static_postures import JointStatics
from ...core.verification.tracking import Tracking

# Runs of which the tracking errors are kept.
PRESENT, FEED_FORWARD, NEW_GAINS = 'present', 'feed_forward', 'new_gains'


@dataclass(frozen=True)
class TrackingRow:
    """
    Tracking error of one joint in two runs of the same motion [unit].

    Attributes
    ----------
    joint, unit : name, and 'rad' or 'm'
    rms_before, rms_after : root mean square
    peak_before, peak_after : largest absolute value

    """

    joint: str
    unit: str
    rms_before: float
    rms_after: float
    peak_before: float
    peak_after: float

    @property
    def ratio(self) -> float:
        """How many times smaller the error has become."""
        return self.rms_before / self.rms_after if self.rms_after else float('inf')


@dataclass(frozen=True)
class EffortRow:
    """Measured minus predicted effort of one joint on the robot as it is, in motion."""

    joint: str
    unit: str
    relative: float
    rms: float


@dataclass(frozen=True)
class GainTrial:
    """
    Proposed gains on the robot.

    Attributes
    ----------
    kept : whether they are the controller's now
    sentence : why
    old, new : p, i, d by joint
    tracking : before and after

    """

    kept: bool
    sentence: str
    old: Mapping[str, Mapping[str, float]]
    new: Mapping[str, Mapping[str, float]]
    tracking: tuple[TrackingRow, ...] = ()


@dataclass(frozen=True)
class Verification:
    """
    Everything that was verified of one identification; what was not is empty.

    Attributes
    ----------
    results : when these were created, of which it is about
    created : when it was verified last (ISO 8601)
    controller, trajectory : name, and hash of the motion
    tracking : without and with feed-forward
    reason : why there was no run with feed-forward
    efforts : predicted against measured efforts, of the run without
    gains : proposed gains, or None
    static : gravity and stiction
    postures : how many
    series : tracking errors of runs, by `PRESENT` and the others

    """

    results: str
    created: str = ''
    controller: str = ''
    trajectory: str = ''
    tracking: tuple[TrackingRow, ...] = ()
    reason: str = ''
    efforts: tuple[EffortRow, ...] = ()
    gains: GainTrial | None = None
    static: tuple[JointStatics, ...] = ()
    postures: int = 0
    series: Mapping[str, Tracking] = field(default_factory=dict)


def tracking_rows(
    before: Tracking, after: Tracking, units: Mapping[str, str]
) -> tuple[TrackingRow, ...]:
    """Put two runs side by side; units by joint."""
    columns = (before.rms, after.rms, before.peak, after.peak)
    return tuple(
        TrackingRow(joint, units[joint], *(float(column[j]) for column in columns))
        for j, joint in enumerate(before.joints)
    )
