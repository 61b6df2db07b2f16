"""Build a robot: URDF and configuration become a Pinocchio model with named parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
import dataclasses
from itertools import chain
import math
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio

from ...exceptions import ConfigurationError, ModelError, UnknownNameError
from ..arrays import Array, frozen
from ..findings import Finding, finding
from .assumed_inertials import are_placeholders, with_inertials
from .friction import DESCRIBED, FRICTION_TERMS, FrictionTerm, LINK_SIDE_SUFFIX, make_terms, PLAIN
from .pinocchio_model import build_model
from .robot import (
    COUPLED_FRICTION,
    Coupling,
    ElasticRobot,
    Follower,
    from_pinocchio,
    INERTIAL,
    INERTIAL_SYMBOLS,
    Limits,
    Parameter,
    Robot,
)
from .settings import ElasticSettings, RobotSettings
from .urdf_parsing import (
    check_tree,
    FREE_TYPES,
    inertial_warnings,
    link_at,
    movable_names,
    MOVABLE_TYPES,
    parse_urdf,
    snap_angles,
)

Terms = tuple[FrictionTerm, ...]
# Larger limits than any robot has stand for none [rad, m; rad/s, m/s; N·m, N]: 9549 rpm for one.
LARGEST = {'lower': 1e3, 'upper': 1e3, 'velocity': 1e3, 'effort': 1e9}
# Cables allow a revolute joint of an arm three turns [rad]; none turns ten times a second [rad/s].
MOST_TURN, MOST_SPEED = 6.0 * math.pi, 20.0 * math.pi
# Of 490 public descriptions, distances between joints add up to 10 m at most, and masses of those
# with chains of three turning joints to 250 kg over the cube of their reach: less than water.
# No body's radius of gyration is as large as the smallest link's in kg·mm² would be.
MOST_REACH, LEAST_CHAIN, MOST_DENSITY, MOST_RADIUS = 50.0, 3, 1e3, 10.0  # [m], -, [kg/m³], [m]
LINK = ' (link)'  # added for a moment to the name of a link that a joint has too
COUNTS = '/counts'  # behind a name: efforts are the register itself, not amperes or N·m
ASSUMED_MASS = 10.0  # where it is unknown and only what is identified depends on it [kg]
# Gains of Dynamixel are torque over current at stall, 12 V or 5 V, of emanual.robotis.com, which
# differ by 2 to 10 % between voltages. That of STS3215 is of its data sheet, 11 kg·cm/A; its stall
# torque was 17 % more in a test (SO-ARM100, issue 134). Torques of Damiao are 12 bits over both
# signs of TMAX. Each: step of a reading [A, or N·m where the gain is 1], torque at the joint per
# unit, and the relative standard deviation of that, which at part load is assumed.
DRIVES = {
    'sts3215': (6.5e-3, 1.079, 0.2),
    'xl330-m077': (1e-3, 0.146, 0.2),
    'xl330-m288': (1e-3, 0.354, 0.2),
    'xm430-w350': (2.69e-3, 1.783, 0.2),
    'xm540-w150': (2.69e-3, 1.659, 0.2),
    'xm540-w270': (2.69e-3, 2.409, 0.2),
    'dm4310': (20.0 / 4095, 1.0, 0.1),
    'dm4340': (56.0 / 4095, 1.0, 0.1),
    'dm8009': (108.0 / 4095, 1.0, 0.1),
}


def build_robot(urdf: str, settings: RobotSettings) -> Robot:
    """
    Build the robot from the text of its description and configuration.

    ModelError: the URDF is malformed, without inertials, or has joints that cannot be handled;
    UnknownNameError: a joint, friction term or constant that does not exist; ConfigurationError:
    an array of the wrong length, an impossible coupling.
    """
    urdf, held = on_stand(urdf)
    urdf, assumed = with_inertials(urdf, settings.mass)
    root = parse_urdf(urdf)
    check_tree(root)
    name = root.get('name') or 'robot'
    root.set('name', name)  # parsers ask for one
    elements = {str(joint.get('name')): joint for joint in root.findall('joint')}
    movable, following = movable_names(root), read_mimics(elements)
    joints = _chosen_joints(movable, following, settings)
    for key, joint in elements.items():
        if joint.get('type') in FREE_TYPES:
            raise ModelError(
                f'joint {key} is of the type {joint.get("type")}, which cannot be identified: '
                'make it fixed'
            )
    chosen = [elements[joint] for joint in joints]
    limits = _limits(chosen, settings)
    damping, dry_friction = (
        frozen(_attribute(chosen, 'dynamics', key, 0.0)) for key in ('damping', 'friction')
    )
    warnings = (*held, *inertial_warnings(root), *snap_angles(root), *assumed)
    warnings += _degrees(chosen, limits)
    ends = {x: final_leader(x, settings.locked, following) for x in (*movable, *following)}
    followers = tuple(ends[x] for x in following if x != ends[x].leader in joints)
    moving = (*joints, *(follower.name for follower in followers))
    locked = {
        x: ends[x].ratio * settings.locked.get(ends[x].leader, 0.0) + ends[x].offset
        for x in movable
        if x not in moving
    }
    whole = build_model(root)
    warnings += _check_units(whole)
    model = _reduce(whole, locked, settings)
    placeholders = settings.mass == 0.0 and are_placeholders(root)
    if placeholders or not any(model.inertias[k + 1].mass > 0.0 for k in range(model.nv)):
        what = 'the same placeholder in each link for' if placeholders else 'no'
        raise ModelError(
            f'the URDF has {what} inertials: set robot.mass (--mass of robotid init) to what the '
            'data sheet says of the whole robot, or give the links masses and inertias'
        )
    gain, spread = _gains(settings, joints)
    couplings = list[Coupling]()
    for key, motor in settings.couplings.items():
        ratios = np.array(motor.ratios, dtype=float)
        if ratios.shape != (len(joints),) or np.count_nonzero(ratios) < 2:
            raise ConfigurationError(
                f"coupling '{key}' needs one ratio per joint ({len(joints)}), two of them not zero"
            )
        numbers = [str(j + 1) for j in np.flatnonzero(ratios)]
        number = ('_' if len(joints) > 9 else '').join(numbers)
        couplings.append(Coupling(key, number, frozen(ratios)))
    robot = Robot(
        name=settings.name or name,
        urdf=urdf,
        joints=joints,
        model=model,
        order=np.array([moving.index(each) for each in list(model.names)[1:]], dtype=np.intp),
        limits=limits,
        friction=(),
        couplings=tuple(couplings),
        parameters=(),
        prior=np.empty(0),
        drive_gain=gain,
        prismatic=np.array([joint.get('type') == 'prismatic' for joint in chosen]),
        rotor_inertia=settings.rotor_inertia,
        damping=damping,
        dry_friction=dry_friction,
        open_friction=tuple(not {'default', joint} & set(settings.friction) for joint in joints),
        effort_kind=settings.effort_kind,
        warnings=warnings,
        assumed_inertials=bool(assumed),
        drive_gain_given=bool(settings.drive_gain or settings.drives),
        gain_spread=spread,
        followers=followers,
        locked={x: place for x, place in locked.items() if x not in following},
    )
    constants, default = settings.friction_constants, settings.friction.get('default', PLAIN)
    UnknownNameError.check('joint', (*settings.friction, *constants), ('default', *joints))
    known = chain.from_iterable(kind.constants for kind in FRICTION_TERMS.values())
    UnknownNameError.check('friction constant', chain(*constants.values()), known)
    friction = (
        make_terms(settings.friction.get(joint, default), settings.constants_of(joint))
        for joint in joints
    )
    robot = with_friction(robot, tuple(friction))
    if not settings.elastic.joints:
        return robot
    return dataclasses.replace(robot, elastic=elastic_robot(robot, settings))


def _chosen_joints(
    movable: tuple[str, ...], following: dict[str, Follower], settings: RobotSettings
) -> tuple[str, ...]:
    chosen = (*settings.joints, *settings.locked)
    UnknownNameError.check('movable joint of the URDF', chosen, movable)
    if len(set(settings.joints)) < len(settings.joints):
        raise ConfigurationError("'joints' names a joint twice: name each one once")
    joints = settings.joints or tuple(
        name for name in movable if name not in settings.locked and name not in following
    )
    if both := set(joints) & set(settings.locked):
        raise ConfigurationError(
            f'{", ".join(sorted(both))} is both identified and locked: take it out of one list'
        )
    if not joints:
        raise ModelError('the robot description has no movable joint: check the URDF')
    if name := next((name for name in following if name in joints), ''):
        raise ModelError(
            f'joint {name} mimics {following[name].leader} and cannot be identified by itself: '
            'take it out of robot.joints'
        )
    return joints


def read_mimics(elements: dict[str, ElementTree.Element]) -> dict[str, Follower]:
    """Read which movable joints mimic which, by their names; a ModelError where they cannot."""
    movable = {k: joint for k, joint in elements.items() if joint.get('type') in MOVABLE_TYPES}
    found = dict[str, Follower]()
    for name, joint in movable.items():
        mimic = joint.find('mimic')
        if mimic is None:
            continue
        leader = str(mimic.get('joint'))
        if leader not in movable or leader == name:
            raise ModelError(
                f"joint {name} mimics '{leader}', which is no other movable joint: repair the "
                '<mimic> of the robot description'
            )
        ratio, offset = float(mimic.get('multiplier', 1)), float(mimic.get('offset', 0))
        found[name] = Follower(name, leader, ratio, offset)
    for name in found:
        leader = name
        for _ in found:
            leader = found[leader].leader if leader in found else leader
        if leader in found:
            raise ModelError(f'joint {name} mimics itself in the end: repair its <mimic>')
    return found


def final_leader(
    name: str, locked: Mapping[str, float], following: Mapping[str, Follower]
) -> Follower:
    """Return how a joint moves with the one that it follows in the end, be it itself."""
    leader, ratio, offset = name, 1.0, 0.0
    while leader in following and leader not in locked:
        mimic = following[leader]
        offset, ratio = offset + ratio * mimic.offset, ratio * mimic.ratio
        leader = mimic.leader
    return Follower(name, leader, ratio, offset)


def _reduce(full: Any, locked: dict[str, float], settings: RobotSettings) -> Any:
    """Merge locked joints into links; links may have names of joints, which Pinocchio minds."""
    q, model = pinocchio.neutral(full), full
    for name, place in locked.items():
        q[full.joints[full.getJointId(name)].idx_q] = place
    if locked:
        joints = {frame.name for frame in full.frames if frame.type != pinocchio.FrameType.BODY}
        for frame in full.frames:
            if frame.type == pinocchio.FrameType.BODY and frame.name in joints:
                frame.name += LINK
        model = pinocchio.buildReducedModel(full, [full.getJointId(name) for name in locked], q)
        for frame in model.frames:
            frame.name = frame.name.removesuffix(LINK)
    if len(settings.gravity) != 3:
        raise ConfigurationError("'gravity' must have three numbers, for example [0, 0, -9.81]")
    compensated = settings.effort_kind == 'without_gravity'
    model.gravity.linear = np.zeros(3) if compensated else np.array(settings.gravity)
    return model


def _attribute(chosen: list[ElementTree.Element], tag: str, key: str, default: float) -> Array:
    return np.array([float(link_at(joint, tag, key) or default) for joint in chosen])


def _numbered(
    number: int | str, joint: str, symbols: Iterable[tuple[str, str]]
) -> list[Parameter]:
    """Return parameters by symbol and unit, with their joint's number."""
    return [Parameter(f'{symbol}{number}', symbol, unit, joint) for symbol, unit in symbols]


