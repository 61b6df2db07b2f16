"""Direct dynamic model: accelerations from torques, with dry friction that sticks at rest."""

from collections.abc import Callable, Iterator
import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pinocchio
from scipy.linalg.lapack import dposv

from ..arrays import Array, Indices
from ..model.dynamics import model_with
from ..model.friction import FrictionTerm
from ..model.robot import Robot

# Gauss-Seidel converges in a few sweeps unless slips are strongly coupled; the bound ends those.
MAX_SWEEPS = 50
# Change of a friction sign, of order 1, at which the sweeps end.
TOLERANCE = 1e-12


@dataclasses.dataclass(frozen=True)
class DirectModel:
    """
    A robot with one value of its parameters, ready to be integrated.

    `M(q) q̈ = τ − N(q, q̇) − D q̇ − φ(q, q̇) − o − Rᵀ F_c s` (DIDIM eq. 21), where each slip speed
    `w = R q̇` has a sign s: sign(w) while it slips, what holds it between −1 and 1 while it sticks.
    Friction with a jump is split into an offset and F_c times that sign.
    """

    model: pinocchio.Model  # with inertias and armature
    damping: Array  # (n, n) friction torque per velocity, D
    offset: Array  # (n,) constant torque o
    slip_directions: Array  # (m, n) joint velocities to slip speeds, R
    coulomb: Array  # (m,) F_c
    coupled_inertia: Array | None = None  # (n, n) beyond the model's, of coupled motors
    # Torques φ of other friction and of springs by q and q̇ (n,).
    smooth_friction: Callable[[Array, Array], Array] | None = None
    # (n,) place of each of the model's joints among the robot's, None where they are equal.
    order: Indices | None = None

    def acceleration_function(self) -> Callable[[Array, Array, Array], Array]:
        """Return `a(q, q̇, τ)`: q̈ (n,) under a torque less dry friction and offset."""
        rigid, damping, smooth = self.rigid_acceleration(), self.damping, self.smooth_friction

        def accelerate(q: Array, dq: Array, tau: Array) -> Array:
            tau = tau - damping @ dq
            return rigid(q, dq, tau if smooth is None else tau - smooth(q, dq))

        return accelerate

    def rigid_acceleration(self) -> Callable[[Array, Array, Array], Array]:
        """Return q̈ (q, q̇, τ) without friction: ABA, or by M where it has coupled motors."""
        model, data, order, aba = self.model, self.model.createData(), self.order, pinocchio.aba

        def coupled(q: Array, dq: Array, tau: Array) -> Array:
            _, result, failed = dposv(self.mass_matrix(data, q), tau - self.bias(data, q, dq))
            return np.full_like(dq, np.nan) if failed else result

        if self.coupled_inertia is not None:
            return coupled
        if order is None:
            return partial(aba, model, data)
        back = np.argsort(order)
        return lambda q, dq, tau: aba(model, data, q[order], dq[order], tau[order])[back]

    def bias(self, data: pinocchio.Data, q: Array, dq: Array) -> Array:
        """Return the torque (n,) of Coriolis, centrifugal forces and gravity [N·m or N]."""
        order, back = self._orders
        return np.asarray(pinocchio.nonLinearEffects(self.model, data, q[order], dq[order])[back])

    def mass_matrix(self, data: pinocchio.Data, q: Array) -> Array:
        """Return M(q), (n, n), with the coupled motors' inertia [kg·m² or kg]."""
        order, back = self._orders
        mass = pinocchio.crba(self.model, data, q[order])[back][:, back]
        return mass if self.coupled_inertia is None else mass + self.coupled_inertia

    @property
    def _orders(self) -> tuple[Any, Any]:
        """What takes vectors to the model's order, and back."""
        return (slice(None),) * 2 if self.order is None else (self.order, np.argsort(self.order))

    def inverse_dynamics(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the torque (n,) of one state [N·m or N]; dry friction at rest is 0."""
        data, slip = self.model.createData(), self.slip_directions
        dry = slip.T @ (self.coulomb * np.sign(slip @ dq))
        return self.smooth_torque(data, q, dq, ddq) + self.offset + dry

    def smooth_torque(self, data: pinocchio.Data, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the torque (n,) of one state without offset and dry friction [N·m or N]."""
        if self.order is None:
            tau = pinocchio.rnea(self.model, data, q, dq, ddq)
        else:
            order, back = self._orders
            tau = pinocchio.rnea(self.model, data, q[order], dq[order], ddq[order])[back]
        tau = tau + self.damping.dot(dq)
        if self.coupled_inertia is not None:
            tau = tau + self.coupled_inertia @ ddq
        return tau if self.smooth_friction is None else tau + self.smooth_friction(q, dq)

    def delassus_matrix(self, data: pinocchio.Data, q: Array) -> Array:
        """Return `R M(q)⁻¹ Rᵀ`, (m, m): slip accelerations per friction."""
        return self.slip_directions @ dposv(self.mass_matrix(data, q), self.slip_directions.T)[1]

    def fastest_friction_rate(self, q: Array) -> float:
        """Return the fastest rate [1/s] at which smooth friction brakes the robot at q (n,)."""
        n = self.model.nv
        slope = self.damping
        if self.smooth_friction is not None:
            rest, tiny = np.zeros(n), np.full(n, 1e-7)
            braking = self.smooth_friction(rest, tiny) - self.smooth_friction(rest, rest)
            slope = slope + np.diag(braking / tiny)
        mass = self.mass_matrix(self.model.createData(), q)
        return float(np.abs(np.linalg.eigvals(np.linalg.solve(mass, slope))).max(initial=0.0))


def mean_sign(speed: float, acceleration: float, friction: float, h: float) -> float:
    """
    Return the mean of sign(w) over a step of h [s] in which all but the friction stays constant.

    Where the slip stops, it sticks if the friction can hold it, else it slips the other way; no
    event is sought. The step begins with the slip speed w; `acceleration` is that of w without its
    own friction, which gives the deceleration `friction`, F_c over the inertia that w feels.
    """
    held = abs(acceleration) <= friction
    if held and friction > 0.0:
        after = acceleration / friction
    else:
        after = (acceleration > 0.0) - (acceleration < 0.0) + 0.0
    if speed == 0.0:
        return after
    before = 1.0 if speed > 0.0 else -1.0
    braking = acceleration - friction * before
    if braking * before >= 0.0 or -speed / braking >= h:
        return before
    share = -speed / (braking * h)
    return share * before + (1.0 - share) * after


def mean_signs(
    speed: Array, acceleration: Array, delassus_matrix: Array, coulomb: Array, h: float
) -> Array:
    """Solve `mean_sign` for slips that act on each other, (m,), by Gauss-Seidel from sign(w)."""
    decelerations, sign = delassus_matrix * coulomb, np.sign(speed)
    # Python's own numbers: of so few, they are quicker than arrays.
    columns, start = decelerations.T.tolist(), speed.tolist()
    rest, signs = (acceleration - decelerations @ sign).tolist(), sign.tolist()
    for _ in range(MAX_SWEEPS):
        change = 0.0
        for i, before in enumerate(signs):
            column = columns[i]
            own = column[i]
            after = mean_sign(start[i], rest[i] + own * before, own, h)
            if after != before:
                step = after - before
                rest = [value - part * step for value, part in zip(rest, column, strict=True)]
                signs[i], change = after, max(change, abs(step))
        if change < TOLERANCE:
            break
    return np.array(signs)


def direct_model(robot: Robot, chi: Array) -> DirectModel:
    """Build the direct model of a robot with standard parameters `chi` (p,)."""
    robot.check_no_mimic_joints('a replay')
    n, chi, coulomb = robot.n, np.asarray(chi, dtype=float), list[float]()
    offset, damping, inertia = np.zeros(n), np.zeros((n, n)), np.zeros((n, n))
    smooth: list[tuple[int, FrictionTerm, Array]] = []
    for drive in robot.transmissions:
        shape, holding = np.outer(drive.ratios, drive.ratios), 0.0
        for column, term in drive.terms:
            values = chi[column : column + len(term.kind.symbols)]
            if term.kind.dry:  # of friction that remembers its path too
                dry, constant = np.array(term.kind.dry) @ values
                holding += dry
                offset += constant * drive.ratios
            elif term.name == 'viscous':
                damping += values[0] * shape
            elif term.name == 'offset':
                offset += values[0] * drive.ratios
            else:
                smooth.append((int(drive.joints[0]), term, values))
        if drive.dry:
            coulomb.append(holding)
        if len(drive.joints) > 1 and drive.inertia is not None:
            inertia += chi[drive.inertia] * shape

    def smooth_friction(q: Array, dq: Array) -> Array:
        torque = np.zeros(n)
        for j, term, values in smooth:
            columns = term.columns(q[j : j + 1], dq[j : j + 1])
            torque[j] += sum(c[0] * v for c, v in zip(columns, values, strict=True))
        return torque

    return DirectModel(
        model_with(robot, chi),
        damping,
        offset,
        slip_directions(robot),
        np.array(coulomb),
        inertia if robot.couplings else None,
        smooth_friction if smooth else None,
        None if np.array_equal(robot.order, np.arange(n)) else robot.order,
    )


def slip_directions(robot: Robot) -> Array:
    """Return R, (m, n): slip speeds `R q̇` of joints with dry friction, then of couplings."""
    return np.array([each.ratios for each in robot.transmissions if each.dry]).reshape(-1, robot.n)


def slip_columns(robot: Robot, slip: Array) -> Iterator[tuple[int, Array]]:
    """Yield columns of dry friction and their values (N, n), by signs (N, m) that acted."""
    dry = [drive for drive in robot.transmissions if drive.dry]
    for drive, sign in zip(dry, slip.T, strict=True):
        for column, term in drive.terms:
            if term.kind.dry:
                for k, (share, constant) in enumerate(zip(*term.kind.dry, strict=True), column):
                    yield k, np.outer(share * sign + constant, drive.ratios)
