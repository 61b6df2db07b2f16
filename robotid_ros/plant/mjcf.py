"""MuJoCo's model of moving bodies; MuJoCo's URDF import would merge, balance or drop some."""

from collections.abc import Sequence
from typing import Any
import xml.etree.ElementTree as ET

import mujoco
import numpy as np

from .drives import Drives
from .moving_bodies import MovingBody
from .urdf_reading import Array, inertial_at_com, JOINT_TYPES

# For bodies without inertia, such as shafts of wrists, which MuJoCo refuses [kg, kg·m²].
MIN_MASS, MIN_INERTIA = 1e-9, 1e-12
# Mechanical stops lie beyond the limits of the URDF, so that motions up to these do not touch them
# [rad, m].
STOP_MARGIN = 0.02
# Friction is a constraint in MuJoCo, with the stiffest impedance: a joint at rest does not creep.
FRICTION_IMPEDANCE = '0.9999 0.9999 0.001 0.5 2'


def write_mjcf(
    bodies: Sequence[MovingBody], drives: Drives, gravity: Sequence[float], timestep: float
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
        parents.append(_add_body(parents[body.parent + 1], body, {} if stiffness else values))
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


def _add_body(parent: ET.Element, body: MovingBody, drive: dict[str, str]) -> ET.Element:
    joint, origin = body.joint, body.origin
    place = {'pos': origin[:3, 3], 'quat': quaternion(origin[:3, :3])}
    element = _add(parent, 'body', name=joint.name, **place)
    mass, com, inertia = inertial_at_com(body.inertial)
    moments, axes = np.linalg.eigh(inertia)
    moments = np.maximum(moments, MIN_INERTIA)
    # Rounding may violate the triangle inequality of a thin rod's moments.
    moments[0] = max(moments[0], moments[2] - moments[1])
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    principal = {'quat': quaternion(axes), 'diaginertia': moments * (1.0 + 1e-15)}
    _add(element, 'inertial', mass=max(mass, MIN_MASS), pos=com, **principal)
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
