"""Arms whose servos follow commanded positions, simulated in many short windows at once."""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pinocchio

from ..arrays import Array, Indices, Mask
from ..model.dynamics import model_with
from ..model.robot import Robot

DELAY, BODIES = 'delay', 'bodies'
# Symbols of the parameters, of a joint but for the delay, with their units as of `TermKind`.
UNITS: Mapping[str, str] = {
    'stiffness': '{f}/{l}', 'damping': '{f}·s/{l}', 'armature': '{f}·s²/{l}', 'Fc': '{f}',
    'Fst': '{f}', 'Fl': '1', 'bias': '{l}', 'limit': '{f}', BODIES: '1', DELAY: 's',
}  # fmt: skip
# Sweeps over joints whose dry friction acts on each other; the change of a sign that ends them.
MAX_SWEEPS, TOLERANCE = 30, 1e-9
# A simulated joint farther off than this has diverged [rad or m].
FAR = 1e3


class Windows(NamedTuple):
    """Short stretches of logs; joints are in the model's order."""

    start: Array  # (W,) time of the first sample [s]
    log: Indices  # (W,) number of the log
    time: Array  # (W, S) of the samples since the start, 0 where there is none [s]
    valid: Mask  # (W, S) which samples there are
    q: Array  # (W, S, n) measured positions
    state: Array  # (W, 2, n) position and velocity at the start, filtered
    # Of each log, stamps (K,) [s] and commands (K, n), held from each to the next.
    commands: tuple[tuple[Array, Array], ...]

    def commanded(self, delay: float, h: float, count: int) -> Array:
        """Return the mean commands of `count` steps of h [s], (W, count, n)."""
        ends = self.start[:, None] + h * np.arange(count + 1) - delay
        result = np.empty((len(self.start), count, self.q.shape[2]))
        for number, (time, u) in enumerate(self.commands):
            own = self.log == number
            # The first command is held before it as well.
            area = np.cumsum(u * np.diff(time, append=time[-1])[:, None], axis=0)
            area = np.vstack([np.zeros(u.shape[1]), area[:-1]])
            row = np.maximum(np.searchsorted(time, ends[own], side='right') - 1, 0)
            once = area[row] + u[row] * (ends[own] - time[row])[..., None]
            result[own] = np.diff(once, axis=1) / h
        return result


