"""The text of a URDF: checked, with rounded angles made exact."""

from __future__ import annotations

from collections import Counter
import math
import re
from xml.etree import ElementTree

import numpy as np

from ...exceptions import FEW, ModelError, shortened
from ..findings import Finding, finding

MOVABLE_TYPES = ('revolute', 'continuous', 'prismatic')
FREE_TYPES = 'floating', 'planar'
JOINT_TYPES = (*MOVABLE_TYPES, 'fixed', *FREE_TYPES)
# What a model takes from the elements of inertials and joints.
INERTIA = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
NUMERIC = {
    'mass': ('value',),
    'inertia': INERTIA,
    'origin': ('xyz', 'rpy'),
    'axis': ('xyz',),
    'limit': ('lower', 'upper', 'velocity', 'effort'),
    'dynamics': ('damping', 'friction'),
    'mimic': ('multiplier', 'offset'),
}
MAX_ATTRIBUTES = 200  # a URDF's have less than 20; parsers take a time that grows with the square
MOST_ANGLE = 2.1 * math.pi  # of an origin: beyond a turn, it is in degrees [rad]
MAX_ROUNDING = 6e-3  # largest error of an angle that is written with two decimals or more [rad]
_COMMENT, _DECIMALS = re.compile('<!--.*?-->', re.DOTALL), re.compile(r'[-+]?\d*\.(\d{2,})')


def movable_names(root: ElementTree.Element) -> tuple[str, ...]:
    """Return the names of the joints that can move, branch by branch from the base outwards."""
    branches: dict[str, list[ElementTree.Element]] = {}
    for joint in root.findall('joint'):
        branches.setdefault(link_at(joint, 'parent'), []).append(joint)
    children = {link_at(joint, 'child') for joint in root.findall('joint')}
    ahead = [joint for link in branches if link not in children for joint in branches[link]][::-1]
    names: list[str] = []
    while ahead:
        joint = ahead.pop()
        if joint.get('type') in MOVABLE_TYPES:
            names.append(str(joint.get('name')))
        ahead += branches.pop(link_at(joint, 'child'), [])[::-1]
    if loop := [link for link in branches if link in children]:
        raise ModelError(
            f'no joint leads from the root of the robot description to {shortened(loop, FEW)}, '
            'which carry each other in a loop: correct the parent of a joint between them'
        )
    return tuple(names)


def joints_without_range(urdf: str) -> frozenset[str]:
    """Return the revolute joints without the position limits that the standard asks for."""
    joints = parse_urdf(urdf).iterfind("joint[@type='revolute']")
    limits = {str(joint.get('name')): joint.find('limit') for joint in joints}
    return frozenset(k for k, v in limits.items() if v is None or 'lower' not in v.attrib)


def root_link(urdf: str) -> str:
    """Return the link that is no joint's child, whose frame is the base frame."""
    root = parse_urdf(urdf)
    children = {link_at(joint, 'child') for joint in root.findall('joint')}
    names = (link.get('name', '') for link in root.findall('link'))
    return next((name for name in names if name not in children), '')


def link_at(joint: ElementTree.Element, end: str, key: str = 'link') -> str:
    """Return the link that an element of a joint names, '' without one; or another `key` of it."""
    element = joint.find(end)
    return '' if element is None else element.get(key, '')


def parse_urdf(urdf: str) -> ElementTree.Element:
    """Parse a URDF; a ModelError where it is none, or with text where numbers must be."""
    if not urdf.strip():
        raise ModelError('the robot description is empty: give the text of a URDF')
    if re.search(r'<xacro:|="\$\{', _COMMENT.sub('', urdf)):
        raise ModelError('the robot description is the source of a xacro: run xacro on it first')
    try:
        root = ElementTree.fromstring(urdf)
    except ElementTree.ParseError as error:
        raise ModelError(f'the robot description is not valid XML ({error}): repair it') from error
    if root.tag != 'robot':
        raise ModelError(
            f'the robot description starts with <{root.tag}>: give a URDF, which has <robot>'
        )
    if (most := max(len(element.attrib) for element in root.iter())) > MAX_ATTRIBUTES:
        raise ModelError(f'an element has {most} attributes: that is no URDF, give another file')
    # Text that a parser of URDFs would skip with a message on stderr only.
    owners = [(link, e) for link in root.findall('link') for e in link.findall('inertial')]
    owners += [(joint, joint) for joint in root.findall('joint')]
    for owner, element in ((owner, e) for owner, parent in owners for e in parent):
        for key in NUMERIC.get(element.tag, ()):
            if (text := element.get(key)) is None:
                continue
            try:
                values = [float(word) for word in text.split()]
            except ValueError:
                values = [math.nan]
            count, mass = 3 if key in ('xyz', 'rpy') else 1, element.tag == 'mass'
            known = len(values) == count and not any(map(math.isnan, values))
            # Some write infinite limits.
            known = known and (element.tag == 'limit' or all(map(math.isfinite, values)))
            turns = key == 'rpy' and known and max(map(abs, values)) > MOST_ANGLE
            if not known or turns or (mass and values[0] < 0.0):
                what = 'three numbers' if count == 3 else 'a number'
                what += ' in radians' if turns else ''
                raise ModelError(
                    f'{key} of the <{element.tag}> of {owner.tag} {owner.get("name", "")[:80]} is '
                    f"'{text[:80]}' in the robot description: it must be "
                    f'{what}{" of at least 0" if mass else ""}'
                )
    for limit in root.iterfind('joint/limit'):
        if {'lower', 'upper'} & limit.attrib.keys():  # beside one alone, the other is 0 in a URDF
            limit.attrib = {'lower': '0', 'upper': '0', **limit.attrib}
    return root


