"""Frames of a robot description that move with a joint."""

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from ....exceptions import ConfigurationError
from ...arrays import Array
from ...model.robot import Robot
from .collision_bodies import tool_frame


class BodyFrame(NamedTuple):
    """
    A frame of the robot description, fixed to a link.

    Attributes
    ----------
    name : of the frame
    body : link whose frame it is
    link : place in `robot.links` of the joint that it moves with
    placement : (4, 4) of it in the frame of that joint

    """

    name: str
    body: str
    link: int
    placement: Array


def body_frame(robot: Robot, name: str = '') -> BodyFrame:
    """
    Find a frame of the description; without a name, that of the last joint.

    Raises
    ------
    UnknownNameError : there is no such frame
    ConfigurationError : it moves with no joint of the robot

    """
    model, frames, last = robot.model, list(robot.model.frames), robot.links[-1]
    # Links may have names of joints.
    number = tool_frame(model, name) if name else model.getFrameId(last, pin.FrameType.JOINT)
    frame = frames[number]
    joint = model.names[frame.parentJoint]
    if joint not in robot.links:
        raise ConfigurationError(
            f"the frame '{name}' moves with none of the joints {', '.join(robot.links)}: name one "
            'that carries the payload'
        )
    bodies = [f for f in frames if f.parentJoint == frame.parentJoint and f.type.name == 'BODY']
    body = next((f.name for f in bodies if f.placement.isApprox(frame.placement)), frame.name)
    placement = np.array(frame.placement.homogeneous)
    return BodyFrame(frame.name, body, robot.links.index(joint), placement)
