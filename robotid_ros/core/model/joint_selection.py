"""Which joints of a description to identify, from what a recording says of them."""

from collections.abc import Mapping, Sequence
import dataclasses

from ...exceptions import ModelError
from .settings import RobotSettings
from .urdf_parsing import movable_joints

# A joint that travels less is at rest [rad or m]: more than encoders' noise, less than any motion.
MIN_TRAVEL = 1e-3
# Settings with one value per joint: where one is given, all free joints are identified.
PER_JOINT_SETTINGS = (
    'lower',
    'upper',
    'velocity',
    'acceleration',
    'jerk',
    'effort',
    'drive_gain',
    'couplings',
)


@dataclasses.dataclass(frozen=True)
class PositionRange:
    """Lowest and highest recorded position of a joint [rad or m]."""

    lower: float
    upper: float

    @property
    def moves(self) -> bool:
        """Whether the joint moved at all."""
        return self.upper - self.lower > MIN_TRAVEL

    @property
    def middle(self) -> float:
        """Position of a joint at rest [rad or m]."""
        return 0.5 * (self.lower + self.upper)


def select_joints(
    urdf: str, settings: RobotSettings, recorded: Mapping[str, PositionRange]
) -> tuple[RobotSettings, tuple[str, ...]]:
    """
    Choose the joints to identify and the positions of the others, where not configured.

    Joints that moved are identified, those at rest are locked where they stood.

    Parameters
    ----------
    urdf : the URDF's text
    settings : the configuration, which takes precedence
    recorded : position range of each recorded joint that has efforts

    Returns
    -------
    The settings, and notes on what was chosen

    Raises
    ------
    ModelError : the description has joints that were not recorded, or none moved

    """
    names, followers = movable_joints(urdf)
    free = [k for k in names if k not in settings.locked and k not in followers]
    per_joint = any(getattr(settings, name) for name in PER_JOINT_SETTINGS)
    joints = settings.joints or _moving_joints(free, recorded, keep_all=per_joint)
    others = [k for k in free if k not in joints and k in recorded]
    notes = [
        f'{k} stood at {recorded[k].middle:.4g} and is not identified: let it move, if it '
        'should be'
        for k in others
        if not settings.joints
    ]
    notes += [
        f'{k} moved from {recorded[k].lower:.4g} to {recorded[k].upper:.4g} but counts as locked: '
        'name it in robot.joints, or record with it at rest'
        for k in names
        if k in recorded and k not in joints and k not in followers and recorded[k].moves
    ]
    locked = {**{k: recorded[k].middle for k in others}, **settings.locked}
    return dataclasses.replace(settings, joints=joints, locked=locked), tuple(notes)


def _moving_joints(
    names: Sequence[str], recorded: Mapping[str, PositionRange], keep_all: bool
) -> tuple[str, ...]:
    """Return the joints that moved, or all of them; all must have been recorded."""
    common = [name for name in names if name in recorded]
    if not common:
        raise ModelError(
            f'the recording has the joints {", ".join(recorded)}, the robot description '
            f'{", ".join(names) or "none"}: give the description of the robot that was recorded'
        )
    missing = [name for name in names if name not in recorded]
    if missing:
        raise ModelError(
            f'the recording has no position or no effort of {", ".join(missing)}: record all '
            'joints of the robot description, or name those to identify in robot.joints or by '
            f'--joints {",".join(common)} (the others then stand at 0 or as robot.locked says)'
        )
    moving = tuple(name for name in names if recorded[name].moves)
    if not moving:
        raise ModelError(f'{", ".join(names)} stood still in the recording: record a motion')
    return tuple(names) if keep_all else moving