@dataclasses.dataclass(frozen=True)
class ServoArm:
    """
    A robot with servos, and which of its parameters are free.

    `M(q) q̈ + h(q, q̇) + Ia q̈ + f = sat(k_p (u(t − d) + b − q) − k_d q̇)` with commands u that are
    held, dry friction f that sticks at rest, and the bodies M, h of the description.
    """

    robot: Robot  # rigid, its prior are the bodies
    # (m,) parameters: (symbol, number of the joint in the model's order), −1 of the delay and of
    # the scale of the bodies.
    names: tuple[tuple[str, int], ...]
    limit: Array  # (n,) torque limits that are not free
    stribeck_velocity: Array  # (n,) [rad/s or m/s]
    # Of each log, what its robot carries: (number of the joint, inertia) or None.
    added: tuple[tuple[int, pinocchio.Inertia] | None, ...] = (None,)

    def values(self, theta: Array) -> dict[str, Array]:
        """Return the parameters by symbol of rows theta (R, m): (R, n), those of all (R,)."""
        theta = np.atleast_2d(theta)
        found: dict[str, Array] = {s: np.zeros((len(theta), self.robot.n)) for s in UNITS}
        found['limit'] += self.limit
        found[BODIES], found[DELAY] = np.ones(len(theta)), np.zeros(len(theta))
        for column, (symbol, joint) in zip(theta.T, self.names, strict=True):
            if joint < 0:
                found[symbol] = column
            else:
                found[symbol][:, joint] = column
        return found

    def models(self, scale: float) -> list[Any]:
        """Return the Pinocchio model of each log, of bodies times their scale."""
        models = []
        for added in self.added:
            model = model_with(self.robot, self.robot.prior, armature=False)
            for k in range(self.robot.n):
                own = model.inertias[k + 1].toDynamicParameters() * scale
                body = pinocchio.Inertia.FromDynamicParameters(own)
                model.inertias[k + 1] = body + added[1] if added and added[0] == k else body
            models.append(model)
        return models

    def mass_matrices(self, windows: Windows, scale: float) -> Array:
        """Return M where some windows start, (P, n, n), of bodies times their scale."""
        model, starts = self.models(scale)[0], windows.state[:, 0]
        data = model.createData()
        some = starts[:: max(1, len(starts) // 10)]
        return np.array([np.array(pinocchio.crba(model, data, q)) for q in some])


def _rigid_terms(
    arm: ServoArm, models: list[Any], log: Indices, with_bodies: bool
) -> Callable[[Array, Array, Array], tuple[Array, Array, Array, Array, Array]]:
    """Return M, ∂τ/∂q, ∂τ/∂q̇, bias and torques of the bodies (W, n), by q, q̇, q̈ (W, n)."""
    datas = [model.createData() for model in models]
    n, count = arm.robot.n, len(log)
    mass, by_q, by_v = (np.zeros((count, n, n)) for _ in range(3))
    torque, bodies = np.zeros((2, count, n))
    plain = model_with(arm.robot, arm.robot.prior, armature=False)
    other = plain.createData()
    upper = np.triu(np.ones((n, n)))

    def terms(q: Array, v: Array, a: Array) -> tuple[Array, Array, Array, Array, Array]:
        for w in range(count):
            data = datas[log[w]]
            pinocchio.computeRNEADerivatives(models[log[w]], data, q[w], v[w], a[w])
            mass[w], by_q[w], by_v[w], torque[w] = data.M, data.dtau_dq, data.dtau_dv, data.tau
            if with_bodies:
                bodies[w] = pinocchio.rnea(plain, other, q[w], v[w], a[w])
        whole = mass * upper + (mass * (upper - np.eye(n))).swapaxes(1, 2)
        return whole, by_q, by_v, torque - _of(whole, a), bodies

    return terms


def _of(matrix: Array, rows: Array) -> Array:
    """Return matrices (W, R, n, n) times rows (W, R, n)."""
    return np.asarray((matrix @ rows[..., None])[..., 0])


def batch_mean_sign(speed: Array, rest: Array, friction: Array, h: float) -> Array:
    """`direct_model.mean_sign` elementwise; `rest` is the acceleration without friction."""
    known = np.maximum(friction, 1e-300)
    after = np.clip(rest / known, -1.0, 1.0)
    before = np.sign(speed)
    braking = (rest - friction * before) * before  # below 0: it slows down
    share = np.abs(speed) / np.maximum(-braking * h, 1e-300)
    stops = (braking < 0.0) & (share < 1.0)
    share = np.where(stops, share, 1.0)
    return np.where(before == 0.0, after, share * before + (1.0 - share) * after)


def _dry_friction(v: Array, free: Array, inverse: Array, bound: Array, h: float) -> Array:
    """Return the mean dry friction (W, R, n), at most `bound`; `free` are q̈ without it."""
    sign = np.sign(v)
    force = bound * sign
    after = v + h * (free - _of(inverse, force))
    change = ((np.sign(after) != sign) & (bound > 0.0)).any(axis=2)
    window, row = np.nonzero(change)
    if not window.size:
        return force
    speed, rest, own, f = v[window, row], free[window, row], bound[window, row], force[change]
    coupling = inverse[window, row]
    for _ in range(MAX_SWEEPS):
        largest = 0.0
        for j in range(v.shape[2]):
            diagonal = coupling[:, j, j]
            others = rest[:, j] - (coupling[:, j] * f).sum(axis=1) + diagonal * f[:, j]
            now = own[:, j] * batch_mean_sign(speed[:, j], others, diagonal * own[:, j], h)
            moved = np.abs(now - f[:, j]) / np.maximum(own[:, j], 1e-300)
            largest = max(largest, float(moved.max()))
            f[:, j] = now
        if largest < TOLERANCE:
            break
    force[change] = f
    return force


def simulate_servos(
    arm: ServoArm, windows: Windows, theta: Array, states: Array, h: float
) -> tuple[Array, Array]:
    """
    Simulate rows of parameters (R, m) in all windows, from initial states (W, R, 2, n).

    The first row is exact; others are near it: their rigid-body terms are its to first order, so
    that all sensitivities cost about as much as one simulation. Steps are of h [s]. Returns
    positions at the samples (W, R, S, n), and the largest torque that servos ask for (n,).
    """
    values = {name: value[None] for name, value in arm.values(theta).items()}
    kp, kd, armature, limit = (values[s] for s in ('stiffness', 'damping', 'armature', 'limit'))
    scale = values[BODIES][0]
    with_bodies = bool((scale != scale[0]).any())
    terms = _rigid_terms(arm, arm.models(scale[0]), windows.log, with_bodies)
    steps = int(np.ceil(windows.time.max() / h - 1e-9)) + 1
    delays, which = np.unique(values[DELAY][0], return_inverse=True)
    rotors, rotor = np.unique(armature[0], axis=0, return_inverse=True)
    diagonals = rotors[:, :, None] * np.eye(rotors.shape[1])
    commands = np.stack([windows.commanded(d, h, steps) for d in delays])
    q, v = states[:, :, 0].copy(), states[:, :, 1].copy()
    a = np.zeros_like(q)
    path = np.empty((steps + 1, *q.shape))
    path[0], largest = q, np.zeros(q.shape[2])
    speeds = arm.stribeck_velocity
    dry = values['Fc'].any() or values['Fst'].any() or values['Fl'].any()
    for k in range(steps):
        middle, speed = q + 0.5 * h * v, v + 0.5 * h * a
        last = a[:, 0]
        mass, by_position, by_velocity, bias, bodies = terms(middle[:, 0], speed[:, 0], last)
        inverse = np.asarray(np.linalg.inv(mass[:, None] + diagonals)[:, rotor], float)
        wanted = commands[which, :, k].swapaxes(0, 1) + values['bias']
        drive = kp * (wanted - middle) - kd * speed
        largest = np.maximum(largest, np.abs(drive[:, 0]).max(axis=0))
        passive = bias[:, None] + (middle - middle[:, :1]) @ by_position.swapaxes(1, 2)
        passive += (speed - speed[:, :1]) @ by_velocity.swapaxes(1, 2)
        if with_bodies:
            passive += (scale - scale[0])[:, None] * bodies[:, None]
        a = _of(inverse, np.clip(drive, -limit, limit) - passive)
        if dry:
            load = np.abs(bias + _of(mass, last))[:, None]
            bound = values['Fc'] + values['Fl'] * load
            bound = bound + values['Fst'] * np.exp(-((v / speeds) ** 2))
            bound = np.broadcast_to(bound, v.shape)
            a = a - _of(inverse, _dry_friction(v, a, inverse, bound, h))
        after = v + h * a
        q, v = q + 0.5 * h * (v + after), after
        if not np.isfinite(q).all() or np.abs(q).max() > FAR:
            path[k + 1 :] = FAR
            break
        path[k + 1] = q
    at = np.minimum(windows.time / h, steps - 1e-9)
    row = at.astype(int)
    share = (at - row)[..., None, None]
    number = np.arange(len(q))[:, None]
    sampled = path[row, number] * (1.0 - share) + path[row + 1, number] * share
    return sampled.swapaxes(1, 2), largest
