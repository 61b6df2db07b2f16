"""
Controller gains that follow from the identified inertia, and what a simulation says of them.

Under `u = p e + i ∫e dt + d ė`, sampled, held, and some updates late, joints move by `M q̈ = g u`.
Friction, which damps, is left out of margins and is in the simulation.
"""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
from dataclasses import dataclass
from itertools import pairwise
import math
from typing import Any, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...exceptions import ControllerError, DivergenceError, shortened
from ..arrays import Array
from ..excitation.trajectory import Motion
from ..findings import Finding, select
from ..identification_settings import GainProposalSettings
from ..model import mass_matrix, Robot
from ..replay.control_laws import control_law_of, ControlLaw
from ..signals.recording import Controller
from .feed_forward import REST
from .tracking import Tracking, tracks_better

if TYPE_CHECKING:
    from ..replay.simulation import DirectModel

# Least margins of the loops of all joints at once: 6 dB, and 45° [rad].
GAIN_MARGIN, PHASE_MARGIN = 10.0**0.3, 0.25 * math.pi
# The phase in a simulation, whose delay is exact: 15°. With more, joints whose inertia varies
# eightyfold are too soft to hold what they carry.
SIMULATED_PHASE_MARGIN = math.pi / 12.0
NEWEST = 1.0  # share of a step's new speed with which simulations go on
# Where no recording shows it: a command acts half a period after its update on average, as it is
# held, and takes one more for the bus and the drive. Less than `ON_TIME` of a period is jitter.
PERIODS_OF_DELAY, ON_TIME = 1.5, 0.1
# Postures of a motion at which loops are checked: the inertia varies slowly along it.
POSTURES = 20
# Bandwidths that are tried of each joint; shares of those that are found, which are tried where
# the joints' loops disturb each other, or a simulation does not bear them.
BANDWIDTHS, SHARES = 40, 0.9 ** np.arange(8)
LEAST_GAIN = 1e-5  # smallest share of a gain that is tried where a simulation has no rotors
# Share by which a joint's bandwidth is lowered there, and how often.
LOWERED, MOST_LOWERED = 0.1, 100
# Largest factor of a gain at which a margin is looked for, and the halvings of that search.
MOST, HALVINGS = 32.0, 11
# A joint that goes to and fro by this share of its tracking error, and by two counts of its
# encoder, half a second after a motion, swings.
SWING, COUNTS = 0.05, 2.0
# Of the effort limit, from which a drive is saturated.
SATURATED = 0.999
NAMES = 'pid'


@dataclass(frozen=True)
class JointGains:
    """PID gains of one joint per unit of command, and in that unit the inertia J that it moves."""

    p: float
    i: float
    d: float
    inertia: float

    @property
    def natural_frequency(self) -> float:
        """ω_n = √(p/J) [rad/s]."""
        return math.sqrt(max(self.p, 0.0) / self.inertia)

    @property
    def damping(self) -> float:
        """ζ = d / (2 √(p J)), of a decoupled inertia."""
        return self.d / (2.0 * math.sqrt(self.p * self.inertia)) if self.p > 0.0 else math.inf


Gains = dict[str, JointGains]


@dataclass(frozen=True)
class GainProposal:
    """Gains of all joints in place of the present ones."""

    old: Gains
    new: Gains
    # Gain [factor] and phase [rad] at the worst posture.
    margins: tuple[float, float] = (math.nan, math.nan)
    new_margins: tuple[float, float] = (math.nan, math.nan)
    ratio: tuple[float, ...] = ()  # (n,) simulated tracking error over that with the present ones
    better: bool = False  # whether the error becomes smaller by that
    # Where `new` are the present ones: 'springs', 'margins' (none keeps them), 'swings' or
    # 'saturates' (in simulations of those that do).
    why: str = ''


def place_poles(
    present: Array, inertia: Array | float, omega: Array, damping: float, change: float
) -> Array:
    """
    Place the poles of J q̈ = −p e − d ė at ω and ζ: `p = J ω²`, `d = 2 ζ J ω`, (3, …).

    i keeps its ratio to p. No gain `present` (3, …) changes by more than a factor, or from 0.
    """
    p, i, d = present
    low, high = 1.0 / change, change
    new = np.clip(inertia * omega**2, low * p, high * p)
    ratio = np.divide(new, p, out=np.ones_like(new), where=p > 0.0)
    return np.stack([new, i * ratio, np.clip(2.0 * damping * inertia * omega, low * d, high * d)])


