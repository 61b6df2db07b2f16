"""
An identified robot as MJCF, for MuJoCo.

Rotor inertia is `armature`, viscous and dry friction `damping` and `frictionloss`, an offset the
bias of the actuator; a motor that turns several joints is a tendon, a joint that mimics another
one an equality.
"""

from collections.abc import Sequence
import contextlib
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import numpy as np
import pinocchio as pin

from ...exceptions import FileError, RobotIdError, shortened
from ...plant.urdf_reading import JOINT_TYPES
from ..atomic import file_errors
from ..configuration import from_mapping, resolve
from .bodies import (
    Array,
    document,
    explain_impossible,
    principal_inertia,
    read_parts,
    RigidBody,
    Shape,
    spaced,
)
from .drives import COUPLINGS, Drive, explain_losses, FRICTION, GRAVITY, OFFSETS, ROTORS, SPRINGS
from .identified_model import IdentifiedModel

KEPT = frozenset({FRICTION, OFFSETS, SPRINGS, ROTORS, COUPLINGS, GRAVITY})
WORLD = 'world'
PACKAGE = 'package://'
MESHES = ('.stl', '.obj', '.msh')  # that MuJoCo reads
# MuJoCo's own [s]. Its dry friction is a soft constraint: at low speeds it is too small, and its
# direction is that of ddq + 2/T dq, T the first of `solreffriction`. With the shortest T that is
# stable, two steps, a joint has to turn round within one step for a wrong direction; with the
# hardest impedance a joint at rest does not creep.
TIMESTEP = 0.002
DRY_FRICTION = {
    'solreffriction': f'{2 * TIMESTEP!r} 1',
    'solimpfriction': '0.9999 0.9999 0.001 0.5 2',
}
# Viewers show shapes of group 2; they hide what collides, group 3, and frames, group 4.
CLASSES = {
    'visual': ('geom', {'contype': '0', 'conaffinity': '0', 'group': '2'}),
    'collision': ('geom', {'group': '3'}),
    'frame': ('site', {'group': '4'}),
}


def mjcf(model: IdentifiedModel, folders: Sequence[str | Path] = ()) -> tuple[str, list[str]]:
    """
    Write an identified robot as MJCF, and sentences on what it does not hold, which stand in it.

    Meshes are sought in the packages in `folders`, and in those that the configuration names.
    """
    bodies, shapes, drives = read_parts(model)
    file = ET.Element('mujoco', model=model.robot.name)
    ET.SubElement(file, 'compiler', angle='radian', inertiafromgeom='false')
    gravity = spaced(model.robot.gravity)
    ET.SubElement(file, 'option', timestep=repr(TIMESTEP), gravity=gravity)
    defaults = ET.SubElement(file, 'default')
    for tag in ('joint', 'tendon'):
        ET.SubElement(defaults, tag, DRY_FRICTION)
    for name, (tag, attributes) in CLASSES.items():
        ET.SubElement(ET.SubElement(defaults, 'default', {'class': name}), tag, attributes)
    with contextlib.suppress(RobotIdError):
        workspace = from_mapping(model.results.settings).excitation.workspace
        folders = [*folders, *workspace.mesh_folders]
    meshes = Meshes(ET.SubElement(file, 'asset'), folders)
    _add_bodies(ET.SubElement(file, 'worldbody'), bodies, drives, shapes, meshes)
    _add_excludes(ET.SubElement(file, 'contact'), bodies, shapes)
    _add_constraints(file, bodies, model, drives)
    notes = explain_losses(model, KEPT) + explain_impossible(bodies) + meshes.notes()
    for section in [s for s in file.findall('*') if not len(s) and not s.attrib]:
        file.remove(section)
    return document(file, notes), notes


def _add_bodies(
    world: ET.Element,
    bodies: Sequence[RigidBody],
    drives: dict[str, Drive],
    shapes: dict[str, list[Shape]],
    meshes: 'Meshes',
) -> None:
    parents: list[ET.Element] = []
    for body in bodies:
        above = world if body.parent < 0 else parents[body.parent]
        values = {'name': body.name, **_pose(body.origin)}
        element = above if body.name == WORLD else ET.SubElement(above, 'body', values)
        parents.append(element)
        if (joint := body.joint) is not None:
            values = {'name': joint.name, 'type': JOINT_TYPES[joint.type]}
            values['axis'] = spaced(joint.axis)
            if -np.inf < joint.lower < joint.upper < np.inf:
                values['range'] = spaced((joint.lower, joint.upper))
            ET.SubElement(element, 'joint', {**values, **_passive(drives[joint.name])})
        if body.name != WORLD:
            mass, com, moments, axes = principal_inertia(body.inertial)
            pose = np.eye(4)
            pose[:3, :3], pose[:3, 3] = axes, com
            values = {'mass': repr(mass), **_pose(pose), 'diaginertia': spaced(moments)}
            ET.SubElement(element, 'inertial', values)
        for name, place in body.links.items():
            if name != body.name:
                ET.SubElement(element, 'site', {'class': 'frame', 'name': name, **_pose(place)})
            for shape in shapes.get(name, ()):
                _add_shape(element, shape, place, meshes)


def _passive(drive: Drive) -> dict[str, str]:
    values = {
        'armature': drive.inertia,
        'damping': drive.damping,
        'frictionloss': drive.friction,
        'stiffness': drive.stiffness,
    }
    return {name: repr(value) for name, value in values.items() if value}


