"""Columns that are not of a rigid link: rotor inertias, friction, springs, couplings."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...model.friction import FrictionTerm, make_terms
from ...model.parameters import INERTIAL
from ...model.robot import Robot
from ..trajectories.trajectory import Motion

# Step of the one-sided differences of friction [rad/s or m/s]: above rounding, below any shape.
STEP = 1e-6


@dataclass(frozen=True)
class DriveColumn:
    """
    A torque `rᵀ f(r·x)` of a motor with ratios r, x one of q, dq and ddq.

    Parameters
    ----------
    name : of the standard parameter
    joints : numbers of the joints that the motor drives
    ratios : motor speed per speed of each of them
    source : 'q', 'dq' or 'ddq': x
    function : of the motor's x (N,), or None for x itself

    """

    name: str
    joints: NDArray[np.intp]
    ratios: Array
    source: str
    function: Callable[[Array], Array] | None

    def fill(self, out: Array, motion: Motion) -> None:
        """Write the column into `out`, (N, n) zeros."""
        turn = getattr(motion, self.source)[:, self.joints] @ self.ratios
        values = turn if self.function is None else self.function(turn)
        out[:, self.joints] = np.outer(values, self.ratios)

    def add_gradient(self, result: Motion, motion: Motion, weights: Array) -> None:
        """Add the gradient of `Σ weights ∘ column` to `result`, in place; weights (N, n)."""
        share = weights[:, self.joints] @ self.ratios
        if self.function is not None:
            turn = getattr(motion, self.source)[:, self.joints] @ self.ratios
            share = share * _derivative(self.function, turn)
        into = getattr(result, self.source)
        for joint, ratio in zip(self.joints, self.ratios, strict=True):
            into[:, joint] += ratio * share


def _derivative(function: Callable[[Array], Array], velocity: Array) -> Array:
    """Differentiate by three points on the velocity's side of zero, where friction is smooth."""
    step = np.where(velocity < 0.0, -STEP, STEP)
    x = np.where(np.abs(velocity) < STEP, step, velocity)
    here, near, far = function(np.stack([x, x + step, x + 2.0 * step]).ravel()).reshape(3, -1)
    return (4.0 * near - 3.0 * here - far) / (2.0 * step)


def _term_column(term: FrictionTerm, index: int, x: Array) -> Array:
    return term.columns(x, x)[index]


def drive_columns(robot: Robot, steepness: Array | None = None) -> tuple[DriveColumn, ...]:
    """
    List the columns of rotor inertias, friction and couplings, joint by joint.

    Parameters
    ----------
    robot : the robot
    steepness : (n,) replace Coulomb's sign(dq) by tanh(steepness·dq), which an optimiser can
        follow [s/rad or s/m]; None: as the robot has it

    """
    own = zip(robot.joints, robot.friction, np.eye(robot.n), strict=True)
    motors = [(*motor, robot.rotor_inertia) for motor in own]
    terms = make_terms(('viscous', 'coulomb'), {})
    motors += [(coupling.name, terms, coupling.ratios, True) for coupling in robot.couplings]
    result = []
    for motor, friction, ratios, has_inertia in motors:
        functions: list[tuple[str, Callable[[Array], Array] | None]] = []
        if has_inertia:
            functions.append(('ddq', None))
        for term in (_smoothed(term, steepness, ratios) for term in friction):
            source = 'q' if term.kind.of_position else 'dq'
            count = len(term.kind.symbols)
            functions += [(source, partial(_term_column, term, k)) for k in range(count)]
        own_parameters = [p for p in robot.parameters if p.joint == motor]
        names = [p.name for p in own_parameters if p.symbol not in INERTIAL]
        joints = np.flatnonzero(ratios)
        pairs = zip(names, functions, strict=True)
        result += [DriveColumn(name, joints, ratios[joints], *f) for name, f in pairs]
    return tuple(result)


def _smoothed(term: FrictionTerm, steepness: Array | None, ratios: Array) -> FrictionTerm:
    if term.name not in ('coulomb', 'presliding') or steepness is None:
        return term
    slope = float(np.abs(ratios) @ steepness / np.sum(np.abs(ratios)))
    return FrictionTerm('smooth_coulomb', {'tanh_steepness': slope})
