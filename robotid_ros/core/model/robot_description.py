"""What a URDF says beyond its text: a model, joints that mimic others, masses that it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio

from ...exceptions import ModelError, reason_of
from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding
from .robot import Follower
from .urdf_parsing import check_tree, link_at, MOVABLE_TYPES, parse_urdf

# Limits of this size or more are none: continuous joints get it as revolute ones.
UNLIMITED = '1e30'


def build_model(root: ElementTree.Element) -> Any:
    """Build Pinocchio's model of all joints; limits that the URDF lacks are written into it."""
    for joint in root.findall('joint'):
        if joint.get('type') in MOVABLE_TYPES:
            limit = joint.find('limit')
            if limit is None:
                limit = ElementTree.SubElement(joint, 'limit')
            limit.attrib = {'effort': UNLIMITED, 'velocity': UNLIMITED, **limit.attrib}
            if joint.get('type') == 'continuous':
                joint.set('type', 'revolute')
                limit.attrib |= {'lower': f'-{UNLIMITED}', 'upper': UNLIMITED}
        if (mimic := joint.find('mimic')) is not None:
            joint.remove(mimic)
    try:
        return pinocchio.buildModelFromXML(ElementTree.tostring(root, encoding='unicode'))
    except (ValueError, RuntimeError, IndexError) as error:
        raise ModelError(
            f'the robot description is not a usable URDF ({reason_of(error)}): check it with '
            'check_urdf'
        ) from error


def read_mimics(elements: dict[str, ElementTree.Element]) -> dict[str, Follower]:
    """Read which movable joints mimic which, by their names; a ModelError where they cannot."""
    movable = {k: joint for k, joint in elements.items() if joint.get('type') in MOVABLE_TYPES}
    found = dict[str, Follower]()
    for name, joint in movable.items():
        mimic = joint.find('mimic')
        if mimic is None:
            continue
        leader = str(mimic.get('joint'))
        if leader not in movable or leader == name:
            raise ModelError(
                f"joint {name} mimics '{leader}', which is no other movable joint: repair the "
                '<mimic> of the robot description'
            )
        try:
            numbers = [float(mimic.get(key, d)) for key, d in (('multiplier', 1), ('offset', 0))]
        except ValueError as error:
            raise ModelError(
                f'multiplier and offset of the <mimic> of joint {name} must be numbers'
            ) from error
        found[name] = Follower(name, leader, *numbers)
    for name in found:
        leader = name
        for _ in found:
            leader = found[leader].leader if leader in found else leader
        if leader in found:
            raise ModelError(f'joint {name} mimics itself in the end: repair its <mimic>')
    return found


def final_leader(
    name: str, locked: Mapping[str, float], following: Mapping[str, Follower]
) -> Follower:
    """Return how a joint moves with the one that it follows in the end, be it itself."""
    leader, ratio, offset = name, 1.0, 0.0
    while leader in following and leader not in locked:
        mimic = following[leader]
        offset, ratio = offset + ratio * mimic.offset, ratio * mimic.ratio
        leader = mimic.leader
    return Follower(name, leader, ratio, offset)


# A link's mass goes with its length times the reach of what it carries, both with this part of the
# whole reach added. Of 14 industrial arms with known masses, weight and inertia at the first three
# joints come out within a factor of 1.5 (rms); at wrists they say little.
LEAST = 0.1
RADIUS = 0.05  # [m]
# Where the mass is unknown and nothing but what is identified from recordings depends on it [kg].
ASSUMED_MASS = 10.0


def lacks_inertials(urdf: str) -> bool:
    """Return whether no link of a description has a mass."""
    masses = parse_urdf(urdf).findall('link/inertial/mass')
    return not any(float(mass.get('value', '0')) > 0.0 for mass in masses)


def with_inertials(urdf: str, mass: float) -> tuple[str, tuple[Finding, ...]]:
    """
    Share the mass of a robot [kg] out between its links, where the description gives them none.

    Each becomes a rod from its joint to the middle of those that it carries. Parameters that a
    motion determines do not depend on it; efforts of a motion that is designed with it do. The
    mass is that of the data sheet, with the base, or 0: unknown. Returns the text, the same where
    a moving link has a mass, or that of the robot is unknown, and notes.
    """
    if not 0.0 < mass < np.inf:
        return urdf, ()
    root = parse_urdf(urdf)
    check_tree(root)
    model = build_model(root)
    if any(inertia.mass > 0.0 for inertia in model.inertias.tolist()[1:]):
        return urdf, ()
    # Of base and moving links: places of the joints that each carries, the farthest, and reach.
    carried = [list[Array]() for _ in range(model.njoints)]
    lengths, reach = np.zeros((2, model.njoints))
    for k in range(model.njoints - 1, 0, -1):
        parent, place = model.parents[k], np.array(model.jointPlacements[k].translation)
        carried[parent].append(place)
        lengths[parent] = max(lengths[parent], np.linalg.norm(place))
        reach[parent] = max(reach[parent], np.linalg.norm(place) + reach[k])
    least = LEAST * max(reach[0], RADIUS)
    products = (lengths + least) * (reach + least)
    root = parse_urdf(urdf)
    joints = {joint.get('name'): joint for joint in root.findall('joint')}
    links = {link.get('name'): link for link in root.findall('link')}
    shares = (products / products.sum()).tolist()
    for name, share, places in zip(model.names, shares, carried, strict=True):
        if name not in joints:  # the base, whose inertial nothing needs
            continue
        link = links[link_at(joints[name], 'child')]
        for empty in link.findall('inertial'):
            link.remove(empty)
        link.append(_rod(mass * share, np.mean(places or [np.zeros(3)], axis=0)))
    return ElementTree.tostring(root, encoding='unicode'), (finding('masses_assumed', mass=mass),)


def _rod(mass: float, end: Array) -> ElementTree.Element:
    """Return the inertial of a rod from the joint to `end` (3,) [m], as thick as `RADIUS`."""
    square = (float(end @ end) * np.eye(3) - np.outer(end, end)) / 12.0
    inertia = mass * (square + 0.4 * RADIUS**2 * np.eye(3))
    inertial = ElementTree.Element('inertial')
    ElementTree.SubElement(inertial, 'origin', xyz=' '.join(f'{x:.9g}' for x in end / 2.0))
    ElementTree.SubElement(inertial, 'mass', value=f'{mass:.9g}')
    names = 'xyz'
    values = {f'i{names[a]}{names[b]}': inertia[a, b] for a in range(3) for b in range(a, 3)}
    ElementTree.SubElement(inertial, 'inertia', {k: f'{v:.9g}' for k, v in values.items()})
    return inertial
