"""
The closed loop: a robot's direct dynamics, integrated under a control law along a reference.

Dry friction that holds a joint at rest is one of the unknowns of each step.
"""

from collections import deque
from collections.abc import Callable, Iterator
import dataclasses
from functools import cached_property, partial
from types import EllipsisType
from typing import NamedTuple

import numpy as np
import pinocchio
from scipy.linalg.lapack import dposv

from ...exceptions import DivergenceError
from ..arrays import Array, diagonal_scale, Indices
from ..excitation.trajectory import Motion
from ..model.dynamics import model_with
from ..model.friction import FrictionTerm
from ..model.robot import Robot
from .control_laws import ControlLaw, LinearStep

# Gauss-Seidel converges in a few sweeps unless slips are strongly coupled; the bound ends those.
MAX_SWEEPS = 50
# Change of a friction sign, of order 1, at which the sweeps end.
TOLERANCE = 1e-12
# Longest step [s], and largest product of step and fastest friction rate, at which two stages are
# as good as four wherever dry friction acts: on a UR10 at 1 kHz, whose torques err by 1e-5 since
# slips reverse within a step, they differ by 1e-6 at most.
MAX_MIDPOINT_STEP, MAX_MIDPOINT_FRICTION_STEP = 1e-3, 0.02
# Updates between two checks for divergence, which cost nothing and end a simulation early.
CHECK_INTERVAL = 100
# Poses of the reference at which M(q) is computed; between them it varies little.
MAX_POSES = 200
# Distance from the reference, over the joint's travel, from which the loop has diverged.
MAX_DEVIATION = 10.0


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
    # (n,) place of each of the model's joints among the robot's; all where they are equal.
    order: Indices | EllipsisType = ...

    @cached_property
    def data(self) -> pinocchio.Data:
        """What Pinocchio computes in."""
        return self.model.createData()

    @cached_property
    def back(self) -> Indices | EllipsisType:
        """Place of each of the robot's joints among the model's, as `order`."""
        return ... if self.order is ... else np.argsort(self.order)

    def acceleration(self, q: Array, dq: Array, tau: Array) -> Array:
        """Return q̈ (n,) under a torque less dry friction and offset."""
        tau = tau - self.damping @ dq
        if self.smooth_friction is not None:
            tau = tau - self.smooth_friction(q, dq)
        return self.rigid_acceleration(q, dq, tau)

    @cached_property
    def rigid_acceleration(self) -> Callable[[Array, Array, Array], Array]:
        """`a(q, q̇, τ)` without friction, (n,): by ABA, or by M where it has coupled motors."""
        model, data, order, back = self.model, self.model.createData(), self.order, self.back

        def coupled(q: Array, dq: Array, tau: Array) -> Array:
            bias = pinocchio.nonLinearEffects(model, data, q[order], dq[order])[back]
            _, result, failed = dposv(self.mass_matrix(q), tau - bias)
            return np.full_like(dq, np.nan) if failed else result

        if self.coupled_inertia is not None:
            return coupled
        if order is ...:
            return partial(pinocchio.aba, model, data)
        return lambda q, dq, tau: pinocchio.aba(model, data, q[order], dq[order], tau[order])[back]

    def mass_matrix(self, q: Array) -> Array:
        """Return M(q), (n, n), with the coupled motors' inertia [kg·m² or kg]."""
        mass = pinocchio.crba(self.model, self.data, q[self.order])[self.back][:, self.back]
        return mass if self.coupled_inertia is None else mass + self.coupled_inertia

    def inverse_dynamics(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the torque (n,) of one state [N·m or N]; dry friction at rest is 0."""
        slip = self.slip_directions
        dry = slip.T @ (self.coulomb * np.sign(slip @ dq))
        return self.smooth_torque(q, dq, ddq) + self.offset + dry

    def smooth_torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the torque (n,) of one state without offset and dry friction [N·m or N]."""
        motion = (x[self.order] for x in (q, dq, ddq))
        tau = pinocchio.rnea(self.model, self.data, *motion)[self.back] + self.damping.dot(dq)
        if self.coupled_inertia is not None:
            tau = tau + self.coupled_inertia @ ddq
        return tau if self.smooth_friction is None else tau + self.smooth_friction(q, dq)

    def delassus_matrix(self, q: Array) -> Array:
        """Return `R M(q)⁻¹ Rᵀ`, (m, m): slip accelerations per friction."""
        return self.slip_directions @ dposv(self.mass_matrix(q), self.slip_directions.T)[1]

    def fastest_friction_rate(self, q: Array) -> float:
        """Return the fastest rate [1/s] at which smooth friction brakes the robot at q (n,)."""
        slope = self.damping
        if self.smooth_friction is not None:
            rest, tiny = np.zeros_like(q), np.full_like(q, 1e-7)
            braking = self.smooth_friction(rest, tiny) - self.smooth_friction(rest, rest)
            slope = slope + np.diag(braking / tiny)
        rates = np.linalg.eigvals(np.linalg.solve(self.mass_matrix(q), slope))
        return float(np.abs(rates).max(initial=0.0))


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
        ... if np.array_equal(robot.order, np.arange(n)) else robot.order,
    )


