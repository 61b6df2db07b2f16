"""
The identified robot description: the original text with new inertials and dynamics.

Bodies are pseudo-inertia matrices (4, 4), see `core.parameters.physical_consistency`, which add up
at one frame and move to another by H P Hᵀ.
"""

from collections.abc import Iterator, Mapping, Sequence
import re
from xml.etree import ElementTree as ET

import numpy as np

from ...core.arrays import Array
from ...core.findings import render
from ...core.model import Robot
from ...core.model.friction import FRICTION_TERMS
from ...core.model.robot import INERTIAL
from ...core.model.urdf_parsing import parse_urdf, snap_angles
from ...core.parameters.physical_consistency import mass_properties, pseudo_inertia
from ...core.parameters.plain_friction import plain_friction, PlainFriction
from ...exceptions import ModelError
from ...plant import urdf_reading
from .identified_model import (
    explain_losses,
    friction_terms,
    IdentifiedModel,
    ROTORS,
    values_by_joint,
)

# Least mass [kg] and principal moment [kg·m²] of a moving link: simulators refuse zeros. Least
# excess of two principal moments over the third, relative: they refuse less than none.
MIN_INERTIA, MIN_EXCESS = 1e-9, 1e-6
# Where links have to shrink: the lightest keep their bodies as long as they are together no more
# than this share of the new one, the others become that share of it.
SHARE = 0.25
# A body that changes by less than this, relative, stays as it is written.
UNCHANGED = 1e-12
ROTOR_NOTE = (
    'rotor inertias stand in armature of <dynamics>, which MuJoCo, Gazebo, Pinocchio and KDL do '
    'not read from a URDF: take mjcf'
)
_PROLOG = re.compile(r'(?:\s+|<\?.*?\?>|<!--.*?-->)*', re.DOTALL)  # of what precedes the root


def urdf(model: IdentifiedModel) -> tuple[str, list[str]]:
    """Write the identified description, with a comment on what it does not hold; return both."""
    notes = explain_losses(model, {ROTORS})
    if model.robot.rotor_inertia:
        notes.insert(0, ROTOR_NOTE)
    notes += map(render, snap_angles(parse_urdf(model.robot.urdf)))
    text = identified_urdf(model.robot, model.chi, model.plain_friction).rstrip()
    return f'{text}\n<!--{comment(notes)}-->\n', notes


def identified_urdf(
    robot: Robot, chi: np.ndarray, friction: Mapping[str, PlainFriction] | None = None
) -> str:
    """
    Write identified parameters into the robot's description; all else stays.

    The parameters of a joint are those of all that moves with it, also behind fixed or locked
    joints. These links keep their inertials as long as the moving link, or else the heaviest of
    them, can take the difference; where none can they shrink alike, see `distribute`. Of
    `<dynamics>` damping and friction are written, where friction was identified, and the rotor's
    inertia as `armature`, which parsers of URDF pass over. `chi` (p,) are physically consistent;
    `friction` stands for the identified one, by joint; None: fitted here, up to the limits.
    ModelError: the description is not XML, or lacks a joint.
    """
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    try:
        root = ET.fromstring(robot.urdf, parser)
    except ET.ParseError as error:
        raise ModelError(f'the robot description is not valid XML: {error}') from error
    joints, links = ({str(e.get('name')): e for e in root.findall(t)} for t in ('joint', 'link'))
    values, own = values_by_joint(robot, chi), own_bodies(robot.urdf)
    friction = friction or plain_friction(robot, chi)
    for number, name in enumerate(robot.links):
        if name not in joints:
            raise ModelError(f"the robot description has no joint '{name}'")
        joint, moved_by = joints[name], robot.model.getJointId(name)
        total = pseudo_inertia(np.array([values[name][symbol] for symbol in INERTIAL]))
        # Where the links that move with it are, H to the moving link's frame.
        places = {
            frame.name: frame.placement.homogeneous
            for frame in robot.model.frames
            if frame.parentJoint == moved_by and frame.type.name == 'BODY'
        }
        bodies = {link: H @ own[link] @ H.T for link, H in places.items()}
        moving, *rest = _fixed_together(_link(joint, 'child'), joints)
        rest.sort(key=lambda link: -own[link][3, 3])
        heavy = [link for link in rest if own[link][3, 3] > 0.0]
        for link, body in distribute(total, bodies, [moving, *heavy]).items():
            back = np.linalg.inv(places[link])
            _put(links[link], _inertial(back @ body @ back.T))
        terms = friction_terms(robot, number)
        rubs = any(term != 'offset' and not FRICTION_TERMS[term].of_position for term in terms)
        # Where no friction was identified the description's stays.
        plain = friction[name] if rubs else None
        if name not in robot.joints and joint.find('dynamics') is not None:
            plain = PlainFriction()  # the friction of a joint that mimics is the other one's
        _put_dynamics(joint, plain, values[name].get('Ia'))
    prolog = _PROLOG.match(robot.urdf)
    return (prolog[0] if prolog else '') + ET.tostring(root, encoding='unicode') + '\n'


