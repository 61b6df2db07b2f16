"""
The observation matrix of a motion and the exact gradient of any function of it.

Row j and link i of W are `J_jᵀ Y_i`: the screw of joint j in the frame of link i, and the link's
regressor; columns of drives follow. The gradient goes the same way back, all samples at once.
Spatial vectors have the linear part first as Pinocchio's, in the base frame without further word.
Names follow Carpentier and Mansard, "Analytical derivatives of rigid body dynamics algorithms",
RSS 2018.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..model.dynamics import drive_columns
from ..model.friction import FrictionTerm, SYMMETRIC
from ..model.inertial_columns import LINEAR, QUADRATIC
from ..model.robot import PINOCCHIO_ORDER, Robot, Transmission
from .trajectory import Motion

STEP = 1e-6  # of differences of friction, above rounding, below any shape [rad/s or m/s]
UNIT_MOTIONS = [pin.Motion(row) for row in np.eye(6)]
# (x × y)_c = Σ x_a y_b CROSS[a, b, c].
CROSS = np.array([[x.cross(y).vector for y in UNIT_MOTIONS] for x in UNIT_MOTIONS])


def _outer(x: Array, y: Array) -> Array:
    return np.asarray((x[..., :, None] * y[..., None, :]).reshape(*x.shape[:-1], 36))


def cross(x: Array, y: Array) -> Array:
    """Return the motions x × y, (..., 6)."""
    return _outer(x, y) @ CROSS.reshape(36, 6)


def cross_adjoint(products: Array) -> Array:
    """Return h (..., 6) with `h·x = Σ force·(x × y)` for every x, of Σ y forceᵀ (..., 6, 6)."""
    flat = products.reshape(*products.shape[:-2], 36)
    return flat @ CROSS.transpose(1, 2, 0).reshape(36, 6)


class KinematicTree:
    """The joints of a Pinocchio model, each of one velocity about or along a fixed axis."""

    def __init__(self, model: Any) -> None:
        self.n: int = model.nv
        self.parents = [int(parent) - 1 for parent in list(model.parents)[1:]]
        places = [model.jointPlacements[j + 1] for j in range(self.n)]
        self.rotations = np.array([place.rotation for place in places])
        self.translations = np.array([place.translation for place in places])
        data, zero = model.createData(), np.zeros(model.nq)
        jacobians = (pin.computeJointJacobian(model, data, zero, j + 1) for j in range(self.n))
        self.axes = np.array([jac.reshape(6, -1)[:, j] for j, jac in enumerate(jacobians)])
        self.skews = np.array([pin.skew(axis[3:]) for axis in self.axes])
        self.gravity = np.array(model.gravity.vector)
        # Row i: the joints that move link i.
        self.ancestors = np.zeros((self.n, self.n))
        for i, parent in enumerate(self.parents):
            self.ancestors[i] = self.ancestors[parent] if parent >= 0 else 0.0
            self.ancestors[i, i] = 1.0

    def screws(self, rotation: Array, translation: Array) -> Array:
        """Return the motion per unit speed of each joint, (N, n, 6), of frames as `places` has."""
        angular = (rotation @ self.axes[:, 3:, None])[..., 0]
        turned = (_skew(translation) @ angular[..., None])[..., 0]
        linear = (rotation @ self.axes[:, :3, None])[..., 0] + turned
        return np.concatenate([linear, angular], axis=2)

    def places(self, q: Array) -> tuple[Array, Array]:
        """Return rotations (N, n, 3, 3) and origins (N, n, 3) of the frames at q (N, n)."""
        sine, versine = np.sin(q)[..., None, None], (1.0 - np.cos(q))[..., None, None]
        turned = np.eye(3) + sine * self.skews + versine * (self.skews @ self.skews)
        rotation = self.rotations @ turned
        slid = (self.rotations @ self.axes[:, :3, None])[..., 0]
        translation = self.translations + slid * q[..., None]
        for j, parent in enumerate(self.parents):
            if parent >= 0:
                base = rotation[:, parent]
                moved = (base @ translation[:, j, :, None])[..., 0]
                translation[:, j] = translation[:, parent] + moved
                rotation[:, j] = base @ rotation[:, j]
        return rotation, translation


def _skew(x: Array) -> Array:
    """Return the matrices of x ×, (..., 3, 3)."""
    result = np.zeros((*x.shape, 3))
    result[..., 2, 1] = x[..., 0]
    result[..., 0, 2] = x[..., 1]
    result[..., 1, 0] = x[..., 2]
    return result - np.swapaxes(result, -1, -2)


def smoothed(drive: Transmission, steepness: Array) -> Transmission:
    """Replace sign(dq) of a drive by tanh(s·dq), s of its joints (n,), which can be followed."""
    size = np.abs(drive.ratios)
    slope = float(size @ steepness / np.sum(size))
    smooth = FrictionTerm('smooth_coulomb', {'tanh_steepness': slope})
    terms = ((k, smooth if term.kind.dry == SYMMETRIC else term) for k, term in drive.terms)
    return drive._replace(terms=tuple(terms))


def _slopes(term: FrictionTerm, x: Array) -> Iterator[Array]:
    """Yield the derivatives (N,) of a term's columns by position or speed x (N,) of its drive."""
    # By three points on the speed's side of zero, where friction is smooth.
    step = np.where(x < 0.0, -STEP, STEP)
    x = np.where(np.abs(x) < STEP, step, x)
    points = np.concatenate([x, x + step, x + 2.0 * step])
    for values in term.columns(points, points):
        here, near, far = values.reshape(3, -1)
        yield (4.0 * near - 3.0 * here - far) / (2.0 * step)