def _drive_symbols(
    terms: Terms, prismatic: bool, rotor_inertia: bool = False
) -> list[tuple[str, str]]:
    """Return symbol and unit of a joint's rotor inertia, if asked for, and friction parameters."""
    force, length = ('N', 'm') if prismatic else ('N·m', 'rad')
    rotor = [('Ia', 'kg' if prismatic else 'kg·m²')] if rotor_inertia else []
    return rotor + [
        (symbol, term.kind.unit.format(f=force, l=length))
        for term in terms
        for symbol in term.kind.symbols
    ]


def with_friction(
    robot: Robot, friction: tuple[Terms, ...], springs: Mapping[str, Terms] = MappingProxyType({})
) -> Robot:
    """
    Return a rigid robot with other friction terms, and the parameters that they bring.

    Joints with `springs` have a stiffness too, and the friction that acts behind it.
    """
    parameters, n = list[Parameter](), robot.n
    for j, joint in enumerate(robot.joints):
        slides, elastic = bool(robot.prismatic[j]), joint in springs
        symbols = [*INERTIAL_SYMBOLS]
        symbols += _drive_symbols(friction[j], slides, robot.rotor_inertia or elastic)
        if elastic:
            behind = _drive_symbols(springs[joint], slides)
            symbols += [('K', 'N/m' if slides else 'N·m/rad')]
            symbols += [(symbol + LINK_SIDE_SUFFIX, unit) for symbol, unit in behind]
        parameters += _numbered(j + 1, joint, symbols)
    for number, follower in enumerate(robot.followers, start=n + 1):
        parameters += _numbered(number, follower.name, INERTIAL_SYMBOLS)
    motor = _drive_symbols(COUPLED_FRICTION, False, rotor_inertia=True)
    for coupling in robot.couplings:
        parameters += _numbered(coupling.number, coupling.name, motor)
    given = {'damping': robot.damping, 'friction': robot.dry_friction}
    values = {
        f'{symbol}{j}': float(x)
        for symbol, attribute in DESCRIBED.items()
        for j, x in enumerate(given[attribute], start=1)
    }
    for k, j in enumerate(robot.order):
        inertial = from_pinocchio(robot.model.inertias[k + 1].toDynamicParameters())
        values |= {f'{s}{j + 1}': x for s, x in zip(INERTIAL, inertial, strict=True)}
        if j < n:  # followers have no drive
            values[f'Ia{j + 1}'] = robot.model.armature[k]
    values |= dict(zip((p.name for p in robot.parameters), robot.prior, strict=True))
    prior = frozen([values.get(p.name, 0.0) for p in parameters])
    return dataclasses.replace(robot, friction=friction, parameters=tuple(parameters), prior=prior)


