"""Joints that mimic others, such as the second finger of a gripper."""

from collections.abc import Mapping
import dataclasses
from xml.etree import ElementTree

from ...exceptions import ModelError
from .urdf_parsing import MOVABLE_TYPES


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


@dataclasses.dataclass(frozen=True)
class Follower:
    """A joint that moves with an identified one: q = ratio · q[leader] + offset."""

    name: str
    leader: int
    ratio: float
    offset: float


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
