"""
The identified robot description: the original text with new inertials and joint dynamics.

All that is not edited stays byte for byte. What a URDF cannot hold stands in comments.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
import re
from xml.etree import ElementTree as ET
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np

from ...core.finding_codes import render
from ...core.model import Robot
from ...core.model.friction import TERMS
from ...core.model.parameters import INERTIAL
from ...core.model.urdf_parsing import parse_urdf, snap_angles
from ...core.parameters.physical_consistency import mass_properties, pseudo_inertia
from ...core.parameters.plain_friction import plain_friction, PlainFriction
from ...exceptions import ModelError
from .bodies import Array, comment, distribute, MOMENTS, own_bodies
from .identified_model import (
    describe_difference,
    explain_losses,
    FRICTION,
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
# Where bytes of the text are replaced, and by what.
Edit = tuple[int, int, str]
_TAG = re.compile(rb'<(?:[^>"\']|"[^"]*"|\'[^\']*\')*>')


def urdf(model: IdentifiedModel) -> tuple[str, list[str]]:
    """Write the identified description, with a comment on what it does not hold; return both."""
    notes = explain_losses(model, {FRICTION, ROTORS})
    if model.robot.rotor_inertia:
        notes.insert(0, ROTOR_NOTE)
    notes += map(render, snap_angles(parse_urdf(model.robot.urdf)))
    text = identified_urdf(model.robot, model.chi, model.plain_friction).rstrip()
    return f'{text}\n{ET.tostring(comment(notes), encoding="unicode")}\n', notes


def identified_urdf(
    robot: Robot, chi: np.ndarray, friction: Mapping[str, PlainFriction] | None = None
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

    `chi` (p,) are physically consistent standard parameters; `friction` stands for the identified
    one, by joint; None: fitted here, up to the limits. ModelError: the description is not XML, or
    lacks a joint.
    """
    data = robot.urdf.encode()
    description = _parse_text(data)
    links, joints = description.named('link'), description.named('joint')
    values, own = values_by_joint(robot, chi), own_bodies(robot.urdf)
    friction = friction or plain_friction(robot, chi)
    edits: list[Edit] = []
    for number, name in enumerate(robot.links):
        if name not in joints:
            raise ModelError(f"the robot description has no joint '{name}'")
        joint = joints[name]
        total = pseudo_inertia(np.array([values[name][symbol] for symbol in INERTIAL]))
        places = _places(robot, name)
        bodies = {link: H @ own[link] @ H.T for link, H in places.items()}
        rest = sorted(_fixed_to(joint.link('child'), joints), key=lambda link: -own[link][3, 3])
        heavy = [link for link in rest if own[link][3, 3] > 0.0]
        changed, factors = distribute(total, bodies, [joint.link('child'), *heavy])
        for link, body in changed.items():
            back = np.linalg.inv(places[link])
            edits.append(_inertial(links[link], back @ body @ back.T))
        for link, factor in factors.items():
            edits += _scaled(data, links[link], factor)
        terms = friction_terms(robot, number)
        rubs = any(term != 'offset' and not TERMS[term].of_position for term in terms)
        # Where no friction was identified the description's stays.
        plain = friction[name] if rubs else None
        if name not in robot.joints and joint.child('dynamics') is not None:
            plain = PlainFriction()  # the friction of a joint that mimics is the other one's
        missed = ''
        if plain is not None and not plain.exact:
            missed = describe_difference(robot, name, plain)
        edits += _dynamics(data, joint, values[name], plain, missed)
    for start, stop, text in sorted(edits, reverse=True):
        data = data[:start] + text.encode() + data[stop:]
    return data.decode()


def _places(robot: Robot, joint: str) -> dict[str, Array]:
    """Return where the links that move with a joint are, H (4, 4) to the moving link's frame."""
    number = robot.model.getJointId(joint)
    return {
        frame.name: frame.placement.homogeneous
        for frame in robot.model.frames
        if frame.parentJoint == number and frame.type.name == 'BODY'
    }


def _fixed_to(link: str, joints: Mapping[str, 'Node']) -> Iterator[str]:
    """Yield the links that are fixed to a link."""
    for joint in joints.values():
        if joint.link('parent') == link and joint.attributes.get('type') == 'fixed':
            yield joint.link('child')
            yield from _fixed_to(joint.link('child'), joints)


def _inertial(link: 'Node', body: Array) -> Edit:
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
    return _placed(link, 'inertial', text)


