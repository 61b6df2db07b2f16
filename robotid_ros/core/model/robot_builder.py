"""Build a robot: URDF and configuration become a Pinocchio model with named parameters."""

from __future__ import annotations

from collections.abc import Sized
import dataclasses
import math
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pinocchio

from ...exceptions import ConfigurationError, ModelError, UnknownNameError
from ..arrays import Array, frozen
from .friction import DESCRIBED, FrictionTerm, LINK_SIDE_SUFFIX, make_terms, PLAIN, TERMS
from .parameters import drive_symbols, from_pinocchio, INERTIAL, numbered, Parameter
from .robot import COUPLED_FRICTION, Coupling, ElasticRobot, Follower, Limits, Robot
from .robot_description import (
    build_model,
    find_followers,
    locked_position,
    read_mimics,
    with_inertials,
)
from .settings import CoupledMotorSettings, ElasticSettings, RobotSettings
from .urdf_parsing import check_tree, inertial_warnings, movable_names, parse_urdf, snap_angles

# Larger limits than any robot has stand for none [rad, m; rad/s, m/s; N·m, N]: 9549 rpm for one.
LARGEST = {'lower': 1e3, 'upper': 1e3, 'velocity': 1e3, 'effort': 1e9}
# Added for a moment to the name of a link that a joint has too.
LINK = ' (link)'
# Behind a name: efforts are the register itself, not amperes or N·m.
COUNTS = '/counts'


class ServoDrive(NamedTuple):
    """
    Efforts of a servo.

    Attributes
    ----------
    step : of a reading [A, or N·m where the gain is 1]
    gain, spread : torque at the joint per unit [N·m/A or 1], and its relative standard deviation

    """

    step: float
    gain: float
    spread: float


# Gains of Dynamixel are torque over current at stall, 12 V or 5 V, of emanual.robotis.com, which
# differ by 2 to 10 % between voltages. That of STS3215 is of its data sheet, 11 kg·cm/A; its stall
# torque was 17 % more in a test (SO-ARM100, issue 134). Torques of Damiao are 12 bits over both
# signs of TMAX. How true torques are at part load is assumed.
DRIVES = {
    'sts3215': ServoDrive(6.5e-3, 1.079, 0.2),
    'xl330-m077': ServoDrive(1e-3, 0.146, 0.2),
    'xl330-m288': ServoDrive(1e-3, 0.354, 0.2),
    'xm430-w350': ServoDrive(2.69e-3, 1.783, 0.2),
    'xm540-w150': ServoDrive(2.69e-3, 1.659, 0.2),
    'xm540-w270': ServoDrive(2.69e-3, 2.409, 0.2),
    'dm4310': ServoDrive(20.0 / 4095, 1.0, 0.1),
    'dm4340': ServoDrive(56.0 / 4095, 1.0, 0.1),
    'dm8009': ServoDrive(108.0 / 4095, 1.0, 0.1),
}


