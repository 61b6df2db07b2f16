"""
Efforts for the points of a motion, which a joint_trajectory_controller adds to those of its own.

It joins the efforts of two points by a straight line, and commands from an update to the next one
the effort of the latter. The effort of the last point is held when the motion has ended, and may
come back after a later motion was cancelled: motions begin and end here with none.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from ...exceptions import LimitError
from ..arrays import Array
from ..excitation import Waypoints
from ..model import inverse_dynamics, Robot

# In which the effort that holds the robot is built up before a motion, and taken away after it
# [s]: slow beside the loops of a position controller (0.05 to 0.3 s), so that it moves by what it
# sagged without oscillating.
REST = 1.0
# What straight lines between points may be off, of the joint's largest effort: less than any
# model, and some 200 points/s.
TOLERANCE = 1e-3


def with_rests(motion: Waypoints) -> Waypoints:
    """Stand still for `REST` before and after a motion from rest to rest."""

    def extended(values: Array) -> Array:
        return np.concatenate([values[:1], values, values[-1:]])

    time = np.concatenate([[0.0], motion.time + REST, [motion.duration + 2.0 * REST]])
    parts = (extended(values) for values in (motion.q, motion.dq, motion.ddq))
    return Waypoints(motion.joints, time, *parts)


def with_feed_forward(motion: Waypoints, robot: Robot, chi: Array, period: float) -> Waypoints:
    """
    Add the efforts that standard parameters predict, and the points that these need.

    The path stays the same: a quintic between points of a quintic is that quintic. Friction is
    that of the wanted velocities; where a joint turns round, it changes within one update.

    Parameters
    ----------
    motion : with rests, see `with_rests`
    robot, chi : model and standard parameters (p,)
    period : of the controller's updates [s]

    Returns
    -------
    The motion with more points and their efforts, in the unit of the controller's commands.

    """
    steps = np.ceil(np.diff(motion.time) / period - 1e-9).astype(np.intp)
    steps[[0, -1]] = 1  # the rests, along which the effort grows and goes in a straight line
    edges = np.concatenate([[0], np.cumsum(steps)]).astype(np.intp)
    time = np.interp(np.arange(edges[-1] + 1), edges, motion.time)
    # Of the middle of the update in which it acts, which is half of one before the sample.
    acting = np.clip(time - 0.5 * period, motion.time[1], motion.time[-2])
    # At rest exactly: there no friction is known, and none is asked for.
    acting[[1, -2]] = motion.time[[1, -2]]
    tau = inverse_dynamics(robot, chi, *motion.sample(acting), successive=True)
    tau = tau / robot.drive_gain
    tau[[0, -1]] = 0.0
    kept = _needed_points(edges, time, tau)
    samples = motion.sample(time[kept])
    # What the motion's own points hold, to the last digit: a controller wants exact rest.
    own = np.isin(kept, edges)
    parts = []
    for sampled, given in zip(samples, (motion.q, motion.dq, motion.ddq), strict=True):
        values = np.array(sampled)
        values[own] = given
        parts.append(values)
    q, dq, ddq = parts
    return Waypoints(motion.joints, time[kept], q, dq, ddq, tau[kept])


def _needed_points(edges: NDArray[np.intp], time: Array, tau: Array) -> NDArray[np.intp]:
    """
    Choose samples between which straight lines are right, by Ramer, Douglas and Peucker.

    Parameters
    ----------
    edges : samples to keep in any case
    time, tau : (N,) [s] and (N, n)

    """
    scale = TOLERANCE * np.maximum(np.abs(tau).max(axis=0), 1e-300)
    kept, waiting = set(edges.tolist()), list(itertools.pairwise(edges))
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        share = (time[first + 1 : last, None] - time[first]) / (time[last] - time[first])
        line = tau[first] + share * (tau[last] - tau[first])
        error = (np.abs(tau[first + 1 : last] - line) / scale).max(axis=1)
        worst = int(np.argmax(error))
        if error[worst] > 1.0:
            middle = int(first) + 1 + worst
            kept.add(middle)
            waiting += [(first, middle), (middle, last)]
    return np.array(sorted(kept), np.intp)


def check_feed_forward(motion: Waypoints, robot: Robot, share: float) -> None:
    """
    Refuse efforts beyond a share of the robot's limits.

    Raises
    ------
    LimitError : names joint, time, effort and limit

    """
    assert motion.tau is not None
    limits = share * robot.limits.effort / np.abs(robot.drive_gain)
    k, j = np.unravel_index(int(np.argmax(np.abs(motion.tau) / limits)), motion.tau.shape)
    if abs(motion.tau[k, j]) > limits[j]:
        raise LimitError(
            motion.joints[j],
            'effort',
            float(motion.time[k]),
            float(motion.tau[k, j]),
            float(limits[j]),
        )
