"""MuJoCo's model of moving bodies and drives; its URDF import would merge or balance some."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
import xml.etree.ElementTree as ET

import mujoco
import numpy as np

from ..exceptions import ConfigurationError, UnknownNameError
from ..simulation_settings import per_joint, SimulationSettings
from .urdf_reading import (
    Array,
    inertial_at_origin,
    JOINT_TYPES,
    MIN_INERTIA,
    MIN_MASS,
    principal_inertia,
    RigidBody,
)

Values = tuple[float, ...]
# Mechanical stops lie beyond the limits of the URDF, so that motions up to these do not touch them
# [rad, m].
STOP_MARGIN = 0.02
# Friction is a constraint in MuJoCo, with the stiffest impedance: a joint at rest does not creep.
FRICTION_IMPEDANCE = '0.9999 0.9999 0.001 0.5 2'


@dataclass(frozen=True)
class Drives:
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
    """
    Assign the settings, which are in the order of `joints`, to the bodies.

    An array of the wrong length is a ConfigurationError, like springs without rotor inertia, or
    together with coupled motors or mimic joints.
    """
    count = len(joints)
    names = [body.joint.name for body in bodies]
    for name in joints:
        if name not in names:
            raise UnknownNameError('joint', name, tuple(names))

    def by_body(values: Values, name: str, default: Values | None = None) -> Values:
        if not values and default is not None:
            return default
        by_name = dict(zip(joints, per_joint(values, count, name), strict=True))
        return tuple(by_name.get(body, 0.0) for body in names)

    drives = Drives(
        by_body(settings.rotor_inertia, 'rotor_inertia'),
        by_body(settings.viscous, 'viscous', tuple(b.joint.damping for b in bodies)),
        by_body(settings.coulomb, 'coulomb', tuple(b.joint.friction for b in bodies)),
        by_body(settings.stribeck.extra, 'stribeck.extra'),
        tuple(
            value or 1.0
            for value in by_body(settings.stribeck.velocity or (0.05,), 'stribeck.velocity')
        ),
        by_body(settings.offset, 'offset'),
        by_body(settings.elastic.stiffness, 'elastic.stiffness'),
        _motors(settings, joints, names),
    )
    if not any(drives.stiffness):
        return drives
    if drives.motors or any(body.joint.mimic is not None for body in bodies):
        raise ConfigurationError(
            "'simulation.elastic' does not go with couplings or mimic joints: take one out"
        )
    for name, stiffness, inertia in zip(
        names, drives.stiffness, drives.rotor_inertia, strict=True
    ):
        if stiffness and inertia <= 0.0:
            raise ConfigurationError(
                f'{name} is elastic: give its motor a simulation.rotor_inertia'
            )
    return drives


def _motors(
    settings: SimulationSettings, joints: Sequence[str], names: Sequence[str]
) -> tuple[tuple[Values, float, float, float], ...]:
    coupling, count = settings.coupling, len(joints)
    if len(coupling.matrix) % count:
        raise ConfigurationError(
            f"'simulation.coupling.matrix' has {len(coupling.matrix)} values: give rows of {count}"
        )
    rows = [coupling.matrix[k : k + count] for k in range(0, len(coupling.matrix), count)]
    by_joint = [dict(zip(joints, row, strict=True)) for row in rows]
    ratios = [tuple(row.get(name, 0.0) for name in names) for row in by_joint]
    columns = [
        per_joint(getattr(coupling, name), len(rows), f'coupling.{name}')
        for name in ('Ia', 'Fv', 'Fc')
    ]
    return tuple(zip(ratios, *columns, strict=True))


@dataclass(frozen=True)
class TrueParameters:
    """
    True parameters of one joint, or of a motor that drives several.

    `values` holds `XX XY XZ YY YZ ZZ MX MY MZ M` at the joint's frame, links that are fixed to the
    joint's link included, and `Ia Fv Fc off`, with `Fs Fsc Fst vs` where there is static friction
    and `K` where there is a spring; a motor has `Ia Fv Fc` and its `ratios`.
    """

    name: str
    values: dict[str, float]
    ratios: tuple[float, ...] = ()


def true_parameters(
    bodies: Sequence[RigidBody], drives: Drives, order: Sequence[int]
) -> tuple[TrueParameters, ...]:
    """List true parameters joint by joint in this order of bodies, then of coupled motors."""
    found = []
    for k in order:
        mass, first, inertia = inertial_at_origin(bodies[k].inertial)
        names = ('XX', 'XY', 'XZ', 'YY', 'YZ', 'ZZ', 'MX', 'MY', 'MZ')
        moments = (*inertia[np.triu_indices(3)].tolist(), *first.tolist())
        values = dict(zip(names, moments, strict=True)) | {
            'M': mass,
            'Ia': drives.rotor_inertia[k],
            'Fv': drives.viscous[k],
            'Fc': drives.coulomb[k],
            'off': drives.offset[k],
        }
        if (extra := drives.static[k]) > 0.0:
            # In the terms of STICTION eq. 7-9: all of it at rest, and what sliding takes away.
            values |= {'Fs': drives.coulomb[k] + extra, 'Fsc': -extra, 'Fst': extra}
            values['vs'] = drives.stribeck_velocity[k]
        if drives.stiffness[k] > 0.0:
            values['K'] = drives.stiffness[k]
        found.append(TrueParameters(bodies[k].joint.name, values))
    for number, (ratios, *own) in enumerate(drives.motors):
        values = dict(zip(('Ia', 'Fv', 'Fc'), own, strict=True))
        turned = tuple(ratios[k] for k in order)
        found.append(TrueParameters(f'motor_{number}', values, turned))
    return tuple(found)


def write_mjcf(
    bodies: Sequence[RigidBody], drives: Drives, gravity: Sequence[float], timestep: float
) -> str:
    """
    Write the model: one body per moving body, drives as armature, damping and friction loss.

    A drive behind a spring is a rotor of its own, see `rotor_name`; rotors come last. Gravity is
    in the base frame [m/s²], the time step in seconds.
    """
    root = ET.Element('mujoco')
    _add(root, 'compiler', angle='radian', balanceinertia='false', fusestatic='false')
    option = _add(root, 'option', timestep=timestep, gravity=gravity, integrator='RK4')
    _add(option, 'flag', contact='disable', autoreset='disable')
    parents = [_add(root, 'worldbody')]
    solref = f'{2.0 * timestep!r} 1'

    def drive(inertia: float, viscous: float, dry: float) -> dict[str, str]:
        """Attributes of a joint or a tendon that belong to its drive."""
        values = {'armature': inertia, 'damping': viscous, 'frictionloss': dry}
        text = {name: _text(value) for name, value in values.items()}
        return {**text, 'solreffriction': solref, 'solimpfriction': FRICTION_IMPEDANCE}

    dry = [coulomb + static for coulomb, static in zip(drives.coulomb, drives.static, strict=True)]
    rows = zip(drives.rotor_inertia, drives.viscous, dry, strict=True)
    own = list(zip(bodies, (drive(*row) for row in rows), drives.stiffness, strict=True))
    for body, values, stiffness in own:
        parents.append(_add_body(parents[body.parent], body, {} if stiffness else values))
    if drives.motors:
        tendons = _add(root, 'tendon')
    for index, (ratios, *motor) in enumerate(drives.motors):
        fixed = _add(tendons, 'fixed', drive(*motor), name=f'motor_{index}')
        for body, ratio in zip(bodies, ratios, strict=True):
            if ratio != 0.0:
                _add(fixed, 'joint', joint=body.joint.name, coef=ratio)
    for joint in (body.joint for body in bodies):
        if joint.mimic is not None:
            leader, multiplier, offset = joint.mimic
            _add(
                _add(root, 'equality'), 'joint', joint1=joint.name, joint2=leader,
                polycoef=(offset, multiplier, 0.0, 0.0, 0.0), solref=solref,
                solimp=FRICTION_IMPEDANCE,
            )  # fmt: skip
    if any(drives.stiffness):
        tendons = _add(root, 'tendon')
    for body, values, stiffness in own:
        if stiffness:
            name = body.joint.name
            # The drive turns a rotor, which a spring connects to the joint.
            rotor = _add(parents[0], 'body', name=rotor_name(name))
            _add(rotor, 'inertial', mass=MIN_MASS, pos='0 0 0', diaginertia=[MIN_INERTIA] * 3)
            _add(rotor, 'joint', values, name=rotor_name(name), type='hinge', axis='0 0 1')
            spring = _add(tendons, 'fixed', stiffness=stiffness, springlength='0')
            _add(spring, 'joint', joint=name, coef='1')
            _add(spring, 'joint', joint=rotor_name(name), coef='-1')
    return ET.tostring(root, encoding='unicode')


def rotor_name(joint: str) -> str:
    """Name of the joint with which the rotor of an elastic joint turns."""
    return f'{joint}/rotor'


def _add_body(parent: ET.Element, body: RigidBody, drive: dict[str, str]) -> ET.Element:
    joint, origin = body.joint, body.origin
    place = {'pos': origin[:3, 3], 'quat': quaternion(origin[:3, :3])}
    element = _add(parent, 'body', name=joint.name, **place)
    mass, com, moments, axes = principal_inertia(body.inertial)
    principal = {'quat': quaternion(axes), 'diaginertia': moments * (1.0 + 1e-15)}
    _add(element, 'inertial', mass=mass, pos=com, **principal)
    limits: dict[str, Any] = {'limited': 'false'}
    if np.isfinite([joint.lower, joint.upper]).all():
        span = joint.lower - STOP_MARGIN, joint.upper + STOP_MARGIN
        limits = {'limited': 'true', 'range': span}
    kind = {'type': JOINT_TYPES[joint.type], 'axis': joint.axis}
    _add(element, 'joint', drive, name=joint.name, **kind, **limits)
    return element


def quaternion(rotation: Array) -> Array:
    """Quaternion (w, x, y, z) of a rotation (3, 3)."""
    result = np.empty(4)
    mujoco.mju_mat2Quat(result, rotation.ravel())
    return result


def _add(
    parent: ET.Element, tag: str, drive: dict[str, str] | None = None, /, **attributes: Any
) -> ET.Element:
    """Add an element; attributes are texts, numbers or arrays of them."""
    text = {k: v if isinstance(v, str) else _text(v) for k, v in attributes.items()}
    return ET.SubElement(parent, tag, {**(drive or {}), **text})


def _text(values: float | Sequence[float] | Array) -> str:
    return ' '.join(map(repr, np.ravel(values).tolist()))
