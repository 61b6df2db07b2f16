"""
The model that an identification leaves: read from its files, as URDF, and what formats lose of it.

Bodies are pseudo-inertia matrices (4, 4), see `core.parameters.physical_consistency`, which add up
at one frame and move to another by H P Hᵀ.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
import dataclasses
from dataclasses import dataclass
from pathlib import Path
import re
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from ...core.arrays import Array
from ...core.findings import render
from ...core.model import build_robot, Robot
from ...core.model.friction import FRICTION_TERMS
from ...core.model.robot import INERTIAL
from ...core.model.urdf_parsing import parse_urdf, snap_angles
from ...core.parameters.physical_consistency import mass_properties, pseudo_inertia
from ...core.parameters.plain_friction import plain_friction, PlainFriction
from ...exceptions import ModelError, shortened
from ...plant import urdf_reading
from ..configuration import from_mapping
from ..results import read_results, Results, results_folder, URDF
from ..robot_description import read_description


@dataclass(frozen=True)
class Servo:
    """A position actuator in SI, its limit infinite where none shows, and how late it acts [s]."""

    stiffness: float
    damping: float
    bias: float
    limit: float
    delay: float


@dataclass(frozen=True)
class ServoEstimate:
    """What commands and positions told of servos, of all that was free."""

    names: tuple[tuple[str, str], ...]  # (m,), symbol and joint, '' of all
    value: np.ndarray  # (m,)
    covariance: np.ndarray  # (m, m)
    determined: frozenset[tuple[str, str]]  # names of those that the log determines


@dataclass(frozen=True)
class IdentifiedModel:
    """
    What was found, the robot with its identified description, and χ (p,) of it.

    Joints with `servos` follow positions; their `notes` stand for those on what a format loses,
    and their `estimate` gives draws.
    """

    results: Results
    robot: Robot
    chi: np.ndarray
    servos: Mapping[str, Servo] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    estimate: ServoEstimate | None = None

    @property
    def plain_friction(self) -> Mapping[str, PlainFriction]:
        """What stands for the friction of each joint and coupling; the results hold it."""
        robot, known = self.robot, self.results.plain_friction
        names = {joint for joint in robot.links if joint in robot.joints}
        names |= {coupling.name for coupling in robot.couplings}
        return known if known.keys() == names else plain_friction(robot, self.chi)

    @property
    def for_simulation(self) -> 'IdentifiedModel':
        """The model with the plain friction that is for simulators."""
        plain = {name: each.simulated or each for name, each in self.plain_friction.items()}
        return dataclasses.replace(
            self, results=dataclasses.replace(self.results, plain_friction=plain)
        )


def read_identified_model(path: str | Path) -> IdentifiedModel:
    """Read parameters.yaml, or its folder, and identified.urdf beside it; or a RobotIdError."""
    results = read_results(path)
    values = dict(results.model)
    if not values:  # of results that do not hold their own
        values = {k: v for k, v in results.settings.get('robot', {}).items() if k != 'urdf'}
        # The motors of elastic joints come last, and are no joints of the description.
        elastic = (values.get('elastic') or {}).get('joints') or ()
        values['joints'] = list(results.joints[: len(results.joints) - len(elastic)])
    settings = from_mapping({'robot': {'name': results.robot, **values}}).robot
    robot = build_robot(read_description(results_folder(path) / URDF), settings)
    robot = robot.elastic or robot
    chi = np.zeros(robot.p)
    for entry in results.standard:
        chi[robot.column(entry.name)] = entry.value
    return IdentifiedModel(results, robot, chi)


def model_settings(robot: Robot) -> dict[str, Any]:
    """Return the keys of `robot` in a configuration with which its description is this model."""
    rigid, elastic = robot.rigid, [robot.joints[j] for j in robot.elastic_joints]
    terms = {joint: robot.friction[m] for joint, m in zip(rigid.joints, robot.motors, strict=True)}
    sides = {joint: robot.friction[robot.joints.index(joint)] for joint in elastic}
    constants = {
        joint: {k: v for term in (*own, *sides.get(joint, ())) for k, v in term.constants.items()}
        for joint, own in terms.items()
    }
    values: dict[str, Any] = {
        'joints': list(rigid.joints),
        'locked': dict(rigid.locked),
        'gravity': rigid.gravity.tolist(),
        'rotor_inertia': rigid.rotor_inertia,
        'effort_kind': rigid.effort_kind,
        'drive_gain': rigid.drive_gain.tolist(),
        'friction': {joint: [term.name for term in each] for joint, each in terms.items()},
        'friction_constants': constants,
        'couplings': {c.name: {'ratios': c.ratios.tolist()} for c in rigid.couplings},
    }
    for field in dataclasses.fields(rigid.limits):
        values[field.name] = getattr(rigid.limits, field.name).tolist()
    if elastic:
        values['elastic'] = {
            'joints': elastic,
            'motors': list(robot.joints[rigid.n :]),
            'link_friction': {joint: [t.name for t in each] for joint, each in sides.items()},
        }
    return values


# Parts of the model that a format may hold.
OFFSETS, SPRINGS = 'offsets', 'springs'
ROTORS, COUPLINGS, GRAVITY, SERVOS = 'rotors', 'couplings', 'gravity', 'servos'
EVERYTHING = frozenset({OFFSETS, SPRINGS, ROTORS, COUPLINGS, GRAVITY, SERVOS})


@dataclass(frozen=True)
class Drive:
    """A joint's drive in SI on its side, τ = I ddq + D dq + F sign(dq) + K q + offset."""

    inertia: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    offset: float = 0.0


