"""Moving bodies: the links of a URDF, each with all links that are fixed to it."""

from collections.abc import Sequence
from dataclasses import dataclass
import xml.etree.ElementTree as ET

import numpy as np

from ..exceptions import ConfigurationError, ModelError, UnknownNameError
from .urdf_reading import Array, Joint, JOINT_TYPES, read_inertials, read_joints, root_link


@dataclass(frozen=True)
class MovingBody:
    """
    A moving body in the frame of the joint that carries it.

    `parent` is the index of the body before it, -1 for the base; `origin` (4, 4) places the
    joint's frame in the parent body's; `inertial` is its pseudo-inertia (4, 4); `links` are the
    frames (4, 4) of its links in it, by name.
    """

    joint: Joint
    parent: int
    origin: Array
    inertial: Array
    links: dict[str, Array]


def moving_bodies(
    root: ET.Element, joints: tuple[str, ...] = (), locked: dict[str, float] | None = None
) -> tuple[MovingBody, ...]:
    """
    Combine the links of a URDF into moving bodies, depth first: the order of MuJoCo's rows.

    The joints move, without any all but the locked ones, and mimic joints follow theirs. `locked`
    are positions of further joints, which are fixed; others that do not move are at 0. A joint
    that the URDF does not have is an UnknownNameError, a ModelError where nothing moves.
    """
    all_joints = read_joints(root)
    moving = _moving_joints(all_joints, joints, locked or {})
    positions = _locked_positions(all_joints, moving, locked or {})
    inertials = read_inertials(root)
    bodies: list[MovingBody] = []

    def attach(link: str, index: int, place: Array) -> None:
        """Attach what a link carries to body `index`; `place` (4, 4) is the link's frame in it."""
        for joint in [joint for joint in all_joints if joint.parent == link]:
            if joint.child not in inertials:
                raise ModelError(f"joint '{joint.name}' carries no link: correct the URDF")
            inertial = inertials[joint.child]
            if joint.name in moving:
                links = {joint.child: np.eye(4)}
                origin = place @ joint.origin
                bodies.append(MovingBody(joint, index, origin, inertial.copy(), links))
                attach(joint.child, len(bodies) - 1, np.eye(4))
                continue
            fixed = place @ joint.origin @ _joint_transform(joint, positions.get(joint.name, 0.0))
            if index >= 0:
                bodies[index].inertial[:] += fixed @ inertial @ fixed.T
                bodies[index].links[joint.child] = fixed
            attach(joint.child, index, fixed)

    attach(root_link(root, all_joints), -1, np.eye(4))
    if not bodies:
        raise ModelError('the robot description has no movable joint: nothing can be simulated')
    return tuple(bodies)


def initial_positions(
    bodies: Sequence[MovingBody], joints: Sequence[str], positions: Sequence[float]
) -> list[float]:
    """Return where each body starts: as given for `joints`, else at 0 or the nearest limit."""
    if positions and len(positions) != len(joints):
        raise ConfigurationError(
            f"'simulation.initial_positions' has {len(positions)} values: give {len(joints)}"
        )
    by_name = dict(zip(joints, positions or (0.0,) * len(joints), strict=True))
    result = []
    for joint in (body.joint for body in bodies):
        if joint.mimic is not None:
            leader, multiplier, offset = joint.mimic
            result.append(multiplier * by_name.get(leader, 0.0) + offset)
            continue
        start = by_name[joint.name]
        by_name[joint.name] = min(max(start, joint.lower), joint.upper)
        if positions and by_name[joint.name] != start:
            raise ConfigurationError(
                f"'simulation.initial_positions': {joint.name} at {start} is outside of its "
                f'limits {joint.lower} to {joint.upper}'
            )
        result.append(by_name[joint.name])
    return result


def _moving_joints(
    all_joints: tuple[Joint, ...], joints: tuple[str, ...], locked: dict[str, float]
) -> set[str]:
    movable = {j.name: j for j in all_joints if j.type in JOINT_TYPES}
    for name in (*joints, *locked):
        if name not in movable:
            raise UnknownNameError('joint', name, tuple(movable))
    driven = [name for name, joint in movable.items() if joint.mimic is None]
    moving = {name for name in (joints or driven) if name not in locked}
    follow = {n for n, j in movable.items() if j.mimic is not None and j.mimic[0] in moving}
    return moving | follow


def _locked_positions(
    all_joints: tuple[Joint, ...], moving: set[str], locked: dict[str, float]
) -> dict[str, float]:
    positions = dict(locked)
    for joint in all_joints:
        if joint.mimic is not None and joint.name not in moving:
            leader, multiplier, offset = joint.mimic
            positions[joint.name] = multiplier * locked.get(leader, 0.0) + offset
    return positions


def _joint_transform(joint: Joint, position: float) -> Array:
    transform = np.eye(4)
    if joint.type == 'prismatic':
        transform[:3, 3] = position * joint.axis
    elif joint.type in JOINT_TYPES:
        x, y, z = joint.axis
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        transform[:3, :3] += np.sin(position) * cross + (1 - np.cos(position)) * cross @ cross
    return transform
