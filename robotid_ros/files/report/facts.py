"""What the report shows besides parameters, as plain values: data, frames, simulated motion."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, cast, Never

import numpy as np
import pinocchio

from ...core.pipeline.results import Identification
from ...core.regression.estimate import Estimate
from ...core.replay.convergence_history import SimulatedPositions
from ..results import Quality

# Decimals of correlations: with fewer, what the data tell best would be lost.
DECIMALS = 9
# Rows of a simulated motion that are kept: they are for the eye.
MOST_ROWS = 10_000


def quality(found: Identification) -> Quality | Mapping[str, Never]:
    """Gather what is known of the data and of what they tell."""
    data, robot, nothing = found.quality, found.robot, dict[str, Never]()
    if data is None:
        return nothing
    of_data, of_limits = ('lowest', 'highest', 'fastest', 'noise', 'delay'), robot.limits
    lines = {name: getattr(data, name) for name in of_data}
    lines |= {name: getattr(of_limits, name) for name in ('lower', 'upper', 'velocity')}
    lines |= {f'rows_{f.name}': getattr(data.rows, f.name) for f in fields(data.rows)}
    joints = {
        joint: {'unit': 'm' if linear else 'rad'} | {k: v[j].item() for k, v in lines.items()}
        for j, (joint, linear) in enumerate(zip(robot.joints, robot.prismatic, strict=True))
    }
    names = ('rate', 'jitter', 'gaps', 'longest_gap', 'cutoff', 'decimation', 'whole')
    figures = {name: getattr(data, name) for name in names} | {'joints': joints}
    figures['singular_values'] = data.singular_values.tolist()
    return cast(Quality, figures | {'correlation': correlation(found.estimate)})


def correlation(estimate: Estimate) -> list[list[float]]:
    """Return the correlation matrix of an estimate, lower triangle, rounded."""
    sigma = np.where(estimate.sigma > 0.0, estimate.sigma, np.inf)
    matrix = estimate.covariance / np.outer(sigma, sigma)
    np.fill_diagonal(matrix, 1.0)
    return [np.round(row[: k + 1], DECIMALS).tolist() for k, row in enumerate(matrix)]


def frames(found: Identification) -> dict[str, Any]:
    """Return the frame of each link in the middle of the motion, rows of rotation and origin."""
    robot, data = found.robot, found.quality
    if data is None or data.lowest.shape != (robot.n,):
        return {}
    placed, pose = {}, robot.model.createData()
    middle = robot.link_positions(0.5 * (data.lowest + data.highest))[robot.order]
    pinocchio.forwardKinematics(robot.model, pose, np.ascontiguousarray(middle))
    for k, j in enumerate(robot.order):
        rows = np.column_stack([pose.oMi[k + 1].rotation, pose.oMi[k + 1].translation])
        placed[robot.links[j]] = np.round(rows, 6).tolist()
    return {link: placed[link] for link in robot.links}


def simulated(found: Identification) -> Mapping[str, SimulatedPositions]:
    """Return the positions of the last simulation of a closed-loop method."""
    history = found.history
    if history is None or history.motion is None:
        return {}
    every = max(1, -(-len(history.motion.time) // MOST_ROWS))
    series = {f.name: getattr(history.motion, f.name) for f in fields(history.motion)[1:]}
    thinned: dict[str, Any] = {k: x if x is None else x[::every] for k, x in series.items()}
    return {(found.compared or found).method: replace(history.motion, **thinned)}