def check_tree(root: ElementTree.Element) -> None:
    """Raise a ModelError where joints do not connect links to a tree: parsers tell stderr only."""
    for tag in ('link', 'joint'):
        names = [element.get('name') for element in root.findall(tag)]
        if wrong := [name for name, count in Counter(names).items() if count > 1 or not name]:
            how = f"'{wrong[0][:80]}' is the name of several" if wrong[0] else 'there are unnamed'
            raise ModelError(f'{how} {tag}s in the robot description: give each a name of its own')
    links = {link.get('name') for link in root.findall('link')}
    children: set[str] = set()
    for joint in root.findall('joint'):
        if joint.get('type') not in JOINT_TYPES:
            raise ModelError(
                f'joint {joint.get("name", "")[:80]} of the robot description is of type '
                f"'{joint.get('type', '')[:80]}': make it one of {', '.join(JOINT_TYPES)}"
            )
        axis = joint.find('axis[@xyz]') if joint.get('type') in MOVABLE_TYPES else None
        if axis is not None and not any(map(float, axis.attrib['xyz'].split())):
            raise ModelError(
                f'the axis of joint {joint.get("name", "")[:80]} is zero: give it a direction in '
                'the robot description, or make the joint fixed'
            )
        for end in ('parent', 'child'):
            name = link_at(joint, end)
            if name not in links or (end == 'child' and name in children):
                what = 'has another parent already' if name in links else 'is no link'
                raise ModelError(
                    f"the {end} '{name[:80]}' of joint {joint.get('name', '')[:80]} {what} in the "
                    'robot description: check its links, a tree without a loop'
                )
        children.add(name)
    if not links:
        raise ModelError(
            'the robot description has no links: give a URDF, no SRDF and no xacro of macros alone'
        )
    if len(roots := [name for name in links if name not in children]) != 1:
        shown = ', '.join(str(name)[:80] for name in sorted(map(str, roots))[:5])
        raise ModelError(
            f'the robot description has {len(roots)} roots ({shown}): join all but one to the '
            'others by fixed joints, or take them out'
        )


def inertial_warnings(root: ElementTree.Element) -> tuple[Finding, ...]:
    """Name links whose inertial parsers of URDFs leave out, or that no body has."""
    links: dict[str, list[str]] = {'inertial_incomplete': [], 'inertia_impossible': []}
    for link in root.iterfind('link[inertial]'):
        values = {k: v for e in link.iterfind('inertial/*') for k, v in e.attrib.items()}
        if not {'value', *INERTIA} <= values.keys():
            links['inertial_incomplete'].append(str(link.get('name')))
        elif any(float(values[key]) < 0.0 for key in ('ixx', 'iyy', 'izz')):
            links['inertia_impossible'].append(str(link.get('name')))
    return tuple(finding(name, links=which) for name, which in links.items() if which)


def snap_angles(root: ElementTree.Element) -> tuple[Finding, ...]:
    """Make angles exact that were written as a rounded multiple of π/2, such as 3.14 or 1.5708."""
    changed = []
    for joint, origin in ((j, j.find('origin')) for j in root.findall('joint')):
        words = [] if origin is None else origin.get('rpy', '').split()
        exact = list(words)
        for k, word in enumerate(words):
            match, quarter = re.fullmatch(_DECIMALS, word), round(float(word) / (np.pi / 2))
            error = abs(float(word) - quarter * np.pi / 2)
            # Rounded or cut off at its last decimal: anything else is a calibrated angle.
            if match and quarter and 0.0 < error < min(10.0 ** -len(match[1]), MAX_ROUNDING):
                exact[k] = repr(quarter * np.pi / 2)
                changed += [str(joint.get('name'))] * (error > 1e-9)
        if origin is not None and exact != words:
            origin.set('rpy', ' '.join(exact))
    return (finding('angles_rounded', list(dict.fromkeys(changed))),) if changed else ()
