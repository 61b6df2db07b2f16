"""The closed loop: the direct model, integrated under a control law along a reference."""

from collections import deque
from collections.abc import Callable
import dataclasses
from functools import partial
from typing import NamedTuple

import numpy as np
import pinocchio

from ...exceptions import DivergenceError
from ..arrays import Array, diagonal_scale
from ..excitation.trajectory import Motion
from .control_laws import ControlLaw, LinearStep
from .direct_model import DirectModel, mean_signs

# A step of an integrator: from the state [q q̇] (2n,) and the torque (n,), to the state at its end,
# and q̈ (n,) at its start with the friction signs (m,); it is given the friction (n,), or finds it.
Advance = Callable[[Array, Array, Array], tuple[Array, Array]]
Integrate = Callable[[Array, Array], tuple[Array, Array, Array]]
# What makes it, of a model, the length of a step [s] and a feedback (n, 2n).
Integrator = Callable[[DirectModel, float, Array], Integrate]

# Longest step [s], and largest product of step and fastest friction rate, at which two stages are
# as good as four wherever dry friction acts: on a UR10 at 1 kHz, whose torques err by 1e-5 since
# slips reverse within a step, they differ by 1e-6 at most.
MAX_MIDPOINT_STEP, MAX_MIDPOINT_FRICTION_STEP = 1e-3, 0.02
# Updates between two checks for divergence: seldom enough to cost nothing, often enough to end a
# simulation that diverges early.
CHECK_INTERVAL = 100
# Poses of the reference at which M(q) is computed; between them it varies little.
MAX_POSES = 200
# Distance from the reference, over the joint's travel, from which the loop has diverged.
MAX_DEVIATION = 10.0


class Tableau(NamedTuple):
    """An explicit Runge-Kutta method, each stage of which has the slope of the one before."""

    shares: tuple[float, ...]  # of the step, at which stages are
    way: tuple[float, ...]  # weights of accelerations in what is added to q̇ h, over h²
    speed: tuple[float, ...]  # and in the change of speed, over h


RK4 = Tableau((0.0, 0.5, 0.5, 1.0), (1 / 6, 1 / 6, 1 / 6, 0.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6))
MIDPOINT = Tableau((0.0, 0.5), (1 / 6, 1 / 3), (0.0, 1.0))


def runge_kutta(
    direct: DirectModel, h: float, feedback: Array | float = 0.0, tableau: Tableau = RK4
) -> Integrate:
    """
    Return a step of h [s] of a Runge-Kutta method, with dry friction held at its mean sign.

    The torque of a step is what it is given less feedback (n, 2n) times the state at its start.
    A step is computed with the friction signs of its start, and joints at rest are locked. Where
    these are also the signs of its end, and friction can hold what is locked, as nearly always, it
    is accepted, and of the method's order. Else a slip starts, stops or reverses within it: the
    step is repeated with `mean_signs`, exact for constant acceleration, and a slip that sticks at
    its end gets the speed 0. This needs no event detection and is not stiff.
    """
    slip, offset, coulomb = direct.slip_directions, direct.offset, direct.coulomb
    n, data, dry_torque = direct.model.nv, direct.model.createData(), slip.T * coulomb
    accelerate, feedback = direct.acceleration_function(), feedback + np.zeros((n, 2 * n))
    identity, armature = np.array_equal(slip, np.eye(n)), direct.model.armature.copy()
    lockable = dataclasses.replace(direct, model=pinocchio.Model(direct.model))
    advance, advance_locked = (
        _smooth_step(each, h, feedback, tableau) for each in (direct, lockable)
    )
    places = np.arange(n) if direct.order is None else np.argsort(direct.order)
    # The joint that moves alone in a slip, -1 where several do.
    joints = np.where((slip != 0).sum(axis=1) == 1, (slip != 0).argmax(axis=1), -1)
    sign, friction, known = np.empty(slip.shape[0]), offset, np.empty(0)
    signature: bytes | None = None
    locked = list[tuple[int, int]]()  # slips at rest and their joints
    smooth = False

    def reverse(state: Array, tau: Array) -> tuple[Array, Array, Array]:
        """Take a step in which slips start, stop, reverse or stick."""
        q, speed = state[:n], slip @ state[n:]
        free = slip @ accelerate(q, state[n:], tau - feedback @ state - offset)
        s = mean_signs(speed, free, direct.delassus_matrix(data, q), coulomb, h)
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
                    load = direct.smooth_torque(data, state[:n], state[n:], ddq)
                    s = holding(tau - feedback.dot(state) - friction - load)
                if s is not None:
                    known = after
                    return after, ddq, s
        return reverse(state, tau)

    return step


