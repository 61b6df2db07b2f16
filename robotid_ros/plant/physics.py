"""Physics of the simulated robot, by MuJoCo, a wrench that pushes it, its drives and sensors."""

from collections.abc import Callable, Sequence
import dataclasses
import math
from typing import NamedTuple

import mujoco
import numpy as np

from ..exceptions import (
    ConfigurationError,
    ModelError,
    reason_of,
    RobotStateError,
    UnknownNameError,
)
from ..simulation_settings import FaultSettings, PayloadSettings, per_joint, SimulationSettings
from .mjcf import build_drives, Drives, rotor_name, write_mjcf
from .urdf_reading import Array, initial_positions, moving_bodies, parse_urdf, RigidBody, true_urdf

Values = list[float]
# Faults that spoil position, velocity and effort.
NAN_FAULTS = ('nan_joint_state', 'nan_velocity', 'nan_effort')
# Radians of the fastest vibration in one step: RK4 takes 1e-4 of its amplitude there.
MAX_PHASE = 0.5
# Bounds the cost of a period: at 1 kHz and with more steps a robot would not keep real time.
MAX_SUBSTEPS = 50
GRAVITY = (0.0, 0.0, -9.81)
# Least eigenvalue of the mass matrix, below real inertias and above MIN_INERTIA [kg·m² or kg].
MIN_EIGENVALUE = 1e-8


class TrueParameters(NamedTuple):
    """
    True parameters of one joint, or of a motor that drives several.

    `values` holds `XX XY XZ YY YZ ZZ MX MY MZ M` at the joint's frame, links that are fixed to the
    joint's link included, and `Ia Fv Fc off`, with `Fs Fsc Fst vs` where there is static friction
    and `K` where there is a spring; a motor has `Ia Fv Fc` and its `ratios`.
    """

    name: str
    values: dict[str, float]
    ratios: tuple[float, ...] = ()