def largest_eigenvalue(
    mass: Array, gains: npt.NDArray[np.inexact[Any]], rate: float, delay: int,
    damping: Array | float = 0.0, newest: float = 0.5,
) -> Array:  # fmt: skip
    """
    Return the largest |eigenvalue| of sampled loops, (…,): they are stable below 1.

    The state has positions, velocities, integrals, and the commands under way. Between updates a
    command is held: `v⁺ = (M + T D)⁻¹ (M v + T u)`, `q⁺ = q + T ((1 − s) v + s v⁺)`.

    M(q) (…, n, n) is in the unit of the commands, gains p, i, d (…, 3, n) are complex where
    commands have a phase, the rate is the controller's [Hz], the delay the updates until a command
    acts, D (…, n) the damping of the joints themselves, which acts on the speed after a step, and
    s the share of the `newest` speed: of a robot 1/2; simulations go on with the new one, 1.
    """
    n, period = mass.shape[-1], 1.0 / rate
    eye, size = np.eye(n), (3 + delay) * n
    p, i, d = (gains[..., k, :, None] * eye for k in range(3))
    integrates = 1.0 * (i != 0.0)
    shape = np.broadcast_shapes(mass.shape[:-2], gains.shape[:-2])
    step = np.zeros((*shape, size, size), np.result_type(float, gains))
    q, v, s, *waiting = (slice(k * n, (k + 1) * n) for k in range(3 + delay))
    inverse = np.linalg.inv(mass + period * np.asarray(damping)[..., None] * eye)
    slowed = inverse @ mass
    step[..., q, q], step[..., v, v] = eye, slowed
    step[..., q, v] = period * ((1.0 - newest) * eye + newest * slowed)
    # The integral of this update is in its command.
    step[..., s, q], step[..., s, s] = -period * i, integrates
    command = np.zeros((*shape, n, size), step.dtype)
    command[..., q], command[..., v], command[..., s] = -p - period * i, -d, integrates
    if waiting:
        step[..., waiting[0], :] = command
        for before, after in pairwise(waiting):
            step[..., after, before] = eye
        command = np.zeros_like(command)
        command[..., waiting[-1]] = eye  # the one that acts now
    speed = period * inverse @ command
    step[..., q, :] += newest * period * speed
    step[..., v, :] += speed
    return np.asarray(np.abs(np.linalg.eigvals(step)).max(axis=-1))


def growth_at_margins(
    mass: Array, gains: Array, rate: float, delay: int, damping: Array | float = 0.0,
    phase: float = PHASE_MARGIN, newest: float = 0.5,
) -> Array:  # fmt: skip
    """Return the largest |eigenvalue| of loops (…,) at either margin, as `largest_eigenvalue`."""
    factors = 1.0, GAIN_MARGIN, 1.0 / GAIN_MARGIN, np.exp(-1j * phase)
    each = [largest_eigenvalue(mass, x * gains, rate, delay, damping, newest) for x in factors]
    return np.max(each, axis=0)


def body_inertia(robot: Robot) -> Array:
    """
    Return M(q) (N, n, n) of the bodies alone, without rotors, which is what Gazebo simulates.

    In postures within the limits of a robot with rigid joints, in the unit of its commands.
    """
    bodies = [0.0 if parameter.symbol == 'Ia' else 1.0 for parameter in robot.parameters]
    mass = mass_matrix(robot, robot.prior * bodies, robot.random_positions(POSTURES))
    return mass / np.abs(robot.drive_gain)[:, None]