def build_robot(urdf: str, settings: RobotSettings) -> Robot:
    """
    Build the robot from its description and configuration.

    Parameters
    ----------
    urdf : the URDF's text
    settings : which joints, which model

    Raises
    ------
    ModelError : the URDF is malformed, without inertials, or has joints that cannot be handled
    UnknownNameError : a joint, friction term or constant that does not exist
    ConfigurationError : an array of the wrong length, an impossible coupling

    """
    urdf, assumed = with_inertials(urdf, settings.mass)
    root = parse_urdf(urdf)
    check_tree(root)
    name = root.get('name') or 'robot'
    root.set('name', name)  # parsers ask for one
    elements = {str(joint.get('name')): joint for joint in root.findall('joint')}
    movable, following = movable_names(root), read_mimics(elements)
    joints = _select(movable, following, settings)
    _check_types(elements, joints, following)
    chosen = [elements[joint] for joint in joints]
    limits = _limits(chosen, settings)
    damping, dry_friction = (
        _attribute(chosen, 'dynamics', key, 0.0) for key in ('damping', 'friction')
    )
    warnings = (*inertial_warnings(root), *snap_angles(root), *assumed)
    followers = find_followers(joints, settings.locked, following)
    moving = (*joints, *(follower.name for follower in followers))
    locked = {
        name: locked_position(name, settings.locked, following)
        for name in movable
        if name not in moving
    }
    model = _reduce(build_model(root), moving, locked, settings)
    if not any(model.inertias[k + 1].mass > 0.0 for k in range(model.nv)):
        raise ModelError(
            'the URDF has no inertials: set robot.mass (--mass of robotid init) to what the data '
            'sheet says of the whole robot, or give the links masses and inertias'
        )
    gain, spread = _gains(settings, joints)
    robot = Robot(
        name=settings.name or name,
        urdf=urdf,
        joints=joints,
        model=model,
        order=np.array([moving.index(each) for each in list(model.names)[1:]], dtype=np.intp),
        limits=limits,
        friction=(),
        couplings=tuple(_coupling(k, c, joints) for k, c in settings.couplings.items()),
        parameters=(),
        prior=np.empty(0),
        drive_gain=gain,
        prismatic=np.array([joint.get('type') == 'prismatic' for joint in chosen]),
        rotor_inertia=settings.rotor_inertia,
        damping=frozen(damping),
        dry_friction=frozen(dry_friction),
        open_friction=tuple(not {'default', joint} & set(settings.friction) for joint in joints),
        effort_kind=settings.effort_kind,
        warnings=warnings,
        assumed_inertials=bool(assumed),
        drive_gain_given=bool(settings.drive_gain or settings.drives),
        gain_spread=spread,
        followers=followers,
        locked={name: place for name, place in locked.items() if name not in following},
    )
    robot = with_friction(robot, _friction(joints, settings))
    if not settings.elastic.joints:
        return robot
    return dataclasses.replace(robot, elastic=elastic_robot(robot, settings))


