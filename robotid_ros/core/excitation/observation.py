"""
The observation matrix of a motion and the exact gradient of any function of it.

For weights G, `d⟨G, W⟩` is the derivative of an inverse dynamics whose parameters are rows of G:
Pinocchio's RNEA derivatives give it at the cost of a few inverse dynamics.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
import pinocchio as pin

from ..model.parameters import INERTIAL, PINOCCHIO
from ..model.robot import Robot
from .extras import extra_columns, ExtraColumn
from .trajectories import Motion

Array = NDArray[np.float64]
# A pass of RNEA derivatives: joint weights (N, n), and inertial parameters (10 n,).
Pass = tuple[Array, Array]
PINOCCHIO_SYMBOLS = tuple(INERTIAL[i] for i in np.argsort(PINOCCHIO))


class Observation:
    """
    Observation matrices of one robot: inertial columns in Pinocchio's order, then the others.

    The order is link by link `m mx my mz Ixx Ixy Iyy Ixz Iyz Izz`, then rotor inertias, friction
    and couplings in the order of `robot.parameters`. `steepness`: see `extra_columns`.
    """

    def __init__(self, robot: Robot, steepness: Array | None = None) -> None:
        self.model: pin.Model = robot.model.copy()
        self.data = self.model.createData()
        self.n: int = self.model.nv
        self.order = robot.order
        self.extras: tuple[ExtraColumn, ...] = extra_columns(robot, steepness)
        numbers = [f'{symbol}{j + 1}' for j in self.order for symbol in PINOCCHIO_SYMBOLS]
        self.names: tuple[str, ...] = (*numbers, *(extra.name for extra in self.extras))
        # For each joint of the model, the links that its torque depends on.
        self._subtrees = [[k - 1 for k in self.model.subtrees[j + 1]] for j in range(self.n)]

    def matrix(self, motion: Motion) -> Array:
        """Return W as (N, n, 10 n + extras): sample, joint, column."""
        count, inertial = len(motion.q), 10 * self.n
        w = np.zeros((count, self.n, inertial + len(self.extras)))
        block = np.empty((count, self.n, inertial))
        model, data, compute = self.model, self.data, pin.computeJointTorqueRegressor
        for k, (q, dq, ddq) in enumerate(zip(*self._model_order(motion), strict=True)):
            block[k] = compute(model, data, q, dq, ddq)
        w[:, self.order, :inertial] = block
        for i, extra in enumerate(self.extras):
            extra.fill(w[:, :, inertial + i], motion)
        return w

    def _model_order(self, motion: Motion) -> Motion:
        return Motion(*(np.ascontiguousarray(x[:, self.order]) for x in motion))

    def gradient(self, motion: Motion, weights: Array) -> Motion:
        """
        Differentiate `Σ weights ∘ W` with respect to q, dq and ddq, (N, n) each.

        Parameters
        ----------
        motion : N samples
        weights : (N, n, 10 n + extras), held constant

        """
        result = self._contract_rows(motion, weights[:, self.order, : 10 * self.n])
        self._add_extras(result, motion, weights[:, :, 10 * self.n :])
        return result

    def gradient_rank(
        self, motion: Motion, left: Sequence[Array], right: Sequence[Array]
    ) -> Motion:
        """Differentiate `Σ_k left_kᵀ W right_k`, the cheap case: left (N, n), right (columns,)."""
        split = 10 * self.n
        result = self._contract(motion, [(y, v[:split]) for y, v in zip(left, right, strict=True)])
        extra = np.einsum('kni,kc->nic', np.array(left), np.array(right)[:, split:])
        self._add_extras(result, motion, extra)
        return result

    def _add_extras(self, result: Motion, motion: Motion, weights: Array) -> None:
        for i, extra in enumerate(self.extras):
            extra.add_gradient(result, motion, weights[:, :, i])

    def _contract(self, motion: Motion, passes: Sequence[Pass]) -> Motion:
        """
        Differentiate `Σ_p y_pᵀ ID(q, dq, ddq; χ_p)` with respect to q, dq, ddq.

        Inverse dynamics is linear in χ: a shift by point masses, subtracted in a pass of its own,
        keeps every mass away from zero, where Pinocchio's inertias have no centre of mass.
        """
        inner = self._model_order(motion)
        jacobians = np.zeros((3, len(inner.q), self.n))
        shift = self._shift(max(np.abs(chi).max(initial=0.0) for _, chi in passes))
        total = np.zeros_like(inner.q)
        for y, chi in passes:
            self._set_inertias(chi.reshape(self.n, 10) + shift, range(self.n))
            self._derive(jacobians, inner, y[:, self.order])
            total -= y[:, self.order]
        self._set_inertias(shift, range(self.n))
        self._derive(jacobians, inner, total)
        return Motion(*(x[:, np.argsort(self.order)] for x in jacobians))

    def _contract_rows(self, motion: Motion, weights: Array) -> Motion:
        """Differentiate `Σ_j ID_j(q, dq, ddq; χ_j)`, χ_j = weights[:, j] for each sample."""
        inner = self._model_order(motion)
        chi = weights.reshape(len(weights), self.n, self.n, 10)
        shift = self._shift(np.abs(chi).max(initial=0.0))
        chi = chi + shift
        rows = np.empty((len(inner.q), self.n, 3, self.n))
        model, data, derivatives = self.model, self.data, pin.computeRNEADerivatives
        inertias, make = self.model.inertias, pin.Inertia.FromDynamicParameters
        work = [(j, [k + 1 for k in subtree]) for j, subtree in enumerate(self._subtrees)]
        used = [j * self.n + link - 1 for j, links in work for link in links]
        bodies = map(make, chi.reshape(len(chi), -1, 10)[:, used].reshape(-1, 10))
        for q, dq, ddq, into in zip(*inner, rows, strict=True):
            for j, links in work:
                for link in links:
                    inertias[link] = next(bodies)
                by_q, by_dq, by_ddq = derivatives(model, data, q, dq, ddq)
                row = into[j]
                row[0], row[1], row[2] = by_q[j], by_dq[j], by_ddq[j]
        jacobians = rows.sum(axis=1).swapaxes(0, 1).copy()
        self._set_inertias(shift, range(self.n))
        self._derive(jacobians, inner, -np.ones_like(inner.q))
        return Motion(*(x[:, np.argsort(self.order)] for x in jacobians))

    def _shift(self, size: float) -> Array:
        shift = np.zeros((self.n, 10))
        shift[:, 0] = 2.0 * size + 1e-300
        return shift

    def _derive(self, result: Array, motion: Motion, y: Array) -> None:
        """Add `yᵀ ∂ID/∂(q, dq, ddq)` with the model's present inertias to `result`, (3, N, n)."""
        model, data, derivatives = self.model, self.data, pin.computeRNEADerivatives
        jacobians = np.empty((3, len(y), self.n, self.n))
        for k, (q, dq, ddq) in enumerate(zip(*motion, strict=True)):
            jacobians[0, k], jacobians[1, k], jacobians[2, k] = derivatives(
                model, data, q, dq, ddq
            )
        result += np.einsum('nj,anji->ani', y, jacobians)

    def _set_inertias(self, chi: Array, links: Iterable[int]) -> None:
        inertias, make = self.model.inertias, pin.Inertia.FromDynamicParameters
        for j in links:
            inertias[int(j) + 1] = make(chi[j])


def independent_columns(w: Array, tolerance: float = 1e-7) -> NDArray[np.intp]:
    """Find the first independent columns of W (rows, columns) by QR without pivoting."""
    norms = np.linalg.norm(w, axis=0)
    scaled = w / np.where(norms > tolerance * norms.max(), norms, 1.0)
    scaled[:, norms <= tolerance * norms.max()] = 0.0
    diagonal = np.abs(np.diag(np.linalg.qr(scaled, mode='r')))
    return np.flatnonzero(diagonal > tolerance)