class BodyLoops:
    """
    Loops with a description's bodies alone, see `body_inertia`, under gains p, i, d (3, n).

    Joints without p give way. The rate is the controller's [Hz]; commands act at once.
    """

    def __init__(self, robot: Robot, gains: Array, rate: float):
        self._held = np.flatnonzero(gains[0] > 0.0)
        self._names = [robot.joints[j] for j in self._held]
        self._gains, self._loops = gains, (rate, 0)
        self._damping = (robot.damping / np.abs(robot.drive_gain))[self._held]
        inverse = np.linalg.inv(body_inertia(robot))[:, self._held][..., self._held]
        self._mass = np.linalg.inv(inverse)
        # What a joint moves while all others give way, and while they are stiff.
        self._free = 1.0 / np.diagonal(inverse, axis1=1, axis2=2)
        self._stiff = np.diagonal(self._mass, axis1=1, axis2=2)

    def unstable_joints(self) -> list[str]:
        """Return the joints whose gains are too high for their bodies; none if all is stable."""
        gains, loops = self._gains[:, self._held], self._loops
        growth = largest_eigenvalue(self._mass, gains, *loops, self._damping, NEWEST)
        if (growth < 1.0).all():
            return []
        single = self._free[..., None, None], gains.T[..., None], *loops, self._damping[:, None]
        own = largest_eigenvalue(*single, NEWEST).max(axis=0)
        return [self._names[j] for j in np.flatnonzero((own >= 1.0) | (own == own.max()))]

    def bearable_gains(self) -> Array:
        """
        Return gains (3, n), none above the present ones, that keep 6 dB and a simulation's phase.

        Each joint gets the largest p, then the largest d, with which its own loop does; then
        joints are lowered until all loops do at once. ControllerError: there are none.
        """
        found, loops = self._gains[:, self._held], self._loops
        least = SIMULATED_PHASE_MARGIN, NEWEST
        share = np.geomspace(LEAST_GAIN, 1.0, BANDWIDTHS)
        for j, (p, i, d) in enumerate(found.T):
            stiff, damped = np.meshgrid(share, share, indexing='ij')
            tried = np.stack([p * stiff, i * stiff, d * damped], axis=-1)
            ends = [end(x[:, j]) for x in (self._free, self._stiff) for end in (np.min, np.max)]
            mass = np.array(ends)[:, None, None, None, None]
            own = self._damping[j : j + 1]
            growth = growth_at_margins(mass, tried[..., None], *loops, own, *least)
            if (where := np.argwhere((growth < 1.0).all(axis=0))).size:
                found[:, j] = tried[tuple(where[-1])]
        lower = 1.0 - LOWERED * np.eye(len(found.T))[:, None, None]
        for _ in range(MOST_LOWERED):
            growth = growth_at_margins(self._mass, found, *loops, self._damping, *least)
            if (growth < 1.0).all():
                gains = self._gains.copy()
                gains[:, self._held] = found
                return gains
            # The joint whose lower bandwidth helps most: d goes with it, p and i with its square.
            tried = found * lower ** np.array([[2.0], [2.0], [1.0]])
            growth = growth_at_margins(self._mass, tried, *loops, self._damping, *least)
            found = tried[np.argmin(growth.max(axis=-1)), 0]
        raise ControllerError(
            f'no gains below the present ones of {shortened(self._names)} are stable with the '
            'bodies of the description: check its inertias'
        )


def margins(mass: Array, gains: Array, rate: float, delay: int) -> tuple[float, float]:
    """
    Return gain margin [factor] and phase margin [rad] of the worst of the postures.

    All joints' commands change at once: by a factor, up or down, of at most `MOST`, or by a phase
    of at most 90°. (1, 0): unstable. As in `largest_eigenvalue`.
    """

    def is_stable(factor: complex) -> bool:
        return bool((largest_eigenvalue(mass, factor * gains, rate, delay) < 1.0).all())

    def edge(base: complex) -> float:
        """Return the largest share x at which loops with commands times base^x are stable."""
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if is_stable(base**middle) else (low, middle)
        return low

    if not is_stable(1.0):
        return 1.0, 0.0
    return MOST ** min(edge(MOST), edge(1.0 / MOST)), 0.5 * math.pi * edge(-1j)


def loop_delay(findings: Iterable[Finding]) -> float | None:
    """Return the time that a recording shows between a command and its effort [s]; None: none."""
    found = select(findings, 'efforts_held', 'delay_removed')
    return max((float(each.values['delay']) for each in found), default=None)


def smallest_step(position: Array) -> Array:
    """Return the counts (n,) of encoders by positions (N, n) as read; tiny of fine ones."""
    values = (np.unique(column[np.isfinite(column)]) for column in position.T)
    return np.array([np.diff(column).min(initial=np.inf) for column in values])


