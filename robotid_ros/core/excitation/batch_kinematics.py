"""
Rigid-body kinematics of many samples at once, with NumPy.

Spatial vectors have six numbers, the linear part first as Pinocchio has them; quantities without
further word are in the base frame. Names follow Carpentier and Mansard, "Analytical derivatives of
rigid body dynamics algorithms", RSS 2018.
"""

from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..model.inertial_columns import LINEAR, QUADRATIC
from .trajectory import Motion

UNIT_MOTIONS = [pin.Motion(row) for row in np.eye(6)]
# (x × y)_c = Σ x_a y_b CROSS[a, b, c].
CROSS = np.array([[x.cross(y).vector for y in UNIT_MOTIONS] for x in UNIT_MOTIONS])


def _outer(x: Array, y: Array) -> Array:
    return np.asarray((x[..., :, None] * y[..., None, :]).reshape(*x.shape[:-1], 36))


def cross(x: Array, y: Array) -> Array:
    """Return the motions x × y, (..., 6)."""
    return _outer(x, y) @ CROSS.reshape(36, 6)


def cross_adjoint(force: Array, y: Array) -> Array:
    """Return h with `h·x = force·(x × y)` for every x, (..., 6)."""
    return cross_adjoint_sum(y[..., :, None] * force[..., None, :])


def cross_adjoint_sum(products: Array) -> Array:
    """Sum `cross_adjoint` over pairs; `products` is the sum of their y forceᵀ, (..., 6, 6)."""
    flat = products.reshape(*products.shape[:-2], 36)
    return flat @ CROSS.transpose(1, 2, 0).reshape(36, 6)


def body_regressor(v: Array, a: Array) -> Array:
    """Return Y with wrench `Y χ` of bodies that move with v and a in their frame, (..., 6, 10)."""
    y = a @ LINEAR + _outer(v, v) @ QUADRATIC.reshape(36, 60)
    return y.reshape(*v.shape[:-1], 6, 10)


def body_regressor_gradient(v: Array, weights: Array) -> tuple[Array, Array]:
    """Differentiate `Σ weights ∘ Y` in v and a; weights (..., 6, 10), results (..., 6)."""
    flat = weights.reshape(*v.shape[:-1], 60)
    by_pair = (flat @ QUADRATIC.reshape(36, 60).T).reshape(*v.shape[:-1], 6, 6)
    return 2.0 * (by_pair @ v[..., None])[..., 0], flat @ LINEAR.T


class Kinematics(NamedTuple):
    """Where N samples put the n joints of a model, in the model's order."""

    screws: Array  # (N, n, 6) J_k, the motion per unit speed of joint k
    v: Array  # (N, n, 6) velocity of each link
    a: Array  # (N, n, 6) its acceleration less gravity
    to_link: Array  # (N, n, 6, 6) from motions in the base frame to motions in the link's


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

    def kinematics(self, motion: Motion) -> Kinematics:
        """Evaluate at N samples in the model's order."""
        rotation, translation = self.places(motion.q)
        to_link = np.zeros((*motion.q.shape, 6, 6))
        turn = np.swapaxes(rotation, 2, 3)
        to_link[:, :, :3, :3] = to_link[:, :, 3:, 3:] = turn
        to_link[:, :, :3, 3:] = -turn @ _skew(translation)
        screws = self.screws(rotation, translation)
        v = self.ancestors @ (screws * motion.dq[..., None])
        change = screws * motion.ddq[..., None] + cross(v, screws) * motion.dq[..., None]
        return Kinematics(screws, v, self.ancestors @ change - self.gravity, to_link)

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
