"""Efforts: there, numbers, alive."""

from collections.abc import Iterator

import numpy as np

from ...core.finding_codes import finding
from ...core.findings import Finding, Severity
from ...core.model.robot import Robot
from .graph_snapshot import GraphSnapshot
from .weight_checks import compare_weights, weight_findings


def effort_findings(snapshot: GraphSnapshot, robot: Robot | None) -> Iterator[Finding]:
    """Check efforts; without a robot only whether there are any."""
    stream = snapshot.states
    if stream is None:
        return
    joints = [j for j in snapshot.joints or stream.joints if j in stream.joints]
    effort = stream.columns(joints).effort
    finite = np.isfinite(effort)
    states = snapshot.controller_states
    commanded = states is not None and states.commands_effort
    if not finite.any() or (commanded and not np.nan_to_num(effort).any()):
        what = 'an effort of exactly 0' if finite.any() else 'no effort'
        yield finding('commands_for_efforts' if commanded else 'no_efforts', what=what)
        return
    known_throughout = np.all(finite, axis=0).tolist()
    if bad := [joint for joint, ok in zip(joints, known_throughout, strict=True) if not ok]:
        yield finding('effort_not_a_number', bad)
        return
    known = robot if robot is not None and set(robot.joints) <= set(stream.joints) else None
    if not effort.any():
        bearing = known is not None and bool(compare_weights(stream, known).heavy)
        found = finding('efforts_all_zero', bears='bears' if bearing else None)
        yield found.at(Severity.ERROR) if bearing else found
        return
    dead = [joint for joint, column in zip(joints, effort.T, strict=True) if not column.any()]
    if dead:
        yield finding('effort_zero', dead)
    elif len(effort) > 1 and (effort == effort[0]).all():
        yield finding('efforts_frozen')
    if known is not None:
        yield from weight_findings(stream, known, dead)