class Physics:
    """
    The true robot: torques in, positions and velocities out.

    `M(q) ddq + h(q, dq) + Ia ddq + Fv dq + F(dq) + off + motors = tau`, where F is a friction that
    holds at rest and opposes the motion with `Fc + Fs exp(-(dq/vs)²)` in motion. MuJoCo solves it
    as a bounded constraint, whose bound is reached exactly in sliding. Where a joint has a
    stiffness, a rotor turns the link through a spring; friction, offset, ripple and rotor inertia
    are the rotor's.

    The URDF is the text that other nodes use; a ConfigurationError where settings do not fit it.
    Every array has the order of the controlled joints, by default all that can move; others are
    locked. Motors of elastic joints are called as given, by joint, else with '_motor' behind it.
    """

    def __init__(
        self,
        urdf: str,
        settings: SimulationSettings,
        joints: Sequence[str] = (),
        locked: dict[str, float] | None = None,
        motors: dict[str, str] | None = None,
    ):
        self._given, self._settings = (urdf, tuple(joints), locked), settings
        self.period = 1.0 / settings.update_rate
        self.urdf, self.impossible_links, self.bodies, self.drives, self.model = self._true_robot()
        self.data, drives = mujoco.MjData(self.model), self.drives
        self._wrench: tuple[int, Array, Array] | None = None
        # `step` raises when a simulation diverges; MuJoCo would also write a log file.
        mujoco.set_mju_user_warning(lambda _: None)
        # Rows of MuJoCo's arrays: links, what drives turn, and what is measured.
        rows = {self.model.joint(row).name: row for row in range(self.model.nv)}
        link = self._link_rows = np.array([rows[name] for name in self.joints])
        drive = np.array([rows.get(rotor_name(name), rows[name]) for name in self.joints])
        self._drive_rows, self._elastic_joints = drive, np.flatnonzero(drive != link).tolist()
        elastic, called = [self.joints[j] for j in self._elastic_joints], motors or {}
        of_motors = (called.get(name, f'{name}_motor') for name in elastic)
        # Names in the joint states: the joints, then the motors of elastic ones.
        self.joint_state_names = (*self.joints, *of_motors)
        self._joint_state_rows = np.concatenate([link, drive[self._elastic_joints]])
        self._feedback_rows = drive if settings.elastic.feedback == 'motor' else link
        shown = self._joint_state_rows.tolist()
        self._feedback_indices = [shown.index(row) for row in self._feedback_rows]
        carried = [self.bodies[row].joint for row in link]
        # Effort limits (n,) [N·m, N], inf where there is none; which joints are continuous.
        self.effort_limit = tuple(j.effort if settings.limit_effort else np.inf for j in carried)
        self.wraparound = tuple(joint.type == 'continuous' for joint in carried)
        self._offset = -self._on_drives(drives.offset)
        self._coulomb = self._on_drives(drives.coulomb)
        self._static = self._on_drives(drives.static)
        self._stribeck = self._on_drives(drives.stribeck_velocity, 1.0)
        self._viscous, self._friction_factor = self.model.dof_damping.copy(), np.ones(len(rows))
        self.scale_friction(settings.friction_factor)
        noise, self._ripple = settings.noise, np.zeros(len(rows))
        self._ripple[drive] = per_joint(noise.ripple, len(drive), 'noise.ripple')
        self._ripple_order = noise.ripple_order
        self._static_any, self._ripple_any = bool(self._static.any()), bool(self._ripple.any())
        start = initial_positions(self.bodies, self.joints, settings.initial_positions)
        self.data.qpos[: len(self.bodies)] = start
        self._preload_springs()
        self.substeps = self._count_substeps()
        self.model.opt.timestep = self.period / self.substeps

    def step(self, effort: Sequence[float]) -> list[float]:
        """
        Advance by one period under constant efforts (n,) [N·m, N], of which NaN counts as 0.

        Return what the drives applied, within their limits. RobotStateError: it is not finite.
        """
        self.apply_wrench()
        data = self.data
        pairs = zip(effort, self.effort_limit, strict=True)
        limited = [min(max(u, -most), most) if u == u else 0.0 for u, most in pairs]
        applied = self._offset.copy()
        applied[self._drive_rows] += limited
        for _ in range(self.substeps):
            if self._static_any:
                ratio = data.qvel / self._stribeck
                dry = self._coulomb + self._static * np.exp(-(ratio**2))
                self.model.dof_frictionloss[:] = self._friction_factor * dry
            data.qfrc_applied[:] = applied
            if self._ripple_any:
                data.qfrc_applied[:] += self._ripple * np.sin(self._ripple_order * data.qpos)
            mujoco.mj_step(self.model, data)
        if not math.isfinite(data.qvel.sum()):
            raise RobotStateError(
                'the simulation diverged: lower the gains, or raise `rotor_inertia` or update_rate'
            )
        return limited

    def joint_state(self, effort: Sequence[float]) -> tuple[list[float], list[float], list[float]]:
        """Positions, velocities, efforts, in the order of `joint_state_names`."""
        rows = self._joint_state_rows
        efforts = [*effort, *(effort[j] for j in self._elastic_joints)]
        return self.data.qpos[rows].tolist(), self.data.qvel[rows].tolist(), efforts

    def feedback(self, values: Sequence[float]) -> list[float]:
        """Pick from values by `joint_state_names` what the controller sees (n,)."""
        return [values[index] for index in self._feedback_indices]

    @property
    def position(self) -> Array:
        """Positions that the controller sees, (n,) [rad, m]."""
        return np.asarray(self.data.qpos[self._feedback_rows])

    @property
    def velocity(self) -> Array:
        """Velocities that the controller sees, (n,) [rad/s, m/s]."""
        return np.asarray(self.data.qvel[self._feedback_rows])

    @property
    def drive_inertia(self) -> tuple[float, ...]:
        """Inertia that each drive moves here, links behind springs included (n,) [kg·m², kg]."""
        own, links = np.diag(self.mass_matrix()), self._link_rows
        behind = np.where(self._drive_rows == links, 0.0, own[links])
        return tuple((own[self._drive_rows] + behind).tolist())

    def set_state(self, position: Sequence[float], velocity: Sequence[float]) -> None:
        """Put the links somewhere, with a velocity (n,), and motors where springs carry them."""
        self.data.qpos[self._link_rows] = position
        self.data.qvel[self._link_rows] = self.data.qvel[self._drive_rows] = velocity
        self._preload_springs()

    def scale_friction(self, factors: Sequence[float]) -> None:
        """Let each drive's own friction be so many times what it was at the start, (n,) or one."""
        values = per_joint(tuple(factors), len(self.joints), 'friction_factor')
        self._friction_factor[self._drive_rows] = values
        self.model.dof_damping[:] = self._friction_factor * self._viscous
        self.model.dof_frictionloss[:] = self._friction_factor * self._coulomb

    def carry(self, mass: float) -> Callable[[], None]:
        """Return what puts another mass [kg] in place of the payload, 0: none, between periods."""
        payload = dataclasses.replace(self._settings.payload, mass=mass)
        urdf, _, bodies, _, model = self._true_robot(payload)

        def pick_up() -> None:
            data = mujoco.MjData(model)
            data.qpos[:], data.qvel[:], data.time = self.data.qpos, self.data.qvel, self.data.time
            model.opt.timestep = self.model.opt.timestep
            model.dof_damping[:] = self.model.dof_damping
            model.dof_frictionloss[:] = self.model.dof_frictionloss
            self.urdf, self.bodies, self.model, self.data = urdf, bodies, model, data

        return pick_up

    def push(self, link: str, wrench: Sequence[float]) -> None:
        """
        Let a wrench act on a link from the next period on, in place of another one.

        Force and torque (6,) [N, N·m] act at the origin of the link and turn with its axes; all
        zero: none.
        """
        if not np.isfinite(wrench).all():
            raise ConfigurationError('a wrench has six finite numbers')
        carriers = {name: body for body in self.bodies for name in body.links}
        if link not in carriers:
            raise UnknownNameError('moving link', link, tuple(carriers))
        body = carriers[link]
        number = self.model.body(body.joint.name).id
        self._wrench = number, body.links[link], np.array(wrench, dtype=float)

    def apply_wrench(self) -> None:
        """Write the wrench as it acts in the present posture into what MuJoCo takes."""
        if self._wrench is None:
            return
        (body, place, wrench), data = self._wrench, self.data
        axes = data.xmat[body].reshape(3, 3)
        origin = data.xpos[body] + axes @ place[:3, 3]
        force, torque = (axes @ place[:3, :3] @ part for part in (wrench[:3], wrench[3:]))
        torque = torque + np.cross(origin - data.xipos[body], force)
        data.xfrc_applied[:] = 0.0
        data.xfrc_applied[body] = [*force, *torque]
        if not wrench.any():
            self._wrench = None

    def mass_matrix(self) -> Array:
        """Inertia matrix of all bodies at the present positions, rotors included."""
        matrix = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, matrix)
        return matrix

    def true_parameters(self) -> tuple[TrueParameters, ...]:
        """Give the standard parameters of the true robot, joint by joint, then of motors."""
        found, drives, order = [], self.drives, self._link_rows.tolist()
        for k in order:
            pseudo = self.bodies[k].inertial
            second, first = pseudo[:3, :3], pseudo[:3, 3]
            inertia = np.trace(second) * np.eye(3) - second
            moments = (*inertia[np.triu_indices(3)].tolist(), *first.tolist(), float(pseudo[3, 3]))
            drive = drives.rotor_inertia, drives.viscous, drives.coulomb, drives.offset
            names = 'XX XY XZ YY YZ ZZ MX MY MZ M Ia Fv Fc off'.split()
            values = dict(zip(names, (*moments, *(each[k] for each in drive)), strict=True))
            if (extra := drives.static[k]) > 0.0:
                # In the terms of STICTION eq. 7-9: all of it at rest, and what sliding takes away.
                values |= {'Fs': drives.coulomb[k] + extra, 'Fsc': -extra, 'Fst': extra}
                values['vs'] = drives.stribeck_velocity[k]
            if drives.stiffness[k] > 0.0:
                values['K'] = drives.stiffness[k]
            found.append(TrueParameters(self.bodies[k].joint.name, values))
        for number, (ratios, *own) in enumerate(drives.motors):
            values = dict(zip(('Ia', 'Fv', 'Fc'), own, strict=True))
            turned = tuple(ratios[k] for k in order)
            found.append(TrueParameters(f'motor_{number}', values, turned))
        return tuple(found)

    def _true_robot(
        self, payload: PayloadSettings | None = None
    ) -> tuple[str, tuple[str, ...], tuple[RigidBody, ...], Drives, mujoco.MjModel]:
        """Return the true URDF, its links that were not consistent, bodies, drives and model."""
        (urdf, joints, locked), settings = self._given, self._settings
        error, payload = settings.inertial_error, payload or settings.payload
        true, impossible = true_urdf(urdf, error=error, seed=settings.seed, payload=payload)
        bodies = moving_bodies(parse_urdf(true), joints, locked)
        driven = tuple(body.joint.name for body in bodies if body.joint.mimic is None)
        self.joints = joints or driven
        drives = build_drives(settings, bodies, self.joints)
        text = write_mjcf(bodies, drives, settings.gravity or GRAVITY, self.period)
        try:
            return true, impossible, bodies, drives, mujoco.MjModel.from_xml_string(text)
        except ValueError as failure:
            raise ModelError(
                f'MuJoCo cannot simulate the robot description: {reason_of(failure)}'
            ) from failure

    def _on_drives(self, values: Sequence[float], default: float = 0.0) -> Array:
        """Assign values per body to the rows that their drives turn."""
        result, rows = np.full(self.model.nv, default), np.arange(len(self.bodies))
        rows[self._link_rows] = self._drive_rows
        result[rows] = values
        return result

    def _preload_springs(self) -> None:
        """Update all positions; motors stand where the springs carry the links' weight."""
        data, links, motors = self.data, self._link_rows, self._drive_rows
        mujoco.mj_forward(self.model, data)
        for j in self._elastic_joints:
            load = data.qfrc_bias[links[j]] / self.drives.stiffness[links[j]]
            data.qpos[motors[j]] = data.qpos[links[j]] + load
        if self._elastic_joints:
            mujoco.mj_forward(self.model, data)

    def _count_substeps(self) -> int:
        """Count the steps per period that keep the integrator stable, vibrations undamped."""
        mass = self.mass_matrix()
        if np.linalg.eigvalsh(mass)[0] < MIN_EIGENVALUE:
            worst = self.model.joint(int(np.argmin(np.diag(mass)))).name
            raise ModelError(
                f"joint '{worst}' moves no mass: give its link an inertial or a rotor_inertia"
            )
        damping, stiffness = np.diag(self.model.dof_damping), np.zeros_like(mass)
        for ratios, _, viscous, _ in self.drives.motors:
            damping = damping + viscous * np.outer(ratios, ratios)
        for j in self._elastic_joints:
            pair = [self._link_rows[j], self._drive_rows[j]]
            value = self.drives.stiffness[self._link_rows[j]]
            stiffness[np.ix_(pair, pair)] += value * np.array([[1.0, -1.0], [-1.0, 1.0]])
        squared, decay = (
            float(np.abs(np.linalg.eigvals(np.linalg.solve(mass, other))).max())
            for other in (stiffness, damping)
        )
        steps = max(1, math.ceil(self.period * max(math.sqrt(squared) / MAX_PHASE, decay)))
        if steps > MAX_SUBSTEPS:
            raise ModelError(
                f'a joint vibrates or brakes too fast to simulate ({steps} steps a period): lower '
                '`elastic.stiffness` or `viscous`, or raise `rotor_inertia` or update_rate'
            )
        return steps


