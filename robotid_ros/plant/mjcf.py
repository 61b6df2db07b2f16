"""MuJoCo's model of moving bodies and drives; its URDF import would merge or balance some."""

from collections.abc import Sequence
from typing import Any, NamedTuple
import xml.etree.ElementTree as ET

import mujoco
import numpy as np

from ..exceptions import ConfigurationError, UnknownNameError
from ..simulation_settings import per_joint, SimulationSettings
from .urdf_reading import Array, JOINT_TYPES, MIN_INERTIA, MIN_MASS, principal_inertia, RigidBody

Values = tuple[float, ...]
# Mechanical stops lie beyond the limits of the URDF, so that motions up to these do not touch them
# [rad, m].
STOP_MARGIN = 0.02
# Friction is a constraint in MuJoCo, with the stiffest impedance: a joint at rest does not creep.
FRICTION_IMPEDANCE = '0.9999 0.9999 0.001 0.5 2'


class Drives(NamedTuple):
    """
    One value per moving body, in the bodies' order.

    A motor of `motors` is (ratios, Ia, Fv, Fc): it turns with `ratios · dq` and adds
    `Nᵀ (Ia N ddq + Fv N dq + Fc sign(N dq))`. Where `stiffness` is not 0, a spring stands between
    rotor and link: inertia, friction and offset are the rotor's.
    """

    rotor_inertia: Values
    viscous: Values
    coulomb: Values
    static: Values
    stribeck_velocity: Values
    offset: Values
    stiffness: Values
    motors: tuple[tuple[Values, float, float, float], ...]


def build_drives(
    settings: SimulationSettings, bodies: Sequence[RigidBody], joints: Sequence[str]
) -> Drives:
    """Assign settings in the order of `joints` to bodies; ConfigurationError: they don't fit."""
    count, names = len(joints), [body.joint.name for body in bodies]
    for name in joints:
        if name not in names:
            raise UnknownNameError('joint', name, tuple(names))

    def by_body(values: Values) -> Values:
        by_name = dict(zip(joints, values, strict=True))
        return tuple(by_name.get(body, 0.0) for body in names)

    def given(name: str, values: Values) -> Values:
        return by_body(per_joint(values, count, name))

    coupling, matrix = settings.coupling, settings.coupling.matrix
    velocity = given('stribeck.velocity', settings.stribeck.velocity or (0.05,))
    damping = tuple(body.joint.damping for body in bodies)
    friction = tuple(body.joint.friction for body in bodies)
    if len(matrix) % count:
        raise ConfigurationError(
            f"'simulation.coupling.matrix' has {len(matrix)} values: give rows of {count}"
        )
    ratios = [by_body(matrix[k : k + count]) for k in range(0, len(matrix), count)]
    columns = [
        per_joint(getattr(coupling, name), len(ratios), f'coupling.{name}')
        for name in ('Ia', 'Fv', 'Fc')
    ]
    drives = Drives(
        given('rotor_inertia', settings.rotor_inertia),
        given('viscous', settings.viscous) if settings.viscous else damping,
        given('coulomb', settings.coulomb) if settings.coulomb else friction,
        given('stribeck.extra', settings.stribeck.extra),
        tuple(value or 1.0 for value in velocity),
        given('offset', settings.offset),
        given('elastic.stiffness', settings.elastic.stiffness),
        tuple(zip(ratios, *columns, strict=True)),
    )
    if not any(drives.stiffness):
        return drives
    if drives.motors or any(body.joint.mimic is not None for body in bodies):
        raise ConfigurationError(
            "'simulation.elastic' does not go with couplings or mimic joints: take one out"
        )
    for name, spring, inertia in zip(names, drives.stiffness, drives.rotor_inertia, strict=True):
        if spring and inertia <= 0.0:
            raise ConfigurationError(
                f'{name} is elastic: give its motor a simulation.rotor_inertia'
            )
    return drives