def slip_directions(robot: Robot) -> Array:
    """Return R, (m, n): slip speeds `R q̇` of joints with dry friction, then of couplings."""
    return np.array([each.ratios for each in robot.transmissions if each.dry]).reshape(-1, robot.n)


def slip_columns(robot: Robot, slip: Array) -> Iterator[tuple[int, int, Array]]:
    """Yield joint, column of dry friction and its values (N,), by signs (N, m) that acted."""
    dry = [drive for drive in robot.transmissions if drive.dry]
    for drive, sign in zip(dry, slip.T, strict=True):
        for column, term in drive.terms:
            parts = zip(*term.kind.dry, strict=True) if term.kind.dry else ()
            for k, (share, constant) in enumerate(parts, column):
                for j in np.flatnonzero(drive.ratios):
                    yield int(j), k, (share * sign + constant) * drive.ratios[j]


class Tableau(NamedTuple):
    """An explicit Runge-Kutta method, each stage of which has the slope of the one before."""

    shares: tuple[float, ...]  # of the step, at which stages are
    way: tuple[float, ...]  # weights of accelerations in what is added to q̇ h, over h²
    speed: tuple[float, ...]  # and in the change of speed, over h


RK4 = Tableau((0.0, 0.5, 0.5, 1.0), (1 / 6, 1 / 6, 1 / 6, 0.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6))
MIDPOINT = Tableau((0.0, 0.5), (1 / 6, 1 / 3), (0.0, 1.0))


def runge_kutta(
    direct: DirectModel, h: float, feedback: Array, tableau: Tableau
) -> Callable[[Array, Array], tuple[Array, Array, Array]]:
    """
    Return a step of h [s] of a Runge-Kutta method, with dry friction held at its mean sign.

    It is from the state [q q̇] (2n,) and a torque (n,), less feedback (n, 2n) times that state, to
    the state at its end, with q̈ (n,) and the friction signs (m,) at its start.

    A step is computed with the friction signs of its start, and joints at rest are locked. Where
    these are also the signs of its end, and friction can hold what is locked, as nearly always, it
    is accepted, and of the method's order. Else a slip starts, stops or reverses within it: the
    step is repeated with `mean_signs`, exact for constant acceleration, and a slip that sticks at
    its end gets the speed 0. This needs no event detection and is not stiff.
    """
    slip, offset, coulomb = direct.slip_directions, direct.offset, direct.coulomb
    n, dry_torque = direct.model.nv, slip.T * coulomb
    identity, armature = np.array_equal(slip, np.eye(n)), direct.model.armature.copy()
    lockable = dataclasses.replace(direct, model=pinocchio.Model(direct.model))
    advance, advance_locked = (
        _smooth_step(each, h, feedback, tableau) for each in (direct, lockable)
    )
    places = np.arange(n)[direct.back]
    # The joint that moves alone in a slip, -1 where several do.
    joints = np.where((slip != 0).sum(axis=1) == 1, (slip != 0).argmax(axis=1), -1)
    sign, friction, known = np.empty(slip.shape[0]), offset, np.empty(0)
    signature: bytes | None = None
    locked = list[tuple[int, int]]()  # slips at rest and their joints
    smooth = False

    def reverse(state: Array, tau: Array) -> tuple[Array, Array, Array]:
        """Take a step in which slips start, stop, reverse or stick."""
        q, speed = state[:n], slip @ state[n:]
        free = slip @ direct.acceleration(q, state[n:], tau - feedback @ state - offset)
        s = mean_signs(speed, free, direct.delassus_matrix(q), coulomb, h)
        after, ddq = advance(state, tau, offset + dry_torque @ s)
        # What a fourth-order step may leave where friction stopped a slip.
        rest = 1e-3 * (np.abs(speed) + np.abs(free) * h) + 1e-15
        stuck = (np.abs(s) < 1.0) & (np.abs(slip @ after[n:]) < rest)
        after[n + joints[stuck & (joints >= 0)]] = 0.0
        return after, ddq, s

    def turn(signs: Array) -> None:
        """Take the signs of slips, and lock the joints of those at rest."""
        nonlocal sign, signature, friction, locked, smooth
        sign, signature, friction = signs, signs.tobytes(), offset + dry_torque @ signs
        resting = np.flatnonzero(signs == 0.0)
        locked = list(zip(resting.tolist(), joints[resting].tolist(), strict=True))
        smooth = not locked or (direct.coupled_inertia is None and joints[resting].min() >= 0)
        inertia = armature.copy()
        inertia[places[joints[resting]]] = np.inf
        lockable.model.armature = inertia

    def holding(load: Array) -> Array | None:
        """Return the signs with which friction holds a load (n,), None where it is less."""
        s = sign.copy()
        for i, j in locked:
            if not abs(load[j]) < abs(dry_torque[j, i]):
                return None
            s[i] = load[j] / dry_torque[j, i]
        return s

    def step(state: Array, tau: Array) -> tuple[Array, Array, Array]:
        nonlocal known
        if state is not known:  # else its signs are those of the step before
            now = np.sign(state[n:] if identity else slip @ state[n:])
            if now.tobytes() != signature:
                turn(now)
        if smooth:
            after, ddq = (advance_locked if locked else advance)(state, tau, friction)
            if np.sign(after[n:] if identity else slip @ after[n:]).tobytes() == signature:
                s: Array | None = sign
                if locked:
                    load = direct.smooth_torque(state[:n], state[n:], ddq)
                    s = holding(tau - feedback.dot(state) - friction - load)
                if s is not None:
                    known = after
                    return after, ddq, s
        return reverse(state, tau)

    return step