def _limits(chosen: list[ElementTree.Element], settings: RobotSettings) -> Limits:
    # CAD exporters write zeros for limits that nobody entered.
    zeros = [_attribute(chosen, 'limit', k, 1.0) == 0.0 for k in ('lower', 'upper', 'velocity')]
    endless = np.all(zeros, axis=0) | [joint.get('type') == 'continuous' for joint in chosen]
    found = dict[str, Array]()
    for name in (field.name for field in dataclasses.fields(Limits)):
        bound = -np.inf if name == 'lower' else np.inf
        values = np.full(len(chosen), bound)
        if name in LARGEST:
            values = _attribute(chosen, 'limit', name, bound)
            ends = name in ('lower', 'upper')
            none = (np.abs(values) >= LARGEST[name]) | (endless if ends else values < 0.0)
            values = np.where(none, bound, values)
        found[name] = frozen(_given(settings, name, values))
    limits = Limits(**found)
    if np.any(limits.lower >= limits.upper):
        k = int(np.argmax(limits.lower >= limits.upper))
        raise ConfigurationError(
            f'the position limits {limits.lower[k]:g} and {limits.upper[k]:g} of '
            f'{chosen[k].get("name")} leave no room: correct lower and upper, or leave the joint '
            'out (robot.joints)'
        )
    return limits


