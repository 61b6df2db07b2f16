"""Pinocchio's model of a description: its joints, its frames, and the places of its links."""

from __future__ import annotations

from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from ...exceptions import ConfigurationError, ModelError, reason_of, UnknownNameError
from ..arrays import Array
from .robot import Robot
from .urdf_parsing import MOVABLE_TYPES

UNLIMITED = '1e30'  # larger limits are none: continuous joints get it as revolute ones


def build_model(root: ElementTree.Element) -> Any:
    """Build Pinocchio's model of all joints, writing limits that lack, or raise a ModelError."""
    for joint in root.findall('joint'):
        if joint.get('type') in MOVABLE_TYPES:
            limit = joint.find('limit')
            if limit is None:
                limit = ElementTree.SubElement(joint, 'limit')
            limit.attrib = {'effort': UNLIMITED, 'velocity': UNLIMITED, **limit.attrib}
            for key in ('effort', 'velocity'):
                if limit.attrib[key].lstrip().startswith('-'):  # which some write for none
                    limit.attrib[key] = UNLIMITED
            if joint.get('type') == 'continuous':
                joint.set('type', 'revolute')
                limit.attrib |= {'lower': f'-{UNLIMITED}', 'upper': UNLIMITED}
        if (mimic := joint.find('mimic')) is not None:
            joint.remove(mimic)
    try:
        return pin.buildModelFromXML(ElementTree.tostring(root, encoding='unicode'))
    except (ValueError, RuntimeError, IndexError) as error:
        raise ModelError(
            f'the robot description is not a usable URDF ({reason_of(error)}): check it with '
            'check_urdf'
        ) from error


def tool_frame(model: Any, name: str) -> int:
    """Return the number of a frame, without a name the last body's; or an `UnknownNameError`."""
    if not name:
        return len(model.frames) - 1
    if not model.existFrame(name):
        raise UnknownNameError('frame', name, tuple(f.name for f in model.frames))
    # Links may have names of joints.
    body = int(model.getFrameId(name, pin.FrameType.BODY))
    return body if body < len(model.frames) else int(model.getFrameId(name))


class BodyFrame(NamedTuple):
    """A frame of the robot description, fixed to a link."""

    name: str
    body: str  # link whose frame it is
    link: int  # place in `robot.links` of the joint that it moves with
    placement: Array  # (4, 4) of it in the frame of that joint
    number: int  # among the frames of the model


def body_frame(robot: Robot, name: str = '') -> BodyFrame:
    """Find a frame that moves with a joint, without a name that of the last joint, or raise."""
    model, frames, last = robot.model, list(robot.model.frames), robot.links[-1]
    number = tool_frame(model, name) if name else model.getFrameId(last, pin.FrameType.JOINT)
    frame = frames[number]
    joint = model.names[frame.parentJoint]
    if joint not in robot.links:
        raise ConfigurationError(
            f"the frame '{name}' moves with none of the joints {', '.join(robot.links)}: name one "
            'that does'
        )
    bodies = [f for f in frames if f.parentJoint == frame.parentJoint and f.type.name == 'BODY']
    body = next((f.name for f in bodies if f.placement.isApprox(frame.placement)), frame.name)
    placement = np.array(frame.placement.homogeneous)
    return BodyFrame(frame.name, body, robot.links.index(joint), placement, int(number))


class KinematicTree:
    """The joints of a Pinocchio model, each of one velocity about or along a fixed axis."""

    def __init__(self, model: Any) -> None:
        self.n: int = model.nv
        self.parents = [int(parent) - 1 for parent in list(model.parents)[1:]]
        places = [model.jointPlacements[j + 1] for j in range(self.n)]
        self.rotations = np.array([place.rotation for place in places])
        self.translations = np.array([place.translation for place in places])
        data, zero = model.createData(), np.zeros(model.nq)
        jacobians = (pin.computeJointJacobian(model, data, zero, j + 1) for j in range(self.n))
        self.axes = np.array([jac.reshape(6, -1)[:, j] for j, jac in enumerate(jacobians)])
        self.skews = np.array([pin.skew(axis[3:]) for axis in self.axes])
        self.gravity = np.array(model.gravity.vector)
        # Row i: the joints that move link i.
        self.ancestors = np.zeros((self.n, self.n))
        for i, parent in enumerate(self.parents):
            self.ancestors[i] = self.ancestors[parent] if parent >= 0 else 0.0
            self.ancestors[i, i] = 1.0

    def screws(self, rotation: Array, translation: Array) -> Array:
        """Return the motion per unit speed of each joint, (N, n, 6), of frames as `places` has."""
        angular = (rotation @ self.axes[:, 3:, None])[..., 0]
        turned = (skew(translation) @ angular[..., None])[..., 0]
        linear = (rotation @ self.axes[:, :3, None])[..., 0] + turned
        return np.concatenate([linear, angular], axis=2)

    def places(self, q: Array) -> tuple[Array, Array]:
        """Return rotations (N, n, 3, 3) and origins (N, n, 3) of the frames at q (N, n)."""
        sine, versine = np.sin(q)[..., None, None], (1.0 - np.cos(q))[..., None, None]
        turned = np.eye(3) + sine * self.skews + versine * (self.skews @ self.skews)
        rotation = self.rotations @ turned
        slid = (self.rotations @ self.axes[:, :3, None])[..., 0]
        translation = self.translations + slid * q[..., None]
        for j, parent in enumerate(self.parents):
            if parent >= 0:
                base = rotation[:, parent]
                moved = (base @ translation[:, j, :, None])[..., 0]
                translation[:, j] = translation[:, parent] + moved
                rotation[:, j] = base @ rotation[:, j]
        return rotation, translation


def skew(x: Array) -> Array:
    """Return the matrices of x ×, (..., 3, 3)."""
    result = np.zeros((*x.shape, 3))
    result[..., 2, 1] = x[..., 0]
    result[..., 0, 2] = x[..., 1]
    result[..., 1, 0] = x[..., 2]
    return result - np.swapaxes(result, -1, -2)
