"""Links and joints of a URDF, inertials as pseudo-inertia matrices, and what moves together."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
import xml.etree.ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from ..exceptions import ConfigurationError, ModelError, UnknownNameError
from ..simulation_settings import PayloadSettings

Array = NDArray[np.float64]
JOINT_TYPES = {'revolute': 'hinge', 'continuous': 'hinge', 'prismatic': 'slide'}
MOMENTS = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
# For bodies without mass or inertia, as shafts of wrists, which simulators refuse [kg, kg·m²].
MIN_MASS, MIN_INERTIA = 1e-9, 1e-12
# Relative error of an inertia that rounding in a URDF explains.
INERTIA_TOLERANCE = 1e-6
POINT = 1e-4  # radius of gyration that no link is below: its moments are rounding errors [m]


def pseudo_inertia(mass: float, com: Array, inertia: Array) -> Array:
    """Pseudo-inertia (4, 4) from mass [kg], com (3,) [m] and the inertia (3, 3) at the com."""
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia + mass * np.outer(com, com)
    return np.block([[second, mass * com[:, None]], [mass * com[None, :], np.array([[mass]])]])


def inertial_at_com(pseudo: Array) -> tuple[float, Array, Array]:
    """Mass, com (3,) and the inertia (3, 3) at the com; a body without mass has com 0."""
    mass = float(pseudo[3, 3])
    com = pseudo[:3, 3] / mass if mass > 0.0 else np.zeros(3)
    second = pseudo[:3, :3] - mass * np.outer(com, com)
    return mass, com, np.trace(second) * np.eye(3) - second


def principal_inertia(pseudo: Array) -> tuple[float, Array, Array, Array]:
    """As simulators accept it: mass, com (3,), ascending principal moments (3,), axes (3, 3)."""
    mass, com, inertia = inertial_at_com(pseudo)
    moments, axes = np.linalg.eigh(inertia)
    moments = np.maximum(moments, MIN_INERTIA)
    # Rounding may violate the triangle inequality of a flat body's moments.
    moments[0] = max(moments[0], (moments[2] - moments[1]) * (1.0 + 1e-12))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    return max(mass, MIN_MASS), com, moments, axes


def make_consistent(pseudo: Array) -> tuple[Array, float]:
    """Make second moments nonnegative; also return how negative one was, over the trace."""
    mass, com, inertia = inertial_at_com(pseudo)
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    values, vectors = np.linalg.eigh(second)
    size = max(np.abs(values).sum(), mass * POINT**2, 1e-300)
    error = float(max(0.0, -values[0]) / size)
    if error == 0.0:
        return pseudo, 0.0
    second = vectors * np.maximum(values, 0.0) @ vectors.T
    return pseudo_inertia(mass, com, np.trace(second) * np.eye(3) - second), error


def perturb_inertial(pseudo: Array, relative: float, random: np.random.Generator) -> Array:
    """
    Deform a body's mass distribution at random: `A P Aᵀ`, consistent for every A.

    Lengths and the root of the mass change by about half of `relative`, so that mass and inertia
    change by about that; the com moves by that part of the body's size.
    """
    mass = pseudo[3, 3]
    size = np.sqrt(np.trace(pseudo[:3, :3]) / mass) if mass > 0.0 else 0.0
    change = np.eye(4)
    change[:3, :3] += 0.25 * relative * random.standard_normal((3, 3))
    change[:3, 3] += 0.5 * relative * size * random.standard_normal(3)
    change[3, 3] += 0.5 * relative * random.uniform(-1.0, 1.0)
    return np.asarray(change @ pseudo @ change.T)


@dataclass(frozen=True)
class Joint:
    """One joint of a URDF; `origin` (4, 4) places its frame in the parent link's."""

    name: str
    type: str
    parent: str
    child: str
    origin: Array
    axis: Array
    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf
    damping: float = 0.0
    friction: float = 0.0
    mimic: tuple[str, float, float] | None = None


def parse_urdf(text: str) -> ET.Element:
    """Parse a URDF; anything else is a ModelError."""
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise ModelError(f'the robot description is not valid XML ({error}): repair it') from error
    if root.tag != 'robot' or root.find('link') is None:
        raise ModelError('the robot description is not a URDF: its root must be <robot>')
    return root


