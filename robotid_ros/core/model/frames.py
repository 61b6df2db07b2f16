"""Frames of a robot description: the tool's, and those that carry a payload or a sensor."""

from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from ...exceptions import ConfigurationError, UnknownNameError
from ..arrays import Array
from .robot import Robot


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
