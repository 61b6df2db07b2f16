"""Which joints of a description to identify, from what a recording says of them."""

from collections.abc import Mapping, Sequence
import dataclasses
import itertools
import re

from ...exceptions import FEW, ModelError, shortened
from ..finding_codes import finding
from ..findings import Finding
from ..model.settings import RobotSettings
from .arm_choice import JointTree

# A joint that travels less is at rest [rad or m]: more than two steps of an encoder of 12 bits,
# less than any motion.
MIN_TRAVEL = 3.5e-3
# A joint without effort may travel so far and count as locked [rad or m]: fingers open, and the
# centre of mass of a link of 1 m moves by a few centimetres, as URDFs are wrong anyway.
MAX_LOCKED_TRAVEL = 0.05
# Settings with one value per joint: where one is given, all free joints are identified.
PER_JOINT_SETTINGS = (
    'lower',
    'upper',
    'velocity',
    'acceleration',
    'jerk',
    'effort',
    'drives',
    'drive_gain',
    'drive_gain_spread',
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
        return self.travel > MIN_TRAVEL

    @property
    def travel(self) -> float:
        """Distance between both [rad or m]."""
        return self.upper - self.lower

    @property
    def middle(self) -> float:
        """Position of a joint at rest [rad or m]."""
        return 0.5 * (self.lower + self.upper)


def matching_names(names: Sequence[str], recorded: Sequence[str]) -> list[tuple[str, str]]:
    """
    Return names of a description and of a recording that are the same but for one affix.

    The affix is a prefix or a suffix, the same for all pairs; that names differ in case does not
    count.
    """
    found: dict[tuple[str, str, bool], list[tuple[str, str]]] = {}
    for name in names:
        for other in recorded:
            for key in _affixes(name, other):
                found.setdefault(key, []).append((name, other))
    return max(found.values(), key=len, default=[])


def without_beginning(names: Sequence[str]) -> dict[str, str]:
    """Return names {without the words that all begin with: name}."""
    pairs = zip(min(names, default=''), max(names, default=''), strict=False)
    same = ''.join(a for a, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    begin = re.match(r'.*[^A-Za-z0-9]|', same)
    start = begin.end() if begin is not None and len(names) > 1 else 0
    return {name[start:]: name for name in names}


def _affixes(name: str, other: str) -> list[tuple[str, str, bool]]:
    """Return by what a name is longer than another one, where, and which is the longer one."""
    long, short = (name, other) if len(name) > len(other) else (other, name)
    rest, found = len(long) - len(short), list[tuple[str, str, bool]]()
    if rest == 0:
        return [('prefix', '', False)] if long.lower() == short.lower() else []
    # joint12 is neither joint1 nor 2.
    if long.lower().endswith(short.lower()) and not long[rest - 1 : rest + 1].isdigit():
        found.append(('prefix', long[:rest], long is name))
    if long.lower().startswith(short.lower()) and not long[-rest - 1 :][:2].isdigit():
        found.append(('suffix', long[-rest:], long is name))
    return found


def _moving_joints(
    settings: RobotSettings, names: Sequence[str], recorded: Mapping[str, PositionRange]
) -> tuple[str, ...]:
    """Return the recorded joints that moved, or all of them where settings have one value each."""
    common = tuple(name for name in names if name in recorded)
    if not common:
        text = (
            f'the recording has the joints {shortened(tuple(recorded), FEW)}, the robot '
            f'description {shortened(names, FEW)}: '
        )
        pairs, shorter = matching_names(names, [*recorded]), without_beginning([*recorded])
        pairs = pairs or [(n, shorter[rest]) for n, rest in matching_names(names, [*shorter])]
        if not pairs:
            raise ModelError(text + 'give the description of the robot that was recorded')
        listed = shortened([f'{name} to {other}' for name, other in pairs], FEW)
        raise ModelError(f'{text}rename {listed} in the description')
    moving = tuple(name for name in common if recorded[name].moves)
    if not moving:
        raise ModelError(f'{", ".join(common)} stood still in the recording: record a motion')
    return common if any(getattr(settings, name) for name in PER_JOINT_SETTINGS) else moving


def select_joints(
    urdf: str,
    settings: RobotSettings,
    recorded: Mapping[str, PositionRange],
    left_out: Mapping[str, PositionRange] | None = None,
) -> tuple[RobotSettings, tuple[Finding, ...]]:
    """
    Choose the joints to identify and the positions of the others, where not configured.

    Joints that moved are identified, those at rest are locked where they stood, those that were
    not recorded at the URDF's zero, clipped into the limits.

    Parameters
    ----------
    recorded : position range of each recorded joint that has efforts
    left_out : position range of joints that were recorded without efforts

    Raises
    ------
    ModelError : no joint of the description was recorded, or none moved, or one without efforts

    """
    tree, seen = JointTree(urdf), left_out or {}
    names, followers = tree.movable, tree.mimics
    free = [k for k in names if k not in settings.locked and k not in followers]
    joints = settings.joints or _moving_joints(settings, free, recorded)
    others = [k for k in free if k not in joints and k in recorded]
    notes = [
        finding('stood_still', [k], position=recorded[k].middle)
        for k in others
        if not settings.joints
    ]
    notes += [
        finding('moved_but_locked', [k], low=recorded[k].lower, high=recorded[k].upper)
        for k in names
        if k in recorded and k not in joints and k not in followers and recorded[k].moves
    ]
    # Joints that cannot be identified are where they stood, else at the URDF's zero.
    missing = [k for k in free if k not in joints and k not in recorded]
    places = {k: seen[k].middle if k in seen else tree.joints[k].rest for k in missing}
    moved = [k for k in missing if k in seen and seen[k].travel > MAX_LOCKED_TRAVEL]
    checked = [] if settings.joints else moved
    above = {
        k: {joint.name for joint in tree.joints_above(tree.joints[k].parent)}
        for k in (*checked, *joints)
    }
    for name in checked:
        # It carries one of the others, or is carried by it.
        if any(joint in above[name] or name in above[joint] for joint in joints):
            raise ModelError(
                f'the recording has no effort of {name} that changes while it moves (from '
                f'{seen[name].lower:.4g} to {seen[name].upper:.4g}): record it with the others or '
                'at rest, or ask for all by --joints where another publisher has it, or set '
                f'robot.locked.{name} where it hardly matters'
            )
    for code, own in (
        ('locked_without_efforts', [k for k in missing if k in seen and k not in moved]),
        ('locked_though_moving', moved),
        ('joints_not_recorded', [k for k in missing if k not in seen]),
    ):
        if own:
            notes.append(finding(code, own, positions=[places[k] for k in own]))
    unknown = [k for k in recorded if k not in names]
    if pairs := matching_names(missing, unknown):
        described, names_of_log = zip(*pairs, strict=True)
        notes.append(finding('names_alike', described, recorded=names_of_log))
    locked = {**{k: recorded[k].middle for k in others}, **places, **settings.locked}
    return dataclasses.replace(settings, joints=joints, locked=locked), tuple(notes)
