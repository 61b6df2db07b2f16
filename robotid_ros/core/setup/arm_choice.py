"""Which joints of a description are the arm, and what the others are."""

from collections.abc import Sequence
import dataclasses
import re

from ...exceptions import ConfigurationError, ModelError, shortened, UnknownNameError
from .kinematic_tree import KinematicTree

# Driven joints in series that may be an arm, or a leg, and are worth naming.
MIN_ARM = 3
# Driven joints of a wheel with its caster.
MAX_WHEEL = 2
# Names decide only where the tree does not: a last joint that may be all of a gripper, and the one
# of two chains of equal length that is no arm.
_GRIPPER = re.compile('finger|gripper|jaw|claw|thumb|knuckle', re.IGNORECASE)
_LIMB = re.compile('leg|hip|knee|ankle|foot|head|neck', re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class ArmChoice:
    """
    The joints to identify.

    Attributes
    ----------
    joints : from the base outwards
    tip : link at their end
    left_out : joints that are not identified, by the sentence that says why

    """

    joints: tuple[str, ...]
    tip: str
    left_out: dict[str, tuple[str, ...]]


def choose_arm(tree: KinematicTree, joints: Sequence[str] = (), tip: str = '') -> ArmChoice:
    """
    Choose the arm: the longest series of driven joints without a branching.

    Of series of equal length, one that is not named as a leg or a head; then the one that carries
    more mass, then the first of the description.

    Parameters
    ----------
    tree : of the description
    joints : these ones instead
    tip : link that the arm has to move; the series that leads there, as far as there, or before
        the finger that it is on

    Raises
    ------
    UnknownNameError : a joint or a link that the description does not have
    ConfigurationError : a joint that follows others, or both joints and tip
    ModelError : no joint is driven, or none that moves the tip

    """
    if joints and tip:
        raise ConfigurationError('--joints and --tip both choose the arm: give one of them')
    arms, fingers = _arms(tree)
    if joints:
        chosen = _named(tree, joints)
    elif tip:
        chosen = _leading_to(tree, arms, tip)
    else:
        if not arms:
            raise ModelError('the robot description has no driven joint: give that of an arm')
        chosen = max(arms, key=lambda arm: _rank(tree, arm))
    tip = tip or tree.tool_link(chosen[-1])
    return ArmChoice(chosen, tip, _left_out(tree, chosen, arms, fingers))


def _arms(tree: KinematicTree) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Return the series without the grippers at their ends, and the joints of these."""
    leaders = {tree.joints[name].mimics for name in tree.mimics}
    arms: list[tuple[str, ...]] = []
    fingers: list[str] = []
    for chain in tree.series():
        arm = chain
        if len(chain) > MIN_ARM and not tree.following[chain[-1]]:
            while arm[-1] in leaders and len(arm) > 1:
                arm = arm[:-1]
            if arm == chain and _GRIPPER.search(chain[-1]):
                arm = chain[:-1]
        arms.append(arm)
        fingers += chain[len(arm) :]
    return arms, tuple(fingers)


def _rank(tree: KinematicTree, arm: tuple[str, ...]) -> tuple[int, bool, float]:
    return len(arm), not _LIMB.search(' '.join(arm)), round(tree.carried_mass(arm[0]), 3)


def _named(tree: KinematicTree, joints: Sequence[str]) -> tuple[str, ...]:
    for name in joints:
        if name not in tree.movable:
            raise UnknownNameError('movable joint of the URDF', name, tree.movable)
        if name in tree.mimics:
            raise ConfigurationError(
                f'{name} mimics {tree.joints[name].mimics} and cannot be identified by itself: '
                'leave it out of --joints'
            )
    return tuple(name for name in tree.movable if name in joints)


def _leading_to(tree: KinematicTree, arms: list[tuple[str, ...]], tip: str) -> tuple[str, ...]:
    if tip not in tree.links:
        raise UnknownNameError('link', tip, tree.links)
    ways = [
        arm[: arm.index(joint.name) + 1]
        for joint in tree.joints_above(tip)
        for arm in arms
        if joint.name in arm
    ]
    if not ways:
        raise ModelError(f"no driven joint moves the link '{tip}': name another one by --tip")
    return next((way for way in ways if len(way) >= MIN_ARM), ways[0])


def _left_out(
    tree: KinematicTree,
    chosen: tuple[str, ...],
    arms: list[tuple[str, ...]],
    fingers: tuple[str, ...],
) -> dict[str, tuple[str, ...]]:
    """Say of every other joint what it is."""
    base = {joint.name for joint in tree.joints_above(tree.joints[chosen[0]].parent)}
    kinds: dict[str, list[str]] = {}
    for name in (*tree.mimics, *tree.passive, *tree.driven):
        if name not in chosen:
            kinds.setdefault(_kind(tree, name, chosen, base, arms, fingers), []).append(name)
    return {kind: tuple(names) for kind, names in kinds.items()}


def _kind(
    tree: KinematicTree,
    name: str,
    chosen: tuple[str, ...],
    base: set[str],
    arms: list[tuple[str, ...]],
    fingers: tuple[str, ...],
) -> str:
    joint = tree.joints[name]
    if name in tree.mimics:
        return 'follow other joints'
    if name in tree.passive:
        return 'passive: the description gives them no drive, or no limits'
    if name in base:
        return 'carry the arm, and have to stand still'
    ends = {arm[-1] for arm in arms if len(arm) >= len(chosen)} | {chosen[-1]}
    if name in fingers or ends & {above.name for above in tree.joints_above(joint.parent)}:
        return 'fingers and grippers'
    arm = next(arm for arm in arms if name in arm)
    if len(arm) <= MAX_WHEEL and tree.joints[arm[-1]].type == 'continuous':
        return 'wheels'
    if len(arm) >= MIN_ARM:
        return f"of another chain: choose it by '--tip {tree.tool_link(arm[-1])}'"
    return 'of other branches'


def left_out_sentences(choice: ArmChoice) -> tuple[str, ...]:
    """Say which joints are left out, one sentence for each kind."""
    return tuple(
        f'left out: {shortened(names)} ({kind})' for kind, names in choice.left_out.items()
    )