COUPLED = 'rad', 'N·m'  # units of couplings, which turn


def values_by_joint(robot: Robot, chi: np.ndarray) -> dict[str, dict[str, float]]:
    """Return the standard parameters of each joint and coupling by their symbols."""
    values: dict[str, dict[str, float]] = {}
    for parameter, value in zip(robot.parameters, chi, strict=True):
        values.setdefault(parameter.joint, {})[parameter.symbol] = float(value)
    return values


def drives_of(model: IdentifiedModel) -> dict[str, Drive]:
    """Return the drives of joints and couplings; one that mimics is part of its leader's."""
    values = values_by_joint(model.robot, model.chi)
    found = {follower.name: Drive() for follower in model.robot.followers}
    for name, plain in model.plain_friction.items():
        inertia, stiffness = (max(values[name].get(key, 0.0), 0.0) for key in ('Ia', 'Kq'))
        found[name] = Drive(inertia, plain.viscous, plain.coulomb, stiffness, plain.offset)
    return found


# Speeds at which plain friction is compared with what it stands for, by whether they are known.
_SPEEDS = {
    True: 'at the recorded speeds',
    False: 'at all speeds up to the limit, as the recorded ones are not known',
}


def explain_losses(model: IdentifiedModel, kept: Set[str]) -> list[str]:
    """Say what has no place in a format that keeps plain friction and some of EVERYTHING."""
    robot, found = model.robot, [*model.notes]
    if elastic := [robot.joints[j] for j in robot.elastic_joints]:
        names = shortened(elastic)
        found.append(f'springs between motor and link of {names} are left out: they are rigid')
    if robot.rotor_inertia and ROTORS not in kept:
        found.append(
            'rotor inertias (Ia in parameters.yaml) are left out: without them the robot '
            'accelerates more easily than it does'
        )
    if robot.couplings and COUPLINGS not in kept:
        names = shortened([coupling.name for coupling in robot.couplings])
        found.append(f'motors that drive several joints ({names}) are left out')
    if model.notes:
        if model.servos and SERVOS not in kept:
            found.append('stiffness, damping, bias and limit of servos are left out')
        elif any(servo.bias for servo in model.servos.values()) and OFFSETS not in kept:
            found.append(
                'the bias of servos is left out: add it to the positions that are commanded'
            )
        return found
    offsets, differ = list[str](), dict[bool, list[str]]()
    for name, each in model.plain_friction.items():
        if name not in robot.joints and COUPLINGS not in kept:
            continue
        if each.offset and OFFSETS not in kept:
            offsets.append(f'{name} {each.offset:.4g} {robot.units.get(name, COUPLED)[1]}')
        if not each.exact:
            differ.setdefault(each.recorded, []).append(f'{name} {_size(robot, name, each)}')
    for recorded, rows in differ.items():
        found.append(
            'viscous and Coulomb friction and offset stand for other laws of friction; RMS '
            f'difference {_SPEEDS[recorded]}: {", ".join(rows)}'
        )
    if offsets:
        found.append(f'constant torques (offset) are left out: {", ".join(offsets)}')
    pairs = zip(robot.joints, robot.friction, strict=True)
    sprung = [joint for joint, own in pairs if any(term.name == 'spring' for term in own)]
    if sprung and SPRINGS not in kept:
        found.append(f'springs of the joints (spring) are left out: {shortened(sprung)}')
    if GRAVITY not in kept and not np.allclose(robot.gravity, (0.0, 0.0, -9.81)):
        found.append(f'gravity was {robot.gravity.tolist()} m/s² in the base frame: set it there')
    if not robot.gravity.any():
        found.append('the efforts contained no gravity: predicted ones contain none either')
    found.append(
        f'masses and inertias are one choice of many with the same efforts: '
        f'{len(model.results.base)} combinations of {robot.p} parameters were identified, see '
        'parameters.yaml'
    )
    return found


def friction_terms(robot: Robot, joint: int) -> list[str]:
    """Return the terms of the friction of a joint, on both sides of its spring."""
    if joint >= robot.n:  # one that mimics another
        return []
    rows = sorted({int(robot.motors[joint]), joint})
    return [t.name for row in rows for t in robot.friction[row] if not t.kind.spring]


def _size(robot: Robot, drive: str, plain: PlainFriction) -> str:
    return f'{100 * plain.relative:.2g} % ({plain.rms:.2g} {robot.units.get(drive, COUPLED)[1]})'


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
