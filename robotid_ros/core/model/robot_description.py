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
UNLIMITED = 1e30


def build_model(root: ElementTree.Element) -> Any:
    """
    Build Pinocchio's model of all joints of a URDF; limits that it lacks are written into it.

    Raises
    ------
    ModelError : parsers of URDFs refuse it

    """
    for joint in root.findall('joint'):
        if joint.get('type') in MOVABLE_TYPES:
            _complete_limits(joint)
        mimic = joint.find('mimic')
        if mimic is not None:
            joint.remove(mimic)
    try:
        return pinocchio.buildModelFromXML(ElementTree.tostring(root, encoding='unicode'))
    except (ValueError, RuntimeError, IndexError) as error:
        raise ModelError(
            f'the robot description is not a usable URDF ({reason_of(error)}): check it with '
            'check_urdf'
        ) from error


def _complete_limits(joint: ElementTree.Element) -> None:
    """Write the limits without which a parser refuses a joint that moves."""
    limit = joint.find('limit')
    if limit is None:
        limit = ElementTree.SubElement(joint, 'limit')
    for key in ('effort', 'velocity'):
        limit.set(key, limit.get(key, str(UNLIMITED)))
    if joint.get('type') == 'continuous':
        joint.set('type', 'revolute')
        limit.set('lower', str(-UNLIMITED))
        limit.set('upper', str(UNLIMITED))


def read_mimics(elements: dict[str, ElementTree.Element]) -> dict[str, Follower]:
    """
    Read which movable joints mimic which, by their names.

    Raises
    ------
    ModelError : a joint follows itself, what does not exist, or by no number

    """
    found = {}
    for name, joint in elements.items():
        mimic = joint.find('mimic')
        if mimic is None or joint.get('type') not in MOVABLE_TYPES:
            continue
        leader = str(mimic.get('joint'))
        known = leader in elements and elements[leader].get('type') in MOVABLE_TYPES
        if not known or leader == name:
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


def find_followers(
    joints: tuple[str, ...], locked: Mapping[str, float], following: Mapping[str, Follower]
) -> tuple[Follower, ...]:
    """Return the joints that follow identified ones, be it over several others."""
    found = []
    for name in following:
        leader, ratio, offset = name, 1.0, 0.0
        while leader in following and leader not in locked:
            mimic = following[leader]
            offset, ratio = offset + ratio * mimic.offset, ratio * mimic.ratio
            leader = mimic.leader
        if leader in joints and leader != name:
            found.append(Follower(name, leader, ratio, offset))
    return tuple(found)


def locked_position(
    name: str, locked: Mapping[str, float], following: Mapping[str, Follower]
) -> float:
    """Return the position of a joint that is not identified: locked, or following its leader."""
    if name in locked or name not in following:
        return locked.get(name, 0.0)
    mimic = following[name]
    return mimic.ratio * locked_position(mimic.leader, locked, following) + mimic.offset


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
    Share the mass of a robot out between its links, where the description gives them none.

    Each becomes a rod from its joint to the middle of those that it carries. Parameters that a
    motion determines do not depend on it; efforts of a motion that is designed with it do.

    Parameters
    ----------
    mass : of the whole robot, its base included, by the data sheet [kg]; 0: unknown

    Returns
    -------
    The text, the same where a moving link has a mass or that of the robot is unknown, and notes

    Raises
    ------
    ModelError : malformed

    """
    if not 0.0 < mass < np.inf:
        return urdf, ()
    root = parse_urdf(urdf)
    check_tree(root)
    model = build_model(root)
    if any(inertia.mass > 0.0 for inertia in model.inertias.tolist()[1:]):
        return urdf, ()
    carried: list[list[Array]] = [[] for _ in range(model.njoints)]
    for k in range(1, model.njoints):
        carried[model.parents[k]].append(model.jointPlacements[k].translation)
    # The middle of the joints that each link carries, in its frame [m].
    ends = [np.mean(places or [np.zeros(3)], axis=0) for places in carried]
    root = parse_urdf(urdf)
    joints = {joint.get('name'): joint for joint in root.findall('joint')}
    links = {link.get('name'): link for link in root.findall('link')}
    for name, share, end in zip(model.names, _shares(model), ends, strict=True):
        if name not in joints:  # the base, whose inertial nothing needs
            continue
        link = links[link_at(joints[name], 'child')]
        for empty in link.findall('inertial'):
            link.remove(empty)
        link.append(_rod(mass * float(share), end))
    return ElementTree.tostring(root, encoding='unicode'), (finding('masses_assumed', mass=mass),)


def _shares(model: pinocchio.Model) -> Array:
    """Return the shares of base and moving links in the mass (1 + n,)."""
    lengths, reach = np.zeros((2, model.njoints))
    for k in range(model.njoints - 1, 0, -1):
        parent, step = model.parents[k], np.linalg.norm(model.jointPlacements[k].translation)
        lengths[parent] = max(lengths[parent], step)
        reach[parent] = max(reach[parent], step + reach[k])
    whole = max(reach[0], RADIUS)
    products = (lengths + LEAST * whole) * (reach + LEAST * whole)
    return np.asarray(products / products.sum())


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
