"""
Plain friction, F_v dq + F_c sign(dq) + offset, that stands for friction of any law.

Simulators and URDFs hold no other. The nearest is fitted to the torque of the identified friction
at the speeds of a motion, in least squares: each sample counts once, so that a speed counts as
often as it occurs.

A simulator integrates: a torque error that soon turns its sign does little, one that stays drives
the robot off. Its plain friction is that whose error moves the speed least, v in
`I dv/dt + F_v v = error` with the inertia I of the joint. At standstill dry friction holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import dataclasses
from typing import NamedTuple

import numpy as np

from .. import model  # whose functions come with Pinocchio: who reads results needs none
from ..arrays import Array, Mask, rms
from ..excitation.trajectory import Motion
from ..model.friction import PLAIN
from ..model.robot import ElasticRobot, Robot
from ..signals.recording import STANDSTILL

# Relative difference that is rounding; relative difference below which nothing is missed.
ROUNDING, EXACT = 1e-12, 1e-9
# Random states where the recorded speeds are not known, each with both signs of the speeds, and
# what is taken for limits that do not exist [rad/s or m/s, rad or m].
STATES, NO_SPEED_LIMIT, NO_POSITION_LIMIT = 1000, 1.0, np.pi
# A joint with fewer samples faster than STANDSTILL did not move: some are noise.
LEAST_SAMPLES = 30
# Longest time for which a simulated speed remembers a torque [s], and postures of the inertia.
MEMORY, POSTURES = 1.0, 100


@dataclasses.dataclass(frozen=True)
class PlainFriction:
    """Plain friction of a joint, F_v dq + F_c sign(dq) + offset, and its error as one."""

    viscous: float = 0.0  # F_v, at least 0 [N·m·s/rad or N·s/m]
    coulomb: float = 0.0  # F_c, at least 0 [N·m or N]
    offset: float = 0.0  # [N·m or N]
    # Root mean square of its difference from the friction that it stands for [N·m or N]; that of
    # the motion that it was fitted to, or of the one that validates if it is larger there.
    rms: float = 0.0
    relative: float = 0.0  # the same over the root mean square of that friction
    # Whether the speeds are those of a recording; False: all up to the limit, alike.
    recorded: bool = True
    # The one that moves a simulated robot most like the true law; None: this one.
    simulated: PlainFriction | None = None

    @property
    def exact(self) -> bool:
        """Whether the friction that it stands for is plain."""
        return self.relative <= EXACT


def plain_equivalent(
    dq: Array, friction: Array, near: Sequence[float] = (0.0, 0.0, 0.0), decay: float = 0.0
) -> PlainFriction:
    """
    Fit plain friction to samples of a torque, min ‖F_v dq + F_c sign(dq) + offset − friction‖.

    F_v and F_c are at least 0. Samples (N,) have speeds and torques [SI]. Values `near` are
    preferred where the samples do not tell: of a joint that turns one way only, F_c from the
    offset. With the `decay` of the speed from a sample to the next, errors of the speed count;
    samples of no speed, with which time goes on, do not.
    """
    moves = dq != 0.0
    rows = np.column_stack([dq, np.sign(dq), moves, np.where(moves, friction, 0.0)])
    if decay:
        from scipy.linalg import solve_banded  # who only reads results starts without it

        band = np.repeat([[1.0], [-decay]], len(rows), axis=1)
        rows = solve_banded((1, 0), band, rows)  # y_k − decay y_{k−1} = row_k
    rows = np.asarray(np.linalg.qr(rows, mode='r'))  # leaves as much as all samples
    A, target = rows[:, :3], rows[:, 3]
    scale, size = np.maximum(np.linalg.norm(A, axis=0), 1e-300), np.linalg.norm(target)
    candidates = [np.array(near, dtype=float)]
    # One candidate for each set of active bounds.
    for columns in ([0, 1, 2], [0, 2], [1, 2], [2]):
        value = np.where(np.isin(range(3), columns), near, 0.0)
        change = np.linalg.lstsq((A / scale)[:, columns], target - A @ value, rcond=None)[0]
        value[columns] += change / scale[columns]
        value[np.abs(value) * scale <= ROUNDING * size] = 0.0
        candidates.append(value)
    best, least = candidates[-1], np.inf
    for value in candidates:
        missed = float(np.linalg.norm(target - A @ value))
        # The first ones are preferred: friction that is plain stays as it is, to the last digit.
        if min(value[:2]) >= 0.0 and missed < least - ROUNDING * size:
            best, least = value, missed
    plain = PlainFriction(*best.tolist())
    missed, relative = difference(plain, dq[moves], friction[moves])
    return dataclasses.replace(plain, rms=missed, relative=relative)


def difference(plain: PlainFriction, dq: Array, friction: Array) -> tuple[float, float]:
    """Return the RMS of plain friction less samples of a torque (N,), and over that torque's."""
    torque = plain.viscous * dq + plain.coulomb * np.sign(dq) + plain.offset
    missed, size = rms(torque - friction), rms(friction)
    return missed, missed / size if size else 0.0


