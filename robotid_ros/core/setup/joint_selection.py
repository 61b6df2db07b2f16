"""Which joints of a description to identify, from what a recording says of them."""

from collections.abc import Mapping, Sequence
import dataclasses

from ...exceptions import ModelError
from ..model.missing_joints import (
    lock_missing,
    matching_names,
    no_joint_in_common,
    PositionRange,
    rename,
)
from ..model.settings import RobotSettings
from ..model.urdf_parsing import movable_joints

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


def select_joints(
    urdf: str,
    settings: RobotSettings,
    recorded: Mapping[str, PositionRange],
    left_out: Mapping[str, PositionRange] | None = None,
) -> tuple[RobotSettings, tuple[str, ...]]:
    """
    Choose the joints to identify and the positions of the others, where not configured.

    Joints that moved are identified, those at rest are locked where they stood, those that were
    not recorded at the URDF's zero.

    Parameters
    ----------
    urdf : the URDF's text
    settings : the configuration, which takes precedence
    recorded : position range of each recorded joint that has efforts
    left_out : position range of joints that were recorded without efforts

    Returns
    -------
    The settings, and notes on what was chosen

    Raises
    ------
    ModelError : no joint of the description was recorded, or none moved, or one without efforts

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
    missing = [k for k in free if k not in joints and k not in recorded]
    places, more = lock_missing(urdf, settings, joints, missing, left_out or {})
    unknown = [k for k in recorded if k not in names]
    if pairs := matching_names(missing, unknown):
        more.append(f'if they are the same, rename {rename(pairs)} in the description')
    locked = {**{k: recorded[k].middle for k in others}, **places, **settings.locked}
    return dataclasses.replace(settings, joints=joints, locked=locked), (*notes, *more)


def _moving_joints(
    names: Sequence[str], recorded: Mapping[str, PositionRange], keep_all: bool
) -> tuple[str, ...]:
    """Return the recorded joints that moved, or all of them."""
    common = tuple(name for name in names if name in recorded)
    if not common:
        raise no_joint_in_common(names, tuple(recorded))
    moving = tuple(name for name in common if recorded[name].moves)
    if not moving:
        raise ModelError(f'{", ".join(common)} stood still in the recording: record a motion')
    return common if keep_all else moving