def _select(
    names: tuple[str, ...], following: dict[str, Follower], settings: RobotSettings
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
    elements: dict[str, ElementTree.Element],
    joints: tuple[str, ...],
    following: dict[str, Follower],
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


def _reduce(
    full: Any, moving: tuple[str, ...], locked: dict[str, float], settings: RobotSettings
) -> Any:
    """Merge locked joints into links; links may have names of joints, which Pinocchio minds."""
    missing = [name for name in moving if not full.existJointName(name)]
    if missing:
        raise ModelError(
            f'joint {missing[0]} is not connected to the root of the URDF: check its links'
        )
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
    result = []
    for joint in chosen:
        child = joint.find(tag)
        text = None if child is None else child.get(key)
        try:
            result.append(default if text is None else float(text))
            if math.isnan(result[-1]):
                raise ValueError
        except ValueError as error:
            raise ModelError(
                f"{tag} {key} of joint {joint.get('name')} is '{text}': it must be a number"
            ) from error
    return np.array(result)


def _friction(
    joints: tuple[str, ...], settings: RobotSettings
) -> tuple[tuple[FrictionTerm, ...], ...]:
    for group in (settings.friction, settings.friction_constants):
        for name in group:
            if name != 'default' and name not in joints:
                raise UnknownNameError('joint', name, ('default', *joints))
    known = tuple(name for kind in TERMS.values() for name in kind.constants)
    for name in (name for group in settings.friction_constants.values() for name in group):
        if name not in known:
            raise UnknownNameError('friction constant', name, known)
    default = settings.friction.get('default', PLAIN)
    return tuple(
        make_terms(settings.friction.get(joint, default), settings.constants_of(joint))
        for joint in joints
    )


def _coupling(name: str, settings: CoupledMotorSettings, joints: tuple[str, ...]) -> Coupling:
    ratios = np.array(settings.ratios, dtype=float)
    if ratios.shape != (len(joints),) or np.count_nonzero(ratios) < 2:
        raise ConfigurationError(
            f"coupling '{name}' needs one ratio per joint ({len(joints)}), two of them not zero"
        )
    numbers = [str(j + 1) for j in np.flatnonzero(ratios)]
    separator = '_' if len(joints) > 9 else ''
    return Coupling(name, separator.join(numbers), frozen(ratios))


def with_friction(robot: Robot, friction: tuple[tuple[FrictionTerm, ...], ...]) -> Robot:
    """
    Return the robot with other friction terms, and the parameters that they bring.

    Parameters
    ----------
    robot : without elastic joints

    """
    parameters, values, n = list[Parameter](), dict[str, float](), robot.n
    for j, joint in enumerate(robot.joints):
        drive = drive_symbols(friction[j], bool(robot.prismatic[j]), robot.rotor_inertia)
        parameters += numbered(j + 1, joint) + numbered(j + 1, joint, drive)
    for number, follower in enumerate(robot.followers, start=n + 1):
        parameters += numbered(number, follower.name)
    motor = drive_symbols(COUPLED_FRICTION, False, rotor_inertia=True)
    for coupling in robot.couplings:
        parameters += numbered(coupling.number, coupling.name, motor)
    given = {'damping': robot.damping, 'friction': robot.dry_friction}
    for symbol, attribute in DESCRIBED.items():
        values |= {f'{symbol}{j}': float(x) for j, x in enumerate(given[attribute], start=1)}
    for k, j in enumerate(robot.order):
        inertial = from_pinocchio(robot.model.inertias[k + 1].toDynamicParameters())
        values |= {f'{s}{j + 1}': x for s, x in zip(INERTIAL, inertial, strict=True)}
        if j < n:  # followers have no drive
            values[f'Ia{j + 1}'] = robot.model.armature[k]
    values |= dict(zip((p.name for p in robot.parameters), robot.prior, strict=True))
    prior = frozen([values.get(p.name, 0.0) for p in parameters])
    return dataclasses.replace(robot, friction=friction, parameters=tuple(parameters), prior=prior)


def _limits(chosen: list[ElementTree.Element], settings: RobotSettings) -> Limits:
    continuous = np.array([joint.get('type') == 'continuous' for joint in chosen])
    unlimited = np.full(len(chosen), np.inf)
    described = {name: unlimited for name in ('acceleration', 'jerk')}
    for name, bound in {
        'lower': -np.inf,
        'upper': np.inf,
        'velocity': np.inf,
        'effort': np.inf,
    }.items():
        values = _attribute(chosen, 'limit', name, bound)
        none = np.abs(values) >= LARGEST[name]
        if name in ('lower', 'upper'):
            none |= continuous
        described[name] = np.where(none, bound, values)
    limits = Limits(**{k: _array(k, getattr(settings, k), v) for k, v in described.items()})
    if np.any(limits.lower >= limits.upper):
        k = int(np.argmax(limits.lower >= limits.upper))
        raise ConfigurationError(
            f'the position limits {limits.lower[k]:g} and {limits.upper[k]:g} of '
            f'{chosen[k].get("name")} leave no room: correct lower and upper, or leave the joint '
            'out (robot.joints)'
        )
    return limits


def _array(name: str, values: tuple[float, ...], default: Array) -> Array:
    _check_count(name, values, len(default))
    return frozen(values or default)


def _check_count(name: str, values: Sized, count: int) -> None:
    if len(values) not in (0, count):
        raise ConfigurationError(
            f"'{name}' has {len(values)} values: give one per joint ({count})"
        )


def _gains(settings: RobotSettings, joints: tuple[str, ...]) -> tuple[Array, Array]:
    """Return torque per unit of effort and its relative standard deviation, (n,), set or known."""
    gain, spread = np.ones(len(joints)), np.zeros(len(joints))
    _check_count('drives', settings.drives, len(joints))
    for j, text in enumerate(settings.drives):
        name = text.removesuffix(COUNTS)
        if name and name not in DRIVES:
            raise UnknownNameError('drive', text, (*DRIVES, *(f'{d}{COUNTS}' for d in DRIVES)))
        if name:
            drive = DRIVES[name]
            gain[j] = drive.gain * (drive.step if name != text else 1.0)
            spread[j] = 0.0 if settings.drive_gain else drive.spread
    gain = _array('drive_gain', settings.drive_gain, gain)
    if not gain.all():
        raise ConfigurationError(
            f"'drive_gain' of {joints[int(np.argmin(np.abs(gain)))]} is 0, so its efforts are "
            'none: give the torque per unit of effort, or leave the joint out (robot.joints)'
        )
    return gain, _array('drive_gain_spread', settings.drive_gain_spread, spread)


def elastic_robot(robot: Robot, settings: RobotSettings) -> ElasticRobot:
    """
    Return a robot with springs between motors and links (ELASTIC, sections 3 and 4).

        link:   M(q) ddq + C(q, dq) dq + g(q) + K (q − θ) = 0
        motor:  Υ ddθ + K (θ − q) + F(dθ) = τ

    θ is the motor's position on the joint side. Both are linear in the inertial parameters, the
    motor's inertia Υ (`Ia`), friction and stiffness `K`. The rows of a motor hold the sum of both:

        drive:  M(q) ddq + C(q, dq) dq + g(q) + Υ ddθ + F(dθ) = τ

    Springs cancel in it, so that noise of encoders times stiffness does not reach measured
    torques. The joints are the links' followed by the motors': every (N, n) array and every block
    of rows has this order.

    Parameters
    ----------
    robot : the rigid one, as `build_robot` makes it

    Raises
    ------
    UnknownNameError : a joint or a friction term that does not exist
    ConfigurationError : arrays of the wrong length, motors that are named like joints, couplings

    """
    robot.check_no_mimic_joints('robot.elastic')
    elastic, given = settings.elastic, settings.elastic.link_friction
    names, stiffness = _motor_names(robot, elastic), _stiffness(elastic)
    for joint in given:
        if joint not in ('default', *elastic.joints):
            raise UnknownNameError('elastic joint', joint, ('default', *elastic.joints))
    prior = dict(zip((p.name for p in robot.parameters), robot.prior.tolist(), strict=True))
    links, motors, parameters = list(robot.friction), np.arange(robot.n), list[Parameter]()
    rows = list(range(robot.n))
    for j, joint in enumerate(robot.joints):
        prismatic, has_spring = bool(robot.prismatic[j]), joint in names
        symbols = drive_symbols(links[j], prismatic, robot.rotor_inertia or has_spring)
        if has_spring:
            terms = given.get(joint, given.get('default', ()))
            links[j] = make_terms(terms, settings.constants_of(joint))
            motors[j] = len(rows)
            rows.append(j)
            prior[f'K{j + 1}'] = stiffness[joint]
            symbols.append(('K', 'N/m' if prismatic else 'N·m/rad'))
            link_side = drive_symbols(links[j], prismatic)
            symbols += [(symbol + LINK_SIDE_SUFFIX, unit) for symbol, unit in link_side]
        parameters += numbered(j + 1, joint) + numbered(j + 1, joint, symbols)
    behind = rows[robot.n :]  # links behind springs
    limits = (getattr(robot.limits, f.name) for f in dataclasses.fields(Limits))
    drive_gain = np.where(motors == np.arange(robot.n), robot.drive_gain, 0.0)
    fields = {f.name: getattr(robot, f.name) for f in dataclasses.fields(Robot)}
    fields |= {
        'joints': (*robot.joints, *(names[robot.joints[j]] for j in behind)),
        'limits': Limits(*(frozen(limit[rows]) for limit in limits)),
        'friction': (*links, *(robot.friction[j] for j in behind)),
        'parameters': tuple(parameters),
        'prior': frozen([prior.get(p.name, 0.0) for p in parameters]),
        'drive_gain': frozen([*drive_gain, *robot.drive_gain[behind]]),
        'prismatic': robot.prismatic[rows],
        'gain_spread': None if robot.gain_spread is None else frozen(robot.gain_spread[rows]),
    }
    return ElasticRobot(**fields, rigid=robot, motors=motors)


def _motor_names(robot: Robot, elastic: ElasticSettings) -> dict[str, str]:
    for joint in elastic.joints:
        if joint not in robot.joints:
            raise UnknownNameError('joint', joint, robot.joints)
    if robot.couplings:
        raise ConfigurationError(
            "'robot.couplings' and 'robot.elastic' do not go together: take one of them out"
        )
    motors = elastic.motors or tuple(f'{joint}_motor' for joint in elastic.joints)
    if len(motors) != len(elastic.joints):
        raise ConfigurationError(
            f"'robot.elastic.motors' has {len(motors)} names: give one per elastic joint "
            f'({len(elastic.joints)})'
        )
    if len({*motors, *robot.joints}) < len(motors) + robot.n:
        raise ConfigurationError(
            "'robot.elastic.motors' names a motor twice or like a joint: /joint_states must carry "
            'two names per elastic joint'
        )
    return dict(zip(elastic.joints, motors, strict=True))


def _stiffness(elastic: ElasticSettings) -> dict[str, float]:
    stiffness = elastic.stiffness or (0.0,) * len(elastic.joints)
    if len(stiffness) != len(elastic.joints):
        raise ConfigurationError(
            f"'robot.elastic.stiffness' has {len(stiffness)} values: give one per elastic "
            f'joint ({len(elastic.joints)}), or none'
        )
    return dict(zip(elastic.joints, stiffness, strict=True))