def read_joints(root: ET.Element) -> tuple[Joint, ...]:
    """Read the joints of a robot whose base stands; one that no controller drives: ModelError."""
    carried = {_attributes(element, 'child').get('link') for element in root.findall('joint')}
    try:
        return tuple(_joint(element, carried) for element in root.findall('joint'))
    except (ValueError, AttributeError, KeyError) as error:
        raise ModelError(f'a joint of the robot description is malformed ({error})') from error


def root_link(root: ET.Element, joints: tuple[Joint, ...]) -> str:
    """Name of the one link that no joint carries."""
    children = [joint.child for joint in joints]
    if twice := [link for link in children if children.count(link) > 1]:
        raise ModelError(f"two joints carry the link '{twice[0]}': a robot must be a tree")
    names = [link.get('name', '') for link in root.findall('link')]
    roots = [name for name in names if name not in children]
    if len(roots) != 1:
        raise ModelError(f'the robot description has {len(roots)} base links: it must have one')
    return roots[0]


def read_inertials(root: ET.Element) -> dict[str, Array]:
    """Pseudo-inertia (4, 4) of every link in its own frame; zero where the URDF says nothing."""
    try:
        return {link.get('name', ''): _inertial(link) for link in root.findall('link')}
    except (ValueError, AttributeError, KeyError) as error:
        raise ModelError(f'an inertial of the robot description is malformed ({error})') from error


def true_urdf(
    text: str, *, error: float = 0.0, seed: int = 0, payload: PayloadSettings | None = None
) -> tuple[str, tuple[str, ...]]:
    """
    Write the true inertials into a URDF: perturbed, physically consistent, with the payload.

    Links deviate by about `error`, relative, seeded with `seed`. Also returns the links whose
    inertia was not physically consistent; these are corrected.
    """
    root = parse_urdf(text)
    random, impossible, inertials = np.random.default_rng([seed, 0x11]), [], read_inertials(root)
    for link in root.findall('link'):
        true, error_of_link = make_consistent(inertials[link.get('name', '')])
        if error_of_link > INERTIA_TOLERANCE:
            impossible.append(link.get('name', ''))
        if link.find('inertial') is not None:
            write_inertial(link, perturb_inertial(true, error, random) if error > 0.0 else true)
    if payload is not None and payload.mass > 0.0:
        links = list(inertials)
        parents = {joint.parent for joint in read_joints(root)}
        carrier = payload.link or [name for name in links if name not in parents][-1]
        if carrier not in links:
            raise ModelError(f"the payload's link '{carrier}' is not in the robot description")
        body = pseudo_inertia(payload.mass, np.array(payload.com), _symmetric(payload.inertia))
        write_inertial(ET.SubElement(root, 'link', name='payload'), body)
        joint = ET.SubElement(root, 'joint', name='payload_joint', type='fixed')
        ET.SubElement(joint, 'parent', link=carrier)
        ET.SubElement(joint, 'child', link='payload')
    return ET.tostring(root, encoding='unicode'), tuple(impossible)


def _joint(element: ET.Element, carried: Collection[str | None]) -> Joint:
    kind = element.attrib['type']
    if kind in ('floating', 'planar') and _attributes(element, 'parent')['link'] not in carried:
        kind = 'fixed'  # that of the base
    if kind != 'fixed' and kind not in JOINT_TYPES:
        raise ModelError(
            f"joint '{element.get('name')}' is {kind}: only revolute, continuous, prismatic and "
            'fixed joints can be simulated'
        )
    limit, dynamics, mimic = (_attributes(element, tag) for tag in ('limit', 'dynamics', 'mimic'))
    # A URDF that has one of both alone means 0 by the other.
    bounded = kind in ('revolute', 'prismatic') and bool({'lower', 'upper'} & limit.keys())
    axis = np.array(_numbers(_attributes(element, 'axis').get('xyz', '1 0 0'), 3))
    length = np.linalg.norm(axis)
    if kind != 'fixed' and not length > 0.0:
        raise ModelError(f"joint '{element.get('name')}' has no axis: give it a direction")
    follows = None
    if mimic:
        factor, shift = float(mimic.get('multiplier', '1')), float(mimic.get('offset', '0'))
        follows = mimic['joint'], factor, shift
    return Joint(
        element.attrib['name'],
        kind,
        _attributes(element, 'parent')['link'],
        _attributes(element, 'child')['link'],
        origin_of(element),
        axis / max(length, 1e-300),
        float(limit.get('lower', '0')) if bounded else -np.inf,
        float(limit.get('upper', '0')) if bounded else np.inf,
        float(limit.get('velocity', 'inf')),
        float(limit.get('effort', 'inf')) or np.inf,
        float(dynamics.get('damping', '0')),
        float(dynamics.get('friction', '0')),
        follows,
    )


