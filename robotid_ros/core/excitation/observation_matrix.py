"""
The observation matrix of a motion and the exact gradient of any function of it.

Row j and link i of W are `J_jᵀ Y_i`: the screw of joint j in the frame of link i, and the link's
regressor; columns of drives follow. The gradient goes the same way back, all samples at once.
Spatial vectors have the linear part first as Pinocchio's, in the base frame without further word.
Names follow Carpentier and Mansard, "Analytical derivatives of rigid body dynamics algorithms",
RSS 2018.
"""

from collections.abc import Iterator

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..model.dynamics import drive_columns
from ..model.friction import FrictionTerm, SYMMETRIC
from ..model.inertial_columns import LINEAR, QUADRATIC
from ..model.pinocchio_model import KinematicTree, skew
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
        to_link[:, :, :3, 3:] = -turn @ skew(translation)
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
