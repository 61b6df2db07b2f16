"""The links of a description, joined where they move as one: what simulators call a body."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np

from ....core.parameters.physical_consistency import mass_properties
from ....exceptions import shortened
from ....plant.physics.urdf_reading import Joint, read_inertials, read_joints, root_link
from ..link_bodies import Array

# Of the triangle inequality, relative: what rounding in a description explains.
ROUNDING = 1e-6
# For bodies without mass or inertia, which simulators refuse [kg, kg·m²].
MIN_MASS, MIN_INERTIA = 1e-9, 1e-12


@dataclass(frozen=True)
class RigidBody:
    """
    A link that a joint carries, with all links that are fixed to it; or the base.

    Attributes
    ----------
    joint : that carries it, None for the base
    parent : number of the body that carries it, -1 for the base
    origin : H (4, 4), its frame in that of the parent
    links : H (4, 4), the frame of each link in that of the body, which is the first one's
    inertial : pseudo-inertia (4, 4) of all of them

    """

    joint: Joint | None
    parent: int
    origin: Array
    links: dict[str, Array]
    inertial: Array

    @property
    def name(self) -> str:
        """Name of the link that is carried."""
        return next(iter(self.links))


def rigid_bodies(root: ElementTree.Element) -> tuple[RigidBody, ...]:
    """
    Join the links of a description into rigid bodies, the base first and each after its parent.

    Parameters
    ----------
    root : of a URDF that a robot was built of

    """
    joints = read_joints(root)
    own = read_inertials(root)
    bodies: list[RigidBody] = []
    ahead: list[tuple[Joint | None, int, Array, str]] = [
        (None, -1, np.eye(4), root_link(root, joints))
    ]
    while ahead:
        joint, parent, origin, link = ahead.pop()
        links = dict(_fixed_together(link, np.eye(4), joints))
        inertial = np.sum([H @ own[name] @ H.T for name, H in links.items()], axis=0)
        bodies.append(RigidBody(joint, parent, origin, links, inertial))
        ahead += [
            (carried, len(bodies) - 1, links[carried.parent] @ carried.origin, carried.child)
            for carried in reversed(joints)
            if carried.parent in links and carried.type != 'fixed'
        ]
    return tuple(bodies)


def _fixed_together(
    link: str, place: Array, joints: Sequence[Joint]
) -> Iterator[tuple[str, Array]]:
    """Yield a link and those that are fixed to it, with their frames."""
    yield link, place
    for joint in joints:
        if joint.parent == link and joint.type == 'fixed':
            yield from _fixed_together(joint.child, place @ joint.origin, joints)


def explain_impossible(bodies: Sequence[RigidBody]) -> list[str]:
    """Say which bodies get another inertia, because none has what the description gives them."""
    found = []
    for body in (body for body in bodies if body.joint is not None):
        mass, _, inertia = mass_properties(body.inertial)
        least, middle, most = np.linalg.eigvalsh(inertia)
        if mass > 0.0 and least + middle < (1.0 - ROUNDING) * most:
            found.append(body.name)
    if not found:
        return []
    return [
        f'the description gives {shortened(found)} an inertia that no body has, which simulators '
        'refuse: the nearest one is written'
    ]


def principal_inertia(inertial: Array) -> tuple[float, Array, Array, Array]:
    """
    Return a body as simulators accept it.

    Returns
    -------
    Mass, centre of mass (3,), principal moments (3,) at it, ascending, and their axes (3, 3),
    right-handed columns.

    """
    mass, com, inertia = mass_properties(inertial)
    moments, axes = np.linalg.eigh(inertia)
    moments = np.maximum(moments, MIN_INERTIA)
    # Rounding may violate the triangle inequality of a flat body's moments.
    moments[0] = max(moments[0], (moments[2] - moments[1]) * (1.0 + 1e-12))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    return max(mass, MIN_MASS), com, moments, axes