def _attributes(element: ET.Element, tag: str) -> dict[str, str]:
    child = element.find(tag)
    return {} if child is None else dict(child.attrib)


def _numbers(text: str, count: int) -> list[float]:
    values = [float(value) for value in text.split()]
    if len(values) != count or not np.isfinite(values).all():
        raise ValueError(f"'{text}' must be {count} finite numbers")
    return values


def origin_of(element: ET.Element) -> Array:
    """Return H (4, 4) of the `<origin>` of a joint, an inertial or a shape."""
    origin = _attributes(element, 'origin')
    transform = np.eye(4)
    transform[:3, :3] = rotation(*_numbers(origin.get('rpy', '0 0 0'), 3))
    transform[:3, 3] = _numbers(origin.get('xyz', '0 0 0'), 3)
    return transform


def rotation(roll: float, pitch: float, yaw: float) -> Array:
    """Rotation (3, 3) of URDF's fixed-axis angles, `Rz(yaw) Ry(pitch) Rx(roll)`."""
    (cr, cp, cy), (sr, sp, sy) = np.cos([roll, pitch, yaw]), np.sin([roll, pitch, yaw])
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return np.asarray(about_z @ about_y @ about_x)


def _inertial(link: ET.Element) -> Array:
    element = link.find('inertial')
    if element is None or element.find('mass') is None:
        return np.zeros((4, 4))
    (mass,) = _numbers(_attributes(element, 'mass')['value'], 1)
    if mass < 0.0:
        raise ModelError(f"link '{link.get('name')}' has a negative mass: correct the URDF")
    values, place = _attributes(element, 'inertia'), origin_of(element)
    local = _symmetric(_numbers(' '.join(values.get(name, '0') for name in MOMENTS), 6))
    return np.asarray(place @ pseudo_inertia(mass, np.zeros(3), local) @ place.T)


def _symmetric(moments: Sequence[float]) -> Array:
    xx, xy, xz, yy, yz, zz = moments
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def write_inertial(link: ET.Element, pseudo: Array) -> None:
    """Replace the inertial of a link by that of a pseudo-inertia (4, 4) in its frame."""
    mass, com, inertia = inertial_at_com(pseudo)
    element = link.find('inertial')
    if element is None:
        element = ET.SubElement(link, 'inertial')
    element.clear()
    ET.SubElement(element, 'origin', xyz=' '.join(map(repr, com.tolist())), rpy='0 0 0')
    ET.SubElement(element, 'mass', value=repr(mass))
    values = map(repr, inertia[np.triu_indices(3)].tolist())
    ET.SubElement(element, 'inertia', dict(zip(MOMENTS, values, strict=True)))


@dataclass(frozen=True)
class RigidBody:
    """A link that a joint carries, with all links that are fixed to it; or the base."""

    joint: Joint  # that carries it; that of the base is fixed to nothing
    parent: int  # number of the body that carries it, -1 of the base
    # H (4, 4) of its frame, which is the joint's, in the parent's and in the base's.
    origin: Array
    place: Array
    inertial: Array  # pseudo-inertia (4, 4) of all of its links
    links: dict[str, Array]  # H (4, 4) of each in its frame, by name, the carried one first

    @property
    def name(self) -> str:
        """Name of the link that is carried."""
        return self.joint.child