def _degrees(chosen: list[ElementTree.Element], limits: Limits) -> tuple[Finding, ...]:
    """Name the revolute joints with limits beyond those of any arm."""
    farthest, beyond = np.maximum(np.abs(limits.lower), np.abs(limits.upper)), dict[str, str]()
    for joint, *pair in zip(chosen, farthest, limits.velocity, strict=True):
        known = zip(pair, (MOST_TURN, MOST_SPEED), ('rad', 'rad/s'), strict=True)
        words = [f'{value:.4g} {unit}' for value, most, unit in known if most < value < np.inf]
        if words and joint.get('type') != 'prismatic':
            beyond[str(joint.get('name'))] = ', '.join(words)
    return (finding('limits_in_degrees', beyond, limits=[*beyond.values()]),) if beyond else ()


def _check_units(model: pinocchio.Model) -> tuple[Finding, ...]:
    """Refuse lengths that are not in metres; name masses or inertias in other units."""
    reach, depth = np.zeros((2, model.njoints))
    for k in range(1, model.njoints):
        parent = model.parents[k]
        reach[k] = reach[parent] + np.linalg.norm(model.jointPlacements[k].translation)
        depth[k] = depth[parent] + 1
    if (longest := float(reach.max())) > MOST_REACH:
        raise ModelError(
            f'the origins of the joints add up to {longest:.4g} m, too much for an arm: write '
            'the lengths of the robot description in metres (not in millimetres)'
        )
    bodies = [body for body in model.inertias.tolist()[1:] if body.mass > 0.0]
    radii = [math.sqrt(0.5 * max(np.trace(x.inertia), 0.0) / x.mass) for x in bodies]
    if bodies and (radius := float(np.median(radii))) > MOST_RADIUS:
        return (finding('inertias_in_other_unit', radius=radius),)
    size = float((reach + [np.linalg.norm(x.lever) for x in model.inertias]).max())
    mass = sum(body.mass for body in bodies)
    turning = all('R' in joint.shortname() for joint in model.joints.tolist()[1:])
    if depth.max() < LEAST_CHAIN or not turning or mass < MOST_DENSITY * size**3:
        return ()
    return (finding('masses_in_grams', mass=mass, reach=size),)


