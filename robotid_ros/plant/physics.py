"""
Physics of the simulated robot, by MuJoCo, and a wrench that pushes it.

`M(q) ddq + h(q, dq) + Ia ddq + Fv dq + F(dq) + off + motors = tau`, where F is a friction that
holds at rest and opposes the motion with `Fc + Fs exp(-(dq/vs)²)` in motion. MuJoCo solves it as
a bounded constraint, whose bound is reached exactly in sliding. Where a joint has a stiffness, a
rotor turns the link through a spring; friction, offset, ripple and rotor inertia are the rotor's.
"""

from collections.abc import Callable, Sequence
import dataclasses
import math

import mujoco
import numpy as np

from ..exceptions import (
    ConfigurationError,
    ModelError,
    reason_of,
    RobotStateError,
    UnknownNameError,
)
from ..simulation_settings import per_joint, SimulationSettings
from .mjcf import build_drives, rotor_name, true_parameters, TrueParameters, write_mjcf
from .urdf_reading import Array, initial_positions, moving_bodies, parse_urdf, RigidBody, true_urdf

# Radians of the fastest vibration in one step: RK4 takes 1e-4 of its amplitude there.
MAX_PHASE = 0.5
# Bounds the cost of a period: at 1 kHz and with more steps a robot would not keep real time.
MAX_SUBSTEPS = 50
GRAVITY = (0.0, 0.0, -9.81)
# Least eigenvalue of the mass matrix, below inertias of real joints and above MIN_INERTIA
# [kg·m² or kg].
MIN_EIGENVALUE = 1e-8


