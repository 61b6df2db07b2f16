"""Reading a URDF: joints by name, locked ones merged into links, rounded angles made exact."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import math
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pinocchio

from ...exceptions import ConfigurationError, ModelError, reason_of, UnknownNameError
from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding
from .robot import Follower
from .settings import RobotSettings
from .urdf_parsing import (
    check_tree,
    inertial_warnings,
    link_at,
    movable_names,
    MOVABLE_TYPES,
    parse_urdf,
    snap_angles,
)

# Limits of this size or more are none: continuous joints get it as revolute ones.
UNLIMITED = 1e30
# Added for a moment to the name of a link that a joint has too.
LINK = ' (link)'


@dataclasses.dataclass(frozen=True)
class Description:
    """A URDF reduced to the identified joints; arrays follow `joints`, not the model's order."""

    name: str
    joints: tuple[str, ...]
    model: Any
    order: npt.NDArray[np.intp]
    prismatic: npt.NDArray[np.bool_]
    lower: Array
    upper: Array
    velocity: Array
    effort: Array
    damping: Array
    dry_friction: Array
    warnings: tuple[Finding, ...]
    followers: tuple[Follower, ...] = ()
    locked: dict[str, float] = dataclasses.field(default_factory=dict)


def read_description(urdf: str, settings: RobotSettings) -> Description:
    """
    Read a URDF and reduce it to the joints of the configuration.

    Raises
    ------
    ModelError : malformed, without inertials, or with joints that cannot be handled
    UnknownNameError : a joint that the URDF lacks

    """
    root = parse_urdf(urdf)
    check_tree(root)
    name = root.get('name') or 'robot'
    root.set('name', name)  # parsers ask for one
    elements = {str(joint.get('name')): joint for joint in root.findall('joint')}
    following = read_mimics(elements)
    joints = _select(movable_names(root), following, settings)
    _check_types(elements, joints, following)
    bounds = {'lower': -np.inf, 'upper': np.inf, 'velocity': np.inf, 'effort': np.inf}
    limits = {key: _attribute(elements, joints, 'limit', key, x) for key, x in bounds.items()}
    continuous = np.array([elements[joint].get('type') == 'continuous' for joint in joints])
    for key, bound in bounds.items():
        none = np.abs(limits[key]) >= UNLIMITED
        if key in ('lower', 'upper'):
            none |= continuous
        limits[key] = np.where(none, bound, limits[key])
    damping, dry_friction = (
        _attribute(elements, joints, 'dynamics', key, 0.0) for key in ('damping', 'friction')
    )
    warnings = (*inertial_warnings(root), *snap_angles(root))
    followers = find_followers(joints, settings.locked, following)
    moving = (*joints, *(follower.name for follower in followers))
    model = _reduce(build_model(root), moving, following, settings)
    if not any(model.inertias[k + 1].mass > 0.0 for k in range(model.nv)):
        raise ModelError(
            'the URDF has no inertials: set robot.mass (--mass of robotid init) to what the data '
            'sheet says of the whole robot, or give the links masses and inertias'
        )
    order = np.array([moving.index(name) for name in list(model.names)[1:]], dtype=np.intp)
    return Description(
        name=name,
        joints=joints,
        model=model,
        order=order,
        prismatic=np.array([elements[j].get('type') == 'prismatic' for j in joints]),
        **limits,
        damping=damping,
        dry_friction=dry_friction,
        warnings=warnings,
        followers=followers,
        locked={
            name: locked_position(name, settings.locked, following)
            for name in movable_names(root)
            if name not in moving and name not in following
        },
    )


