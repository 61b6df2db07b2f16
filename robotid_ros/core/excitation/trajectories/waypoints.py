"""
What is sent to the controller: points with time, position, velocity and acceleration.

A joint_trajectory_controller joins such points by quintic polynomials; `Waypoints.sample` and
`Waypoints.segments` are that interpolation, so that what is checked is what will run.
"""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.polynomial import polyder, polyvander
from numpy.typing import NDArray

from ....exceptions import TrajectoryError
from ...arrays import Array, freeze_fields
from .families import QuinticPoints
from .trajectory import Motion, Trajectory


@dataclass(frozen=True)
class Waypoints:
    """
    Points of a joint trajectory, the first at time 0, the last at rest.

    Parameters
    ----------
    joints : names, in the order of the columns
    time : (P,) strictly increasing from 0 [s]
    q, dq, ddq : (P, n) [rad, rad/s, rad/s² or m]
    tau : (P, n) feed-forward effort, in the unit of the controller's commands, or None

    """

    joints: tuple[str, ...]
    time: Array
    q: Array
    dq: Array
    ddq: Array
    tau: Array | None = None

    def __post_init__(self) -> None:
        names = ('time', 'q', 'dq', 'ddq', 'tau')
        freeze_fields(self, *names)
        for name in names:
            if (array := getattr(self, name)) is not None and not np.isfinite(array).all():
                remedy = 'identify' if name == 'tau' else 'design'
                raise TrajectoryError(f'{name} of the waypoints is not finite: {remedy} again')
        if self.tau is not None and self.tau.shape != self.q.shape:
            # A controller would read what is behind a short list.
            raise TrajectoryError('waypoints need an effort of each joint at each point')
        steps = np.diff(self.time)
        if len(self.time) < 2 or self.time[0] != 0.0 or (steps <= 0.0).any():
            raise TrajectoryError('waypoints need increasing times that start at 0: design again')

    @property
    def duration(self) -> float:
        """Time of the last point [s]."""
        return float(self.time[-1])

    def segments(self) -> Array:
        """Coefficients of each segment's quintic, (P−1, 6, n), in powers of (t − t_k)/h_k."""
        h = np.diff(self.time)[:, None]
        ends = np.stack(
            [
                *(self.q[:-1], h * self.dq[:-1], h**2 * self.ddq[:-1]),
                *(self.q[1:], h * self.dq[1:], h**2 * self.ddq[1:]),
            ],
            axis=1,
        )
        return np.einsum('ck,pcn->pkn', QuinticPoints.HERMITE, ends)

    def sample(self, t: NDArray[np.float64]) -> Motion:
        """Interpolate as the controller does, at times (N,) within [0, duration]."""
        index = np.clip(np.searchsorted(self.time, t, side='right') - 1, 0, len(self.time) - 2)
        h = np.diff(self.time)[index]
        s = (np.asarray(t) - self.time[index]) / h
        segments, values = self.segments(), []
        for k in range(3):
            coefficients = polyder(segments, k, axis=1)[index]
            powers = polyvander(s, coefficients.shape[1] - 1) / h[:, None] ** k
            values.append(np.einsum('nk,nkj->nj', powers, coefficients))
        return Motion(*values)


def waypoints(trajectory: Trajectory, rate: float = 50.0, periods: int = 1) -> Waypoints:
    """
    Sample `periods` periods of a trajectory as points that can be sent.

    Parameters
    ----------
    trajectory : one that starts and ends at rest
    rate : least number of points per second [Hz]; each period gets the same points
    periods : how often the period is run

    Raises
    ------
    TrajectoryError : the trajectory does not start and end at rest

    """
    if not trajectory.at_rest:
        raise TrajectoryError(
            f"a '{trajectory.family}' trajectory does not start at rest: design it as 'mfs'"
        )
    points = sample_waypoints(trajectory, rate, periods)
    count = (len(points.time) - 1) // periods
    q, dq, ddq = points.q.copy(), points.dq.copy(), points.ddq.copy()
    # Exactly at rest and exactly at q0 where the periods meet: a controller refuses 1e-6 rad/s.
    q[::count], dq[::count], ddq[::count] = trajectory.start, 0.0, 0.0
    return Waypoints(trajectory.joints, points.time, q, dq, ddq)


def sample_waypoints(trajectory: Trajectory, rate: float, periods: int = 1) -> Waypoints:
    """Sample periods of any trajectory, at rest or not; see `waypoints`."""
    # A multiple of the pieces of a spline: its knots, where the jerk jumps, are points.
    pieces = trajectory.order + 1
    count = pieces * max(1, int(np.ceil(rate * trajectory.period / pieces - 1e-9)))
    time = np.arange(count * periods + 1, dtype=np.float64) * (trajectory.period / count)
    q, dq, ddq = trajectory.sample(np.resize(time[:count], len(time)))
    return Waypoints(trajectory.joints, time, q, dq, ddq)


def point_to_point(
    joints: tuple[str, ...], start: Array, goal: Array, velocity: Array, acceleration: Array
) -> Waypoints:
    """
    Move from rest to rest on one quintic, `q = q0 + (q1 − q0)(10 s³ − 15 s⁴ + 6 s⁵)`.

    Parameters
    ----------
    joints : names of the joints
    start, goal : (n,) [rad or m]
    velocity, acceleration : (n,) bounds [rad/s, rad/s² or m]; the duration follows from them

    """
    distance = np.abs(np.asarray(goal, dtype=float) - start)
    # Largest |dq| is 15/8 distance/T at s = 1/2, largest |ddq| is 10/√3 distance/T².
    duration = max(
        float(np.max(1.875 * distance / velocity, initial=0.0)),
        float(np.sqrt(np.max(10.0 / np.sqrt(3.0) * distance / acceleration, initial=0.0))),
        0.5,
    )
    still = np.zeros((2, len(joints)))
    ends = np.stack([np.asarray(start, dtype=np.float64), np.asarray(goal, dtype=np.float64)])
    return Waypoints(joints, np.array([0.0, duration]), ends, still, still)
