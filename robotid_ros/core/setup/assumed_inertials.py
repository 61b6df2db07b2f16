"""Inertials for a description that has none: identification needs its kinematics only."""

from xml.etree import ElementTree

import numpy as np

from ...exceptions import ModelError
from ..model.urdf_parsing import link_at, movable_names, parse_urdf
from .kinematic_tree import link_mass

# Of each moving link: enough that the parameters which no motion tells are those of a body.
MASS, RADIUS = 1.0, 0.05  # [kg], [m]


def with_inertials(urdf: str) -> tuple[str, tuple[str, ...]]:
    """
    Give the moving links of a description without any mass rough inertials.

    Each becomes a rod of 1 kg from its joint to the middle of those that it carries. Parameters
    that the motion determines do not depend on it; what only a simulation or limits of efforts
    could take from it is wrong, so that a motion is not to be designed with it.

    Parameters
    ----------
    urdf : its text

    Returns
    -------
    The text, the same where any moving link has a mass or it is malformed, and warnings.

    """
    try:
        root = parse_urdf(urdf)
    except ModelError:  # which whoever builds the robot says
        return urdf, ()
    joints = {str(joint.get('name')): joint for joint in root.findall('joint')}
    moving = {link_at(joints[name], 'child') for name in movable_names(root) if name in joints}
    links = [link for link in root.findall('link') if link.get('name') in moving]
    if not links or any(link_mass(link) > 0.0 for link in root.findall('link')):
        return urdf, ()
    for link in links:
        for empty in link.findall('inertial'):
            link.remove(empty)
        carried = [j for j in joints.values() if link_at(j, 'parent') == link.get('name')]
        link.append(_rod(np.mean([_origin(j) for j in carried] or [np.zeros(3)], axis=0)))
    note = (
        f'the URDF has no inertials: rods of {MASS:g} kg are assumed, which base parameters and '
        'predicted torques do not depend on; how standard parameters share them out between links '
        'does, so give rough masses and inertias for a URDF to simulate with'
    )
    return ElementTree.tostring(root, encoding='unicode'), (note,)


def _origin(joint: ElementTree.Element) -> np.ndarray:
    origin = joint.find('origin')
    numbers = () if origin is None else origin.get('xyz', '').split()
    return np.array(numbers, float) if len(numbers) == 3 else np.zeros(3)


def _rod(end: np.ndarray) -> ElementTree.Element:
    """Return the inertial of a rod from the joint to `end` (3,) [m], as thick as `RADIUS`."""
    square = (float(end @ end) * np.eye(3) - np.outer(end, end)) / 12.0
    inertia = MASS * (square + 0.4 * RADIUS**2 * np.eye(3))
    inertial = ElementTree.Element('inertial')
    ElementTree.SubElement(inertial, 'origin', xyz=' '.join(f'{x:.9g}' for x in end / 2.0))
    ElementTree.SubElement(inertial, 'mass', value=f'{MASS:g}')
    names = 'xyz'
    values = {f'i{names[a]}{names[b]}': inertia[a, b] for a in range(3) for b in range(a, 3)}
    ElementTree.SubElement(inertial, 'inertia', {k: f'{v:.9g}' for k, v in values.items()})
    return inertial