def write_mjcf(
    bodies: Sequence[RigidBody], drives: Drives, gravity: Sequence[float], timestep: float
) -> str:
    """
    Write the model: one body per moving body, drives as armature, damping, friction loss.

    A drive behind a spring is a rotor of its own, see `rotor_name`; rotors come last. Gravity is
    in the base frame [m/s²], the time step in seconds.
    """
    root = ET.Element('mujoco')
    _add(root, 'compiler', angle='radian', balanceinertia='false', fusestatic='false')
    option = _add(root, 'option', timestep=timestep, gravity=gravity, integrator='RK4')
    _add(option, 'flag', contact='disable', autoreset='disable')
    parents, tendons = [_add(root, 'worldbody')], _add(root, 'tendon')
    stiff = {'solref': f'{2.0 * timestep!r} 1', 'solimp': FRICTION_IMPEDANCE}

    def drive(inertia: float, viscous: float, dry: float) -> dict[str, Any]:
        """Attributes of a joint or a tendon that belong to its drive."""
        values = {'armature': inertia, 'damping': viscous, 'frictionloss': dry}
        return values | {f'{name}friction': text for name, text in stiff.items()}

    rotors = []
    for k, body in enumerate(bodies):
        joint, origin = body.joint, body.origin
        dry = drives.coulomb[k] + drives.static[k]
        own = drive(drives.rotor_inertia[k], drives.viscous[k], dry)
        place = {'pos': origin[:3, 3], 'quat': quaternion(origin[:3, :3])}
        element = _add(parents[body.parent], 'body', name=joint.name, **place)
        parents.append(element)
        mass, com, moments, axes = principal_inertia(body.inertial)
        principal = {'quat': quaternion(axes), 'diaginertia': moments * (1.0 + 1e-15)}
        _add(element, 'inertial', mass=mass, pos=com, **principal)
        limits: dict[str, Any] = {'limited': 'false'}
        if np.isfinite([joint.lower, joint.upper]).all():
            span = joint.lower - STOP_MARGIN, joint.upper + STOP_MARGIN
            limits = {'limited': 'true', 'range': span}
        if spring := drives.stiffness[k]:
            rotors.append((joint.name, spring, own))
        kind = {'type': JOINT_TYPES[joint.type], 'axis': joint.axis}
        _add(element, 'joint', name=joint.name, **kind, **limits, **({} if spring else own))
        if joint.mimic is not None:
            leader, multiplier, offset = joint.mimic
            pair = {'joint1': joint.name, 'joint2': leader}
            polynomial = offset, multiplier, 0.0, 0.0, 0.0
            _add(_add(root, 'equality'), 'joint', polycoef=polynomial, **pair, **stiff)
    for index, (ratios, *motor) in enumerate(drives.motors):
        fixed = _add(tendons, 'fixed', name=f'motor_{index}', **drive(*motor))
        for body, ratio in zip(bodies, ratios, strict=True):
            if ratio != 0.0:
                _add(fixed, 'joint', joint=body.joint.name, coef=ratio)
    for name, spring, own in rotors:
        # The drive turns a rotor, which a spring connects to the joint.
        rotor = _add(parents[0], 'body', name=rotor_name(name))
        _add(rotor, 'inertial', mass=MIN_MASS, pos='0 0 0', diaginertia=[MIN_INERTIA] * 3)
        _add(rotor, 'joint', name=rotor_name(name), type='hinge', axis='0 0 1', **own)
        fixed = _add(tendons, 'fixed', stiffness=spring, springlength='0')
        _add(fixed, 'joint', joint=name, coef='1')
        _add(fixed, 'joint', joint=rotor_name(name), coef='-1')
    return ET.tostring(root, encoding='unicode')


def rotor_name(joint: str) -> str:
    """Name of the joint with which the rotor of an elastic joint turns."""
    return f'{joint}/rotor'


def quaternion(rotation: Array) -> Array:
    """Quaternion (w, x, y, z) of a rotation (3, 3)."""
    result = np.empty(4)
    mujoco.mju_mat2Quat(result, rotation.ravel())
    return result


def _add(parent: ET.Element, tag: str, **attributes: Any) -> ET.Element:
    """Add an element; attributes are texts, numbers or arrays of them."""
    numbers = {k: np.ravel(v).tolist() for k, v in attributes.items() if not isinstance(v, str)}
    texts = {k: ' '.join(map(repr, v)) for k, v in numbers.items()}
    return ET.SubElement(parent, tag, attributes | texts)
