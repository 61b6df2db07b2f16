"""What the report shows besides parameters, as plain values: data, frames, simulated motion."""

from collections.abc import Mapping
from typing import Any, Never

import numpy as np
import pinocchio

from ...core.diagnostics.data_quality import DataQuality
from ...core.model.robot import Robot
from ...core.pipeline.results import Identification
from ...core.regression.estimate import Estimate
from ..results import JointQuality, Quality
from ..torques_file import SimulatedPositions

# Decimals of correlations, and rows of a simulated motion that are kept: they are for the eye.
DECIMALS, MOST_ROWS = 4, 10_000


def quality(found: Identification) -> Quality | Mapping[str, Never]:
    """Gather what is known of the data and of what they tell."""
    data, robot = found.quality, found.robot
    nothing: Mapping[str, Never] = {}
    if data is None:
        return nothing
    return Quality(
        rate=data.rate,
        jitter=data.jitter,
        gaps=data.gaps,
        longest_gap=data.longest_gap,
        cutoff=data.cutoff,
        decimation=data.decimation,
        whole=data.whole,
        joints={joint: _joint_quality(data, robot, j) for j, joint in enumerate(robot.joints)},
        singular_values=data.singular_values.tolist(),
        correlation=correlation(found.estimate),
    )


def _joint_quality(data: DataQuality, robot: Robot, j: int) -> JointQuality:
    limits, rows = robot.limits, data.rows
    return JointQuality(
        unit='m' if robot.prismatic[j] else 'rad',
        lowest=data.lowest[j].item(),
        highest=data.highest[j].item(),
        fastest=data.fastest[j].item(),
        lower=limits.lower[j].item(),
        upper=limits.upper[j].item(),
        velocity=limits.velocity[j].item(),
        noise=data.noise[j].item(),
        delay=data.delay[j].item(),
        rows_total=rows.total[j].item(),
        rows_used=rows.used[j].item(),
        rows_standstill=rows.standstill[j].item(),
        rows_beside=rows.beside[j].item(),
        rows_bridged=rows.bridged[j].item(),
    )


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
    return link_frames(robot, 0.5 * (data.lowest + data.highest))


def link_frames(robot: Robot, q: np.ndarray) -> dict[str, Any]:
    """Return the frames of the links at joint positions (n,), by name."""
    data = robot.model.createData()
    positions = robot.link_positions(np.asarray(q, dtype=float))[robot.order]
    pinocchio.forwardKinematics(robot.model, data, np.ascontiguousarray(positions))
    placed = {}
    for k, j in enumerate(robot.order):
        place = data.oMi[k + 1]
        rows = np.column_stack([place.rotation, place.translation])
        placed[robot.links[j]] = np.round(rows, 6).tolist()
    return {link: placed[link] for link in robot.links}


def simulated(found: Identification) -> Mapping[str, SimulatedPositions]:
    """Return the positions of the last simulation of a closed-loop method."""
    history = found.history
    if history is None or history.motion is None:
        return {}
    method = found.compared.method if found.compared else found.method
    motion = history.motion
    rows = slice(None, None, max(1, -(-len(motion.time) // MOST_ROWS)))
    return {
        method: SimulatedPositions(
            history.joints,
            motion.time[rows],
            motion.simulated[rows],
            motion.reference[rows],
            None if motion.measured is None else motion.measured[rows],
        )
    }
