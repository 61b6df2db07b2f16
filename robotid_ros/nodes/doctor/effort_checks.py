"""Efforts: there, numbers, alive."""

from collections.abc import Iterator

import numpy as np

from ...core.model.robot import Robot
from ...exceptions import shortened
from .findings import error, Finding, note, Severity, warning
from .graph_snapshot import GraphSnapshot
from .weight_checks import compare_weights, weight_findings

_EFFORTS = 'efforts'


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
        yield _silent('an effort of exactly 0' if finite.any() else 'no effort', commanded)
        return
    known_throughout = np.all(finite, axis=0).tolist()
    if bad := [joint for joint, ok in zip(joints, known_throughout, strict=True) if not ok]:
        yield error(
            _EFFORTS,
            f'effort of {shortened(bad)} is not a number',
            'check its sensor, and that the joint_state_broadcaster has its effort interface',
        )
        return
    known = robot if robot is not None and set(robot.joints) <= set(stream.joints) else None
    if not effort.any():
        bearing = known is not None and bool(compare_weights(stream, known).heavy)
        yield Finding(
            Severity.ERROR if bearing else Severity.WARNING,
            _EFFORTS,
            f'every effort is exactly zero{" though the arm bears its weight" if bearing else ""}',
            'nothing can be identified if they stay so in motion, see docs/efforts.md for what '
            'drivers report',
        )
        return
    dead = [joint for joint, column in zip(joints, effort.T, strict=True) if not column.any()]
    if dead:
        yield warning(
            _EFFORTS,
            f'effort of {shortened(dead)} is exactly zero throughout',
            'move it a little: if it stays so, its sensor is dead',
        )
    elif len(effort) > 1 and (effort == effort[0]).all():
        yield note(
            _EFFORTS,
            'efforts never change by a single bit',
            'move the robot a little: if they stay so, the driver repeats an old value',
        )
    if known is not None:
        yield from weight_findings(stream, known, dead)


def _silent(what: str, commanded: bool) -> Finding:
    """Say what an identification makes of drives that report nothing."""
    if commanded:
        return warning(
            _EFFORTS,
            f'the joint states report {what}',
            'what the controller commands is taken for it; give the joint_state_broadcaster the '
            'effort interfaces, if the drives have any',
        )
    return error(
        _EFFORTS,
        f'the joint states report {what}, and none is commanded',
        'give the joint_state_broadcaster the effort interfaces, or see docs/efforts.md for '
        'another topic of the driver',
    )
