"""The identified robot description: the original text with new inertials and dynamics."""

from collections.abc import Iterator, Mapping
import re
from xml.dom.minidom import Comment, Element, Node, parseString
from xml.parsers.expat import ExpatError
from xml.sax.saxutils import quoteattr

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
from ...plant.urdf_reading import MOMENTS
from .bodies import comment, distribute, own_bodies
from .identified_model import (
    describe_difference,
    explain_losses,
    friction_terms,
    IdentifiedModel,
    ROTORS,
    values_by_joint,
)

NOTE = 'identified too:'
ROTOR_NOTE = (
    'rotor inertias stand in armature of <dynamics>, which MuJoCo, Gazebo, Pinocchio and KDL do '
    'not read from a URDF: take mjcf'
)
_DECLARATION = re.compile(r'\s*<\?xml.*?\?>')


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
    inertia as `armature`, which parsers of URDF pass over. All else stands in a comment: torque
    offset, springs, and friction that is not viscous and Coulomb. `chi` (p,) are physically
    consistent; `friction` stands for the identified one, by joint; None: fitted here, up to the
    limits. ModelError: the description is not XML, or lacks a joint.
    """
    try:
        document = parseString(robot.urdf)
    except ExpatError as error:
        raise ModelError(f'the robot description is not valid XML: {error}') from error
    root = document.documentElement
    nodes = [node for node in (root.childNodes if root else ()) if isinstance(node, Element)]
    named = {(node.tagName, node.getAttribute('name')): node for node in nodes}
    joints = {name: node for (tag, name), node in named.items() if tag == 'joint'}
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
            _put_inertial(named['link', link], back @ body @ back.T)
        terms = friction_terms(robot, number)
        rubs = any(term != 'offset' and not FRICTION_TERMS[term].of_position for term in terms)
        # Where no friction was identified the description's stays.
        plain = friction[name] if rubs else None
        if name not in robot.joints and _child(joint, 'dynamics') is not None:
            plain = PlainFriction()  # the friction of a joint that mimics is the other one's
        missed = describe_difference(robot, name, plain) if plain and not plain.exact else ''
        _put_dynamics(joint, values[name], plain, missed)
    declaration = _DECLARATION.match(robot.urdf)
    texts = [declaration[0].strip()] if declaration else []
    return '\n'.join([*texts, *map(_text_of, document.childNodes), ''])


def _text_of(node: Node) -> str:
    """Write XML; xacro, once it is imported, has `toxml` drop blanks between elements."""
    if not isinstance(node, Element):
        return str(node.toxml())
    given = ''.join(f' {name}={quoteattr(value)}' for name, value in node.attributes.items())
    inside = ''.join(map(_text_of, node.childNodes))
    return f'<{node.tagName}{given}' + (f'>{inside}</{node.tagName}>' if inside else '/>')


def _child(element: Element, tag: str) -> Element | None:
    """Return the first child of a tag."""
    return next(
        (e for e in element.childNodes if isinstance(e, Element) and e.tagName == tag), None
    )


def _link(joint: Element, tag: str) -> str:
    """Return the link that the child of a tag, `parent` or `child` of a joint, names."""
    element = _child(joint, tag)
    return '' if element is None else element.getAttribute('link')


def _fixed_together(link: str, joints: Mapping[str, Element]) -> Iterator[str]:
    """Yield a link and those that are fixed to it."""
    yield link
    for joint in joints.values():
        if _link(joint, 'parent') == link and joint.getAttribute('type') == 'fixed':
            yield from _fixed_together(_link(joint, 'child'), joints)


def _put(element: Element, tag: str, text: str) -> None:
    """Put elements and comments in the place of a child, else before all others."""
    old = _child(element, tag)
    before = old or element.firstChild
    if old is None:
        text = f'\n    {text}' if before else f'\n    {text}\n  '
    content, document = parseString(f'<x>{text}</x>').documentElement, element.ownerDocument
    assert content and document
    for node in content.childNodes:
        element.insertBefore(document.importNode(node, True), before)
    if old is not None:
        element.removeChild(old)


def _put_inertial(link: Element, body: Array) -> None:
    """Replace a link's `<inertial>`, given its body at the link's frame."""
    mass, com, central = mass_properties(body)
    values = zip(MOMENTS, map(_exact, central[np.triu_indices(3)]), strict=True)
    moments = ' '.join(f'{name}="{value}"' for name, value in values)
    text = (
        f'<inertial>\n      <origin xyz="{" ".join(map(_exact, com))}" rpy="0 0 0"/>\n'
        f'      <mass value="{_exact(mass)}"/>\n      <inertia {moments}/>\n    </inertial>'
    )
    _put(link, 'inertial', text)


def _put_dynamics(
    joint: Element, values: Mapping[str, float], plain: PlainFriction | None, missed: str
) -> None:
    """Write what `<dynamics>` may hold, and all else into a comment behind it."""
    element = _child(joint, 'dynamics')
    known = {} if element is None else dict(element.attributes.items())
    written, held = dict[str, str](), {*INERTIAL}
    pairs = (('damping', 'Fv', plain.viscous), ('friction', 'Fc', plain.coulomb)) if plain else ()
    for name, symbol, value in pairs:
        if value or name in known:
            written[name] = _exact(value)
        if not missed and values.get(symbol) == value:
            held.add(symbol)
    # Parsers of URDF refuse a <dynamics> with neither damping nor friction.
    if 'Ia' in values and {*written, *known} & {'damping', 'friction'}:
        written['armature'] = _exact(max(values['Ia'], 0.0))
        held.add('Ia')
    rest = [f'{key} {_exact(value)}' for key, value in values.items() if key not in held]
    note = f'{NOTE} {", ".join(rest)}' if rest else ''
    if plain and missed:
        note += (
            f'; damping and friction, with an offset of {_exact(plain.offset)}, differ from this '
            f'friction by up to {missed}'
        )
    for node in [*joint.childNodes]:
        if isinstance(node, Comment) and NOTE in node.data:
            joint.removeChild(node)  # of an identification before
    attributes = ' '.join(f'{k}={quoteattr(v)}' for k, v in {**known, **written}.items())
    texts = [f'<dynamics {attributes}/>'] * bool(attributes) + [f'<!-- {note} -->'] * bool(note)
    if texts:
        _put(joint, 'dynamics', '\n    '.join(texts))


def _exact(value: float) -> str:
    return repr(float(value))