class Fault:
    """A fault of one of the joints that begins at its configured time."""

    def __init__(self, settings: FaultSettings, joints: Sequence[str]):
        if settings.joint and settings.joint not in joints:
            raise UnknownNameError('joint', settings.joint, tuple(joints))
        self.kind, self.joint = settings.kind, list(joints).index(settings.joint or joints[0])
        # Since the start [s]; another one lets it begin then.
        self.start, self._duration = settings.time, settings.duration or float('inf')

    def active(self, time: float, *kinds: str) -> bool:
        """Whether one of these is broken at a time since the start [s]."""
        return self.kind in kinds and self.start <= time < self.start + self._duration


class Sensors:
    """Positions, velocities and efforts of joints (n,) as the hardware reports them."""

    def __init__(self, settings: SimulationSettings, joints: Sequence[str]):
        noise, count = settings.noise, len(joints)
        names = 'position', 'velocity', 'effort', 'resolution'
        values = [per_joint(getattr(noise, name), count, f'noise.{name}') for name in names]
        self._sigma, self._resolution = np.array(values[:3]), np.array(values[3])
        if not settings.report_effort:
            self._sigma[2] = np.nan
        self._random = np.random.default_rng([settings.seed, 0x22])
        self._frozen: tuple[Values, Values] | None = None
        self.fault = Fault(settings.fault, joints)

    def read(
        self, time: float, position: Sequence[float], velocity: Sequence[float],
        effort: Sequence[float],
    ) -> tuple[Values, Values, Values]:  # fmt: skip
        """Report true values (n,) at a time since the start [s]."""
        normal, step = self._random.standard_normal(self._sigma.shape), self._resolution
        values = np.array([position, velocity, effort]) + normal * self._sigma
        if step.any():
            counts = np.rint(values[0] / np.where(step, step, 1.0))
            values[0] = np.where(step, counts * step, values[0])
        q, dq, tau = values.tolist()
        if self.fault.kind:
            self._inject_fault(time, q, dq, tau)
        return q, dq, tau

    def _inject_fault(self, time: float, q: Values, dq: Values, tau: Values) -> None:
        fault, joint = self.fault, self.fault.joint
        for kind, values in zip(NAN_FAULTS, (q, dq, tau), strict=True):
            if fault.active(time, kind):
                values[joint] = float('nan')
        if fault.active(time, 'dead_effort'):
            tau[joint] = 0.0
        if not fault.active(time, 'frozen_joint', 'frozen_states'):
            self._frozen = None
            return
        self._frozen = self._frozen or (q.copy(), tau.copy())
        if fault.kind == 'frozen_states':
            q[:], dq[:], tau[:] = self._frozen[0], [0.0] * len(dq), self._frozen[1]
        else:
            q[joint], dq[joint] = self._frozen[0][joint], 0.0


