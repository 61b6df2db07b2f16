"""
An identified robot as SDFormat, for Gazebo.

Links that move as one are one link, as Gazebo has them of a URDF too: a link without mass would
get the default of 1 kg. Those that are fixed to it are frames of their names.
"""

from xml.etree import ElementTree as ET

import numpy as np
import pinocchio as pin

from ...plant.urdf_reading import Joint
from .bodies import (
    Array,
    document,
    explain_impossible,
    MOMENTS,
    principal_inertia,
    read_parts,
    RigidBody,
    Shape,
    spaced,
)
from .drives import Drive, explain_losses, FRICTION, SPRINGS
from .identified_model import IdentifiedModel
from .mjcf import PACKAGE, WORLD

# The first version with joints that mimic others; Gazebo Harmonic reads it.
VERSION = '1.11'
KEPT = frozenset({FRICTION, SPRINGS})
JOINT_SUFFIX = '_joint'
MODEL = '__model__'


def sdf(model: IdentifiedModel) -> tuple[str, list[str]]:
    """Write an identified robot as SDFormat, with a comment on what it lacks; return both."""
    bodies, shapes, drives = read_parts(model)
    file = ET.Element('sdf', version=VERSION)
    robot = ET.SubElement(file, 'model', name=model.robot.name)
    links = {name for body in bodies for name in body.links}
    # The world is no link: where a description has one of this name, what is fixed to it is.
    names = [next((name for name in body.links if name != WORLD), WORLD) for body in bodies]
    for body, name in zip(bodies, names, strict=True):
        if (joint := body.joint) is not None:
            above, own = names[body.parent], _free(joint.name, links)
            element = ET.SubElement(robot, 'joint', name=own, type=joint.type)
            # The frame of the base is that of the model.
            _add_pose(element, body.origin, above if body.parent else MODEL)
            _add_text(element, parent=above, child=body.name)
            _add_axis(element, joint, drives[joint.name], links)
        elif name != WORLD:
            fixed = ET.SubElement(robot, 'joint', name='fixed_to_world', type='fixed')
            _add_text(fixed, parent=WORLD, child=name)
        if name != WORLD:
            frame = MODEL if body.joint is None else _free(body.joint.name, links)
            _add_link(robot, body, name, frame, shapes)
    notes = explain_losses(model, KEPT) + explain_impossible(bodies)
    taken = sorted(links & {body.joint.name for body in bodies if body.joint is not None})
    if taken:
        notes.append(
            f'joints may not be named like links: {", ".join(taken)} got {JOINT_SUFFIX} behind it'
        )
    return document(file, notes), notes


def _free(joint: str, links: set[str]) -> str:
    """Return the name of a joint: all names of a model have to differ."""
    return joint + JOINT_SUFFIX if joint in links else joint


def _add_axis(element: ET.Element, joint: Joint, drive: Drive, links: set[str]) -> None:
    axis = ET.SubElement(element, 'axis')
    _add_text(axis, xyz=spaced(joint.axis))
    limits = {'lower': joint.lower, 'upper': joint.upper}
    limits |= {'effort': joint.effort, 'velocity': joint.velocity}
    limit = ET.SubElement(axis, 'limit')
    _add_text(limit, **{name: repr(x) for name, x in limits.items() if np.isfinite(x)})
    values = {'damping': drive.damping, 'friction': drive.friction}
    values |= {'spring_reference': 0.0, 'spring_stiffness': drive.stiffness}
    dynamics = ET.SubElement(axis, 'dynamics')
    _add_text(dynamics, **{name: repr(x) for name, x in values.items()})
    if joint.mimic is not None:
        leader, ratio, offset = joint.mimic
        mimic = ET.SubElement(axis, 'mimic', joint=_free(leader, links))
        _add_text(mimic, multiplier=repr(ratio), offset=repr(offset), reference='0.0')


def _add_link(
    robot: ET.Element, body: RigidBody, name: str, frame: str, shapes: dict[str, list[Shape]]
) -> None:
    """Add a body as the link of this name, whose frame is that of one of its links."""
    link = ET.SubElement(robot, 'link', name=name)
    back = np.linalg.inv(body.links[name])
    _add_pose(link, body.links[name], frame)
    _add_inertial(link, back @ body.inertial @ back.T)
    for other, place in ((other, back @ H) for other, H in body.links.items() if other != WORLD):
        if other != name:
            element = ET.SubElement(robot, 'frame', {'name': other, 'attached_to': name})
            _add_pose(element, place, name)
        for number, shape in enumerate(shapes.get(other, ())):
            tag = 'visual' if shape.visual else 'collision'
            element = ET.SubElement(link, tag, name=f'{other}_{tag}_{number}')
            _add_pose(element, place @ shape.place)
            _add_geometry(element, shape)


def _add_inertial(link: ET.Element, inertial: Array) -> None:
    mass, com, moments, axes = principal_inertia(inertial)
    element = ET.SubElement(link, 'inertial')
    pose = np.eye(4)
    pose[:3, 3] = com
    _add_pose(element, pose)
    _add_text(element, mass=repr(mass))
    tensor = (axes * moments) @ axes.T
    values = zip(MOMENTS, tensor[np.triu_indices(3)], strict=True)
    _add_text(ET.SubElement(element, 'inertia'), **{k: repr(float(v)) for k, v in values})


def _add_geometry(element: ET.Element, shape: Shape) -> None:
    geometry = ET.SubElement(ET.SubElement(element, 'geometry'), shape.kind)
    if shape.kind == 'mesh':
        # As Gazebo turns those of a URDF into its own.
        uri = shape.mesh.replace(PACKAGE, 'model://', 1)
        _add_text(geometry, uri=uri, scale=spaced(shape.scale))
    elif shape.kind == 'box':
        _add_text(geometry, size=spaced(shape.size))
    else:
        names = ('radius', 'length')[: len(shape.size)]
        _add_text(geometry, **{k: repr(v) for k, v in zip(names, shape.size, strict=True)})
    if shape.visual and shape.rgba:
        colour = spaced(shape.rgba)
        _add_text(ET.SubElement(element, 'material'), ambient=colour, diffuse=colour)


def _add_pose(element: ET.Element, place: Array, frame: str = '') -> None:
    attributes = {'relative_to': frame} if frame else {}
    attributes['rotation_format'] = 'quat_xyzw'
    quaternion = pin.Quaternion(np.ascontiguousarray(place[:3, :3])).coeffs()
    pose = ET.SubElement(element, 'pose', attributes)
    pose.text = spaced([*place[:3, 3], *quaternion])


def _add_text(element: ET.Element, **values: str) -> None:
    for tag, text in values.items():
        ET.SubElement(element, tag).text = text