def _smooth_step(
    direct: DirectModel, h: float, feedback: Array, tableau: Tableau
) -> Callable[[Array, Array, Array], tuple[Array, Array]]:
    """
    Return the step itself, given the dry friction (n,) too; signs are left to `runge_kutta`.

    All that a stage needs is one matrix times what is known before.
    """
    accelerate, smooth_friction = direct.rigid_acceleration, direct.smooth_friction
    n, shares = direct.model.nv, tableau.shares
    # [q q̇ τ f k₁ k₂ …], from which a stage's q, q̇ and τ − L [q q̇] − f − D q̇ come: NumPy takes
    # as long for such a product as for the sum of two vectors.
    known, identity, last = np.zeros((4 + len(shares)) * n), np.eye(n), np.empty(0)
    begin, torque, held, *slopes = np.split(known, [2 * n, *range(3 * n, len(known), n)])
    stages = []
    for k, share in enumerate(shares):
        # q + share h (q̇ of the stage before), and q̇ + share h k.
        place, speed = np.zeros((2, 4 + k))
        place[:2], speed[1] = [1.0, share * h], 1.0
        if k:
            speed[3 + k] = share * h
        if k > 1:
            place[2 + k] = share * h * shares[k - 1] * h
        net = -np.kron(speed, direct.damping)
        net[:, : 4 * n] += np.hstack([-feedback, identity, -identity])
        matrix = np.vstack([np.kron(place, identity), np.kron(speed, identity), net])
        out = np.empty(3 * n)
        at, rate, net_torque = np.split(out, 3)
        stages.append((matrix.dot, known[: (4 + k) * n], out, at, rate, net_torque, slopes[k]))
    ends = np.zeros((2, 4 + len(shares)))
    ends[:, :2] = [[1.0, h], [0.0, 1.0]]
    ends[:, 4:] = np.array(tableau.way) * h * h, np.array(tableau.speed) * h
    end = np.kron(ends, identity).dot

    def advance(state: Array, tau: Array, friction: Array) -> tuple[Array, Array]:
        nonlocal last
        begin[:], torque[:] = state, tau
        if friction is not last:
            held[:] = last = friction
        for times, before, out, at, speed, net, slope in stages:
            times(before, out)
            if smooth_friction is not None:
                net -= smooth_friction(at, speed)
            slope[:] = accelerate(at, speed, net)
        return end(known), slopes[0]

    return advance


