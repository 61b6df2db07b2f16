"""MuJoCo's model of moving bodies; MuJoCo's URDF import would merge, balance or drop some."""

from collections.abc import Sequence
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
    ET.SubElement(root, 'compiler', angle='radian', balanceinertia='false', fusestatic='false')
    option = ET.SubElement(
        root, 'option', timestep=repr(timestep), gravity=_text(gravity), integrator='RK4'
    )
    ET.SubElement(option, 'flag', contact='disable', autoreset='disable')
    parents = [ET.SubElement(root, 'worldbody')]
    solref = f'{2.0 * timestep!r} 1'
    dry = [coulomb + static for coulomb, static in zip(drives.coulomb, drives.static, strict=True)]
    rows = zip(drives.rotor_inertia, drives.viscous, dry, strict=True)
    own = [_drive(*row, solref) for row in rows]
    for body, drive, stiffness in zip(bodies, own, drives.stiffness, strict=True):
        parents.append(_add_body(parents[body.parent + 1], body, {} if stiffness else drive))
    _add_motors(root, bodies, drives, solref)
    _add_mimics(root, bodies, solref)
    _add_springs(root, bodies, own, drives.stiffness)
    return ET.tostring(root, encoding='unicode')


def _drive(inertia: float, viscous: float, dry: float, solref: str) -> dict[str, str]:
    """Attributes of a joint or a tendon that belong to its drive."""
    values = {'armature': inertia, 'damping': viscous, 'frictionloss': dry}
    text = {name: repr(value) for name, value in values.items()}
    return {**text, 'solreffriction': solref, 'solimpfriction': FRICTION_IMPEDANCE}


def _add_body(parent: ET.Element, body: MovingBody, drive: dict[str, str]) -> ET.Element:
    element = ET.SubElement(
        parent,
        'body',
        name=body.joint.name,
        pos=_text(body.origin[:3, 3]),
        quat=_text(quaternion(body.origin[:3, :3])),
    )
    mass, com, inertia = inertial_at_com(body.inertial)
    moments, axes = np.linalg.eigh(inertia)
    moments = np.maximum(moments, MIN_INERTIA)
    # Rounding may violate the triangle inequality of a thin rod's moments.
    moments[0] = max(moments[0], moments[2] - moments[1])
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    ET.SubElement(
        element,
        'inertial',
        mass=repr(max(mass, MIN_MASS)),
        pos=_text(com),
        quat=_text(quaternion(axes)),
        diaginertia=_text(moments * (1.0 + 1e-15)),
    )
    joint = ET.SubElement(
        element, 'joint', drive, name=body.joint.name, type=JOINT_TYPES[body.joint.type],
        axis=_text(body.joint.axis), limited='false',
    )  # fmt: skip
    if np.isfinite([body.joint.lower, body.joint.upper]).all():
        span = (body.joint.lower - STOP_MARGIN, body.joint.upper + STOP_MARGIN)
        joint.attrib.update(limited='true', range=_text(span))
    return element


def _add_motors(
    root: ET.Element, bodies: Sequence[MovingBody], drives: Drives, solref: str
) -> None:
    if not len(drives.motors):
        return
    tendons = ET.SubElement(root, 'tendon')
    for index, (ratios, inertia, viscous, coulomb) in enumerate(drives.motors):
        drive = _drive(inertia, viscous, coulomb, solref)
        fixed = ET.SubElement(tendons, 'fixed', drive, name=f'motor_{index}')
        for body, ratio in zip(bodies, ratios, strict=True):
            if ratio != 0.0:
                ET.SubElement(fixed, 'joint', joint=body.joint.name, coef=repr(ratio))


def _add_mimics(root: ET.Element, bodies: Sequence[MovingBody], solref: str) -> None:
    for body in bodies:
        if body.joint.mimic is not None:
            leader, multiplier, offset = body.joint.mimic
            ET.SubElement(
                ET.SubElement(root, 'equality'),
                'joint',
                joint1=body.joint.name,
                joint2=leader,
                polycoef=f'{offset!r} {multiplier!r} 0 0 0',
                solref=solref,
                solimp=FRICTION_IMPEDANCE,
            )


def rotor_name(joint: str) -> str:
    """Name of the joint with which the rotor of an elastic joint turns."""
    return f'{joint}/rotor'


def _add_springs(
    root: ET.Element,
    bodies: Sequence[MovingBody],
    drives: Sequence[dict[str, str]],
    stiffnesses: Sequence[float],
) -> None:
    """Give the drives of elastic joints to rotors, which springs connect to the joints."""
    if not any(stiffnesses):
        return
    world, tendons = root.find('worldbody'), ET.SubElement(root, 'tendon')
    assert world is not None
    least = ' '.join([repr(MIN_INERTIA)] * 3)
    for body, drive, stiffness in zip(bodies, drives, stiffnesses, strict=True):
        if not stiffness:
            continue
        name = body.joint.name
        rotor = ET.SubElement(world, 'body', name=rotor_name(name))
        ET.SubElement(rotor, 'inertial', mass=repr(MIN_MASS), pos='0 0 0', diaginertia=least)
        ET.SubElement(rotor, 'joint', drive, name=rotor_name(name), type='hinge', axis='0 0 1')
        spring = ET.SubElement(tendons, 'fixed', stiffness=repr(stiffness), springlength='0')
        ET.SubElement(spring, 'joint', joint=name, coef='1')
        ET.SubElement(spring, 'joint', joint=rotor_name(name), coef='-1')


def quaternion(rotation: Array) -> Array:
    """Quaternion (w, x, y, z) of a rotation (3, 3)."""
    result = np.empty(4)
    mujoco.mju_mat2Quat(result, rotation.ravel())
    return result


def _text(values: Sequence[float] | Array) -> str:
    return ' '.join(repr(float(value)) for value in values)
