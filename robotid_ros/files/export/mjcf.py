"""
An identified robot as MJCF, for MuJoCo, and as SDFormat, for Gazebo.

Rotor inertia is `armature`, viscous and dry friction `damping` and `frictionloss`, an offset the
bias of the actuator; a motor that turns several joints is a tendon, a joint that mimics another
one an equality. Links of SDFormat that move as one are one link, as Gazebo has them of a URDF too:
one without mass would get the default of 1 kg. Those that are fixed to it are frames of their
names. The version is the first one with joints that mimic others; Gazebo Harmonic reads it.
"""

from collections.abc import Sequence
import contextlib
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from ...exceptions import FileError, RobotIdError, shortened
from ...plant.urdf_reading import JOINT_TYPES, MOMENTS, principal_inertia
from ..atomic import file_errors
from ..configuration import from_mapping, resolve
from .bodies import read_parts, render_description, Shape, spaced
from .identified_model import IdentifiedModel, SPRINGS

PACKAGE = 'package://'
MESHES = ('.stl', '.obj', '.msh')  # that MuJoCo reads
# MuJoCo's own [s]. Its dry friction is a soft constraint: at low speeds it is too small, and its
# direction is that of ddq + 2/T dq, T the first of `solreffriction`. With the shortest T that is
# stable, two steps, a joint has to turn round within one step for a wrong direction; with the
# hardest impedance a joint at rest does not creep.
TIMESTEP = 0.002


def mjcf(model: IdentifiedModel, folders: Sequence[str | Path] = ()) -> tuple[str, list[str]]:
    """
    Write an identified robot as MJCF, and sentences on what it does not hold, which stand in it.

    Meshes are sought in the packages in `folders`, and in those that the configuration names.
    Joints with servos get position actuators, others motors.
    """
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
            f'meshes that were not found, or are no binary {", ".join(MESHES)}, are left out: '
            f'{shortened([*missing])}; --mesh-folder names the folders of their packages'
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
    places = [Path(folder, name) for folder in folders if '://' not in name]
    with contextlib.suppress(FileError):
        places.append(resolve(uri))
    path = next((place.absolute() for place in places if place.is_file()), None)
    if path is None or path.suffix.lower() != '.stl':
        return path if path and path.suffix.lower() in MESHES else None
    with file_errors(path), path.open('rb') as stream:
        count = np.frombuffer(stream.read(84)[80:], '<u4')
    # Of STL it takes the binary kind.
    return path if len(count) == 1 and path.stat().st_size == 84 + 50 * int(count[0]) else None


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