def plain_friction(
    robot: Robot,
    chi: Array,
    fitted: Motion | None = None,
    validation: Motion | None = None,
    period: float = 0.0,
) -> dict[str, PlainFriction]:
    """
    Fit plain friction to the identified friction of each joint, and of each coupling's motor.

    Speeds of the `fitted` motion count; where a joint does not move in it, all speeds up to its
    limit count alike. The difference is that of the `validation` motion where it is larger there.
    With the `period` of the fitted motion [s], what is for simulators is `simulated`.
    """
    inertia = _inertia(robot, chi, fitted) if period and fitted else {}
    recorded, others = (
        {} if motion is None else dict(_drives(robot, chi, motion, successive=True))
        for motion in (fitted, validation)
    )
    found = {}
    for name, drive in _drives(robot, chi, _states_within_limits(robot), successive=False):
        known = name in recorded and recorded[name].moves.sum() >= LEAST_SAMPLES
        used = recorded[name] if known else drive
        fits = [plain_equivalent(*used.moving, drive.plain)]
        if known and name in inertia:
            rate = max(fits[0].viscous / inertia[name], 1.0 / MEMORY)
            rows = used.speed * used.moves, used.torque, drive.plain
            fits.append(plain_equivalent(*rows, float(np.exp(-rate * period))))
        for k, plain in enumerate(fits):
            worst = plain.rms, plain.relative
            if known and name in others:
                worst = np.maximum(worst, difference(plain, *others[name].moving)).tolist()
            fits[k] = dataclasses.replace(plain, rms=worst[0], relative=worst[1], recorded=known)
        simulated = None if len(fits) == 1 or fits[0].exact else fits[1]
        found[name] = dataclasses.replace(fits[0], simulated=simulated)
    return found


def _inertia(robot: Robot, chi: Array, motion: Motion) -> dict[str, float]:
    """Return what each joint, and each coupling's motor, moves on the average [SI]."""
    if isinstance(robot, ElasticRobot):
        return {}
    mass = model.mass_matrix(robot, chi, motion.q[:: max(1, len(motion.q) // POSTURES)])
    own = np.maximum(np.diagonal(mass.mean(axis=0)), 1e-9)
    of_couplings = {c.name: 1.0 / float(c.ratios**2 @ (1.0 / own)) for c in robot.couplings}
    return dict(zip(robot.joints, own.tolist(), strict=True)) | of_couplings


class _Drive(NamedTuple):
    """Speed and torque of the friction (N,), and what of the torque is plain."""

    speed: Array
    torque: Array
    plain: list[float]

    @property
    def moves(self) -> Mask:
        """Whether it moves, (N,)."""
        return np.abs(self.speed) >= STANDSTILL

    @property
    def moving(self) -> tuple[Array, Array]:
        """Speed and torque where it moves."""
        return self.speed[self.moves], self.torque[self.moves]


def _drives(
    robot: Robot, chi: Array, motion: Motion, successive: bool
) -> Iterator[tuple[str, _Drive]]:
    """Yield the friction of each joint, without that of couplings, and of each coupling."""
    q, dq, ddq = motion
    loads = None
    if robot.load_dependent and not isinstance(robot, ElasticRobot):
        loads = model.inverse_dynamics(robot, robot.of_links(chi), q, dq, ddq)
    for j, motor in enumerate(robot.motors.tolist()):
        torque, plain = np.zeros(len(q)), [0.0, 0.0, 0.0]
        load = None if loads is None else loads[:, j]
        # Both sides of a spring turn as one where formats have no spring.
        own = (drive for drive in robot.transmissions if drive.joints.tolist() in ([j], [motor]))
        for column, term in (each for drive in own for each in drive.terms):
            if term.kind.spring:  # formats have no ripple, which plain friction therefore misses
                continue
            columns = term.columns(q[:, motor], dq[:, motor], load, successive)
            for k, values in enumerate(columns, column):
                torque += chi[k] * values
                if term.name in PLAIN:
                    plain[PLAIN.index(term.name)] += float(chi[k])
        yield robot.joints[j], _Drive(dq[:, motor], torque, plain)
    for coupling in robot.couplings:
        speed = dq @ coupling.ratios
        Fv, Fc = (float(chi[robot.column(f'{s}{coupling.number}')]) for s in ('Fv', 'Fc'))
        torque = Fv * speed + Fc * np.sign(speed)
        yield coupling.name, _Drive(speed, torque, [Fv, Fc, 0.0])


def _states_within_limits(robot: Robot) -> Motion:
    """Return random states whose speeds are spread evenly, without acceleration."""
    rng, limits = np.random.default_rng(0), robot.limits
    lower = np.nan_to_num(limits.lower, neginf=-NO_POSITION_LIMIT)
    upper = np.nan_to_num(limits.upper, posinf=NO_POSITION_LIMIT)
    fastest = np.nan_to_num(limits.velocity, posinf=NO_SPEED_LIMIT)
    q = rng.uniform(lower, np.maximum(lower, upper), (STATES, robot.n))
    shares = (np.arange(STATES) + 0.5) / STATES
    dq = fastest * rng.permuted(np.tile(shares[:, None], robot.n), axis=0)
    q, dq = np.vstack([q, q]), np.vstack([dq, -dq])
    return Motion(q, dq, np.zeros_like(q))
