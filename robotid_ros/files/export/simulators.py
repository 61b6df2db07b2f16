"""
An identified robot as MJCF, for MuJoCo, as SDFormat, for Gazebo, and in USD, for Isaac Lab.

Rotor inertia is `armature`, viscous and dry friction `damping` and `frictionloss`, an offset the
bias of the actuator; a motor that turns several joints is a tendon, a joint that mimics another
one an equality. Links of SDFormat that move as one are one link, as Gazebo has them of a URDF too:
one without mass would get the default of 1 kg. Those that are fixed to it are frames of their
names. The version is the first one with joints that mimic others; Gazebo Harmonic reads it.

Joints of USD count in degrees where they turn, efforts over them too; `PhysxJointAxisAPI` has
armature and friction in SI but for the viscous one (Physx Joint Schema of Omni Physics; its parser
multiplies by 180/π). Isaac Lab's configuration counts in radians. Its fields are those of
`isaaclab.actuators.ActuatorBaseCfg` 2.3 and 3.0 (source/isaaclab/isaaclab/actuators), whose dry
friction is an effort with Isaac Sim 5 and newer.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
import contextlib
import math
from pathlib import Path
import re
from typing import Any, NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from markupsafe import Markup
import numpy as np
import pinocchio as pin

from ...core.arrays import Array
from ...core.excitation.collision_scene import is_flat
from ...core.model.urdf_parsing import parse_urdf, snap_angles
from ...exceptions import FileError, RobotIdError, shortened
from ...plant import urdf_reading
from ...plant.urdf_reading import JOINT_TYPES, MOMENTS, principal_inertia
from ..atomic import file_errors
from ..configuration import from_mapping, resolve
from ..text_template import text_templates
from .identified_model import (
    comment,
    Drive,
    drives_of,
    EVERYTHING,
    explain_losses,
    IdentifiedModel,
    ROTORS,
    SERVOS,
    SPRINGS,
)

TEMPLATES = Path(__file__).parent / 'descriptions'
# Share of a body's inertia that is none of a body: what rounding in a description explains.
ROUNDING = 1e-6
# Kinds of shapes, and how many numbers say their size.
COUNTS = {'box': 3, 'cylinder': 2, 'capsule': 2, 'sphere': 1, 'mesh': 0}
PACKAGE = 'package://'
MESHES = ('.stl', '.obj', '.msh')  # that MuJoCo reads
FACET = np.dtype([('normal', '<f4', 3), ('corners', '<f4', (3, 3)), ('attribute', '<u2')])
# MuJoCo's own [s]. Its dry friction is a soft constraint: at low speeds it is too small, and its
# direction is that of ddq + 2/T dq, T the first of `solreffriction`. With the shortest T that is
# stable, two steps, a joint has to turn round within one step for a wrong direction; with the
# hardest impedance a joint at rest does not creep.
TIMESTEP = 0.002


class Shape(NamedTuple):
    """A visual or collision element of a link."""

    visual: bool  # False for a collision element
    kind: str  # of COUNTS
    place: Array  # H (4, 4) in the link's frame
    size: tuple[float, ...]  # of a box three edges, else radius and length [m]
    mesh: str  # URI of the file
    scale: tuple[float, ...]
    rgba: tuple[float, ...]  # colour, where one is given


def _shape(element: ET.Element, colours: Mapping[Any, ET.Element]) -> Shape:
    """Read a shape; ValueError, AttributeError, StopIteration: malformed, or of another kind."""

    def numbers(text: str) -> tuple[float, ...]:
        return tuple(map(float, text.split()))

    geometry = next(g for g in element.find('geometry') or () if g.tag in COUNTS)
    size = numbers(geometry.get('size', ''))
    if geometry.tag in ('cylinder', 'capsule', 'sphere'):
        size = numbers(f'{geometry.get("radius")} {geometry.get("length", "")}')
    scale = numbers(geometry.get('scale', '1 1 1'))
    if len(size) != COUNTS[geometry.tag] or min(size, default=1.0) <= 0.0 or len(scale) != 3:
        raise ValueError
    material = element.find('material')
    if material is not None and material.find('color') is None:
        material = colours.get(material.get('name'))
    colour = None if material is None else material.find('color')
    rgba = () if colour is None else numbers(colour.get('rgba', ''))[:4]
    visual, mesh = element.tag == 'visual', geometry.get('filename', '')
    return Shape(visual, geometry.tag, urdf_reading.origin_of(element), size, mesh, scale, rgba)


class Parts(NamedTuple):
    """What descriptions of an identified robot consist of."""

    bodies: tuple[urdf_reading.RigidBody, ...]  # as `rigid_bodies` has them
    joints: tuple[urdf_reading.Joint, ...]  # that carry them
    shapes: dict[str, list[Shape]]  # of links
    drives: dict[str, Drive]  # of joints and couplings
    efforts: dict[str, float]  # limits of the joints that no other one drives [N·m or N]
    notes: list[str]  # of what is lost, and of bodies that none can be


def read_parts(model: IdentifiedModel, kept: Set[str] = EVERYTHING) -> Parts:
    """Return the parts of an identified robot in a format that keeps some of its model."""
    root, robot = parse_urdf(model.robot.urdf), model.robot
    snap_angles(root)
    bodies = urdf_reading.rigid_bodies(root)
    joints = tuple(body.joint for body in bodies[1:])
    described = {j.name: Drive(damping=j.damping, friction=j.friction) for j in joints}
    known = dict(zip(robot.joints, robot.limits.effort, strict=True))
    efforts = {j.name: known.get(j.name, j.effort) for j in joints if j.mimic is None}
    colours, shapes = {m.get('name'): m for m in root.findall('material')}, {}
    for link in root.findall('link'):
        shapes[link.get('name', '')] = own = list[Shape]()
        for element in (each for each in link if each.tag in ('visual', 'collision')):
            with contextlib.suppress(ValueError, AttributeError, StopIteration):
                own.append(_shape(element, colours))
    drives, notes = described | drives_of(model), explain_losses(model, kept)
    repaired = {body.name: urdf_reading.make_consistent(body.inertial)[1] for body in bodies[1:]}
    if names := [name for name, error in repaired.items() if error > ROUNDING]:
        notes.append(f'no body has the inertia of {shortened(names)}: the nearest one is written')
    return Parts(bodies, joints, shapes, drives, efforts, notes)


def render_description(name: str, values: Mapping[str, Any], **filters: Any) -> str:
    """Return a description from its template; filters write numbers with every digit."""
    templates = text_templates(
        TEMPLATES,
        comment=lambda notes: Markup(comment(notes)),
        spaced=spaced,
        exact=lambda value: repr(float(value)),
        finite=np.isfinite,
        behind=np.matmul,
        place=lambda place: spaced([*place[:3, 3], *quaternion(place[:3, :3])]),
        position=lambda place: place[:3, 3],
        turn=lambda place: np.roll(quaternion(place[:3, :3]), 1),  # w first
        principal=urdf_reading.principal_inertia,
        **filters,
    )
    return templates.get_template(name).render(values)


def quaternion(rotation: Array) -> Array:
    """Return a rotation (3, 3) as x, y, z, w."""
    return np.asarray(pin.Quaternion(np.ascontiguousarray(rotation)).coeffs())


def spaced(values: Iterable[float]) -> str:
    """Return numbers with every digit and spaces between; no minus before a zero."""
    return ' '.join(repr(float(value) + 0.0) for value in values)


def mjcf(model: IdentifiedModel, folders: Sequence[str | Path] = ()) -> tuple[str, list[str]]:
    """Write an identified robot as MJCF, and what it lacks; `folders`: packages of meshes."""
    model = model.for_simulation
    parts = read_parts(model)
    bodies, shapes, notes = parts.bodies, parts.shapes, parts.notes
    with contextlib.suppress(RobotIdError):
        workspace = from_mapping(model.results.settings).excitation.workspace
        folders = [*folders, *workspace.mesh_folders]
    found, missing = dict[tuple[str, tuple[float, ...]], tuple[str, Path]](), dict[str, None]()
    every = [shape for body in bodies for link in body.links for shape in shapes.get(link, ())]
    for shape in (shape for shape in every if shape.kind == 'mesh'):
        path, key = _find_mesh(shape.mesh, folders), (shape.mesh, shape.scale)
        if path is None:
            missing[shape.mesh] = None
        else:
            found.setdefault(key, (f'{path.stem}_{len(found)}', path))
    if missing:
        notes.append(
            f'meshes that were not found, are flat, or no binary {", ".join(MESHES)}, are left '
            f'out: {shortened([*missing], 3)}; --mesh-folder names the folders of their packages'
        )
    collides = {link for link, own in shapes.items() if not all(shape.visual for shape in own)}
    around = [body for body in bodies if body.parent == 0 and collides & bodies[0].links.keys()]

    def half(shape: Shape) -> str:
        """Return half edges, or radius and half length."""
        halves = (0.5, 0.5, 0.5) if shape.kind == 'box' else (1.0, 0.5)
        return spaced(x * half for x, half in zip(shape.size, halves, strict=False))

    values = parts._asdict() | {
        'model': model,
        'meshes': found,
        'touching': [body.name for body in around if collides & body.links.keys()],
        'types': JOINT_TYPES,
        'timestep': TIMESTEP,
    }
    return render_description('mjcf.xml', values, half=half), notes


def _find_mesh(uri: str, folders: Sequence[str | Path]) -> Path | None:
    """Find a mesh that MuJoCo reads in folders of packages, else as `resolve` does."""
    name = unquote(uri.removeprefix(PACKAGE))
    # A checkout need not have the name of its package.
    names = (name, name.partition('/')[2]) if uri.startswith(PACKAGE) else (name,)
    places = [Path(folder, n) for n in names for folder in folders if '://' not in name]
    with contextlib.suppress(FileError):
        places.append(resolve(uri))
    path = next((place.absolute() for place in places if place.is_file()), None)
    if path is None or path.suffix.lower() != '.stl':
        return path if path and path.suffix.lower() in MESHES else None
    with file_errors(path):
        content = path.read_bytes()
    # Of STL it takes the binary kind, and no flat ones.
    if len(content) != 84 + FACET.itemsize * int.from_bytes(content[80:84], 'little'):
        return None
    corners = np.frombuffer(content, FACET, offset=84)['corners'].reshape(-1, 3)
    return None if is_flat(corners.astype(float)) else path


WORLD, JOINT_SUFFIX = 'world', '_joint'


def sdf(model: IdentifiedModel) -> tuple[str, list[str]]:
    """Write an identified robot as SDFormat, with a comment on what it lacks; return both."""
    model = model.for_simulation
    parts = read_parts(model, {SPRINGS})
    links = {name for body in parts.bodies for name in body.links}
    rows = []
    for body in parts.bodies:
        # The world is no link: where a description has one of this name, what is fixed to it is.
        name = next((name for name in body.links if name != WORLD), WORLD)
        back, centre = np.linalg.inv(body.links[name]), np.eye(4)
        mass, centre[:3, 3], moments, axes = principal_inertia(back @ body.inertial @ back.T)
        tensor = ((axes * moments) @ axes.T)[np.triu_indices(3)]
        places = {link: back @ place for link, place in body.links.items() if link != WORLD}
        rows.append((body, name, centre, mass, dict(zip(MOMENTS, tensor, strict=True)), places))
    if taken := sorted(links & {joint.name for joint in parts.joints}):
        parts.notes.append(
            f'joints may not be named like links: {", ".join(taken)} got {JOINT_SUFFIX} behind it'
        )

    def free(joint: str) -> str:
        """Return the name of a joint: all names of a model have to differ."""
        return joint + JOINT_SUFFIX if joint in links else joint

    values = parts._asdict() | {'model': model, 'bodies': rows}
    return render_description('sdf.xml', values, free=free), parts.notes


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