def _smooth_step(direct: DirectModel, h: float, feedback: Array, tableau: Tableau) -> Advance:
    """Return the step itself; all that a stage needs is one matrix times what is known before."""
    accelerate, smooth_friction = direct.rigid_acceleration(), direct.smooth_friction
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


def substeps(direct: DirectModel, q: Array, period: float, longest: float) -> int:
    """Count the steps, of `longest` [s] at most and stable at q (n,), per control period [s]."""
    by_length = np.ceil(period / longest - 1e-9)
    # RK4 is stable up to 2.78 steps per time constant; at 1 it errs by 0.7 % of what decays.
    by_friction = np.ceil(period * direct.fastest_friction_rate(q))
    return int(max(1, by_length, by_friction))


def quickest(direct: DirectModel, q: Array, h: float) -> Tableau:
    """Return the quickest method whose error at q (n,) and step h [s] is that of RK4."""
    if h > MAX_MIDPOINT_STEP * (1.0 + 1e-9) or direct.smooth_friction is not None:
        return RK4
    # Without dry friction nothing hides the difference.
    slow = h * direct.fastest_friction_rate(q) <= MAX_MIDPOINT_FRICTION_STEP
    return MIDPOINT if slow and direct.coulomb.any() else RK4


class Simulation(NamedTuple):
    """
    Motion of the simulated robot at the controller's K updates.

    `W(q, q̇, q̈) χ = τ` holds in each row, with `slip_sign` in place of sign(R q̇).
    """

    rate: float  # of the controller [Hz]
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
    integrator: Integrator | None = None,
) -> Simulation:
    """
    Integrate the closed loop from the reference's start, at rest relative to it (DIDIM IV).

    No step is longer than `step` [s]. After so many updates a restart takes the state of the
    reference again, 0: never; after others, the delay, a torque acts. The integrator is
    `runge_kutta` with the `quickest` method, or another one. DivergenceError: the robot leaves its
    reference, or is not finite.
    """
    count, n = desired.q.shape
    parts = substeps(direct, desired.q[0], 1.0 / law.rate, step)
    h = 1.0 / (law.rate * parts)
    if integrator is None:
        integrator = partial(runge_kutta, tableau=quickest(direct, desired.q[0], h))
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
    advance = integrator(direct, h, feedback)
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
            return Simulation(law.rate, states[:, :n], states[:, n:], ddq, tau, slip)
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
    data = direct.model.createData()
    poses = q[:: max(1, q.shape[0] // MAX_POSES)]
    return np.array([direct.mass_matrix(data, pose).copy() for pose in poses])


def joint_inertia(mass: Array) -> Array:
    """Return `J_j = max_q M_jj(q)`, (n,), of mass matrices (S, n, n) (DIDIM eq. 51)."""
    return np.asarray(np.diagonal(mass, axis1=1, axis2=2).max(axis=0))


def smallest_eigenvalue(mass: Array) -> float:
    """Return the smallest eigenvalue of mass matrices (S, n, n) scaled to a unit diagonal."""
    scale = diagonal_scale(mass)
    return float(np.linalg.eigvalsh(mass / scale[:, :, None] / scale[:, None, :]).min())
