"""Identified robot description: the original text with new inertials and joint dynamics."""

from collections.abc import Iterator, Mapping
import re
from typing import TYPE_CHECKING
import xml.etree.ElementTree as ElementTree

import numpy as np

from ...core.model.friction import TERMS
from ...core.model.parameters import INERTIAL
from ...core.parameters.physical_consistency import mass_properties, pseudo_inertia
from ...core.parameters.plain_friction import plain_friction, PlainFriction
from ...exceptions import ModelError
from .drives import describe_difference, friction_terms, values_by_joint
from .link_bodies import Array, distribute, MOMENTS, own_bodies
from .urdf_editing import (
    apply_edits,
    child_span,
    Edit,
    Element,
    placement_edit,
    Scanner,
    with_attributes,
)

if TYPE_CHECKING:
    from ...core.model import Robot

NOTE = 'identified too:'


def identified_urdf(
    robot: 'Robot', chi: np.ndarray, friction: Mapping[str, PlainFriction] | None = None
) -> str:
    """
    Write identified parameters into the robot's description; all else stays byte for byte.

    The parameters of a joint are those of all that moves with it: links behind fixed or locked
    joints are part of it. They keep their inertials as long as the moving link, or else the
    heaviest of those fixed to it, can take the difference; where none can they shrink alike, see
    `distribute`. Every link that has a body keeps one.

    Of `<dynamics>` damping and friction are written, where friction was identified, and the
    rotor's inertia beside them as `armature`, which is no part of URDF: its parsers pass over it.
    All else stands in a comment: torque offset and springs, and where the friction is not viscous
    and Coulomb, its parameters and how far damping and friction are from it.

    Parameters
    ----------
    robot : the robot
    chi : (p,) standard parameters, physically consistent ones
    friction : that stands for the identified one, by joint; None: fitted here, up to the limits

    Raises
    ------
    ModelError : the description is not XML, or lacks a joint

    """
    data = robot.urdf.encode()
    found = Scanner(data)
    values = values_by_joint(robot, chi)
    friction = friction or plain_friction(robot, chi)
    own, joints = own_bodies(robot.urdf), ElementTree.fromstring(data).findall('joint')
    fixed = {j.get('name', '') for j in joints if j.get('type') == 'fixed'}
    edits: list[Edit] = []
    for number, joint in enumerate(robot.links):
        if joint not in found.joints:
            raise ModelError(f"the robot description has no joint '{joint}'")
        element = found.joints[joint]
        total = pseudo_inertia(np.array([values[joint][symbol] for symbol in INERTIAL]))
        places = _places(robot, joint)
        bodies = {name: H @ own[name] @ H.T for name, H in places.items()}
        rigid = [element.child, *_below(found, element.child, fixed)]
        rest = sorted(rigid[1:], key=lambda name: -own[name][3, 3])
        heavy = [name for name in rest if own[name][3, 3] > 0.0]
        changed, factors = distribute(total, bodies, [element.child, *heavy])
        for name, body in changed.items():
            back = np.linalg.inv(places[name])
            edits.append(_inertial(found.links[name], back @ body @ back.T))
        for name, factor in factors.items():
            edits += _scaled(data, found.links[name], factor)
        plain = friction[joint] if _rubs(robot, number) else None
        if joint not in robot.joints and element.span is not None:
            plain = PlainFriction()  # the friction of a joint that mimics is the other one's
        missed = ''
        if plain is not None and not plain.exact:
            missed = describe_difference(robot, joint, plain)
        edits += _dynamics(data, element, values[joint], plain, missed)
    return apply_edits(data, edits)


def _places(robot: 'Robot', joint: str) -> dict[str, Array]:
    """Return where the links that move with a joint are, H (4, 4) to the moving link's frame."""
    number = robot.model.getJointId(joint)
    return {
        frame.name: frame.placement.homogeneous
        for frame in robot.model.frames
        if frame.parentJoint == number and frame.type.name == 'BODY'
    }


def _below(found: Scanner, link: str, fixed: set[str]) -> Iterator[str]:
    """Yield the links that are fixed to a link."""
    for joint in found.joints.values():
        if joint.parent == link and joint.name in fixed:
            yield joint.child
            yield from _below(found, joint.child, fixed)


def _inertial(link: Element, body: Array) -> Edit:
    """Replace a link's `<inertial>`, given its body at the link's frame."""
    mass, com, central = mass_properties(body)
    moments = ' '.join(
        f'{name}="{_exact(value)}"'
        for name, value in zip(MOMENTS, central[np.triu_indices(3)], strict=True)
    )
    text = (
        f'<inertial>\n      <origin xyz="{" ".join(map(_exact, com))}" rpy="0 0 0"/>\n'
        f'      <mass value="{_exact(mass)}"/>\n      <inertia {moments}/>\n    </inertial>'
    )
    return placement_edit(link, text, 'link')


def _scaled(data: bytes, link: Element, factor: float) -> Iterator[Edit]:
    """Multiply mass and moments of a link's `<inertial>`, as they are written."""
    assert link.span is not None
    inertial = ElementTree.fromstring(data[slice(*link.span)])
    for tag, names in (('mass', ('value',)), ('inertia', MOMENTS)):
        element = inertial.find(tag)
        if element is not None:
            numbers = {name: float(element.get(name, 0.0)) for name in names}
            scaled = {name: _exact(factor * value) for name, value in numbers.items()}
            start, stop = child_span(data, link.span, tag)
            yield start, stop, with_attributes(data[start:stop].decode(), scaled)


def _rubs(robot: 'Robot', joint: int) -> bool:
    """Tell whether friction was identified: else the description's stays."""
    terms = friction_terms(robot, joint)
    return any(term != 'offset' and not TERMS[term].of_position for term in terms)


def _dynamics(
    data: bytes,
    joint: Element,
    values: Mapping[str, float],
    plain: PlainFriction | None,
    missed: str,
) -> list[Edit]:
    """Write what `<dynamics>` may hold, and all else into a comment behind it."""
    old = '<dynamics/>' if joint.span is None else data[slice(*joint.span)].decode()
    known, written, held = ElementTree.fromstring(old).attrib, dict[str, str](), {*INERTIAL}
    if plain is not None:
        for name, symbol, value in (
            ('damping', 'Fv', plain.viscous),
            ('friction', 'Fc', plain.coulomb),
        ):
            if value or name in known:
                written[name] = _exact(value)
            if not missed and values.get(symbol) == value:
                held.add(symbol)
    # Parsers of URDF refuse a <dynamics> with neither damping nor friction.
    if 'Ia' in values and {*written, *known} & {'damping', 'friction'}:
        written['armature'] = _exact(max(values['Ia'], 0.0))
        held.add('Ia')
    rest = [f'{key} {_exact(value)}' for key, value in values.items() if key not in held]
    if not written and not rest:
        return []
    note = f'{NOTE} {", ".join(rest)}' if rest else ''
    if plain is not None and missed:
        note += (
            f'; damping and friction, with an offset of {_exact(plain.offset)}, differ from this '
            f'friction by up to {missed}'
        )
    if joint.span is not None:
        start, stop = joint.span
        old_note = re.compile(rb'\s*<!-- ' + NOTE.encode() + rb'[^>]*-->').match(data, stop)
        joint.span = start, old_note.end() if old_note else stop
    texts = [with_attributes(old, written)] if written or joint.span is not None else []
    if note:
        texts.append(f'<!-- {note} -->')
    return [placement_edit(joint, '\n    '.join(texts), 'joint')]


def _exact(value: float) -> str:
    return repr(float(value))
