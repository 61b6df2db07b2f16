"""
Efforts for the points of a motion, which a joint_trajectory_controller adds to those of its own.

It joins the efforts of two points by a straight line, and commands from an update to the next one
the effort of the latter. The effort of the last point is held when the motion has ended, and may
come back after a later motion was cancelled: motions begin and end here with none.
"""

import dataclasses

import numpy as np

from ...exceptions import TrajectoryError
from ..arrays import Array, Indices
from ..excitation.limits import check_efforts
from ..excitation.trajectory import CubicWaypoints, Waypoints
from ..model import inverse_dynamics, Robot
from ..model.dynamics import path_columns, PathDynamics

# In which the effort that holds the robot is built up before a motion, and taken away after it
# [s]: slow beside position loops (0.05 to 0.3 s), so that it moves by its sag without oscillating.
REST = 1.0
# What lines between points may be off, of the largest effort: less than models, 200 points/s.
TOLERANCE = 1e-3
# A line over h updates is off by h²/8 of the second difference, where that is the same throughout,
# by h²/16 where its ends are half of that off: in between, most lines are right at once.
LINE = 9.0
LEAST_LINE = 1e-9  # least share of a line per update: places then increase
# Between two points of a goal, torques of links are a polynomial through so many of them, at
# Chebyshev's places, if the last two coefficients of its series are below this share of what lines
# may be off: it is right to a tenth of that share.
NODES, LAST = 6, 0.1
IN_ONE_CALL = 2048  # updates of a goal whose efforts take a few milliseconds
MOST_UPDATES = 300_000  # of a motion: ten minutes at 500 Hz, 0.6 GB with seven joints
_places = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
_last_two = np.linalg.inv(np.polynomial.chebyshev.chebvander(_places, NODES - 1))[-2:]
_powers = np.linalg.inv(np.vander(0.5 + 0.5 * _places))  # of the share of the way, highest first


def with_rests(motion: Waypoints) -> Waypoints:
    """Stand still for `REST` before and after a motion; efforts begin and end with none."""
    time = np.concatenate([[0.0], motion.time + REST, [motion.duration + 2.0 * REST]])
    around = ((1, 1), (0, 0))
    q, dq, ddq = (np.pad(x, around, 'edge') for x in (motion.q, motion.dq, motion.ddq))
    tau = None if motion.tau is None else np.pad(motion.tau, around)
    return Waypoints(motion.joints, time, q, dq, ddq, tau)


def with_feed_forward(motion: Waypoints, robot: Robot, chi: Array, period: float) -> Waypoints:
    """
    Add predicted efforts to a motion that has rests, as `goal_with_efforts` to that between them.

    Along the rests the effort grows and goes in a straight line.
    """
    moving = (x[1:-1] for x in (motion.time - REST, motion.q, motion.dq, motion.ddq))
    goal = Waypoints(motion.joints, *moving)
    return with_rests(goal_with_efforts(goal, PathDynamics(robot, chi), period))


def goal_with_efforts(
    goal: Waypoints, dynamics: PathDynamics, period: float,
    present: Array | None = None, ramp: float = 0.0,
) -> Waypoints:  # fmt: skip
    """
    Add the predicted efforts to a goal of anybody, and the points that these need.

    The path stays the same, that of the controller between the goal's own points: a quintic
    between points of a quintic is that quintic. Friction is that of the wanted velocities; where a
    joint turns round, it changes within one update. The efforts of the last point stay, as it is
    held. Straight lines between points are right to `TOLERANCE` of a joint's largest effort.

    What the controller commands ahead of its feedback already, the present efforts (n,), differs
    from what the model predicts there: the difference goes within the ramp [s], and a robot that
    has sagged against its feedback comes back slowly. Lines are then right to `TOLERANCE` of a
    joint's limit. None: it commands what is predicted.

    The goal is from where the robot is, efforts have the unit of the commands, and the period is
    that of the controller's updates [s].
    """
    robot = dynamics.robot
    scale = np.full(robot.n, np.inf) if present is None else robot.largest_efforts
    edges, time = _updates(goal, period)
    # Of the middle of the update in which it acts, which is half of one before the sample.
    acting = np.clip(time - 0.5 * period, 0.0, goal.duration)
    acting[-1] = time[-1]
    # Held at the beginning first. At rest exactly: rounding would have Coulomb friction.
    acting = np.concatenate([[0.0], acting])
    q, dq, ddq = goal.sample(acting)
    q[0], dq[0], ddq[0] = goal.q[0], goal.dq[0], 0.0
    q[-1], dq[-1], ddq[-1] = goal.q[-1], goal.dq[-1], goal.ddq[-1]
    links = _link_torques(goal, dynamics, acting, (q, dq, ddq), scale * np.abs(robot.drive_gain))
    given, drives = (robot, dynamics.chi), dynamics.drives
    tau = inverse_dynamics(*given, q, dq, ddq, successive=True, links=links, drives=drives)
    # In the end no friction of the path is left: at rest nobody knows it.
    for joint, k, values in path_columns(robot, q, dq):
        tau[-1, joint] -= dynamics.chi[k] * values[-1]
    tau /= robot.drive_gain
    first, tau = tau[0], tau[1:]
    if present is not None:
        share = np.clip(time / max(ramp, 1e-9), 0.0, 1.0)[:, None]
        tau += (1.0 - share**2 * (3.0 - 2.0 * share)) * (present - first)
    return _with_efforts(goal, edges, time, tau, scale)