def _given(settings: RobotSettings | ElasticSettings, name: str, default: Sized) -> Any:
    """Return what is set for each joint, or each elastic one, or the default."""
    values = getattr(settings, name)
    if len(values) not in (0, len(default)):
        each = 'elastic joint' if isinstance(settings, ElasticSettings) else 'joint'
        raise ConfigurationError(
            f"'{name}' has {len(values)} values: give one per {each} ({len(default)})"
        )
    return values or default


def _gains(settings: RobotSettings, joints: tuple[str, ...]) -> tuple[Array, Array]:
    """Return torque per unit of effort and its relative standard deviation, (n,), set or known."""
    gain, spread = np.ones(len(joints)), np.zeros(len(joints))
    for j, text in enumerate(_given(settings, 'drives', [''] * len(joints))):
        name = text.removesuffix(COUNTS)
        if name and name not in DRIVES:
            raise UnknownNameError('drive', text, (*DRIVES, *(f'{d}{COUNTS}' for d in DRIVES)))
        if name:
            step, torque, uncertainty = DRIVES[name]
            gain[j] = torque * (step if name != text else 1.0)
            spread[j] = 0.0 if settings.drive_gain else uncertainty
    gain = frozen(_given(settings, 'drive_gain', gain))
    if not gain.all():
        raise ConfigurationError(
            f"'drive_gain' of {joints[int(np.argmin(np.abs(gain)))]} is 0, which removes "
            'its efforts: give the torque per unit of effort, or leave the joint out '
            '(robot.joints)'
        )
    return gain, frozen(_given(settings, 'drive_gain_spread', spread))