class ObservationModel:
    """
    Observation matrices of one robot, with the columns of `robot.parameters`.

    `links` (n, 10) are those of each link, in the model's and Pinocchio's order; `columns` are
    these, then rotor inertias, friction and couplings. With a `steepness`, drives are `smoothed`.
    """

    def __init__(self, robot: Robot, steepness: Array | None = None) -> None:
        self.tree, self.width = KinematicTree(robot.model), robot.p
        self.order, self.inverse = robot.order, np.argsort(robot.order)
        self.drives = robot.transmissions
        if steepness is not None:
            self.drives = tuple(smoothed(drive, steepness) for drive in robot.transmissions)
        self.links = robot.body_columns[robot.order][:, np.argsort(PINOCCHIO_ORDER)]
        extras = [column for drive in robot.transmissions for column in drive.columns]
        self.columns = np.concatenate([self.links.ravel(), extras]).astype(np.intp)

    def matrix(self, motion: Motion) -> Array:
        """Return W as (N, n, p): sample, joint, column."""
        return ObservedMotion(self, motion).matrix


class ObservedMotion:
    """
    One motion's `matrix`, with what its gradient needs.

    `screws` are the joints' in each link's frame, (N, link, 6, joint), zero where the joint does
    not move the link; `v` and `y` are velocity and regressor of the links, in their frames.
    """

    def __init__(self, observation: ObservationModel, motion: Motion) -> None:
        self.observation, self.motion = observation, motion
        tree, order = observation.tree, observation.order
        q, dq, ddq = (x[:, order] for x in motion)
        rotation, translation = tree.places(q)
        # From motions in the base frame to those in each link's, (N, n, 6, 6).
        to_link, turn = np.zeros((*q.shape, 6, 6)), np.swapaxes(rotation, 2, 3)
        to_link[:, :, :3, :3] = to_link[:, :, 3:, 3:] = turn
        to_link[:, :, :3, 3:] = -turn @ _skew(translation)
        # J_k, and velocity of each link and acceleration less gravity, (N, n, 6).
        screws = tree.screws(rotation, translation)
        v = tree.ancestors @ (screws * dq[..., None])
        change = screws * ddq[..., None] + cross(v, screws) * dq[..., None]
        a = tree.ancestors @ change - tree.gravity
        self._in_base = screws, v, a, to_link
        seen = to_link @ np.swapaxes(screws, 1, 2)[:, None]
        self.screws = seen * tree.ancestors[:, None, :]
        self.v, a = ((to_link @ x[..., None])[..., 0] for x in (v, a))
        # With wrench Y χ of a body.
        y = a @ LINEAR + _outer(self.v, self.v) @ QUADRATIC.reshape(36, 60)
        self.y = y.reshape(*q.shape, 6, 10)
        self.matrix = np.zeros((*motion.q.shape, observation.width))
        rows = np.swapaxes(np.swapaxes(self.screws, 2, 3) @ self.y, 1, 2)
        self.matrix[:, order[:, None, None], observation.links] = rows
        for joint, column, values in drive_columns(observation.drives, *motion):
            self.matrix[:, joint, column] = values

    def gradient(self, weights: Array) -> Motion:
        """
        Differentiate `Σ weights ∘ W`, weights (N, n, p), in q, dq and ddq, (N, n) each.

        Let G_A, G_V and T_j be the gradients in a_i, v_i and J_j, summed over the links that joint
        k moves, D_k = v_k × J_k, and H such that `J·H = Σ G_A·(J × v_i)`; then `∂ddq_k = J_k·G_A`,
        `∂dq_k = J_k·(G_V + H) + 2 D_k·G_A`, and `∂q_k = (a_k × J_k − D_k × v_k)·G_A + D_k·(G_V +
        H) − Σ_{j before k} T_j·(J_k × J_j)`.
        """
        observation = self.observation
        # (N, link, joint, 10) in the model's order, as all here.
        inner = weights[:, observation.order[:, None], observation.links[:, None]]
        screws, v, a, to_link = self._in_base
        links = observation.tree.ancestors
        flat = (self.screws @ inner).reshape(*self.v.shape[:-1], 60)
        by_pair = (flat @ QUADRATIC.reshape(36, 60).T).reshape(*self.v.shape[:-1], 6, 6)
        by_v, by_a = 2.0 * (by_pair @ self.v[..., None])[..., 0], flat @ LINEAR.T
        by_screw = (self.y @ np.swapaxes(inner, 2, 3)) * links[:, None, :]
        back = np.swapaxes(to_link, 2, 3)
        of_v, of_a = ((back @ x[..., None])[..., 0] for x in (by_v, by_a))
        g = links.T @ of_a
        h = links.T @ (of_v + cross_adjoint(v[..., :, None] * of_a[..., None, :]))
        t = links.T @ (back @ by_screw).reshape(*v.shape[:2], -1)
        before = np.swapaxes(screws, 1, 2)[:, None] * (links - np.eye(len(links)))[:, None, :]
        turned = cross_adjoint(before @ np.swapaxes(t.reshape(by_screw.shape), 2, 3))
        d = cross(v, screws)
        by_q = (cross(a, screws) - cross(d, v)) * g + d * h - screws * turned
        by_dq = screws * h + 2.0 * d * g
        sums = (x.sum(axis=2)[:, observation.inverse] for x in (by_q, by_dq, screws * g))
        result = Motion(*sums)
        for drive in observation.drives:
            found = list[tuple[int, Array, Array | float]]()
            if drive.inertia is not None:
                found.append((drive.inertia, result.ddq, 1.0))
            for column, term in drive.terms:
                k = 0 if term.kind.of_position else 1
                slopes = _slopes(term, drive.turn(self.motion[k]))
                found += [
                    (number, result[k], slope) for number, slope in enumerate(slopes, column)
                ]
            for column, into, slope in found:
                share = slope * drive.turn(weights[:, :, column])
                for joint in drive.joints:
                    into[:, joint] += drive.ratios[joint] * share
        return result