def _select(
    names: tuple[str, ...], following: dict[str, Mimic], settings: RobotSettings
) -> tuple[str, ...]:
    for name in (*settings.joints, *settings.locked):
        if name not in names:
            raise UnknownNameError('movable joint of the URDF', name, names)
    if len(set(settings.joints)) < len(settings.joints):
        raise ConfigurationError("'joints' names a joint twice: name each one once")
    joints = settings.joints or tuple(
        name for name in names if name not in settings.locked and name not in following
    )
    both = set(joints) & set(settings.locked)
    if both:
        raise ConfigurationError(
            f'{", ".join(sorted(both))} is both identified and locked: take it out of one list'
        )
    if not joints:
        raise ModelError('the robot description has no movable joint: check the URDF')
    return joints


def _check_types(
    elements: dict[str, ElementTree.Element], joints: tuple[str, ...], following: dict[str, Mimic]
) -> None:
    for name, joint in elements.items():
        if joint.get('type') in ('floating', 'planar'):
            raise ModelError(
                f'joint {name} is {joint.get("type")}: only arms on a fixed base can be '
                'identified, make it fixed'
            )
    for name, mimic in following.items():
        if name in joints:
            raise ModelError(
                f'joint {name} mimics {mimic.leader} and cannot be identified by itself: take it '
                'out of robot.joints'
            )


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


def _reduce(
    full: Any, joints: tuple[str, ...], following: dict[str, Mimic], settings: RobotSettings
) -> Any:
    locked = [name for name in list(full.names)[1:] if name not in joints]
    missing = [name for name in joints if not full.existJointName(name)]
    if missing:
        raise ModelError(
            f'joint {missing[0]} is not connected to the root of the URDF: check its links'
        )
    q = pinocchio.neutral(full)
    for name in locked:
        q[full.joints[full.getJointId(name)].idx_q] = locked_position(
            name, settings.locked, following
        )
    model = _lock(full, locked, q) if locked else full
    if len(settings.gravity) != 3:
        raise ConfigurationError("'gravity' must have three numbers, for example [0, 0, -9.81]")
    compensated = settings.effort_kind == 'without_gravity'
    model.gravity.linear = np.zeros(3) if compensated else np.array(settings.gravity)
    return model


def _lock(full: Any, locked: list[str], q: Array) -> Any:
    """Merge locked joints into links; links may have names of joints, which Pinocchio minds."""
    joints = {frame.name for frame in full.frames if frame.type != pinocchio.FrameType.BODY}
    for frame in full.frames:
        if frame.type == pinocchio.FrameType.BODY and frame.name in joints:
            frame.name += LINK
    model = pinocchio.buildReducedModel(full, [full.getJointId(name) for name in locked], q)
    for frame in model.frames:
        frame.name = frame.name.removesuffix(LINK)
    return model


def _attribute(
    elements: dict[str, ElementTree.Element],
    joints: tuple[str, ...],
    tag: str,
    key: str,
    default: float,
) -> Array:
    result = []
    for joint in joints:
        child = elements[joint].find(tag)
        text = None if child is None else child.get(key)
        try:
            result.append(default if text is None else float(text))
            if math.isnan(result[-1]):
                raise ValueError
        except ValueError as error:
            raise ModelError(
                f"{tag} {key} of joint {joint} is '{text}': it must be a number"
            ) from error
    return np.array(result)


@dataclasses.dataclass(frozen=True)
class Mimic:
    """A joint that follows another one: q = ratio · q_leader + offset."""

    leader: str
    ratio: float
    offset: float


def read_mimics(elements: dict[str, ElementTree.Element]) -> dict[str, Mimic]:
    """
    Read which movable joints mimic which.

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
        found[name] = Mimic(leader, *numbers)
    for name in found:
        leader = name
        for _ in found:
            leader = found[leader].leader if leader in found else leader
        if leader in found:
            raise ModelError(f'joint {name} mimics itself in the end: repair its <mimic>')
    return found


def find_followers(
    joints: tuple[str, ...], locked: Mapping[str, float], following: Mapping[str, Mimic]
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
            found.append(Follower(name, joints.index(leader), ratio, offset))
    return tuple(found)


def locked_position(
    name: str, locked: Mapping[str, float], following: Mapping[str, Mimic]
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
