"""
A robot with springs between its motors and its links: rotors are bodies of their own.

Drives turn rotors, rotors wind springs up, springs turn links. Friction and rotor inertia are the
motors'; the links rub only as far as `link_viscous` says.
"""

from collections.abc import Sequence
from dataclasses import replace
import math
import xml.etree.ElementTree as ET

import mujoco
import numpy as np

from ...exceptions import ConfigurationError, ModelError
from ...simulation_settings import per_joint, SimulationSettings
from .mjcf import MIN_INERTIA, MIN_MASS, write_mjcf
from .mujoco_physics import Physics
from .true_parameters import TrueParameters

# Attributes of a joint that belong to its motor.
MOTOR = ('armature', 'damping', 'frictionloss', 'solreffriction', 'solimpfriction')
# Radians of the fastest vibration in one step: RK4 damps it by less than 1e-4.
MAX_PHASE_PER_STEP = 0.5
MAX_SUBSTEPS = 50


def make_physics(
    urdf: str,
    settings: SimulationSettings,
    joints: Sequence[str] = (),
    locked: dict[str, float] | None = None,
    motors: dict[str, str] | None = None,
) -> Physics:
    """
    Make the true robot, elastic where the settings give a stiffness; see `Physics`.

    Parameters
    ----------
    urdf, settings, joints, locked : of `Physics`
    motors : names of the motors of elastic joints in the joint states, by joint

    """
    if not any(settings.elastic.stiffness):
        return Physics(urdf, settings, joints, locked)
    return ElasticPhysics(urdf, settings, joints, locked, motors)


