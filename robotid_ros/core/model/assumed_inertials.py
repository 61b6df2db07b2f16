"""Inertials for a description that has none: identification needs its kinematics only."""

from xml.etree import ElementTree

import numpy as np
import pinocchio

from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding
from .robot_description import build_model
from .urdf_parsing import check_tree, link_at, parse_urdf

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
    urdf : its text
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