def _link_torques(
    goal: Waypoints, dynamics: PathDynamics, time: Array, states: tuple[Array, ...], scale: Array
) -> Array:
    """Return torques of the links at states of a goal; the first two and the last are exact."""
    from scipy.interpolate import PPoly

    step, exact = np.diff(goal.time)[:, None], [0, 1, -1]
    if 2 * NODES * len(step) < len(time):
        nodes = goal.sample((goal.time[:-1, None] + step * (0.5 + 0.5 * _places)).ravel())
        rows = (np.concatenate([x, y[exact]]) for x, y in zip(nodes, states, strict=True))
        known = dynamics.links(*rows)
        limit = np.where(np.isfinite(scale), scale, np.abs(known).max(axis=0))
        own = known[:-3].reshape(len(step), NODES, -1)
        if (np.abs(_last_two @ own) <= LAST * TOLERANCE * limit).all():
            powers = _powers @ own / step[..., None] ** np.arange(NODES)[::-1, None]
            torques = PPoly.construct_fast(powers.swapaxes(0, 1), goal.time)(time)
            torques[exact] = known[-3:]
            return np.asarray(torques)
    return dynamics.links(*states)


def slowed(goal: Waypoints, factor: float) -> Waypoints:
    """Stretch a goal in time by a factor: the same path, efforts left out."""
    time, dq, ddq = goal.time * factor, goal.dq / factor, goal.ddq / factor**2
    return dataclasses.replace(goal, time=time, dq=dq, ddq=ddq, tau=None)


def _updates(motion: Waypoints, period: float) -> tuple[Indices, Array]:
    """Return the controller's updates at points, and times of all."""
    steps = np.ceil(np.diff(motion.time) / period - 1e-9).astype(np.intp)
    edges = np.concatenate([[0], np.cumsum(steps)]).astype(np.intp)
    if edges[-1] > MOST_UPDATES:
        raise TrajectoryError(
            f'efforts are added to motions of at most {MOST_UPDATES * period:.0f} s, '
            f'this one takes {motion.duration:.0f} s: send it in parts'
        )
    return edges, np.interp(np.arange(edges[-1] + 1), edges, motion.time)


def _with_efforts(
    motion: Waypoints, edges: Indices, time: Array, tau: Array, scale: Array
) -> Waypoints:
    """
    Add efforts (N, n) of all updates, and points until straight lines between these are right.

    They may be off by `TOLERANCE` of the scale (n,), of the largest one where that is infinite.
    """
    wanted = np.array(tau.T, order='C')
    largest = np.abs(wanted).max(axis=1)
    limit = np.where(np.isfinite(scale), scale, largest)
    # Below 1e-9 of what a joint needs, rounding would be taken for a line that is wrong.
    allowed = np.maximum(TOLERANCE * limit, 1e-9 * largest + 1e-300)[:, None]
    wanted /= allowed
    own, kept = np.zeros((2, len(time)), dtype=bool)
    own[edges] = kept[edges] = True
    if isinstance(motion, CubicWaypoints):  # whose acceleration jumps: one update later it is new
        kept[edges[:-1] + 1] = True
    # How many lines the updates ask for; between points that are kept, they get a whole number.
    lines = np.zeros(len(time))
    bend = np.abs(np.diff(wanted, 2)).max(axis=0)
    np.fmin(np.sqrt(bend / LINE), 1.0, out=lines[1:-1])
    lines = np.cumsum(np.where(kept, 0.0, lines) + LEAST_LINE)
    asked = lines[kept]
    ends = np.zeros(len(asked))
    np.ceil(asked[1:] - asked[:-1]).cumsum(out=ends[1:])
    kept[lines.searchsorted(np.interp(np.arange(ends[-1]), ends, asked))] = True
    while True:
        places = np.flatnonzero(kept)
        steps, knots = np.diff(places), wanted[:, places]
        half, slopes = steps // 2, np.diff(knots) / steps
        # Points that are added go to the middle of what the lines beside them are off.
        off = wanted[:, places[:-1] + half] - knots[:, :-1] - slopes * half
        change = np.clip(0.25 * (off[:, :-1] + off[:, 1:]), -0.5, 0.5)
        change[:, own[places[1:-1]]] = 0.0
        knots[:, 1:-1] += change
        slopes = np.repeat(np.diff(knots) / steps, steps, axis=1)
        off = wanted[:, 1:] - knots[:, :1] - slopes.cumsum(axis=1)
        worst = np.abs(off).max(axis=0)
        # Each line that is wrong gets a point where it is farthest off.
        farthest = np.repeat(np.maximum.reduceat(worst, places[:-1]), steps)
        if not (wrong := (worst == farthest) & (worst > 1.0)).any():
            break
        kept[1:] |= wrong
    # What the motion's own points hold, to the last digit: a controller wants exact rest.
    at, first = time[places], own[places]
    q, dq, ddq = motion.sample(at)
    q[first], dq[first], ddq[first] = motion.q, motion.dq, motion.ddq
    knots = (knots * allowed).T
    knots[first] = tau[edges]
    return dataclasses.replace(motion, time=at, q=q, dq=dq, ddq=ddq, tau=knots)


def check_feed_forward(motion: Waypoints, robot: Robot, share: float) -> None:
    """Raise a `LimitError` for efforts beyond a share of the robot's limits."""
    assert motion.tau is not None
    check_efforts(motion.joints, motion.time, motion.tau, share * robot.largest_efforts)