class ElasticPhysics(Physics):
    """
    The true robot with springs: torques of motors in, positions of motors and links out.

    `position` and `velocity` are what the controller sees: the motors', or the links' with
    `elastic.feedback` 'link'. `joint_state` are both.

    Parameters
    ----------
    urdf, settings, joints, locked : of `Physics`
    motors : names of the motors, by joint; left out: the joint's with '_motor' behind it

    Raises
    ------
    ConfigurationError : stiffness without rotor inertia, or together with coupled motors

    """

    def __init__(
        self,
        urdf: str,
        settings: SimulationSettings,
        joints: Sequence[str] = (),
        locked: dict[str, float] | None = None,
        motors: dict[str, str] | None = None,
    ):
        self._elastic, self._motor_names = settings.elastic, dict(motors or {})
        super().__init__(urdf, settings, joints, locked)

    @property
    def joint_state_names(self) -> tuple[str, ...]:
        """Names in the joint states: the joints, then the motors of elastic ones."""
        names = (self._motor_names.get(joint, f'{joint}_motor') for joint in self.joints)
        motors = zip(names, self._stiffness, strict=True)
        return (*self.joints, *(name for name, stiffness in motors if stiffness))

    def joint_state(self, effort: Sequence[float]) -> tuple[list[float], list[float], list[float]]:
        """Positions, velocities, efforts of all that is sensed; a joint shows its motor's."""
        rows = np.concatenate([self._link_rows, self._drive_rows[self._elastic_joints]])
        efforts = [*effort, *(effort[j] for j in self._elastic_joints)]
        return self.data.qpos[rows].tolist(), self.data.qvel[rows].tolist(), efforts

    def feedback(self, readings: list[float]) -> list[float]:
        """Pick from readings (all that is sensed) what the controller sees (n,)."""
        chosen = readings[: len(self.joints)]
        if self._elastic.feedback == 'motor':
            for k, j in enumerate(self._elastic_joints):
                chosen[j] = readings[len(self.joints) + k]
        return chosen

    def set_state(self, position: Sequence[float], velocity: Sequence[float]) -> None:
        """Put links somewhere, with a velocity (n,), and motors where springs carry them."""
        self.data.qpos[self._link_rows] = position
        self.data.qvel[self._link_rows] = self.data.qvel[self._drive_rows] = velocity
        self._preload_springs()

    def true_parameters(self) -> tuple[TrueParameters, ...]:
        """Give the standard parameters of the true robot, joint by joint, K among them."""
        truth = super().true_parameters()
        return tuple(
            replace(t, values={**t.values, 'K': k}) if k else t
            for t, k in zip(truth, self._stiffness, strict=True)
        )

    def _write_model(self, gravity: Sequence[float]) -> str:
        count = len(self.joints)
        self._stiffness = per_joint(self._elastic.stiffness, count, 'elastic.stiffness')
        if self.drives.motors or any(b.joint.mimic is not None for b in self.bodies):
            raise ConfigurationError(
                "'simulation.elastic' does not go with couplings or mimic joints: take one out"
            )
        self._elastic_joints = [j for j, stiffness in enumerate(self._stiffness) if stiffness]
        for j in self._elastic_joints:
            if self.drives.rotor_inertia[self._drive_rows[j]] <= 0.0:
                raise ConfigurationError(
                    f'{self.joints[j]} is elastic: give its motor a simulation.rotor_inertia'
                )
        rubbing = per_joint(self._elastic.link_viscous, count, 'elastic.link_viscous')
        root = ET.fromstring(write_mjcf(self.bodies, self.drives, gravity, self.period))
        for j in self._elastic_joints:
            _insert_spring(root, self.joints[j], self._stiffness[j], rubbing[j])
        return ET.tostring(root, encoding='unicode')

    def _set_up_drives(self, settings: SimulationSettings) -> None:
        """Move everything that acts on an elastic joint to the row of its motor."""
        super()._set_up_drives(settings)
        self._link_rows = self._drive_rows.copy()
        self._drive_rows[self._elastic_joints] = len(self.bodies) + np.arange(
            len(self._elastic_joints)
        )
        moved = self._link_rows[self._elastic_joints]
        for name, rest in (
            ('_offset', 0.0), ('_coulomb', 0.0), ('_static', 0.0), ('_stribeck', 1.0),
            ('_ripple', 0.0),
        ):  # fmt: skip
            values = getattr(self, name)
            values = np.concatenate([values, values[moved]])
            values[moved] = rest
            setattr(self, name, values)
        self._feedback_rows = (
            self._drive_rows if self._elastic.feedback == 'motor' else self._link_rows
        )

    def _set_initial_positions(self, positions: Sequence[float]) -> None:
        super()._set_initial_positions(positions)
        self._preload_springs()

    def _preload_springs(self) -> None:
        """Turn the motors until the springs carry the links."""
        data, links, motors = self.data, self._link_rows, self._drive_rows
        for _ in range(2):
            for j in self._elastic_joints:
                load = data.qfrc_bias[links[j]] / self._stiffness[j]
                data.qpos[motors[j]] = data.qpos[links[j]] + load
            mujoco.mj_forward(self.model, data)

    def _count_substeps(self) -> int:
        """Find the steps per period that the stiffest spring on the lightest link needs."""
        matrix = self.mass_matrix()
        if np.linalg.eigvalsh(matrix)[0] < 1e-8:
            raise ModelError(
                'a link or a motor of the elastic robot has no mass: give its link an inertial, '
                'and its motor a rotor_inertia'
            )
        stiffness = np.zeros_like(matrix)
        for j in self._elastic_joints:
            pair = np.ix_(*[[self._link_rows[j], self._drive_rows[j]]] * 2)
            stiffness[pair] += self._stiffness[j] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        fastest = math.sqrt(np.abs(np.linalg.eigvals(np.linalg.solve(matrix, stiffness))).max())
        damping = np.diag(self.model.dof_damping)
        decay = np.abs(np.linalg.eigvals(np.linalg.solve(matrix, damping))).max()
        steps = max(1, math.ceil(self.period * max(fastest / MAX_PHASE_PER_STEP, decay)))
        if steps > MAX_SUBSTEPS:
            raise ModelError(
                f'a joint vibrates with {fastest / (2.0 * math.pi):.0f} Hz, too fast to simulate: '
                'lower simulation.elastic.stiffness or raise update_rate'
            )
        return steps


def _insert_spring(root: ET.Element, name: str, stiffness: float, viscous: float) -> None:
    """Give a joint's drive to a rotor, and hang the joint on the rotor by a spring."""
    joint = root.find(f".//joint[@name='{name}']")
    world, tendons = root.find('worldbody'), root.find('tendon')
    assert joint is not None and world is not None
    rotor = f'{name}/rotor'
    body = ET.SubElement(world, 'body', name=rotor)
    least = ' '.join([repr(MIN_INERTIA)] * 3)
    ET.SubElement(body, 'inertial', mass=repr(MIN_MASS), pos='0 0 0', diaginertia=least)
    drive = {key: joint.attrib.pop(key) for key in MOTOR}
    ET.SubElement(body, 'joint', {**drive, 'name': rotor, 'type': 'hinge', 'axis': '0 0 1'})
    joint.attrib['damping'] = repr(viscous)
    if tendons is None:
        tendons = ET.SubElement(root, 'tendon')
    spring = ET.SubElement(tendons, 'fixed', stiffness=repr(stiffness), springlength='0')
    ET.SubElement(spring, 'joint', joint=name, coef='1')
    ET.SubElement(spring, 'joint', joint=rotor, coef='-1')