def _scaled(data: bytes, link: 'Node', factor: float) -> Iterator[Edit]:
    """Multiply mass and moments of a link's `<inertial>`, as they are written."""
    inertial = link.child('inertial')
    assert inertial is not None
    for tag, names in (('mass', ('value',)), ('inertia', MOMENTS)):
        element = inertial.child(tag)
        if element is not None:
            numbers = {name: float(element.attributes.get(name, 0.0)) for name in names}
            scaled = {name: _exact(factor * value) for name, value in numbers.items()}
            text = _with_attributes(data[element.start : element.head].decode(), scaled)
            yield element.start, element.head, text


def _dynamics(
    data: bytes,
    joint: 'Node',
    values: Mapping[str, float],
    plain: PlainFriction | None,
    missed: str,
) -> list[Edit]:
    """Write what `<dynamics>` may hold, and all else into a comment behind it."""
    element = joint.child('dynamics')
    known = {} if element is None else element.attributes
    written, held = dict[str, str](), {*INERTIAL}
    if plain is not None:
        pairs = (('damping', 'Fv', plain.viscous), ('friction', 'Fc', plain.coulomb))
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
    if not written and not rest:
        return []
    note = f'{NOTE} {", ".join(rest)}' if rest else ''
    if plain is not None and missed:
        note += (
            f'; damping and friction, with an offset of {_exact(plain.offset)}, differ from this '
            f'friction by up to {missed}'
        )
    texts = [f'<!-- {note} -->'] if note else []
    if element is None:
        texts = [_with_attributes('<dynamics/>', written), *texts] if written else texts
        return [_placed(joint, 'dynamics', '\n    '.join(texts))]
    texts.insert(0, _with_attributes(data[element.start : element.stop].decode(), written))
    old_note = re.compile(rb'\s*<!-- ' + NOTE.encode() + rb'[^>]*-->').match(data, element.stop)
    stop = old_note.end() if old_note else element.stop
    return [(element.start, stop, '\n    '.join(texts))]


def _exact(value: float) -> str:
    return repr(float(value))


@dataclass
class Node:
    """An element in the text of a description, with the offsets of its parts [bytes]."""

    tag: str
    attributes: Mapping[str, str]
    start: int
    head: int  # end of the start tag
    stop: int = 0
    children: list['Node'] = field(default_factory=list)

    def named(self, tag: str) -> dict[str, 'Node']:
        """Return the children of a tag by their names."""
        return {
            n.attributes['name']: n
            for n in self.children
            if n.tag == tag and 'name' in n.attributes
        }

    def child(self, tag: str) -> 'Node | None':
        """Return the first child of a tag."""
        return next((node for node in self.children if node.tag == tag), None)

    def link(self, tag: str) -> str:
        """Return the link that the child of a tag, `parent` or `child` of a joint, names."""
        node = self.child(tag)
        return '' if node is None else node.attributes.get('link', '')


def _parse_text(data: bytes) -> Node:
    """Find the elements of a text; a ModelError where it is no XML."""

    def tag_end(start: int) -> int:
        found = _TAG.match(data, start)
        assert found is not None  # expat has accepted the tag already
        return found.end()

    def begin(tag: str, attributes: dict[str, str]) -> None:
        start = parser.CurrentByteIndex
        node = Node(tag, attributes, start, tag_end(start))
        path[-1].children.append(node)
        path.append(node)

    def end(_: str) -> None:
        node = path.pop()
        empty = data[node.head - 2 : node.head] == b'/>'
        node.stop = node.head if empty else tag_end(parser.CurrentByteIndex)

    path = [Node('', {}, 0, 0)]
    parser = expat.ParserCreate('utf-8')
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ModelError(f'the robot description is not valid XML: {error}') from error
    return path[0].children[0]


def _placed(node: Node, tag: str, text: str) -> Edit:
    """Return the edit that puts a text over a child, else just inside the start tag."""
    old = node.child(tag)
    if old is not None:
        return old.start, old.stop, text
    if node.stop > node.head:
        return node.head, node.head, f'\n    {text}'
    name = quoteattr(node.attributes['name'])
    return node.start, node.stop, f'<{node.tag} name={name}>\n    {text}\n  </{node.tag}>'


def _with_attributes(element: str, values: Mapping[str, str]) -> str:
    """Return an element's text with attributes of its start tag changed or added."""
    found = _TAG.match(element.encode())
    assert found is not None
    head = found.group().decode()
    tail = element[len(head) :]
    for name, value in values.items():
        text = f'{name}={quoteattr(value)}'
        if old := re.search(rf'(?<=\s){name}\s*=\s*("[^"]*"|\'[^\']*\')', head):
            head = f'{head[: old.start()]}{text}{head[old.end() :]}'
        else:
            end = len(head) - (2 if head.endswith('/>') else 1)
            head = f'{head[:end].rstrip()} {text}{head[end:]}'
    return head + tail
