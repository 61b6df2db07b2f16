"""
Robots with elastic joints: a spring between each motor and its link (ELASTIC, sections 3 and 4).

    link:   M(q) ddq + C(q, dq) dq + g(q) + K (q − θ) = 0
    motor:  Υ ddθ + K (θ − q) + F(dθ) = τ

θ is the motor's position on the joint side. Both are linear in the inertial parameters, the
motor's inertia Υ (`Ia`), friction and stiffness `K`. The rows of a motor hold the sum of both:

    drive:  M(q) ddq + C(q, dq) dq + g(q) + Υ ddθ + F(dθ) = τ

Springs cancel in it, so that noise of encoders times stiffness does not reach measured torques.
An elastic robot is a `Robot` whose joints are the links' followed by the motors': every (N, n)
array and every block of rows has this order.
"""

import dataclasses

import numpy as np

from ...exceptions import ConfigurationError, UnknownNameError
from ..arrays import Array, frozen
from .friction import LINK_SIDE_SUFFIX, make_terms
from .parameters import drive_symbols, numbered, Parameter
from .robot import ElasticRobot, Limits, Robot
from .settings import ElasticSettings, RobotSettings


def elastic_robot(robot: Robot, settings: RobotSettings) -> ElasticRobot:
    """
    Return a robot with springs in the joints that the configuration calls elastic.

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


def spring_torque(robot: ElasticRobot, chi: Array, q: Array) -> Array:
    """Torque K (θ − q) of the springs on the links, (N, n); zero in all other rows."""
    torque = np.zeros(q.shape)
    for j in robot.elastic_joints:
        stiffness = chi[robot.column(f'K{j + 1}')]
        torque[:, j] = stiffness * (q[:, robot.motors[j]] - q[:, j])
    return torque


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
