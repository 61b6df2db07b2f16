"""Which joints of a description are driven, which are the arm, and which a recording moves."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from functools import cached_property
import itertools
import math
import re
from typing import NamedTuple

from ...exceptions import ConfigurationError, FEW, ModelError, shortened, UnknownNameError
from ..findings import Finding, finding, Severity
from ..model.settings import RobotSettings
from ..model.urdf_parsing import link_at, movable_names, MOVABLE_TYPES, parse_urdf

# A joint without a drive is passive only in a description that names the drives of this share of
# its joints or more: many name those of a gripper alone, or none.
MIN_DESCRIBED = 0.5
# Driven joints of a branch that goes on as the same chain where others leave it, and of those
# others: a camera on the forearm does not end an arm, a head or a second arm does.
MIN_CONTINUATION, MAX_SIDE_BRANCH = 3, 1
# Names of the link where a tool is held.
_TOOL = re.compile(r'(^|_)(tool|tool0|tcp|ee|eef|end_effector|flange|grasp)(_|$)', re.IGNORECASE)
MIN_ARM = 3  # driven joints in series that may be an arm
# Names decide only where the tree does not: a last joint that may be all of a gripper, and the one
# of two chains of equal length that is no arm.
_GRIPPER = re.compile('finger|gripper|jaw|claw|thumb|knuckle', re.IGNORECASE)
_LIMB = re.compile('leg|hip|knee|ankle|foot|head|neck', re.IGNORECASE)
# A joint that travels less is at rest [rad or m]: more than two steps of 12 bits, not a motion.
MIN_TRAVEL = 3.5e-3
# A joint without effort may travel so far and count as locked [rad or m]: fingers open, and the
# centre of mass of a link of 1 m moves by a few centimetres, as URDFs are wrong anyway.
MAX_LOCKED_TRAVEL = 0.05
# Settings with one value per joint: where one is given, all free joints are identified.
PER_JOINT_SETTINGS = (
    *('lower', 'upper', 'velocity', 'acceleration', 'jerk', 'effort', 'drives'),
    *('drive_gain', 'drive_gain_spread', 'couplings'),
)


class TreeJoint(NamedTuple):
    """One joint, its links, its range [rad, m] and its largest speed [rad/s, m/s]."""

    name: str
    type: str
    parent: str
    child: str
    mimics: str  # a joint, or ''
    lower: float
    upper: float
    velocity: float  # 0 where the description says none

    @property
    def rest(self) -> float:
        """The position of its range that is the nearest to 0."""
        return min(max(0.0, self.lower), self.upper)


class JointTree:
    """Joints and links of a description. ModelError: it is malformed."""

    def __init__(self, urdf: str) -> None:
        self._root = root = parse_urdf(urdf)
        self.name = root.get('name', '')
        self.joints, self._limited = dict[str, TreeJoint](), set[str]()
        for element in root.findall('joint'):
            name, kind = str(element.get('name')), str(element.get('type'))
            limit, free = element.find('limit'), {'lower': -math.inf, 'upper': math.inf}
            limits = {'velocity': 0.0, 'effort': 0.0, **free}
            limits |= (
                {} if limit is None else {k: float(limit.get(k, v)) for k, v in limits.items()}
            )
            limits |= {} if kind in ('revolute', 'prismatic') else free
            mimics = link_at(element, 'mimic', 'joint') if kind in MOVABLE_TYPES else ''
            parent, child = (link_at(element, end) for end in ('parent', 'child'))
            numbers = (limits[key] for key in ('lower', 'upper', 'velocity'))
            self.joints[name] = TreeJoint(name, kind, parent, child, mimics, *numbers)
            if limits['effort'] > 0.0:
                self._limited.add(name)
        self.movable = movable_names(root)
        self.mimics = tuple(name for name in self.movable if self.joints[name].mimics)
        self.independent = tuple(name for name in self.movable if name not in self.mimics)
        links = ((str(k.get('name')), k.find('inertial/mass')) for k in root.findall('link'))
        self._masses = {k: 0.0 if m is None else float(m.get('value', 0.0)) for k, m in links}
        self.links = tuple(self._masses)
        self._carrier = {joint.child: joint for joint in self.joints.values()}

    @cached_property
    def passive(self) -> tuple[str, ...]:
        """Joints without drive or limits, where most have them, that carry none that has."""
        root, names = self._root, self.independent
        driven = {str(e.get('name')) for drive in root.iter('transmission') for e in drive.iter()}
        described = root.iterfind('ros2_control/joint[command_interface]')
        driven |= {str(joint.get('name')) for joint in described}
        least = MIN_DESCRIBED * len(names)
        most = [each for each in (driven, self._limited) if len(each & {*names}) >= least]
        without = {name for name in names if any(name not in known for known in most)}
        carriers = (self.above(self.joints[k].parent) for k in names if k not in without)
        without.difference_update(*carriers)  # a continuous joint need not have limits
        return tuple(name for name in names if name in without)

    @cached_property
    def driven(self) -> tuple[str, ...]:
        """Joints that a drive moves, none that mimics another."""
        return tuple(name for name in self.independent if name not in self.passive)

    @cached_property
    def following(self) -> dict[str, list[str]]:
        """Driven joints that come next behind each driven joint; key '': behind the base."""
        result: dict[str, list[str]] = {name: [] for name in ('', *self.driven)}
        for name in self.driven:
            above = self.above(self.joints[name].parent)
            result[next((k for k in above if k in self.driven), '')].append(name)
        return result

    def above(self, link: str) -> list[str]:
        """Return the joints from a link towards the base."""
        found = list[str]()
        while link in self._carrier and len(found) < len(self.joints):  # circles are refused later
            found.append(self._carrier[link].name)
            link = self._carrier[link].parent
        return found

    def depth(self, name: str) -> int:
        """Return the largest number of driven joints in series, from this one on."""
        return 1 + max((self.depth(other) for other in self.following[name]), default=0)

    def carried_mass(self, name: str) -> float:
        """Return the mass that a joint moves [kg]."""
        return sum(mass for link, mass in self._masses.items() if name in self.above(link))

    def series(self) -> list[tuple[str, ...]]:
        """Return the series of driven joints between branchings, from the base outwards."""
        result, starts = [], list(self.following[''])
        while starts:
            chain = [starts.pop(0)]
            while following := sorted(self.following[chain[-1]], key=self.depth, reverse=True):
                side = max(map(self.depth, following[1:]), default=0)
                long = self.depth(following[0]) >= MIN_CONTINUATION and side <= MAX_SIDE_BRANCH
                if following[1:] and not long:  # it branches
                    break
                chain.append(following[0])
                starts += [name for name in self.following[chain[-2]] if name != following[0]]
            starts += self.following[chain[-1]]
            result.append(tuple(chain))
        return result

    def tool_link(self, joint: str) -> str:
        """Return the link farthest behind a joint by fixed joints, of those named as a tool."""
        links = [self.joints[joint].child]
        for link in links:  # which grows: breadth first, so that the last one is the farthest
            ahead = (j for j in self.joints.values() if j.parent == link and j.type == 'fixed')
            links += [j.child for j in ahead if j.child not in links]
        return ([link for link in links if _TOOL.search(link)] or links)[-1]


class ArmChoice(NamedTuple):
    """Joints to identify, from the base outwards, the link at their end, why others are not."""

    joints: tuple[str, ...]
    tip: str
    left_out: dict[str, tuple[str, ...]]


def choose_arm(tree: JointTree, joints: Sequence[str] = (), tip: str = '') -> ArmChoice:
    """
    Choose the arm: the longest series of driven joints without a branching.

    Of series of equal length, one that is not named as a leg or a head; then the one that carries
    more mass, then the first of the description. Else these `joints`, or the series that leads to
    a link `tip`, as far as there, or before the finger that it is on.

    UnknownNameError: there is no such joint or link; ConfigurationError: a joint that follows
    others, or both joints and tip; ModelError: no joint is driven, or none that moves the tip.
    """
    if joints and tip:
        raise ConfigurationError('--joints and --tip both choose the arm: give one of them')
    arms = _arms(tree)
    for name in joints:
        if name not in tree.movable:
            raise UnknownNameError('movable joint of the URDF', name, tree.movable)
        if name in tree.mimics:
            raise ConfigurationError(
                f'{name} mimics {tree.joints[name].mimics} and cannot be identified by '
                'itself: leave it out of --joints'
            )
    if joints:
        chosen = tuple(name for name in tree.movable if name in joints)
    elif tip:
        if tip not in tree.links:
            raise UnknownNameError('link', tip, tree.links)
        ways = [arm[: arm.index(k) + 1] for k in tree.above(tip) for arm in arms if k in arm]
        if not ways:
            raise ModelError(f"no driven joint moves the link '{tip}': name another one by --tip")
        chosen = next((way for way in ways if len(way) >= MIN_ARM), ways[0])
    elif arms:

        def rank(arm: tuple[str, ...]) -> tuple[int, bool, float]:
            return len(arm), not _LIMB.search(' '.join(arm)), round(tree.carried_mass(arm[0]), 3)

        chosen = max(arms, key=rank)
    else:
        raise ModelError('the robot description has no driven joint: give that of an arm')
    carriers = tree.above(tree.joints[chosen[0]].parent)
    driven = [name for name in tree.driven if name not in chosen]
    kinds = {
        'follow other joints': tree.mimics,
        'passive: the description gives them no drive, or no limits': tree.passive,
        'carry the arm, and have to stand still': [k for k in driven if k in carriers],
        'not of this arm: --tip or --joints choose another one': [
            k for k in driven if k not in carriers
        ],
    }
    left_out = {kind: tuple(k for k in names if k not in chosen) for kind, names in kinds.items()}
    left_out = {kind: names for kind, names in left_out.items() if names}
    return ArmChoice(chosen, tip or tree.tool_link(chosen[-1]), left_out)


def _arms(tree: JointTree) -> list[tuple[str, ...]]:
    """Return the series of driven joints without the grippers at their ends."""
    leaders, arms = {tree.joints[name].mimics for name in tree.mimics}, list[tuple[str, ...]]()
    for chain in tree.series():
        arm = chain
        if len(chain) > MIN_ARM and not tree.following[chain[-1]]:
            while arm[-1] in leaders and len(arm) > 1:
                arm = arm[:-1]
            if arm == chain and _GRIPPER.search(chain[-1]):
                arm = chain[:-1]
        arms.append(arm)
    return arms


def left_out_sentences(choice: ArmChoice) -> tuple[str, ...]:
    """Say which joints are left out, one sentence for each kind."""
    kinds = choice.left_out.items()
    return tuple(f'left out: {shortened(names)} ({kind})' for kind, names in kinds)


class PositionRange(NamedTuple):
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
    """Pair names of description and recording, equal but for case and one prefix or suffix."""
    found = dict[tuple[str, str, bool], list[tuple[str, str]]]()
    for name, other in itertools.product(names, recorded):
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


def _affixes(name: str, other: str) -> Iterator[tuple[str, str, bool]]:
    """Yield by what a name is longer than another one, where, and which is the longer one."""
    longer = len(name) > len(other)
    long, short = (name, other) if longer else (other, name)
    rest = len(long) - len(short)
    # joint12 is neither joint1 nor 2.
    seams = long[rest - 1 : rest + 1], long[-rest - 1 :][:2]
    digits = [rest > 0 and seam.isdigit() for seam in seams]
    if long.lower().endswith(short.lower()) and not digits[0]:
        yield 'prefix', long[:rest], longer
    if rest and long.lower().startswith(short.lower()) and not digits[1]:
        yield 'suffix', long[-rest:], longer


def select_joints(
    urdf: str, settings: RobotSettings, recorded: Mapping[str, PositionRange],
    left_out: Mapping[str, PositionRange] | None = None,
) -> tuple[RobotSettings, tuple[Finding, ...]]:  # fmt: skip
    """
    Choose the joints to identify and the positions of the others, where not configured.

    Joints that moved are identified, those at rest are locked where they stood, those that were
    not recorded at the URDF's zero, clipped into the limits. Of position ranges of joints that
    were recorded with efforts, and left out, without. ModelError: no joint of the description was
    recorded, or none moved, or one without efforts.
    """
    tree, seen = JointTree(urdf), left_out or {}
    names, followers = tree.movable, tree.mimics
    free = [k for k in names if k not in settings.locked and k not in followers]
    common = tuple(name for name in free if name in recorded)
    moving = tuple(name for name in common if recorded[name].moves)
    # Settings of one value per joint are of all free ones.
    each = any(getattr(settings, name) for name in PER_JOINT_SETTINGS)
    joints = settings.joints or (common if each and moving else moving)
    if not joints and common:
        raise ModelError(f'{", ".join(common)} stood still in the recording: record a motion')
    if not joints:
        pairs, shorter = matching_names(free, [*recorded]), without_beginning([*recorded])
        pairs = pairs or [(n, shorter[rest]) for n, rest in matching_names(free, [*shorter])]
        alike = shortened([f'{name} to {other}' for name, other in pairs], FEW)
        remedy = f'rename {alike} in the description'
        if not pairs:
            remedy = 'give the description of the robot that was recorded'
        raise ModelError(
            f'the recording has the joints {shortened(tuple(recorded), FEW)}, the robot '
            f'description {shortened(free, FEW)}: {remedy}'
        )
    others = [k for k in free if k not in joints and k in recorded]
    at_rest = () if settings.joints else others
    notes = [finding('stood_still', [k], position=recorded[k].middle) for k in at_rest]
    notes += [
        finding('moved_but_locked', [k], low=recorded[k].lower, high=recorded[k].upper)
        for k in names
        if k in recorded and k not in joints and k not in followers and recorded[k].moves
    ]
    # Joints that cannot be identified are where they stood, else at the URDF's zero.
    missing = [k for k in free if k not in joints and k not in recorded]
    places = {k: seen[k].middle if k in seen else tree.joints[k].rest for k in missing}
    moved = [k for k in missing if k in seen and seen[k].travel > MAX_LOCKED_TRAVEL]
    for name, joint in itertools.product(() if settings.joints else moved, joints):
        # It carries one of the others, or is carried by it.
        above, below = (tree.above(tree.joints[k].parent) for k in (name, joint))
        if joint in above or name in below:
            raise ModelError(
                f'the recording has no changing effort of {name}, which moves from '
                f'{seen[name].lower:.4g} to {seen[name].upper:.4g}: record its effort, or keep it '
                'at rest; if another publisher has it, name all joints by --joints; if it hardly '
                f'matters, set robot.locked.{name}'
            )
    # Where grippers and other branches stand hardly acts on the arm.
    chains = (arm for arm in _arms(tree) if not set(joints).isdisjoint(arm))
    carriers = (tree.above(tree.joints[name].parent) for name in joints)
    near = {name for names in (*chains, *carriers) for name in names}
    for code, own in (
        ('locked_without_efforts', [k for k in missing if k in seen and k not in moved]),
        ('locked_though_moving', moved),
        ('joints_not_recorded', [k for k in missing if k not in seen]),
    ):
        if own:
            note = finding(code, own, positions=[places[k] for k in own])
            notes.append(note.at(Severity.INFO) if near.isdisjoint(own) else note)
    if pairs := matching_names(missing, [k for k in recorded if k not in names]):
        described, names_of_log = zip(*pairs, strict=True)
        notes.append(finding('names_alike', described, recorded=names_of_log))
    locked = {**{k: recorded[k].middle for k in others}, **places, **settings.locked}
    return dataclasses.replace(settings, joints=joints, locked=locked), tuple(notes)


def place_locked_joints(
    urdf: str, settings: RobotSettings, positions: Mapping[str, float]
) -> RobotSettings:
    """Lock joints that are neither identified nor locked by the configuration where they stand."""
    others = (name for name in JointTree(urdf).independent if name not in settings.joints)
    standing = {name: positions[name] for name in others if name in positions}
    return dataclasses.replace(settings, locked={**standing, **settings.locked})
