"""The robot description: there, usable, of the robot that speaks, with limits."""

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
    Build the robot that a session would take; joints that are not meant are locked as they stand.

    Returns
    -------
    The robot, None where that is impossible, and what there is to say about its description.

    """
    topic = snapshot.topic('robot_description')
    if not snapshot.description:
        nodes = topic.publishing_nodes
        where = {'empty': topic.name, 'nodes': nodes} if nodes else {'topic': topic.name}
        return None, (finding('no_description', **where),)
    try:
        robot = _build(snapshot)
    except RobotIdError as reason:
        return None, (finding('description_unusable', reason=str(reason)),)
    found = []
    if snapshot.configured_description and not snapshot.descriptions:
        found.append(finding('configured_description', topic=topic.name))
    # Limits below which a motion has to be kept.
    for name in ('velocity', 'effort'):
        values = getattr(robot.limits, name)
        lacking = np.flatnonzero(~np.isfinite(values) | (values <= 0.0))
        if lacking.size:
            found.append(finding('no_limit', [robot.joints[k] for k in lacking], limit=name))
    described = finding('described', robot.joints, robot=robot.name)
    return robot, (*found, *robot.warnings, described)


def _build(snapshot: GraphSnapshot) -> Robot:
    settings, stream, joints = snapshot.configuration.robot, snapshot.states, snapshot.joints
    names, followers = movable_joints(snapshot.description)
    measured = {} if stream is None else dict(zip(stream.joints, stream.position[-1], strict=True))
    others = [name for name in names if joints and name not in (*joints, *followers)]
    stands = {name: float(measured.get(name, 0.0)) for name in others}
    locked = {name: q if np.isfinite(q) else 0.0 for name, q in stands.items()}
    settings = dataclasses.replace(settings, joints=joints, locked=locked | settings.locked)
    return build_robot(snapshot.description, settings)
