"""Build a robot: URDF and configuration become a Pinocchio model with named parameters."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...exceptions import ConfigurationError, UnknownNameError
from ..arrays import Array, frozen
from .elastic_robot import elastic_robot
from .friction import DESCRIBED, FrictionTerm, make_terms, PLAIN, TERMS
from .parameters import drive_symbols, from_pinocchio, INERTIAL, numbered, Parameter
from .robot import Coupling, Limits, Robot
from .robot_description import Description, read_description, with_inertials
from .settings import CoupledMotorSettings, RobotSettings


def build_robot(urdf: str, settings: RobotSettings) -> Robot:
    """
    Build the robot from its description and configuration.

    Parameters
    ----------
    urdf : the URDF's text
    settings : which joints, which model

    Raises
    ------
    ModelError : the URDF cannot become a dynamic model
    UnknownNameError : a joint, friction term or constant that does not exist
    ConfigurationError : an array of the wrong length, an impossible coupling

    """
    urdf, assumed = with_inertials(urdf, settings.mass)
    description = read_description(urdf, settings)
    joints = description.joints
    friction = _friction(joints, settings)
    couplings = tuple(_coupling(k, c, joints) for k, c in settings.couplings.items())
    parameters = _parameters(description, friction, couplings, settings.rotor_inertia)
    robot = Robot(
        name=settings.name or description.name,
        urdf=urdf,
        joints=joints,
        model=description.model,
        order=description.order,
        limits=_limits(description, settings),
        friction=friction,
        couplings=couplings,
        parameters=parameters,
        prior=_prior(description, parameters),
        drive_gain=_array('drive_gain', settings.drive_gain, np.ones(len(joints))),
        prismatic=description.prismatic,
        rotor_inertia=settings.rotor_inertia,
        damping=frozen(description.damping),
        dry_friction=frozen(description.dry_friction),
        open_friction=tuple(not {'default', joint} & set(settings.friction) for joint in joints),
        effort_kind=settings.effort_kind,
        warnings=(*description.warnings, *assumed),
        assumed_inertials=bool(assumed),
        drive_gain_given=bool(settings.drive_gain),
        followers=description.followers,
        locked=description.locked,
    )
    if not settings.elastic.joints:
        return robot
    return dataclasses.replace(robot, elastic=elastic_robot(robot, settings))


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


def _parameters(
    description: Description | Robot,
    friction: tuple[tuple[FrictionTerm, ...], ...],
    couplings: tuple[Coupling, ...],
    rotor_inertia: bool,
) -> tuple[Parameter, ...]:
    result = []
    for j, joint in enumerate(description.joints):
        drive = drive_symbols(friction[j], bool(description.prismatic[j]), rotor_inertia)
        result += numbered(j + 1, joint) + numbered(j + 1, joint, drive)
    for number, follower in enumerate(description.followers, start=len(description.joints) + 1):
        result += numbered(number, follower.name)
    motor = drive_symbols(make_terms(('viscous', 'coulomb'), {}), False, rotor_inertia=True)
    for coupling in couplings:
        result += numbered(coupling.number, coupling.name, motor)
    return tuple(result)


def _prior(description: Description, parameters: tuple[Parameter, ...]) -> Array:
    model = description.model
    values = _friction_prior(description.damping, description.dry_friction)
    for k, j in enumerate(description.order):
        inertial = from_pinocchio(model.inertias[k + 1].toDynamicParameters())
        for symbol, value in zip(INERTIAL, inertial, strict=True):
            values[f'{symbol}{j + 1}'] = value
        if j < len(description.joints):  # followers have no drive
            values[f'Ia{j + 1}'] = model.armature[k]
    return frozen([values.get(p.name, 0.0) for p in parameters])


def _friction_prior(damping: Array, dry_friction: Array) -> dict[str, float]:
    """Return what a URDF's `<dynamics>` says of friction parameters, by name."""
    given = {'damping': damping, 'friction': dry_friction}
    return {
        f'{symbol}{j}': float(value)
        for symbol, attribute in DESCRIBED.items()
        for j, value in enumerate(given[attribute], start=1)
    }


def with_friction(robot: Robot, friction: tuple[tuple[FrictionTerm, ...], ...]) -> Robot:
    """
    Return the robot with other friction terms, and the parameters that they bring.

    Parameters
    ----------
    robot : without elastic joints

    """
    parameters = _parameters(robot, friction, robot.couplings, robot.rotor_inertia)
    values = _friction_prior(robot.damping, robot.dry_friction)
    values |= dict(zip((p.name for p in robot.parameters), robot.prior, strict=True))
    return dataclasses.replace(
        robot,
        friction=friction,
        parameters=parameters,
        prior=frozen([values.get(p.name, 0.0) for p in parameters]),
    )


def _limits(description: Description, settings: RobotSettings) -> Limits:
    unlimited = np.full(len(description.joints), np.inf)
    names = [field.name for field in dataclasses.fields(Limits)]
    described = {name: getattr(description, name, unlimited) for name in names}
    limits = Limits(**{k: _array(k, getattr(settings, k), v) for k, v in described.items()})
    if np.any(limits.lower >= limits.upper):
        joint = description.joints[int(np.argmax(limits.lower >= limits.upper))]
        raise ConfigurationError(
            f'position limits of {joint} leave no room: check lower and upper'
        )
    return limits


def _array(name: str, values: tuple[float, ...], default: Array) -> Array:
    if not values:
        return frozen(default)
    if len(values) != len(default):
        raise ConfigurationError(
            f"'{name}' has {len(values)} values: give one per joint ({len(default)})"
        )
    return frozen(values)
