"""What an identification takes for granted of its data, looked at after the fit."""

from collections.abc import Sequence
import re

from ..model.base_parameters import BaseParameters
from ..model.robot import ElasticRobot, Robot
from ..regression.estimate import Estimate
from ..regression.observation_system import System
from ..signals.samples import Samples
from .effort_scale import scale_warnings
from .plausibility import plausibility_warnings
from .remark import code_of, EFFORT_UNIT
from .residual_reasons import residual_warnings
from .saturation import saturation_warnings
from .stationarity import stationarity_warnings
from .torque_parts import joint_torques

# With a wrong gravity every joint is off: nothing else can be said.
GRAVITY = 'gravity along'


def data_warnings(
    robot: Robot,
    base: BaseParameters,
    samples: Samples,
    systems: Sequence[System],
    estimate: Estimate,
) -> list[str]:
    """Return `plausibility_warnings`, then `assumption_warnings` of what these do not name."""
    said = plausibility_warnings(robot, samples, estimate)
    return said + assumption_warnings(robot, base, samples, systems, estimate, said)


def assumption_warnings(
    robot: Robot,
    base: BaseParameters,
    samples: Samples,
    systems: Sequence[System],
    estimate: Estimate,
    said: Sequence[str] = (),
) -> list[str]:
    """
    Check that scale, limits and dynamics stayed the same, and what the residuals look like.

    Parameters
    ----------
    robot, base : the model
    samples : of the recording or its first part, which is that of the first system
    systems : rows in memory, successive parts of the recording
    estimate : the fit
    said : other warnings, whose joints are not named again

    Returns
    -------
    One sentence with the remedy for each finding

    """
    if isinstance(robot, ElasticRobot) or len(base.columns) != len(estimate.value):
        return []
    if any(system.W.shape[2] != len(base.columns) for system in systems):
        return []
    if any(text.startswith(GRAVITY) for text in said):
        return []
    first = systems[0]
    # Of efforts that are no torques, no size is plausible.
    scale = (
        {}
        if any(code_of(text) == EFFORT_UNIT for text in said)
        else scale_warnings(robot, base, samples, estimate)
    )
    saturated = saturation_warnings(robot, samples, first)
    found = [*_new(scale, said), *_new(saturated, said)]
    torques = [
        t
        for t in joint_torques(robot, base, systems, estimate.value)
        if not names(found, robot.joints[t.joint])
    ]
    known = {joint for joint in robot.joints if names([*said, *found], joint)}
    changes = stationarity_warnings(robot, base, torques)
    found += changes
    known.update(joint for joints in changes.values() for joint in joints)
    return found + residual_warnings(
        robot, samples, first, estimate.value, estimate.residual, known
    )


def _new(findings: dict[str, list[str]], said: Sequence[str]) -> list[str]:
    """Return the sentences about joints that were not named yet."""
    return [
        text
        for text, joints in findings.items()
        if any(not names(said, joint) for joint in joints)
    ]


def names(texts: Sequence[str], joint: str) -> bool:
    """Tell whether any sentence names a joint."""
    pattern = re.compile(rf'(?<![\w/]){re.escape(joint)}(?![\w/])')
    return any(pattern.search(text) for text in texts)