class Physics:
    """
    The true robot: torques in, positions and velocities out.

    Parameters
    ----------
    urdf : text of the robot description that other nodes use
    settings : what the true robot has in addition
    joints : controlled joints, the order of every array here; empty: all movable ones
    locked : positions of joints that are fixed
    motors : names of the motors of elastic joints in the joint states, by joint; left out: the
        joint's with '_motor' behind it

    Raises
    ------
    ModelError : the description cannot be simulated
    ConfigurationError : settings that do not fit the joints

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
        self.urdf, self.impossible_links, self.bodies = self._true_bodies(settings)
        self._wrench: tuple[int, Array, Array] | None = None
        driven = tuple(b.joint.name for b in self.bodies if b.joint.mimic is None)
        self.joints = tuple(joints) or driven
        self.drives = build_drives(settings, self.bodies, self.joints)
        self.period = 1.0 / settings.update_rate
        self.model = self._compile(self.bodies)
        self.data = mujoco.MjData(self.model)
        # `step` raises when a simulation diverges; MuJoCo would also write a log file.
        mujoco.set_mju_user_warning(lambda _: None)
        self._find_rows(settings.elastic.feedback, motors or {})
        self._set_up_drives(settings)
        start = initial_positions(self.bodies, self.joints, settings.initial_positions)
        self.data.qpos[: len(self.bodies)] = start
        self._preload_springs()
        self.substeps = self._count_substeps()
        self.model.opt.timestep = self.period / self.substeps

    def step(self, effort: Sequence[float]) -> list[float]:
        """
        Advance by one period under constant efforts (n,) [N·m, N], of which NaN counts as 0.

        Return what the drives applied of them, within their limits. A motion that is not finite
        any more is a RobotStateError.
        """
        self.apply_wrench()
        data = self.data
        limited = [
            min(max(u, -m), m) if u == u else 0.0 for u, m in zip(effort, self._limit, strict=True)
        ]
        applied = self._offset.copy()
        applied[self._drive_rows] += limited
        for _ in range(self.substeps):
            if self._static_any:
                ratio = data.qvel / self._stribeck
                dry = self._coulomb + self._static * np.exp(-(ratio**2))
                self.model.dof_frictionloss[:] = self._friction_factor * dry
            if self._ripple_any:
                ripple = self._ripple * np.sin(self._ripple_order * data.qpos)
                data.qfrc_applied[:] = applied + ripple
            else:
                data.qfrc_applied[:] = applied
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
    def effort_limit(self) -> tuple[float, ...]:
        """Effort limits of the drives (n,) [N·m, N]; inf where there is none."""
        return tuple(self._limit)

    @property
    def drive_inertia(self) -> tuple[float, ...]:
        """Inertia that each drive moves here, links behind springs included (n,) [kg·m², kg]."""
        own, links = np.diag(self.mass_matrix()), self._link_rows
        behind = np.where(self._drive_rows == links, 0.0, own[links])
        return tuple((own[self._drive_rows] + behind).tolist())

    @property
    def wraparound(self) -> tuple[bool, ...]:
        """Which joints are continuous (n,)."""
        return tuple(self.bodies[index].joint.type == 'continuous' for index in self._link_rows)

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
        """
        Make the payload of the settings one of another mass [kg]; 0: none.

        What is returned lets the robot pick it up, between two periods.
        """
        payload = dataclasses.replace(self._settings.payload, mass=mass)
        urdf, _, bodies = self._true_bodies(dataclasses.replace(self._settings, payload=payload))
        model = self._compile(bodies)

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
        """Give the standard parameters of the true robot, joint by joint."""
        return true_parameters(self.bodies, self.drives, self._link_rows.tolist())

    def _true_bodies(
        self, settings: SimulationSettings
    ) -> tuple[str, tuple[str, ...], tuple[RigidBody, ...]]:
        """Return the true URDF, its links that were not consistent, and the moving bodies."""
        urdf, joints, locked = self._given
        true, impossible = true_urdf(
            urdf, error=settings.inertial_error, seed=settings.seed, payload=settings.payload
        )
        return true, impossible, moving_bodies(parse_urdf(true), joints, locked)

    def _compile(self, bodies: tuple[RigidBody, ...]) -> mujoco.MjModel:
        text = write_mjcf(bodies, self.drives, self._settings.gravity or GRAVITY, self.period)
        try:
            return mujoco.MjModel.from_xml_string(text)
        except ValueError as error:
            raise ModelError(
                f'MuJoCo cannot simulate the robot description: {reason_of(error)}'
            ) from error

    def _find_rows(self, feedback: str, motors: dict[str, str]) -> None:
        """Find the rows of MuJoCo's arrays: links, what drives turn, and what is measured."""
        rows = {self.model.joint(row).name: row for row in range(self.model.nv)}
        link = np.array([rows[name] for name in self.joints])
        drive = np.array([rows.get(rotor_name(name), rows[name]) for name in self.joints])
        self._link_rows, self._drive_rows = link, drive
        self._elastic_joints = np.flatnonzero(drive != link).tolist()
        names = [self.joints[j] for j in self._elastic_joints]
        # Names in the joint states: the joints, then the motors of elastic ones.
        self.joint_state_names = (
            *self.joints, *(motors.get(name, f'{name}_motor') for name in names),
        )  # fmt: skip
        self._joint_state_rows = np.concatenate([link, drive[self._elastic_joints]])
        self._feedback_rows = drive if feedback == 'motor' else link
        shown = self._joint_state_rows.tolist()
        self._feedback_indices = [shown.index(row) for row in self._feedback_rows]

    def _set_up_drives(self, settings: SimulationSettings) -> None:
        count, drives = len(self.joints), self.drives
        limits = [self.bodies[index].joint.effort for index in self._link_rows]
        self._limit = limits if settings.limit_effort else [math.inf] * count
        self._offset = -self._on_drives(drives.offset)
        self._coulomb = self._on_drives(drives.coulomb)
        self._static = self._on_drives(drives.static)
        self._stribeck = self._on_drives(drives.stribeck_velocity, 1.0)
        self._static_any = bool(self._static.any())
        self._viscous = self.model.dof_damping.copy()
        self._friction_factor = np.ones(self.model.nv)
        self.scale_friction(settings.friction_factor)
        self._ripple = np.zeros(self.model.nv)
        self._ripple[self._drive_rows] = per_joint(settings.noise.ripple, count, 'noise.ripple')
        self._ripple_any = bool(self._ripple.any())
        self._ripple_order = settings.noise.ripple_order

    def _on_drives(self, values: Sequence[float], default: float = 0.0) -> Array:
        """Assign values per body to the rows that their drives turn."""
        result = np.full(self.model.nv, default)
        rows = np.arange(len(self.bodies))
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
        frequency = math.sqrt(squared)
        steps = max(1, math.ceil(self.period * max(frequency / MAX_PHASE, decay)))
        if steps <= MAX_SUBSTEPS:
            return steps
        if decay > frequency / MAX_PHASE:
            raise ModelError(
                f'viscous friction stops a joint within {1.0 / decay:.1e} s: lower `viscous` or '
                'raise `rotor_inertia`'
            )
        raise ModelError(
            f'a joint vibrates with {frequency / (2.0 * math.pi):.0f} Hz, too fast to simulate: '
            'lower simulation.elastic.stiffness or raise update_rate'
        )