def steps_of(direct: DirectModel, q: Array, period: float, longest: float) -> tuple[int, Tableau]:
    """
    Return the steps in a control period [s], none above `longest` [s], and their method.

    They are stable at q (n,): RK4 is up to 2.78 steps per time constant of smooth friction, at 1
    it errs by 0.7 % of what decays. The method is the quickest whose error is that of RK4.
    """
    rate = direct.fastest_friction_rate(q)
    count = int(max(1, np.ceil(period / longest - 1e-9), np.ceil(period * rate)))
    h = period / count
    fine = h <= MAX_MIDPOINT_STEP * (1.0 + 1e-9) and h * rate <= MAX_MIDPOINT_FRICTION_STEP
    # Without dry friction nothing hides the difference.
    hidden = direct.smooth_friction is None and direct.coulomb.any()
    return count, MIDPOINT if fine and hidden else RK4


class Simulation(NamedTuple):
    """
    Motion of the simulated robot at the controller's K updates.

    `W(q, q̇, q̈) χ = τ` holds in each row, with `slip_sign` in place of sign(R q̇).
    """

    q: Array  # (K, n) [rad or m]
    dq: Array
    ddq: Array  # that follows the state
    tau: Array  # (K, n) held from its row to the next [N·m or N]
    slip_sign: Array  # (K, m) of dry friction, between −1 and 1 where it sticks or turns


def simulate(
    direct: DirectModel,
    law: ControlLaw,
    desired: Motion,
    *,
    step: float = 1e-3,
    restart: int = 0,
    delay: int = 0,
) -> Simulation:
    """
    Integrate the closed loop from the reference's start, at rest relative to it (DIDIM IV).

    No step is longer than `step` [s]. After so many updates a restart takes the state of the
    reference again, 0: never; after others, the delay, a torque acts. DivergenceError: the robot
    leaves its reference, or is not finite.
    """
    count, n = desired.q.shape
    parts, tableau = steps_of(direct, desired.q[0], 1.0 / law.rate, step)
    travel = np.ptp(desired.q, axis=0)
    bound = MAX_DEVIATION * np.maximum(travel, 0.1 * travel.max(initial=0.0)) + 1e-3
    states, ddq, tau = (np.empty((count, width)) for width in (2 * n, n, n))
    slip = np.empty((count, direct.slip_directions.shape[0]))
    first = direct.inverse_dynamics(desired.q[0], desired.dq[0], desired.ddq[0])
    control, waiting = law.start(desired, first), deque([first] * delay)
    feedback = np.zeros((n, 2 * n))
    if isinstance(control, LinearStep) and parts == 1 and not delay:
        # Of the integrator, which multiplies the state by a matrix anyhow.
        feedback, control = control.feedback, control.ahead
    advance = runge_kutta(direct, 1.0 / (law.rate * parts), feedback, tableau)
    state = np.concatenate([desired.q[0], desired.dq[0]])
    more = range(parts - 1)
    for k in range(count):
        if restart and k % restart == 0:
            state = np.concatenate([desired.q[k], desired.dq[k]])
        states[k] = state
        tau[k] = effort = control(k, state)
        if delay:
            waiting.append(effort)
            tau[k] = effort = waiting.popleft()
        state, ddq[k], slip[k] = advance(state, effort)
        for _ in more:
            state, _, _ = advance(state, effort)
        if k % CHECK_INTERVAL == 0 and not (np.abs(state[:n] - desired.q[k]) < bound).all():
            break
    else:
        if np.isfinite(state[:n]).all():
            tau -= states @ feedback.T
            return Simulation(states[:, :n], states[:, n:], ddq, tau, slip)
        k = count
    share = np.abs(state[:n] - desired.q[min(k, count - 1)]) / bound
    joint = int(np.argmax(np.where(np.isfinite(share), share, np.inf))) + 1
    raise DivergenceError(
        f'the simulated robot leaves its reference at {k / law.rate:.3g} s, joint {joint} first: '
        'check the control law and its gains, start from an IDIM solution, or use a slower motion',
        0,
    )


def mass_matrices(direct: DirectModel, q: Array) -> Array:
    """Return M at up to `MAX_POSES` of the positions (K, n), (S, n, n)."""
    poses = q[:: max(1, q.shape[0] // MAX_POSES)]
    return np.array([direct.mass_matrix(pose).copy() for pose in poses])


def smallest_eigenvalue(mass: Array) -> float:
    """Return the smallest eigenvalue of mass matrices (S, n, n) scaled to a unit diagonal."""
    scale = diagonal_scale(mass)
    return float(np.linalg.eigvalsh(mass / scale[:, :, None] / scale[:, None, :]).min())
