"""
The observation matrix of a motion and the exact gradient of any function of it.

Row j and link i of W are `J_jᵀ Y_i`: the screw of joint j in the frame of link i, and the link's
regressor; columns of drives follow. The gradient goes the same way back, all samples at once.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..model.friction import FrictionTerm, SYMMETRIC
from ..model.parameters import INERTIAL, PINOCCHIO_ORDER
from ..model.robot import Robot, Transmission
from .batch_kinematics import (
    body_regressor,
    body_regressor_gradient,
    cross,
    cross_adjoint,
    cross_adjoint_sum,
    KinematicTree,
)
from .trajectory import Motion

# Step of the one-sided differences of friction [rad/s or m/s]: above rounding, below any shape.
STEP = 1e-6
PINOCCHIO_SYMBOLS = tuple(INERTIAL[i] for i in np.argsort(PINOCCHIO_ORDER))


class DriveColumn(NamedTuple):
    """
    A torque `rᵀ f(r·x)` of a drive with ratios r, x one of q, dq and ddq.

    Attributes
    ----------
    name : of its parameter
    drive : whose torque it is
    source : 'q', 'dq' or 'ddq': x
    function : of the drive's x (N,), or None for x itself

    """

    name: str
    drive: Transmission
    source: str
    function: Callable[[Array], Array] | None

    def fill(self, out: Array, motion: Motion) -> None:
        """Write the column into `out`, (N, n) zeros."""
        joints, turn = self.drive.joints, self.drive.turn(getattr(motion, self.source))
        values = turn if self.function is None else self.function(turn)
        out[:, joints] = np.outer(values, self.drive.ratios[joints])

    def add_gradient(self, result: Motion, motion: Motion, weights: Array) -> None:
        """Add the gradient of `Σ weights ∘ column` to `result`, in place; weights (N, n)."""
        share = self.drive.turn(weights)
        if self.function is not None:
            turn = self.drive.turn(getattr(motion, self.source))
            # By three points on the speed's side of zero, where friction is smooth.
            step = np.where(turn < 0.0, -STEP, STEP)
            x = np.where(np.abs(turn) < STEP, step, turn)
            points = np.stack([x, x + step, x + 2.0 * step])
            here, near, far = self.function(points.ravel()).reshape(3, -1)
            share = share * ((4.0 * near - 3.0 * here - far) / (2.0 * step))
        into = getattr(result, self.source)
        for joint in self.drive.joints:
            into[:, joint] += self.drive.ratios[joint] * share


def drive_columns(robot: Robot, steepness: Array | None = None) -> tuple[DriveColumn, ...]:
    """
    List the columns of rotor inertias, friction and couplings, joint by joint.

    Parameters
    ----------
    steepness : (n,) replace Coulomb's sign(dq) by tanh(steepness·dq), which an optimiser can
        follow [s/rad or s/m]; None: as the robot has it

    """

    def term_column(term: FrictionTerm, index: int, x: Array) -> Array:
        return term.columns(x, x)[index]

    result, names = [], [parameter.name for parameter in robot.parameters]
    for drive in robot.drives:
        if drive.inertia is not None:
            result.append(DriveColumn(names[drive.inertia], drive, 'ddq', None))
        size = np.abs(drive.ratios)
        for column, term in drive.terms:
            if term.kind.dry == SYMMETRIC and steepness is not None:
                slope = float(size @ steepness / np.sum(size))
                term = FrictionTerm('smooth_coulomb', {'tanh_steepness': slope})
            source = 'q' if term.kind.of_position else 'dq'
            for k in range(len(term.kind.symbols)):
                function = partial(term_column, term, k)
                result.append(DriveColumn(names[column + k], drive, source, function))
    return tuple(result)


class ObservationModel:
    """
    Observation matrices of one robot: inertial columns in Pinocchio's order, then the others.

    The order is link by link `m mx my mz Ixx Ixy Iyy Ixz Iyz Izz`, then rotor inertias, friction
    and couplings in the order of `robot.parameters`. `steepness`: see `drive_columns`.
    """

    def __init__(self, robot: Robot, steepness: Array | None = None) -> None:
        self.tree = KinematicTree(robot.model)
        self.order, self.inverse = robot.order, np.argsort(robot.order)
        self.extras: tuple[DriveColumn, ...] = drive_columns(robot, steepness)
        numbers = [f'{symbol}{j + 1}' for j in self.order for symbol in PINOCCHIO_SYMBOLS]
        self.names: tuple[str, ...] = (*numbers, *(extra.name for extra in self.extras))

    def matrix(self, motion: Motion) -> Array:
        """Return W as (N, n, 10 n + extras): sample, joint, column."""
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
        self.kinematics = k = tree.kinematics(Motion(*(x[:, order] for x in motion)))
        seen = k.to_link @ np.swapaxes(k.screws, 1, 2)[:, None]
        self.screws = seen * tree.ancestors[:, None, :]
        self.v, a = ((k.to_link @ x[..., None])[..., 0] for x in (k.v, k.a))
        self.y = body_regressor(self.v, a)
        count, inertial = len(motion.q), 10 * tree.n
        self.matrix = np.zeros((count, tree.n, inertial + len(observation.extras)))
        rows = np.swapaxes(np.swapaxes(self.screws, 2, 3) @ self.y, 1, 2)
        self.matrix[:, order, :inertial] = rows.reshape(count, tree.n, inertial)
        for i, extra in enumerate(observation.extras):
            extra.fill(self.matrix[:, :, inertial + i], motion)

    def gradient(self, weights: Array) -> Motion:
        """
        Differentiate `Σ weights ∘ W` with respect to q, dq and ddq, (N, n) each.

        Let G_A, G_V and T_j be the gradients in a_i, v_i and J_j, summed over the links that joint
        k moves, D_k = v_k × J_k, and H such that `J·H = Σ G_A·(J × v_i)`; then
        `∂ddq_k = J_k·G_A`, `∂dq_k = J_k·(G_V + H) + 2 D_k·G_A`, and
        `∂q_k = (a_k × J_k − D_k × v_k)·G_A + D_k·(G_V + H) − Σ_{j before k} T_j·(J_k × J_j)`.

        Parameters
        ----------
        weights : (N, n, 10 n + extras), held constant

        """
        observation, (count, n) = self.observation, self.motion.q.shape
        inner = weights[:, observation.order, : 10 * n].reshape(count, n, n, 10)
        inner = np.swapaxes(inner, 1, 2)  # (N, link, joint, 10) in the model's order, as all here
        screws, v, a, to_link = self.kinematics
        links = observation.tree.ancestors
        by_v, by_a = body_regressor_gradient(self.v, self.screws @ inner)
        by_screw = (self.y @ np.swapaxes(inner, 2, 3)) * links[:, None, :]
        back = np.swapaxes(to_link, 2, 3)
        of_v, of_a = ((back @ x[..., None])[..., 0] for x in (by_v, by_a))
        g = links.T @ of_a
        h = links.T @ (of_v + cross_adjoint(of_a, v))
        t = links.T @ (back @ by_screw).reshape(*v.shape[:2], -1)
        before = np.swapaxes(screws, 1, 2)[:, None] * (links - np.eye(len(links)))[:, None, :]
        turned = cross_adjoint_sum(before @ np.swapaxes(t.reshape(by_screw.shape), 2, 3))
        d = cross(v, screws)
        by_q = (cross(a, screws) - cross(d, v)) * g + d * h - screws * turned
        by_dq = screws * h + 2.0 * d * g
        found = (x.sum(axis=2)[:, observation.inverse] for x in (by_q, by_dq, screws * g))
        result = Motion(*found)
        for i, extra in enumerate(observation.extras):
            extra.add_gradient(result, self.motion, weights[:, :, 10 * n + i])
        return result