# Takes what the controller commands for a period, returns the efforts that the drives report after
# it: their mean over the period, as drives filter their currents. Samples of a torque that swings
# with each new command would all be of one phase of it.
Step = Callable[[Sequence[float]], list[float]]


class LoopGains(NamedTuple):
    """Gains as a commissioning sets them, and the rate of the loops."""

    rate: float = 2000.0  # at least the hardware's [Hz]
    position_gain: float = 40.0  # velocity per position error [1/s]
    velocity_bandwidth: float = 200.0  # [rad/s]
    integral_time: float = 0.05  # of the velocity loop, 0: none [s]
    velocity_feedforward: float = 1.0  # share of the position command's slope


LOOP_GAINS = LoopGains()


class DriveLoops:
    """
    The loops of drives that take no efforts, `ratio` steps of them in a period of the hardware.

    A position loop, P with feed-forward of the command's slope ṙ, and a velocity loop, PI:
    `v = kp (r − q) + s ṙ`, `τ = J ω (e + ∫e dt / Ti)`, `e = v − q̇`, J the inertia [kg·m², kg] at
    the start. The integral rests while the effort is at its limit. Position commands are
    interpolated linearly over the controller's period; the present position is held until the
    first one. The period of `physics` is that of the loops.
    """

    def __init__(
        self, settings: SimulationSettings, physics: Physics, ratio: int, loops: LoopGains
    ):
        self._physics, self._ratio = physics, ratio
        self._position_is_commanded = settings.command_interface == 'position'
        self._kp, self._share = loops.position_gain, loops.velocity_feedforward
        self._kv = np.array(physics.drive_inertia) * loops.velocity_bandwidth
        self._ki, self._integral = np.zeros_like(self._kv), np.zeros_like(self._kv)
        if loops.integral_time:
            self._ki = self._kv * physics.period / loops.integral_time
        self._limit = np.array(physics.effort_limit)
        held = round(settings.update_rate / (settings.controller_rate or settings.update_rate))
        self._steps, self._left = ratio * held, 0
        self._target = self._reference = physics.position

    def step(self, command: Sequence[float]) -> list[float]:
        """Run a period of the hardware under a command (n,); return the mean effort."""
        applied = [self._physics.step(self._effort(command)) for _ in range(self._ratio)]
        return [sum(column) / self._ratio for column in zip(*applied, strict=True)]

    def _effort(self, command: Sequence[float]) -> list[float]:
        """Efforts (n,) of a step; a velocity that is not a number counts as 0."""
        physics, given = self._physics, np.asarray(command, dtype=float)
        wanted = np.where(np.isnan(given), 0.0, given)
        if self._position_is_commanded:
            slope = self._follow(np.where(np.isnan(given), self._target, given))
            wanted = self._kp * (self._reference - physics.position) + self._share * slope
        error = wanted - physics.velocity
        effort = self._kv * error + self._integral
        free = (np.abs(effort) < self._limit) | (effort * error < 0.0)
        self._integral = self._integral + np.where(free, self._ki * error, 0.0)
        return np.clip(effort, -self._limit, self._limit).tolist()

    def _follow(self, target: Array) -> Array:
        """Take a step towards the target (n,), and return the slope (n,) of the reference."""
        if not np.array_equal(target, self._target):
            self._target, self._left = target, self._steps
        dt, slope = self._physics.period, np.zeros(len(target))
        if self._left:
            slope = (target - self._reference) / (self._left * dt)
            self._left -= 1
        self._reference = self._reference + slope * dt
        return slope


def build_drives_of(
    settings: SimulationSettings,
    build_physics: Callable[[SimulationSettings], Physics],
    loops: LoopGains = LOOP_GAINS,
) -> tuple[Physics, Step]:
    """Build the physics, and a step of the hardware's period for commands (n,)."""
    if settings.command_interface == 'effort':
        physics = build_physics(settings)
        return physics, physics.step
    ratio = max(1, math.ceil(loops.rate / settings.update_rate))
    physics = build_physics(
        dataclasses.replace(settings, update_rate=settings.update_rate * ratio)
    )
    return physics, DriveLoops(settings, physics, ratio, loops).step
