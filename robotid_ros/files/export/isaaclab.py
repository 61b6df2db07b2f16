"""
An identified robot for Isaac Lab: a description in USD, and the configuration that spawns it.

Joints of USD count in degrees where they turn, efforts over them too; `PhysxJointAxisAPI` has
armature and friction in SI but for the viscous one (Physx Joint Schema of Omni Physics; its parser
multiplies by 180/π). Isaac Lab's configuration counts in radians. Its fields are those of
`isaaclab.actuators.ActuatorBaseCfg` 2.3 and 3.0 (source/isaaclab/isaaclab/actuators), whose dry
friction is an effort with Isaac Sim 5 and newer.
"""

from collections.abc import Iterable
import math
import re

import numpy as np

from ...exceptions import shortened
from .bodies import read_parts, render_description, spaced
from .identified_model import IdentifiedModel, ROTORS, SERVOS

# Shapes of USD have this size, which a scale changes.
SOLIDS = {'box': 'Cube', 'cylinder': 'Cylinder', 'capsule': 'Capsule', 'sphere': 'Sphere'}


def isaaclab(model: IdentifiedModel) -> tuple[dict[str, str], list[str]]:
    """Write an identified robot as USD and its configuration, and sentences on what they lack."""
    model = model.for_simulation
    parts = read_parts(model, {ROTORS, SERVOS})
    robot, servos = model.robot, model.servos
    bodies, joints, drives, notes = parts.bodies, parts.joints, parts.drives, parts.notes
    links = _identifiers(link for body in bodies for link in body.links)
    names = _identifiers(joint.name for joint in joints)
    following = [joint.name for joint in joints if joint.mimic is not None]
    if following:
        notes.append(f'joints that mimic others are free, without a drive: {shortened(following)}')
    if any(shape.kind not in SOLIDS for own in parts.shapes.values() for shape in own):
        notes.append(
            "meshes are left out: convert identified.urdf with Isaac Lab's convert_urdf.py, and "
            'name its file in the configuration'
        )
    changed = [old for old, new in (links | names).items() if old != new]
    if changed:
        notes.append(f'USD has no such names: {shortened(changed)} got underscores')
    driven = [joint for joint in joints if joint.mimic is None]
    dry = {joint.name: drives[joint.name].friction for joint in driven}
    speeds = dict.fromkeys(parts.efforts, math.inf)
    speeds |= dict(zip(robot.joints, robot.limits.velocity, strict=True))
    efforts = dict(parts.efforts)
    for name, servo in servos.items():
        efforts[name] = min(efforts.get(name, math.inf), servo.limit)
    gains = {
        field: {j.name: getattr(servos.get(j.name), field, 0.0) for j in driven if servos}
        for field in ('stiffness', 'damping')
    }
    values = parts._asdict() | {
        'model': model,
        'file': _identifiers([robot.name])[robot.name],
        'links': links,
        'names': names,
        'driven': driven,
        'speeds': speeds,
        'efforts': efforts,
        'fields': {
            **gains,
            'effort_limit_sim': efforts,
            'velocity_limit_sim': speeds,
            'armature': {joint.name: drives[joint.name].inertia for joint in driven},
            'friction': dry,
            'dynamic_friction': dry,
            'viscous_friction': {joint.name: drives[joint.name].damping for joint in driven},
        },
        'solids': SOLIDS,
        'degree': math.pi / 180.0,
    }
    filters = {
        'listed': lambda numbers: f'({", ".join(spaced(numbers).split())})',
        'turn_to': _turn_to,
        # Nearest to 0 within the limits.
        'middle': lambda j: float(np.clip(0.0, j.lower, j.upper)) if j.lower < j.upper else 0.0,
        'plain': lambda text: text.replace('\\', '/').replace('"', "'"),
    }
    templates = {'.usda': 'isaaclab.usda.jinja', '_cfg.py': 'isaaclab.py.jinja'}
    return {
        f'{values["file"]}{suffix}': render_description(template, values, **filters)
        for suffix, template in templates.items()
    }, notes


def _identifiers(names: Iterable[str]) -> dict[str, str]:
    """Return names as USD has them: letters, digits and underscores, each once."""
    found = dict[str, str]()
    for name in names:
        new = re.sub(r'\W', '_', name, flags=re.ASCII)
        new = f'_{new}' if not new or new[0].isdigit() else new
        while new in found.values():
            new += '_'
        found[name] = new
    return found


def _turn_to(axis: np.ndarray) -> np.ndarray:
    """Return H (4, 4) that turns the x axis to another one."""
    x = np.asarray(axis) / np.linalg.norm(axis)
    other = np.eye(3)[np.argmin(np.abs(x))]
    y = np.cross(x, other) / np.linalg.norm(np.cross(x, other))
    place = np.eye(4)
    place[:3, :3] = np.column_stack([x, y, np.cross(x, y)])
    return place
