"""The joints of a model as screws: places of all links for many samples at once."""

from typing import Any

import numpy as np
import pinocchio as pin

from ..arrays import Array


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
        turned = (skew(translation) @ angular[..., None])[..., 0]
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


def skew(x: Array) -> Array:
    """Return the matrices of x ×, (..., 3, 3)."""
    result = np.zeros((*x.shape, 3))
    result[..., 2, 1] = x[..., 0]
    result[..., 0, 2] = x[..., 1]
    result[..., 1, 0] = x[..., 2]
    return result - np.swapaxes(result, -1, -2)
