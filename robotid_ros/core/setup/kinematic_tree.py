"""The kinematic tree of a description: which joints are driven, which of them are in series."""

from collections.abc import Iterator
import dataclasses
from functools import cached_property
import math
import re
from xml.etree import ElementTree

from ..model.urdf_parsing import movable_names, MOVABLE_TYPES, parse_urdf

# A joint without a drive is passive only in a description that names the drives of this share of
# its joints or more: many name those of a gripper alone, or none.
MIN_DESCRIBED = 0.5
# Driven joints of a branch that goes on as the same chain where others leave it, and of those
# others: a camera on the forearm does not end an arm, a head or a second arm does.
MIN_CONTINUATION, MAX_SIDE_BRANCH = 3, 1
# Names of the link where a tool is held.
_TOOL = re.compile(r'(^|_)(tool|tool0|tcp|ee|eef|end_effector|flange)(_|$)', re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class TreeJoint:
    """One joint: links at its ends, the joint that it mimics or '', its range [rad, m]."""

    name: str
    type: str
    parent: str
    child: str
    mimics: str
    lower: float
    upper: float

    @property
    def rest(self) -> float:
        """The position of its range that is the nearest to 0."""
        return min(max(0.0, self.lower), self.upper)


class KinematicTree:
    """
    Joints and links of a description.

    Parameters
    ----------
    urdf : its text

    Raises
    ------
    ModelError : malformed

    """

    def __init__(self, urdf: str) -> None:
        root = parse_urdf(urdf)
        self.joints = {joint.name: joint for joint in map(_read_joint, root.findall('joint'))}
        self.movable = movable_names(root)
        self.mimics = tuple(name for name in self.movable if self.joints[name].mimics)
        self.passive = _passive(root, [n for n in self.movable if n not in self.mimics])
        inactive = {*self.mimics, *self.passive}
        self.driven = tuple(name for name in self.movable if name not in inactive)
        self._masses = {str(link.get('name')): link_mass(link) for link in root.findall('link')}
        self._carrier = {joint.child: joint for joint in self.joints.values()}

    @property
    def links(self) -> tuple[str, ...]:
        """Names of all links."""
        return tuple(self._masses)

    @cached_property
    def following(self) -> dict[str, list[str]]:
        """Driven joints that come next behind each driven joint; key '': behind the base."""
        result: dict[str, list[str]] = {name: [] for name in ('', *self.driven)}
        for name in self.driven:
            result[self.driven_above(self.joints[name].parent)].append(name)
        return result

    def joints_above(self, link: str) -> Iterator[TreeJoint]:
        """Yield the joints from a link towards the base."""
        for _ in self.joints:  # a bound against links in a circle, which are refused later
            if link not in self._carrier:
                return
            yield self._carrier[link]
            link = self._carrier[link].parent

    def driven_above(self, link: str) -> str:
        """Return the last driven joint that moves a link, '' where none does."""
        return next((j.name for j in self.joints_above(link) if j.name in self.driven), '')

    def depth(self, name: str) -> int:
        """Return the largest number of driven joints in series, from this one on."""
        return 1 + max((self.depth(other) for other in self.following[name]), default=0)

    def carried_mass(self, name: str) -> float:
        """Return the mass that a joint moves [kg]."""
        return sum(
            mass
            for link, mass in self._masses.items()
            if any(joint.name == name for joint in self.joints_above(link))
        )

    def series(self) -> list[tuple[str, ...]]:
        """Return the series of driven joints between branchings, from the base outwards."""
        result, starts = [], list(self.following[''])
        while starts:
            chain = [starts.pop(0)]
            while (following := self.following[chain[-1]]) and (ahead := self._main(following)):
                starts += [name for name in following if name != ahead]
                chain.append(ahead)
            starts += following
            result.append(tuple(chain))
        return result

    def _main(self, following: list[str]) -> str:
        """Return the joint with which a chain goes on, '' where it branches."""
        first, *others = sorted(following, key=self.depth, reverse=True)
        side = max(map(self.depth, others), default=0)
        goes_on = not others or (self.depth(first) >= MIN_CONTINUATION and side <= MAX_SIDE_BRANCH)
        return first if goes_on else ''

    def tool_link(self, joint: str) -> str:
        """Return the link farthest behind a joint by fixed joints, of those named as a tool."""
        links = [self.joints[joint].child]
        for link in links:  # which grows: breadth first, so that the last one is the farthest
            ahead = (j for j in self.joints.values() if j.parent == link and j.type == 'fixed')
            links += [j.child for j in ahead if j.child not in links]
        return ([link for link in links if _TOOL.search(link)] or links)[-1]


def _read_joint(element: ElementTree.Element) -> TreeJoint:
    def end(tag: str, key: str = 'link') -> str:
        child = element.find(tag)
        return '' if child is None else child.get(key, '')

    name, kind = str(element.get('name')), str(element.get('type'))
    mimics = end('mimic', 'joint') if kind in MOVABLE_TYPES else ''
    limit = element.find('limit') if kind in ('revolute', 'prismatic') else None
    lower, upper = (
        sign * math.inf if limit is None else _number(limit.get(key), sign * math.inf)
        for sign, key in ((-1.0, 'lower'), (1.0, 'upper'))
    )
    return TreeJoint(name, kind, end('parent'), end('child'), mimics, lower, upper)


def link_mass(link: ElementTree.Element) -> float:
    """Return the mass of a link of a checked description [kg], 0 where it says none."""
    mass = link.find('inertial/mass')
    return 0.0 if mass is None else float(mass.get('value', '0'))


def _passive(root: ElementTree.Element, names: list[str]) -> tuple[str, ...]:
    """Return the joints that have neither drive nor limits where most of the others have them."""
    driven = {str(e.get('name')) for drive in root.iter('transmission') for e in drive.iter()}
    driven |= {str(j.get('name')) for j in root.iterfind('ros2_control/joint[command_interface]')}
    elements = {str(joint.get('name')): joint for joint in root.findall('joint')}
    limited = {name for name in names if _is_limited(elements[name].find('limit'))}
    passive: set[str] = set()
    for known in (driven, limited):
        if len(known.intersection(names)) >= MIN_DESCRIBED * len(names):
            passive |= {name for name in names if name not in known}
    return tuple(name for name in names if name in passive)


def _is_limited(limit: ElementTree.Element | None) -> bool:
    """Whether a joint has a largest effort and velocity above zero."""
    return limit is not None and all(_number(limit.get(k)) > 0.0 for k in ('effort', 'velocity'))


def _number(text: str | None, default: float = 0.0) -> float:
    """Read a number; text that is none is reported where the model is built."""
    try:
        return default if text is None else float(text)
    except ValueError:
        return default