def elastic_robot(robot: Robot, settings: RobotSettings) -> ElasticRobot:
    """
    Return a rigid robot with springs between motors and links (ELASTIC, sections 3 and 4).

        link:   M(q) ddq + C(q, dq) dq + g(q) + K (q − θ) = 0
        motor:  Υ ddθ + K (θ − q) + F(dθ) = τ

    θ is the motor's position on the joint side. Both are linear in the inertial parameters, the
    motor's inertia Υ (`Ia`), friction and stiffness `K`. The rows of a motor hold the sum of both:

        drive:  M(q) ddq + C(q, dq) dq + g(q) + Υ ddθ + F(dθ) = τ

    Springs cancel in it, so that noise of encoders times stiffness does not reach measured
    torques. The joints are the links' followed by the motors': every (N, n) array and every block
    of rows has this order. Raises UnknownNameError and ConfigurationError as `build_robot` does.
    """
    robot.check_no_mimic_joints('robot.elastic')
    elastic, given = settings.elastic, settings.elastic.link_friction
    UnknownNameError.check('joint', elastic.joints, robot.joints)
    if robot.couplings:
        raise ConfigurationError(
            "'robot.couplings' and 'robot.elastic' exclude each other: take one of them out"
        )
    default = [f'{x}_motor' for x in elastic.joints]
    names = dict(zip(elastic.joints, _given(elastic, 'motors', default), strict=True))
    if len({*names.values(), *robot.joints}) < len(names) + robot.n:
        raise ConfigurationError(
            "'robot.elastic.motors' names a motor twice or like a joint: /joint_states must carry "
            'two names per elastic joint'
        )
    UnknownNameError.check('elastic joint', given, ('default', *elastic.joints))
    springs = {
        x: make_terms(given.get(x, given.get('default', ())), settings.constants_of(x))
        for x in elastic.joints
    }
    sprung = with_friction(robot, robot.friction, springs)
    prior = np.array(sprung.prior)
    stiffness = _given(elastic, 'stiffness', [0.0] * len(names))
    for joint, value in zip(elastic.joints, stiffness, strict=True):
        prior[sprung.column(f'K{robot.joints.index(joint) + 1}')] = value
    behind = [j for j, joint in enumerate(robot.joints) if joint in springs]  # a spring
    rows, motors = [*range(robot.n), *behind], np.arange(robot.n)
    motors[behind] = np.arange(robot.n, len(rows))
    on_links = (
        springs.get(x, terms) for x, terms in zip(robot.joints, robot.friction, strict=True)
    )
    limits = (getattr(robot.limits, f.name) for f in dataclasses.fields(Limits))
    drive_gain = np.where(motors == np.arange(robot.n), robot.drive_gain, 0.0)
    fields = {f.name: getattr(sprung, f.name) for f in dataclasses.fields(Robot)}
    fields |= {
        'joints': (*robot.joints, *(names[robot.joints[j]] for j in behind)),
        'limits': Limits(*(frozen(limit[rows]) for limit in limits)),
        'friction': (*on_links, *(robot.friction[j] for j in behind)),
        'prior': frozen(prior),
        'drive_gain': frozen([*drive_gain, *robot.drive_gain[behind]]),
        'prismatic': robot.prismatic[rows],
        'gain_spread': None if robot.gain_spread is None else frozen(robot.gain_spread[rows]),
    }
    return ElasticRobot(**fields, rigid=robot, motors=motors)


def on_stand(urdf: str) -> tuple[str, tuple[Finding, ...]]:
    """Return a description whose base is fixed where its root lets it float, and who let it."""
    root = parse_urdf(urdf)
    joints, held = root.findall('joint'), list[str]()
    carried = {link_at(joint, 'child') for joint in joints}
    for joint in joints:
        if joint.get('type') in FREE_TYPES and link_at(joint, 'parent') not in carried:
            joint.set('type', 'fixed')
            held.append(str(joint.get('name')))
    text = ElementTree.tostring(root, encoding='unicode') if held else urdf
    return text, (finding('base_held', held),) if held else ()
