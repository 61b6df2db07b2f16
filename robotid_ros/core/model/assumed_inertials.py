"""Inertials of a description that has none: assumed from the mass and the size of the robot."""

from xml.etree import ElementTree

import numpy as np

from ..arrays import Array
from ..findings import Finding, finding
from .pinocchio_model import build_model
from .urdf_parsing import check_tree, INERTIA, link_at, parse_urdf

# A link's mass goes with its length times the reach of what it carries, both with this part of the
# whole reach added. Of 14 industrial arms with known masses, weight and inertia at the first three
# joints come out within a factor of 1.5 (rms; of the three of benchmarks/assumed_masses.py, 1.7).
LEAST = 0.1
RADIUS = 0.05  # [m]
PLACEHOLDERS = 3  # so many links are the same ball about their origins in no robot


def lacks_inertials(urdf: str) -> bool:
    """Return whether no link of a description has a mass, or all have a placeholder."""
    root = parse_urdf(urdf)
    masses = root.findall('link/inertial/mass')
    has_mass = any(float(mass.get('value', '0')) > 0.0 for mass in masses)
    return not has_mass or are_placeholders(root)


def are_placeholders(root: ElementTree.Element) -> bool:
    """Return whether all links have the same ball about their origins."""
    bodies = [
        {
            element.tag: {name: value for name, value in element.items() if name != 'rpy'}
            for element in inertial
        }
        for inertial in root.findall('link/inertial')
    ]
    if len(bodies) < PLACEHOLDERS or any(body != bodies[0] for body in bodies):
        return False
    centre = bodies[0].get('origin', {}).get('xyz', '0')
    moments = {bodies[0].get('inertia', {}).get(name) for name in ('ixx', 'iyy', 'izz')}
    return len(moments) == 1 and not np.array(centre.split(), float).any()


def with_inertials(urdf: str, mass: float) -> tuple[str, tuple[Finding, ...]]:
    """
    Share the mass of a robot out between its links, where the description gives them none.

    Parameters that a motion determines do not depend on it; efforts of a motion that is designed
    with it do. The mass is that of the whole robot, its base included, by the data sheet [kg]; 0:
    unknown. Returns the text, the same where a moving link has a mass that is no placeholder, or
    that of the robot is unknown, and notes.
    """
    if not 0.0 < mass < np.inf:
        return urdf, ()
    root = parse_urdf(urdf)
    check_tree(root)
    model = build_model(root)
    masses = [inertia.mass for inertia in model.inertias.tolist()[1:]]
    if any(mass > 0.0 for mass in masses) and not are_placeholders(root):
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
        # A rod from the joint to the middle of those that it carries, as thick as `RADIUS`.
        end = np.mean(places or [np.zeros(3)], axis=0)
        square = (float(end @ end) * np.eye(3) - np.outer(end, end)) / 12.0
        inertia = mass * share * (square + 0.4 * RADIUS**2 * np.eye(3))
        inertial = ElementTree.SubElement(link, 'inertial')
        ElementTree.SubElement(inertial, 'origin', xyz=' '.join(f'{x:.9g}' for x in end / 2.0))
        ElementTree.SubElement(inertial, 'mass', value=f'{mass * share:.9g}')
        moments = zip(INERTIA, inertia[np.triu_indices(3)], strict=True)
        ElementTree.SubElement(inertial, 'inertia', {key: f'{x:.9g}' for key, x in moments})
    return ElementTree.tostring(root, encoding='unicode'), (finding('masses_assumed', mass=mass),)
