"""The robot description: there, usable, of the robot that speaks, with limits."""

from collections.abc import Iterator
import dataclasses

import numpy as np

from ...core.finding_codes import finding
from ...core.findings import Finding
from ...core.model import build_robot
from ...core.model.robot import Robot
from ...core.model.urdf_parsing import movable_joints
from ...exceptions import RobotIdError
from .graph_snapshot import GraphSnapshot


def described_robot(snapshot: GraphSnapshot) -> tuple[Robot | None, tuple[Finding, ...]]:
    """
    Build the robot that a session would take.

    Joints that are not meant are locked where they stand.

    Returns
    -------
    The robot, None where that is impossible, and what there is to say about its description.

    """
    if not snapshot.description:
        return None, (_missing(snapshot),)
    try:
        robot = _build(snapshot)
    except RobotIdError as reason:
        return None, (finding('description_unusable', reason=str(reason)),)
    found = [*_limit_findings(robot)]
    if snapshot.configured_description and not snapshot.descriptions:
        topic = snapshot.topic('robot_description').name
        found = [finding('configured_description', topic=topic), *found]
    return robot, tuple(found)


def _missing(snapshot: GraphSnapshot) -> Finding:
    topic = snapshot.topic('robot_description')
    if topic.publishers:
        return finding('no_description', empty=topic.name, nodes=topic.publishing_nodes)
    return finding('no_description', topic=topic.name)


def _build(snapshot: GraphSnapshot) -> Robot:
    settings, stream = snapshot.configuration.robot, snapshot.states
    names, followers = movable_joints(snapshot.description)
    joints = snapshot.joints
    measured = {}
    if stream is not None:
        last = stream.position[-1]
        measured = dict(zip(stream.joints, np.where(np.isfinite(last), last, 0.0), strict=True))
    others = [name for name in names if joints and name not in (*joints, *followers)]
    locked = {name: float(measured.get(name, 0.0)) for name in others} | dict(settings.locked)
    return build_robot(
        snapshot.description, dataclasses.replace(settings, joints=joints, locked=locked)
    )


def _limit_findings(robot: Robot) -> Iterator[Finding]:
    """Check for limits that a motion has to be kept below."""
    for name in ('velocity', 'effort'):
        values = getattr(robot.limits, name)
        lacking = np.flatnonzero(~np.isfinite(values) | (values <= 0.0))
        if lacking.size:
            yield finding('no_limit', [robot.joints[k] for k in lacking], limit=name)
    yield from robot.warnings
    yield finding('described', robot.joints, robot=robot.name)
