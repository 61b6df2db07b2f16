"""
A force-torque sensor: what hangs at it, its offsets and gravity's direction, by least squares.

A body with the parameters π, which the sensor carries with the velocity v and the acceleration a,
exerts on it −W(v, a − g) π in the sensor's frame, with W as in Newton-Euler's equations (Atkeson,
An and Hollerbach 1986; Kubus, Kröger and Wahl 2008). Of N measurements y = −W π + o: π, the six
offsets o and two angles of g follow; at rest all but the inertia.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import pinocchio

from ...exceptions import RecordingError
from ..arrays import Array, PREDICTED, ReadOnlyArrays
from ..model.inertial_columns import LINEAR, QUADRATIC
from ..model.pinocchio_model import BodyFrame
from ..model.robot import INERTIAL, PINOCCHIO_ORDER, Robot
from ..parameters.carried_body import UPPER
from .payload import nearest_possible, open_factors, OPEN_SHARE, Payload, SIGNIFICANT

# A sensor measures what acts on it, or what it exerts.
ACTION, REACTION = -1.0, 1.0
FORCES = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
NAMES = (*INERTIAL, *(f'the offset of {name}' for name in FORCES), *["gravity's direction"] * 2)
LEAST_ROWS = 6  # that determine the 12 numbers but the inertia, if they differ
# Angular acceleration (RMS) from which on the inertia is asked for [rad/s²]: less is a sensor's
# noise, 5 mN·m of 0.01 kg·m².
TURNING = 0.5
BALL = 0.01  # radius of gyration of a body whose inertia is not asked for [m]
ROUNDING = 1e-12  # residuals below this share of the signal are rounding
STEPS, CONVERGED = 30, 1e-13  # of Gauss-Newton, and the turn of gravity that is none [rad]
MOST_CORRELATION = 0.95  # of successive residuals: more would leave no independent measurement


class SensorMotion(NamedTuple):
    """How a sensor moves."""

    rotation: Array  # (N, 3, 3) from its axes to those of the root
    velocity: Array  # (N, 6) spatial, in its axes, linear first; without gravity
    acceleration: Array

    def columns(self, gravity: Array) -> Array:
        """Return W(v, a − g) (N, 6, 10), of g (3,) in the root frame [m/s²]."""
        a = self.acceleration.copy()
        a[:, :3] -= np.einsum('nji,j->ni', self.rotation, gravity)
        v = self.velocity
        W = a @ LINEAR + np.einsum('ni,nj,ijk->nk', v, v, QUADRATIC)
        return np.asarray(W.reshape(-1, 6, 10)[..., PINOCCHIO_ORDER])


def sensor_motion(robot: Robot, frame: BodyFrame, q: Array, dq: Array, ddq: Array) -> SensorMotion:
    """Return how a frame moves on a motion of the joints (N, n)."""
    model, data = robot.model, robot.model.createData()
    number, moved = frame.number, robot.mimic_jacobian[robot.order]
    rotation = np.empty((len(q), 3, 3))
    velocity, acceleration = np.empty((2, len(q), 6))
    for k, (at, speed, rate) in enumerate(zip(q, dq @ moved.T, ddq @ moved.T, strict=True)):
        at = robot.link_positions(at)[robot.order]
        pinocchio.forwardKinematics(model, data, at, speed, rate)
        rotation[k] = pinocchio.updateFramePlacement(model, data, number).rotation
        motion = (model, data, number, pinocchio.LOCAL)
        velocity[k] = pinocchio.getFrameVelocity(*motion).vector
        acceleration[k] = pinocchio.getFrameAcceleration(*motion).vector
    return SensorMotion(rotation, velocity, acceleration)


class SensorModel(NamedTuple):
    """What a sensor measures while nothing touches the body that hangs at it."""

    value: Array  # (10,) `XX … M` of the body in the sensor's frame
    offset: Array  # (6,) [N, N·m]
    gravity: Array  # (3,) in the root frame [m/s²]
    sign: float  # `ACTION` or `REACTION`

    def wrench(self, motion: SensorMotion) -> Array:
        """Return the wrench (N, 6) [N, N·m]."""
        return np.asarray(self.sign * motion.columns(self.gravity) @ self.value + self.offset)


@dataclasses.dataclass(frozen=True)
class SensedBody(ReadOnlyArrays):
    """What a force-torque sensor says."""

    payload: Payload  # the body behind the sensor, in its frame
    model: SensorModel  # of it, of the offsets and of gravity
    offset_sigma: Array  # (6,) [N, N·m]
    gravity_sigma: float  # of its direction [rad]; infinite where nothing heavy enough hangs there
    residual: Array  # (6,) σ of a measurement [N, N·m]


def identify_at_sensor(
    motion: SensorMotion, wrench: Array, gravity: Array, frame: str, sign: float = ACTION
) -> SensedBody:
    """
    Find what hangs at a sensor from a motion or from poses, of wrenches (N, 6) [N, N·m].

    σ are of weighted least squares, by the residuals of forces and of torques and by how much
    successive ones correlate. The direction of gravity (3,), in the root frame, is found anew
    where the weight stands out. RecordingError: the poses do not determine the result; names what.
    """
    N = len(wrench)
    if N < LEAST_ROWS:
        raise RecordingError(
            f'there are {N} measurements of the sensor, too few: take at least {LEAST_ROWS} poses'
        )
    turning = np.sqrt(np.mean(np.sum(motion.acceleration[:, 3:] ** 2, axis=1))) > TURNING
    still = SensorMotion(motion.rotation, *np.zeros((2, N, 6)))
    unit = np.broadcast_to(np.eye(6), (N, 6, 6))

    def jacobian(g: Array, value: Array) -> tuple[Array, Array]:
        """Return dy/d(π, o, angles) (N, 6, 18) and the axes of the angles (3, 2)."""
        W = sign * motion.columns(g)
        W[:, :, :6] *= turning
        axes = np.linalg.svd(g[None])[2][1:].T
        tilts = [sign * still.columns(np.cross(axis, g)) @ value for axis in axes.T]
        return np.concatenate([W, unit, np.stack(tilts, axis=2)], axis=2), axes

    value = np.eye(10)[9]  # of a unit mass at first
    _check_determined(jacobian(gravity, value)[0][:, :, 6:].reshape(6 * N, -1), NAMES[6:])
    g, heavy = _gravity(motion.rotation, wrench[:, :3], gravity, sign)
    used = 18 if heavy else 16
    level = np.repeat(np.sqrt(np.mean(wrench.reshape(N, 2, 3) ** 2, axis=(0, 2))), 3)
    sigma = np.maximum(level, np.finfo(float).tiny)
    least = ROUNDING * sigma
    for step in range(STEPS):
        J, axes = jacobian(g, value)
        rows = (J[:, :, :used] / sigma[:, None]).reshape(6 * N, used)
        root, U, _ = open_factors(rows)
        solved = root @ (U.T @ (wrench / sigma).ravel())
        value, left = solved[:10], wrench - J[:, :, :used] @ solved
        freedom = 3 * N - root.shape[1] / 2
        rms = np.sqrt(np.sum(left.reshape(N, 2, 3) ** 2, axis=(0, 2)) / freedom)
        sigma = np.maximum(np.repeat(rms, 3), least)
        turn = axes @ solved[16:] if heavy else np.zeros(3)
        g = pinocchio.exp3(turn) @ g
        if step and np.linalg.norm(turn) < CONVERGED:
            break
    power = np.maximum(np.sum(left**2, axis=0), 1e-300)
    correlation = np.clip(np.sum(left[1:] * left[:-1], axis=0) / power, 0.0, MOST_CORRELATION)
    residual = sigma * np.sqrt((1.0 + correlation) / (1.0 - correlation))
    rows = (J[:, :, :used] / residual[:, None]).reshape(6 * N, used)
    root, U, unknown = open_factors(rows)
    solved, covariance = root @ (U.T @ (wrench / residual).ravel()), root @ root.T
    free = solved[:10]
    if not turning and free[9] > 0.0:  # any inertia explains the poses: that of a small ball
        h, m = free[6:9], free[9]
        free[:6] = ((h @ h / m + m * BALL**2) * np.eye(3) - np.outer(h, h) / m)[UPPER]
    # What the rows say of π alone: the others are projected out.
    order = [*range(10, used), *range(10)]
    A = np.linalg.qr(rows[:, order])[1][used - 10 :, used - 10 :]
    value = nearest_possible(A, A @ free, free)
    payload = Payload(frame, value, covariance[:10, :10], unknown[:10], free)
    spread = np.linalg.eigvalsh(covariance[16:, 16:])[-1] ** 0.5 if heavy else np.inf
    model = SensorModel(value, solved[10:16], g, sign)
    offset_sigma = np.sqrt(np.diag(covariance)[10:16])
    return SensedBody(payload, model, offset_sigma, float(spread), residual)


def _check_determined(rows: Array, names: tuple[str, ...]) -> None:
    """Raise a RecordingError that names what rows (6 N, p) do not tell apart."""
    size = np.linalg.norm(rows, axis=0)
    _, s, Vt = np.linalg.svd(rows / np.where(size > 0.0, size, 1.0), full_matrices=False)
    open_ones = np.abs(Vt[s <= PREDICTED * s[0]]).max(axis=0, initial=0.0) > OPEN_SHARE
    if open_ones.any():
        which = ', '.join(dict.fromkeys(np.array(names)[open_ones].tolist()))
        raise RecordingError(
            f'the poses do not distinguish {which}: turn the sensor about two axes more, to at '
            f'least {LEAST_ROWS} poses'
        )


def _gravity(rotation: Array, force: Array, gravity: Array, sign: float) -> tuple[Array, bool]:
    """Return gravity (3,) by f = Rᵀ w + o alone, w = m g, if w stands out, and whether it does."""
    N = len(force)
    unit = np.broadcast_to(np.eye(3), (N, 3, 3))
    rows = np.concatenate([rotation.transpose(0, 2, 1), unit], axis=2).reshape(3 * N, 6)
    root, U, _ = open_factors(rows)
    solved = root @ (U.T @ force.ravel())
    left = force.ravel() - rows @ solved
    w, noise = -sign * solved[:3], np.linalg.norm(left) / np.sqrt(3 * N - 6)
    size = np.linalg.norm(w)
    heavy = size > SIGNIFICANT * noise * np.linalg.norm(root[:3], ord=2)
    return (np.linalg.norm(gravity) / size * w if heavy else gravity), bool(heavy)
