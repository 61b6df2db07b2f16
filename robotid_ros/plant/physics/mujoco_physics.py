"""
Physics of the simulated robot, by MuJoCo.

`M(q) ddq + h(q, dq) + Ia ddq + Fv dq + F(dq) + off + motors = tau`, where F is a friction that
holds at rest and opposes the motion with `Fc + Fs exp(-(dq/vs)²)` in motion. MuJoCo solves it as
a bounded constraint, whose bound is reached exactly in sliding.
"""

from collections.abc import Sequence
import math

import mujoco
import numpy as np

from ...exceptions import ConfigurationError, ModelError, RobotStateError
from ...simulation_settings import per_joint, SimulationSettings
from .drives import build_drives
from .mjcf import write_mjcf
from .moving_bodies import moving_bodies
from .pseudo_inertia import Array
from .true_parameters import true_parameters, TrueParameters
from .urdf_reading import parse_urdf, true_urdf

STANDARD_GRAVITY = (0.0, 0.0, -9.81)


class Physics:
    """
    The true robot: torques in, positions and velocities out.

    Parameters
    ----------
    urdf : text of the robot description that everyone believes in
    settings : what the true robot has beyond it
    joints : controlled joints, the order of every array here; empty: all movable ones
    locked : positions of joints that stand still

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
    ):
        self.urdf, self.impossible_links = true_urdf(
            urdf, error=settings.inertial_error, seed=settings.seed, payload=settings.payload
        )
        self.bodies = moving_bodies(parse_urdf(self.urdf), tuple(joints), locked)
        driven = tuple(b.joint.name for b in self.bodies if b.joint.mimic is None)
        self.joints = tuple(joints) or driven
        self.drives = build_drives(settings, self.bodies, self.joints)
        names = [body.joint.name for body in self.bodies]
        # Rows of MuJoCo's arrays: what drives turn, links, and what the controller sees of both.
        self._drive_rows = np.array([names.index(name) for name in self.joints])
        self._link_rows = self._feedback_rows = self._drive_rows
        self.period = 1.0 / settings.update_rate
        self._compile(settings.gravity or STANDARD_GRAVITY)
        self._set_up_drives(settings)
        self._set_initial_positions(settings.initial_positions)
        self.substeps = self._count_substeps()
        self.model.opt.timestep = self.period / self.substeps

    def step(self, effort: Sequence[float]) -> None:
        """
        Advance by one period under constant efforts (n,) [N·m, N]; NaN drives nothing.

        Raises
        ------
        RobotStateError : the motion is not finite any more

        """
        data = self.data
        applied = self._offset.copy()
        applied[self._drive_rows] += [min(max(u, -m), m) if u == u else 0.0
                                 for u, m in zip(effort, self._limit, strict=True)]  # fmt: skip
        for _ in range(self.substeps):
            if self._static_any:
                ratio = data.qvel / self._stribeck
                self.model.dof_frictionloss[:] = self._coulomb + self._static * np.exp(-(ratio**2))
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

    @property
    def joint_state_names(self) -> tuple[str, ...]:
        """Names in the joint states: the joints."""
        return self.joints

    def joint_state(self, effort: Sequence[float]) -> tuple[list[float], list[float], list[float]]:
        """Positions, velocities, efforts of all that is sensed."""
        return self.position.tolist(), self.velocity.tolist(), list(effort)

    def feedback(self, readings: list[float]) -> list[float]:
        """Pick from readings (all that is sensed) what the controller sees (n,)."""
        return readings

    @property
    def position(self) -> Array:
        """Positions that the controller sees, (n,) [rad, m]."""
        return np.asarray(self.data.qpos[self._feedback_rows])

    @property
    def velocity(self) -> Array:
        """Velocities that the controller sees, (n,) [rad/s, m/s]."""
        return np.asarray(self.data.qvel[self._feedback_rows])

    @property
    def energy(self) -> float:
        """Kinetic and potential energy, rotors included [J]."""
        mujoco.mj_fwdPosition(self.model, self.data)
        mujoco.mj_energyPos(self.model, self.data)
        speed = np.array(self.data.qvel)
        return float(self.data.energy[0] + 0.5 * speed @ self.mass_matrix() @ speed)

    @property
    def effort_limit(self) -> tuple[float, ...]:
        """What the drives can give (n,) [N·m, N]; inf where nothing limits them."""
        return tuple(self._limit)

    @property
    def wraparound(self) -> tuple[bool, ...]:
        """Which joints are continuous (n,)."""
        return tuple(self.bodies[index].joint.type == 'continuous' for index in self._link_rows)

    def set_state(self, position: Sequence[float], velocity: Sequence[float]) -> None:
        """Put the robot somewhere, with a velocity (n,)."""
        self.data.qpos[self._drive_rows] = position
        self.data.qvel[self._drive_rows] = velocity
        mujoco.mj_forward(self.model, self.data)

    def mass_matrix(self) -> Array:
        """Inertia matrix of all bodies at the present positions, rotors included."""
        matrix = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, matrix)
        return matrix

    def true_parameters(self) -> tuple[TrueParameters, ...]:
        """Give the standard parameters of the true robot, joint by joint."""
        return true_parameters(self.bodies, self.drives, self._link_rows.tolist())

    def _compile(self, gravity: Sequence[float]) -> None:
        text = self._write_model(gravity)
        try:
            self.model = mujoco.MjModel.from_xml_string(text)
        except ValueError as error:
            reason = ' '.join(str(error).split())
            raise ModelError(f'MuJoCo cannot simulate the robot description: {reason}') from error
        self.data = mujoco.MjData(self.model)
        # We say ourselves when a simulation diverges; MuJoCo would write a file into the folder.
        mujoco.set_mju_user_warning(lambda _: None)

    def _write_model(self, gravity: Sequence[float]) -> str:
        return write_mjcf(self.bodies, self.drives, gravity, self.period)

    def _set_up_drives(self, settings: SimulationSettings) -> None:
        count = len(self.joints)
        limits = [self.bodies[index].joint.effort for index in self._drive_rows]
        self._limit = limits if settings.limit_effort else [math.inf] * count
        self._offset = -np.array(self.drives.offset)
        self._coulomb = np.array(self.drives.coulomb)
        self._static = np.array(self.drives.static)
        self._stribeck = np.array(self.drives.stribeck_velocity)
        self._static_any = bool(self._static.any())
        self._ripple = np.zeros(len(self.bodies))
        self._ripple[self._drive_rows] = per_joint(settings.noise.ripple, count, 'noise.ripple')
        self._ripple_any = bool(self._ripple.any())
        self._ripple_order = settings.noise.ripple_order

    def _set_initial_positions(self, positions: Sequence[float]) -> None:
        count = len(self.joints)
        if positions and len(positions) != count:
            raise ConfigurationError(
                f"'simulation.initial_positions' has {len(positions)} values: give {count}"
            )
        by_name = dict(zip(self.joints, positions or (0.0,) * count, strict=True))
        for index, body in enumerate(self.bodies):
            joint = body.joint
            if joint.mimic is not None:
                leader, multiplier, offset = joint.mimic
                self.data.qpos[index] = multiplier * by_name.get(leader, 0.0) + offset
                continue
            start = by_name[joint.name]
            inside = min(max(start, joint.lower), joint.upper)
            if positions and inside != start:
                raise ConfigurationError(
                    f"'simulation.initial_positions': {joint.name} at {start} is outside of its "
                    f'limits {joint.lower} to {joint.upper}'
                )
            self.data.qpos[index] = by_name[joint.name] = inside
        mujoco.mj_forward(self.model, self.data)

    def _count_substeps(self) -> int:
        """Find the steps per period that viscous friction needs; every joint must move a mass."""
        matrix = self.mass_matrix()
        least = np.linalg.eigvalsh(matrix)[0]
        if least < 1e-8:
            worst = self.bodies[int(np.argmin(np.diag(matrix)))].joint.name
            raise ModelError(
                f"joint '{worst}' moves no mass: give its link an inertial or a rotor_inertia"
            )
        damping = np.diag(self.drives.viscous)
        for ratios, _, viscous, _ in self.drives.motors:
            damping = damping + viscous * np.outer(ratios, ratios)
        fastest = np.abs(np.linalg.eigvals(np.linalg.solve(matrix, damping))).max()
        steps = max(1, math.ceil(fastest * self.period))
        if steps > 20:
            raise ModelError(
                f'viscous friction stops a joint within {1.0 / fastest:.1e} s: lower `viscous` or '
                'raise `rotor_inertia`'
            )
        return steps