def _add_shape(body: ET.Element, shape: Shape, place: Array, meshes: 'Meshes') -> None:
    values = {'class': 'visual' if shape.visual else 'collision', 'type': shape.kind}
    if shape.kind == 'mesh':
        mesh = meshes.add(shape)
        if mesh is None:
            return
        values['mesh'] = mesh
    else:  # half edges, or radius and half length
        halves = (0.5, 0.5, 0.5) if shape.kind == 'box' else (1.0, 0.5)
        values['size'] = spaced(x * half for x, half in zip(shape.size, halves, strict=False))
    if shape.rgba:
        values['rgba'] = spaced(shape.rgba)
    ET.SubElement(body, 'geom', {**values, **_pose(place @ shape.place)})


def _add_excludes(
    contact: ET.Element, bodies: Sequence[RigidBody], shapes: dict[str, list[Shape]]
) -> None:
    """Let nothing touch the base that it carries: MuJoCo does so for moving parents alone."""
    collides = {link for link, found in shapes.items() if not all(s.visual for s in found)}
    for body in (body for body in bodies if body.parent == 0):
        if collides & bodies[0].links.keys() and collides & body.links.keys():
            ET.SubElement(contact, 'exclude', body1=bodies[0].name, body2=body.name)


def _add_constraints(
    file: ET.Element, bodies: Sequence[RigidBody], model: IdentifiedModel, drives: dict[str, Drive]
) -> None:
    """Add the actuators, and what several joints have in common."""
    robot = model.robot
    equality, tendon, actuator = (
        ET.SubElement(file, tag) for tag in ('equality', 'tendon', 'actuator')
    )
    efforts = dict(zip(robot.joints, robot.limits.effort, strict=True))
    for joint in (body.joint for body in bodies if body.joint is not None):
        if joint.mimic is not None:
            leader, ratio, offset = joint.mimic
            polynomial = spaced((offset, ratio, 0.0, 0.0, 0.0))
            names = {'joint1': joint.name, 'joint2': leader}
            ET.SubElement(equality, 'joint', {**names, 'polycoef': polynomial})
            continue
        values = {'name': joint.name, 'joint': joint.name}
        effort, bias = efforts.get(joint.name, joint.effort), drives[joint.name].offset
        if np.isfinite(effort):
            values['ctrlrange'] = spaced((-effort, effort))
        if bias:
            values |= {'gainprm': '1', 'biastype': 'affine', 'biasprm': spaced((-bias, 0.0, 0.0))}
        ET.SubElement(actuator, 'general' if bias else 'motor', values)
    for coupling in robot.couplings:
        values = {'name': coupling.name, **_passive(drives[coupling.name])}
        element = ET.SubElement(tendon, 'fixed', values)
        for name, ratio in zip(robot.joints, coupling.ratios.tolist(), strict=True):
            if ratio:
                ET.SubElement(element, 'joint', joint=name, coef=repr(ratio))


def _pose(place: Array) -> dict[str, str]:
    x, y, z, w = pin.Quaternion(np.ascontiguousarray(place[:3, :3])).coeffs()
    return {'pos': spaced(place[:3, 3]), 'quat': spaced((w, x, y, z))}


class Meshes:
    """The meshes of a file, each of them once; and those that MuJoCo could not read."""

    def __init__(self, assets: ET.Element, folders: Sequence[str | Path]) -> None:
        self._assets, self._folders = assets, folders
        self._names: dict[tuple[str, tuple[float, ...]], str] = {}
        self._missing: dict[str, None] = {}

    def add(self, shape: Shape) -> str | None:
        """Return the name of a shape's mesh, None where it has to be left out."""
        known = self._names.get((shape.mesh, shape.scale))
        if known is not None:
            return known
        path = _find_mesh(shape.mesh, self._folders)
        if path is None or not _readable(path):
            self._missing[shape.mesh] = None
            return None
        name = f'{path.stem}_{len(self._names)}'
        scale = spaced(shape.scale)
        ET.SubElement(self._assets, 'mesh', name=name, file=str(path), scale=scale)
        self._names[shape.mesh, shape.scale] = name
        return name

    def notes(self) -> list[str]:
        """Say what is missing."""
        if not self._missing:
            return []
        return [
            f'meshes that were not found, or are no binary {", ".join(MESHES)}, are left out: '
            f'{shortened([*self._missing])}; --mesh-folder names the folders of their packages'
        ]


def _readable(path: Path) -> bool:
    """Return whether MuJoCo reads a mesh: of STL it takes the binary kind."""
    if path.suffix.lower() != '.stl':
        return path.suffix.lower() in MESHES
    with file_errors(path), path.open('rb') as stream:
        count = np.frombuffer(stream.read(84)[80:], '<u4')
    return len(count) == 1 and path.stat().st_size == 84 + 50 * int(count[0])


def _find_mesh(uri: str, folders: Sequence[str | Path]) -> Path | None:
    """Find the file of a mesh in folders of packages, else as `resolve` does."""
    name = unquote(uri.removeprefix(PACKAGE))
    places = [Path(folder, name) for folder in folders if '://' not in name]
    with contextlib.suppress(FileError):
        places.append(resolve(uri))
    return next((place.absolute() for place in places if place.is_file()), None)