def rigid_bodies(
    root: ET.Element,
    moving: Collection[str] | None = None,
    positions: Mapping[str, float] | None = None,
) -> tuple[RigidBody, ...]:
    """
    Join the links of a URDF that move as one, the base first, each after what carries it.

    They are depth first, as MuJoCo's rows are. All joints that can move do, unless those that do
    are named; others are at `positions`, or 0.
    """
    joints, inertials = read_joints(root), read_inertials(root)
    base, at = root_link(root, joints), positions or {}
    bodies: list[RigidBody] = []

    def add(joint: Joint, parent: int, origin: Array) -> None:
        place = bodies[parent].place @ origin if bodies else origin
        inertial, links = inertials[joint.child].copy(), {joint.child: np.eye(4)}
        bodies.append(RigidBody(joint, parent, origin, place, inertial, links))
        attach(joint.child, len(bodies) - 1, np.eye(4))

    def attach(link: str, index: int, place: Array) -> None:
        """Attach what a link carries to body `index`; `place` (4, 4) is the link's frame in it."""
        for joint in [joint for joint in joints if joint.parent == link]:
            if joint.child not in inertials:
                raise ModelError(f"joint '{joint.name}' carries no link: correct the URDF")
            origin = place @ joint.origin
            if joint.type != 'fixed' and (moving is None or joint.name in moving):
                add(joint, index, origin)
                continue
            fixed = origin @ joint_transform(joint, at.get(joint.name, 0.0))
            bodies[index].inertial[:] += fixed @ inertials[joint.child] @ fixed.T
            bodies[index].links[joint.child] = fixed
            attach(joint.child, index, fixed)

    add(Joint('', 'fixed', '', base, np.eye(4), np.zeros(3)), -1, np.eye(4))
    return tuple(bodies)


def moving_bodies(
    root: ET.Element, joints: tuple[str, ...] = (), locked: dict[str, float] | None = None
) -> tuple[RigidBody, ...]:
    """
    Combine the links of a URDF into moving bodies, as `rigid_bodies` without the base.

    The joints move, without any all but the locked ones, and mimic joints follow theirs. `locked`
    are positions of further joints, which are fixed; others that do not move are at 0. A joint
    that the URDF does not have is an UnknownNameError, a ModelError where nothing moves.
    """
    at, all_joints = dict(locked or {}), read_joints(root)
    movable = {joint.name: joint for joint in all_joints if joint.type in JOINT_TYPES}
    for name in (*joints, *at):
        if name not in movable:
            raise UnknownNameError('joint', name, tuple(movable))
    driven = joints or [name for name, joint in movable.items() if joint.mimic is None]
    moving = {name for name in driven if name not in at}
    followers = {n for n, j in movable.items() if j.mimic is not None and j.mimic[0] in moving}
    for joint in all_joints:
        if joint.mimic is not None and joint.name not in moving | followers:
            leader, multiplier, offset = joint.mimic
            at[joint.name] = multiplier * (locked or {}).get(leader, 0.0) + offset
    _, *bodies = rigid_bodies(root, moving | followers, at)
    if not bodies:
        raise ModelError('the robot description has no movable joint: nothing can be simulated')
    return tuple(bodies)


def initial_positions(
    bodies: Sequence[RigidBody], joints: Sequence[str], positions: Sequence[float]
) -> list[float]:
    """Return where each body starts: as given for `joints`, else at 0 or the nearest limit."""
    if positions and len(positions) != len(joints):
        raise ConfigurationError(
            f"'simulation.initial_positions' has {len(positions)} values: give {len(joints)}"
        )
    at = dict(zip(joints, positions or (0.0,) * len(joints), strict=True))
    for joint in (body.joint for body in bodies):
        if joint.mimic is not None:
            leader, multiplier, offset = joint.mimic
            at[joint.name] = multiplier * at.get(leader, 0.0) + offset
            continue
        start = at[joint.name]
        at[joint.name] = min(max(start, joint.lower), joint.upper)
        if positions and at[joint.name] != start:
            raise ConfigurationError(
                f"'simulation.initial_positions': {joint.name} at {start} is outside of its "
                f'limits {joint.lower} to {joint.upper}'
            )
    return [at[body.joint.name] for body in bodies]


def joint_transform(joint: Joint, position: float) -> Array:
    """Return H (4, 4) from a joint's frame at 0 to that at a position; a fixed one stays."""
    transform = np.eye(4)
    if joint.type == 'prismatic':
        transform[:3, 3] = position * joint.axis
    elif joint.type in JOINT_TYPES:
        x, y, z = joint.axis
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        transform[:3, :3] += np.sin(position) * cross + (1 - np.cos(position)) * cross @ cross
    return transform
