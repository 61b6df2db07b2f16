"""The text of a URDF: checked, with rounded angles made exact."""

import re
from xml.etree import ElementTree

import numpy as np

from ...exceptions import ModelError

MOVABLE_TYPES = ('revolute', 'continuous', 'prismatic')
# What a model takes from the elements of inertials and joints.
NUMERIC_ATTRIBUTES = {
    'mass': ('value',),
    'inertia': ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'),
    'origin': ('xyz', 'rpy'),
    'axis': ('xyz',),
}
# Largest error of an angle that is written with two decimals or more [rad].
MAX_ROUNDING = 6e-3
_COMMENT = re.compile('<!--.*?-->', re.DOTALL)


def movable_joints(urdf: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """
    Return the joints that can move, from the base outwards, and which of them mimic another one.

    Raises
    ------
    ModelError : malformed

    """
    root = parse_urdf(urdf)
    names = movable_names(root)
    followers = {str(j.get('name')) for j in root.findall('joint') if j.find('mimic') is not None}
    return names, frozenset(followers & set(names))


def movable_names(root: ElementTree.Element) -> tuple[str, ...]:
    """Return the names of the joints that can move, branch by branch from the base outwards."""
    branches: dict[str, list[ElementTree.Element]] = {}
    for joint in root.findall('joint'):
        branches.setdefault(_link(joint, 'parent'), []).append(joint)
    children = {_link(joint, 'child') for joint in root.findall('joint')}
    ahead = [joint for link in branches if link not in children for joint in branches[link]][::-1]
    names: list[str] = []
    while ahead:
        joint = ahead.pop()
        if joint.get('type') in MOVABLE_TYPES:
            names.append(str(joint.get('name')))
        ahead += branches.pop(_link(joint, 'child'), [])[::-1]
    return tuple(names)


def _link(joint: ElementTree.Element, end: str) -> str:
    element = joint.find(end)
    return '' if element is None else element.get('link', '')


def parse_urdf(urdf: str) -> ElementTree.Element:
    """
    Parse a URDF.

    Raises
    ------
    ModelError : no URDF, or with text where numbers must be

    """
    if not urdf.strip():
        raise ModelError('the robot description is empty: give the text of a URDF')
    if '<xacro:' in _COMMENT.sub('', urdf):
        raise ModelError('the robot description is the source of a xacro: run xacro on it first')
    try:
        root = ElementTree.fromstring(urdf)
    except ElementTree.ParseError as error:
        raise ModelError(f'the robot description is not valid XML ({error}): repair it') from error
    if root.tag != 'robot':
        raise ModelError(
            f'the robot description starts with <{root.tag}>: give a URDF, which has <robot>'
        )
    _check_numbers(root)
    return root


def _check_numbers(root: ElementTree.Element) -> None:
    """Raise an error for text that a parser of URDFs would skip with a message on stderr only."""
    for parent in (*root.findall('link/inertial'), *root.findall('joint')):
        for element in parent.findall('*'):
            for key in NUMERIC_ATTRIBUTES.get(element.tag, ()):
                text = element.get(key, '0')
                if '$' in text:
                    raise ModelError(
                        f"the robot description holds '{text}', it is the source of a xacro: run "
                        'xacro on it first'
                    )
                try:
                    _ = [float(word) for word in text.split()]
                except ValueError as error:
                    raise ModelError(
                        f"{key} of <{element.tag}> in the robot description is '{text}': it must "
                        'be a number'
                    ) from error


def snap_angles(root: ElementTree.Element) -> tuple[str, ...]:
    """
    Make angles exact that were written as a rounded multiple of π/2, such as 3.14 or 1.5708.

    Axes that are almost parallel give base parameters that no data can distinguish.
    """
    changed = []
    for joint in root.findall('joint'):
        origin = joint.find('origin')
        if origin is None or not origin.get('rpy'):
            continue
        words = str(origin.get('rpy')).split()
        exact = [_snap_angle(word) for word in words]
        if any(e != w for e, w in zip(exact, words, strict=True)):
            origin.set('rpy', ' '.join(exact))
            if any(abs(float(e) - float(w)) > 1e-9 for e, w in zip(exact, words, strict=True)):
                changed.append(str(joint.get('name')))
    if not changed:
        return ()
    return (
        f'angles of {", ".join(changed)} were written as rounded multiples of π/2 and taken as '
        'exact: write more decimals in the URDF',
    )


def _snap_angle(word: str) -> str:
    match = re.fullmatch(r'[-+]?\d*\.(\d{2,})', word)
    if match is None:
        return word
    value, decimals = float(word), len(match.group(1))
    quarter = round(value / (np.pi / 2))
    target = quarter * np.pi / 2
    # Rounded or cut off at its last decimal: anything else is a calibrated angle, left alone.
    if quarter == 0 or not 0.0 < abs(value - target) < min(10.0**-decimals, MAX_ROUNDING):
        return word
    return repr(float(target))