def _link(joint: ET.Element, tag: str) -> str:
    """Return the link that the child of a tag, `parent` or `child` of a joint, names."""
    element = joint.find(tag)
    return '' if element is None else element.get('link', '')


def _fixed_together(link: str, joints: Mapping[str, ET.Element]) -> Iterator[str]:
    """Yield a link and those that are fixed to it."""
    yield link
    for joint in joints.values():
        if _link(joint, 'parent') == link and joint.get('type') == 'fixed':
            yield from _fixed_together(_link(joint, 'child'), joints)


def _put(element: ET.Element, new: ET.Element) -> None:
    """Put an element in the place of a child of its tag, else before all others."""
    old, place = element.find(new.tag), 0
    if old is not None:
        place = [*element].index(old)
        element.remove(old)
    element.insert(place, new)
    new.tail = old.tail if old is not None else '\n  '


def _inertial(body: Array) -> ET.Element:
    """Return the `<inertial>` of a body at its link's frame."""
    mass, com, central = mass_properties(body)
    element = ET.Element('inertial')
    ET.SubElement(element, 'origin', xyz=' '.join(map(_exact, com)), rpy='0 0 0')
    ET.SubElement(element, 'mass', value=_exact(mass))
    moments = map(_exact, central[np.triu_indices(3)])
    ET.SubElement(element, 'inertia', dict(zip(urdf_reading.MOMENTS, moments, strict=True)))
    ET.indent(element, level=2)
    return element


def _put_dynamics(joint: ET.Element, plain: PlainFriction | None, rotor: float | None) -> None:
    """Write friction and rotor inertia, where there are any."""
    element = joint.find('dynamics')
    known = {} if element is None else element.attrib
    given = {'damping': plain.viscous, 'friction': plain.coulomb} if plain else {}
    written = {name: _exact(value) for name, value in given.items() if value or name in known}
    # Parsers of URDF refuse a <dynamics> with neither damping nor friction.
    if rotor is not None and {*written, *known} & {'damping', 'friction'}:
        written['armature'] = _exact(max(rotor, 0.0))
    if written:
        _put(joint, ET.Element('dynamics', known | written))


def _exact(value: float) -> str:
    return repr(float(value))


def own_bodies(urdf: str) -> dict[str, Array]:
    """Return the body of each link alone, at the link's frame, also where none can be it."""
    return urdf_reading.read_inertials(ET.fromstring(urdf.encode()))


def is_physical(body: Array) -> bool:
    """Whether a simulator accepts a body: P positive definite (Wensing et al., 2018)."""
    mass, _, central = urdf_reading.inertial_at_com(body)
    principal = np.linalg.eigvalsh(central)
    excess = principal[0] + principal[1] - principal[2]
    return bool(
        mass > MIN_INERTIA and principal[0] > MIN_INERTIA and excess > MIN_EXCESS * principal[2]
    )


def distribute(
    total: Array, bodies: Mapping[str, Array], receivers: Sequence[str]
) -> dict[str, Array]:
    """
    Share a new body among the links that move as one, so that each of them can exist.

    The first receiver that can takes the difference. Where none can, heavy links shrink in
    proportion and the first one, the moving link, takes the rest, P − Σ s_i P_i ≻ 0. Bodies are at
    the same frame. Returns those of the links that change.
    """
    old = np.sum(list(bodies.values()), axis=0)
    if np.abs(total - old).max() <= UNCHANGED * np.abs(old).max():
        return {}
    for name in receivers:
        single = total - (old - bodies[name])
        if is_physical(single):
            return {name: single}
    first, smaller = receivers[0], dict[str, Array]()
    others = {name: body for name, body in bodies.items() if name != first}
    if is_physical(total):
        root = np.linalg.inv(np.linalg.cholesky(total))

        def share(body: Array) -> float:
            """Return λ_max(P⁻¹ B): B ⪯ λ P."""
            return float(np.linalg.eigvalsh(root @ body @ root.T)[-1])

        # P − Σ s_i P_i ⪰ (1 − 2 SHARE) P with the factors of the links that need one.
        kept, heavy = np.zeros((4, 4)), dict[str, Array]()
        for name, body in sorted(others.items(), key=lambda item: float(item[1][3, 3])):
            if not body.any() or share(kept + body) <= SHARE:
                kept = kept + body
            else:
                heavy[name] = body
        factor = SHARE / share(np.sum(list(heavy.values()), axis=0)) if heavy else 1.0
        smaller = {name: factor * body for name, body in heavy.items()}
    return {first: total - np.sum([*{**others, **smaller}.values()], axis=0), **smaller}


def comment(notes: Sequence[str]) -> str:
    """Return what an XML comment of sentences holds; two hyphens may not stand in one."""
    lines = ['', 'identified by robotid', *notes]
    return '\n  '.join(lines).replace('--', '- -') + '\n'
