"""
Efforts for the points of a motion, which a joint_trajectory_controller adds to those of its own.

It joins the efforts of two points by a straight line, and commands from an update to the next one
the effort of the latter. The effort of the last point is held when the motion has ended, and may
come back after a later motion was cancelled: motions begin and end here with none.
"""

import dataclasses
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
    edges, time = _update_times(motion, steps)
    # Of the middle of the update in which it acts, which is half of one before the sample.
    acting = np.clip(time - 0.5 * period, motion.time[1], motion.time[-2])
    # At rest exactly: there no friction is known, and none is asked for.
    acting[[1, -2]] = motion.time[[1, -2]]
    tau = inverse_dynamics(robot, chi, *motion.sample(acting), successive=True)
    tau = tau / robot.drive_gain
    tau[[0, -1]] = 0.0
    return _with_points(motion, edges, time, tau, np.abs(tau).max(axis=0))


def goal_with_efforts(
    goal: Waypoints, robot: Robot, chi: Array, period: float, present: Array, ramp: float
) -> Waypoints:
    """
    Add the predicted efforts to a goal of anybody, and the points that these need.

    The path stays the same, that of the controller between the goal's own points. The efforts
    begin with those that the controller commands ahead of its feedback already, and reach the
    predicted ones within the ramp: a robot that has sagged against its feedback comes back slowly.
    Those of the last point stay, as it is held.

    Parameters
    ----------
    goal : from where the robot is
    robot, chi : model and standard parameters (p,)
    period : of the controller's updates [s]
    present : (n,) efforts with which it begins, in the unit of the controller's commands
    ramp : time in which they give way to the predicted ones [s]

    Returns
    -------
    The goal with more points and their efforts, straight lines between which are right to
    `TOLERANCE` of a joint's limit, in the unit of the controller's commands.

    """
    steps = np.ceil(np.diff(goal.time) / period - 1e-9).astype(np.intp)
    edges, time = _update_times(goal, steps)
    acting = np.clip(time - 0.5 * period, 0.0, goal.duration)
    acting[-1] = time[-1]
    tau = inverse_dynamics(robot, chi, *goal.sample(acting), successive=True) / robot.drive_gain
    share = np.clip(time / max(ramp, 1e-9), 0.0, 1.0)[:, None]
    tau = present + share**2 * (3.0 - 2.0 * share) * (tau - present)
    limit = robot.limits.effort / np.abs(robot.drive_gain)
    largest = np.maximum(np.abs(tau).max(axis=0), 1e-300)
    return _with_points(goal, edges, time, tau, np.where(np.isfinite(limit), limit, largest))


def slowed(goal: Waypoints, factor: float) -> Waypoints:
    """Stretch a goal in time by a factor: the same path, efforts left out."""
    return dataclasses.replace(
        goal,
        time=goal.time * factor,
        dq=goal.dq / factor,
        ddq=goal.ddq / factor**2,
        tau=None,
    )


def _update_times(motion: Waypoints, steps: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array]:
    """Divide each segment into steps; return the places of its points, and all times."""
    edges = np.concatenate([[0], np.cumsum(steps)]).astype(np.intp)
    return edges, np.interp(np.arange(edges[-1] + 1), edges, motion.time)


def _with_points(
    motion: Waypoints, edges: NDArray[np.intp], time: Array, tau: Array, scale: Array
) -> Waypoints:
    """Return the motion with the points that its efforts (N, n) need, by a scale (n,) of each."""
    kept = _needed_points(edges, time, tau, scale)
    samples = motion.sample(time[kept])
    # What the motion's own points hold, to the last digit: a controller wants exact rest.
    own = np.isin(kept, edges)
    q, dq, ddq = (np.array(sampled) for sampled in samples)
    q[own], dq[own], ddq[own] = motion.q, motion.dq, motion.ddq
    return dataclasses.replace(motion, time=time[kept], q=q, dq=dq, ddq=ddq, tau=tau[kept])


def _needed_points(
    edges: NDArray[np.intp], time: Array, tau: Array, scale: Array
) -> NDArray[np.intp]:
    """
    Choose samples between which straight lines are right, by Ramer, Douglas and Peucker.

    Parameters
    ----------
    edges : samples to keep in any case
    time, tau : (N,) [s] and (N, n)
    scale : (n,) of the efforts, of which `TOLERANCE` may be off

    """
    scale = TOLERANCE * np.maximum(scale, 1e-300)
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
