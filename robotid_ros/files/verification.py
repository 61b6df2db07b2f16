"""What a verification on the robot found: values, and their file beside the results."""

from collections.abc import Mapping
from dataclasses import dataclass
import math
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.verification.tracking import JointStatics, Tracking
from ..exceptions import FileError
from .atomic import read_text, write_text
from .bounded import damage_errors
from .yaml import dump_yaml, from_plain, parse_yaml, to_plain

if TYPE_CHECKING:
    from ..core.verification.gains import GainProposal, JointGains  # with Pinocchio


@dataclass(frozen=True)
class TrackingRow:
    """Tracking error of one joint in two runs of the same motion [unit]."""

    joint: str
    unit: str  # 'rad' or 'm'
    rms_before: float  # root mean square
    rms_after: float
    peak_before: float  # largest absolute value
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
    """Proposed gains on the robot."""

    kept: bool  # whether they are the controller's now
    sentence: str  # why
    old: Mapping[str, Mapping[str, float]]  # p, i, d by joint
    new: Mapping[str, Mapping[str, float]]
    tracking: tuple[TrackingRow, ...] = ()


@dataclass(frozen=True)
class Verification:
    """Everything that was verified of one identification; what was not is empty."""

    results: str  # when these were created, of which it is about
    created: str = ''  # when it was verified last (ISO 8601)
    controller: str = ''
    trajectory: str = ''  # hash of the motion
    tracking: tuple[TrackingRow, ...] = ()  # without and with feed-forward
    reason: str = ''  # why there was no run with feed-forward
    efforts: tuple[EffortRow, ...] = ()  # predicted against measured, of the run without
    gains: GainTrial | None = None  # proposed ones
    static: tuple[JointStatics, ...] = ()  # gravity and stiction
    postures: int = 0


def tracking_rows(
    before: Tracking, after: Tracking, units: Mapping[str, tuple[str, str]]
) -> tuple[TrackingRow, ...]:
    """Put two runs side by side; units as `Robot.units`."""
    columns = (before.rms, after.rms, before.peak, after.peak)
    return tuple(
        TrackingRow(joint, units[joint][0], *(float(column[j]) for column in columns))
        for j, joint in enumerate(before.joints)
    )


VERIFICATION = 'verification.yaml'
GAINS, GAINS_BEFORE = 'controller_gains.yaml', 'controller_gains_before.yaml'
FORMAT = 1


def write_verification(folder: Path, verification: Verification) -> Path:
    """Write `verification.yaml`, whose path is returned; FileError where it cannot."""
    content = {'format': FORMAT, **to_plain(verification)}
    return write_text(folder / VERIFICATION, dump_yaml(content))


def read_verification(path: Path) -> Verification | None:
    """Read what `write_verification` wrote, None without a file; FileError: it is damaged."""
    if not path.exists():
        return None
    content = parse_yaml(read_text(path), str(path))
    with damage_errors(path, 'verify again, or remove it', FileError):
        if content.pop('format') != FORMAT:
            raise ValueError('another format')
        return from_plain(Verification, content)


def write_gains(
    path: Path, controller: str, gains: Mapping[str, Mapping[str, float]], comment: str
) -> Path:
    """Write gains {joint: {p, i, d}} as a parameter file of a controller, by its full name."""
    parameters = {'gains': {joint: dict(values) for joint, values in gains.items()}}
    text = dump_yaml({controller: {'ros__parameters': parameters}})
    return write_text(path, f'# {comment}\n{text}')


def gain_parameters(gains: Mapping[str, 'JointGains']) -> dict[str, float]:
    """Name the gains as the controller's parameters do."""
    from ..core.verification.gains import NAMES

    return {
        f'gains.{joint}.{name}': getattr(values, name)
        for joint, values in gains.items()
        for name in NAMES
    }


# Why no other gains are proposed than the present ones.
REASONS = {
    'springs': 'gains of joints with springs do not follow from the inertia',
    'margins': 'none within controller_gains.change of them keeps 6 dB and 45° in all postures: '
    'raise it',
    'swings': 'with stiffer ones a joint swings at rest in a simulation',
    'saturates': 'with stiffer ones drives reach their limits in a simulation',
}


def proposal_sentence(proposal: 'GainProposal') -> str:
    """Say what a simulation makes of a proposal, and of the margins at the worst posture."""
    from ..core.verification.gains import GAIN_MARGIN, PHASE_MARGIN

    low, high = (f'{end(proposal.ratio, default=math.nan):.2f}' for end in (min, max))
    error = f'{low} to {high} times the tracking error in a simulation'
    if proposal.why == 'springs' and not proposal.better:
        return f'the gains in place stay: {REASONS[proposal.why]}'
    gain, phase = proposal.new_margins if proposal.better else proposal.margins
    margins = f'margins of {20.0 * math.log10(gain):.1f} dB and {math.degrees(phase):.0f}°'
    if proposal.better:
        return f'{error}, {margins}'
    reason = REASONS.get(proposal.why, f'the stiffest with 6 dB and 45° leave {error}')
    good = gain >= GAIN_MARGIN and phase >= PHASE_MARGIN
    verdict = 'are as good as can be had' if good else 'stay'
    return f'the gains in place ({margins}) {verdict}: {reason}'