def propose_gains(
    robot: Robot, chi: Array, controller: Controller, poses: Array, motion: Motion,
    wanted: GainProposalSettings, *, delay: float | None = None, resolution: Array | float = 0.0,
) -> GainProposal:  # fmt: skip
    """
    Propose the stiffest gains that keep the margins in all postures, and simulate a motion.

    Each joint gets the largest bandwidth at which its own loop, the others' open or stiff, keeps
    both margins; then all together as large a share of it as keeps them at once, and lets the
    simulated robot neither swing at rest nor saturate its drives. Poses (N, n) are of its work,
    the motion is at the controller's updates, from rest to rest; the delay, between a command and
    its effort, is that of a recording [s], None: `PERIODS_OF_DELAY`.

    ControllerError: no body that can exist has these parameters χ (p,), or the control law is
    unknown; DivergenceError: the simulation diverges with the present gains.
    """
    law = control_law_of(controller, robot.joints, robot.drive_gain)
    joints, rate = robot.joints, controller.rate
    present = controller.pid_gains(joints)
    some = poses[:: max(1, len(poses) // POSTURES)]
    mass = mass_matrix(robot, chi, some) / np.abs(robot.drive_gain)[:, None]
    diagonal = np.diagonal(mass, axis1=1, axis2=2)
    inertia = diagonal.max(axis=0)
    if not (diagonal > 0.0).all():
        raise ControllerError(
            'the results hold no physically consistent parameters, from which gains follow: '
            'identify again'
        )

    def named(gains: Array) -> Gains:
        columns = np.vstack([gains, inertia]).T.tolist()
        return {j: JointGains(*values) for j, values in zip(joints, columns, strict=True)}

    old = named(present)
    if robot.elastic is not None:
        return GainProposal(old, old, why='springs')
    periods = PERIODS_OF_DELAY if delay is None else delay * rate
    loops = rate, (late := max(0, math.ceil(periods - 0.5 - ON_TIME)))
    now = margins(mass, present, *loops)
    free = 1.0 / np.diagonal(np.linalg.inv(mass), axis1=1, axis2=2)
    # From what a joint moves while the others give way to what it moves while they are stiff.
    own = np.concatenate([diagonal, free])[:, :, None, None]
    largest, around = [], np.geomspace(wanted.change**-0.5, wanted.change**0.5, BANDWIDTHS)
    for j in range(robot.n):
        omega = old[joints[j]].natural_frequency * around
        omega = np.minimum(omega, wanted.bandwidth or np.inf)
        tried = place_poles(present[:, j, None], inertia[j], omega, wanted.damping, wanted.change)
        growth = growth_at_margins(own[:, j], tried.T[:, None, :, None], *loops).max(axis=1)
        largest.append(omega[growth < 1.0].max(initial=omega[0]))
    direct = _with_plain_friction(robot, chi, motion)
    law = dataclasses.replace(law, limit=robot.largest_efforts, resolution=resolution)
    before, present_why = _simulated(robot, direct, law, motion, late)
    why = 'margins'
    for share in SHARES:
        omega = share * np.array(largest)
        new = place_poles(present, inertia, omega, wanted.damping, wanted.change)
        if not (growth_at_margins(mass, new, *loops) < 1.0).all():
            continue
        trial = dataclasses.replace(law, **dict(zip(NAMES, new, strict=True)))
        try:
            after, why = _simulated(robot, direct, trial, motion, late)
        except DivergenceError:
            why = 'swings'
        if why in ('', present_why):
            ratio = tuple((after.rms / np.maximum(before.rms, 1e-300)).tolist())
            better = tracks_better([before], [after])
            return GainProposal(old, named(new), now, margins(mass, new, *loops), ratio, better)
    return GainProposal(old, old, now, now, why=why)


def _with_plain_friction(robot: Robot, chi: Array, motion: Motion) -> DirectModel:
    """Return the model with plain friction near the identified one, which simulates in seconds."""
    # SciPy, which these import, takes long: nodes start without it.
    from ..parameters.plain_friction import plain_friction
    from ..replay.simulation import direct_model

    plain = plain_friction(robot, chi, motion).values()
    ratios = np.vstack([np.eye(robot.n), *(each.ratios for each in robot.couplings)])
    viscous, coulomb, offset = np.array([(f.viscous, f.coulomb, f.offset) for f in plain]).T
    return dataclasses.replace(
        direct_model(robot, chi),
        damping=ratios.T @ (viscous[:, None] * ratios),
        offset=offset @ ratios,
        slip_directions=ratios[coulomb > 0.0],
        coulomb=coulomb[coulomb > 0.0],
        smooth_friction=None,
    )


def _simulated(
    robot: Robot, direct: DirectModel, law: ControlLaw, motion: Motion, delay: int
) -> tuple[Tracking, str]:
    """Return the errors of a motion between two rests, and what is bad about it, or ''."""
    from ..replay.simulation import simulate

    rest = round(REST * law.rate)
    around, (q, dq, ddq) = ((rest, rest), (0, 0)), motion
    padded = Motion(np.pad(q, around, 'edge'), np.pad(dq, around), np.pad(ddq, around))
    run = simulate(direct, law, padded, delay=delay)
    error, moving = padded.q - run.q, slice(rest, -rest)
    tracking = Tracking(robot.joints, np.arange(len(motion.q)) / law.rate, error[moving])
    end = error[-rest // 2 :]
    to_and_fro = np.ptp(end - np.linspace(end[0], end[-1], len(end)), axis=0)
    if (to_and_fro > np.maximum(SWING * tracking.rms, COUNTS * law.resolution)).any():
        return tracking, 'swings'
    if (np.abs(run.tau[moving]) >= SATURATED * robot.limits.effort).any():
        return tracking, 'saturates'
    return tracking, ''
