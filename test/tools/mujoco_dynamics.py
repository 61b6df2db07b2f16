"""MuJoCo's inverse and direct dynamics of an exported file; the energy of a simulated robot."""

import mujoco
import numpy as np


class Simulated:
    """A model of MuJoCo without contacts and friction, whose joints are found by name."""

    def __init__(self, text, robot):
        self.model = mujoco.MjModel.from_xml_string(text)
        flags = mujoco.mjtDisableBit
        self.model.opt.disableflags |= flags.mjDSBL_CONTACT | flags.mjDSBL_LIMIT
        self.model.opt.disableflags |= flags.mjDSBL_EQUALITY
        self.model.actuator_ctrllimited[:] = 0
        self.data, self.robot = mujoco.MjData(self.model), robot
        followers = [follower.name for follower in robot.followers]
        self.rows = [self.model.joint(name).dofadr[0] for name in (*robot.joints, *followers)]
        for name, position in robot.locked.items():
            self.data.qpos[self.model.joint(name).qposadr[0]] = position

    def without_friction(self):
        """Leave out what friction does, of joints and of tendons."""
        self.model.dof_damping[:] = self.model.dof_frictionloss[:] = 0.0
        self.model.tendon_damping[:] = self.model.tendon_frictionloss[:] = 0.0
        return self

    def _set(self, q, dq, ddq):
        robot = self.robot
        states = robot.link_positions(q), robot.mimic_jacobian @ dq, robot.mimic_jacobian @ ddq
        for target, values in zip(
            (self.data.qpos, self.data.qvel, self.data.qacc), states, strict=True
        ):
            target[self.rows] = values

    def efforts(self, q, dq, ddq):
        """Return the efforts that a motion needs (n,)."""
        self._set(q, dq, ddq)
        mujoco.mj_inverse(self.model, self.data)
        return self.robot.mimic_jacobian.T @ self.data.qfrc_inverse[self.rows]

    def accelerations(self, q, dq, effort):
        """Return what the actuators do with efforts (n,)."""
        self._set(q, dq, np.zeros_like(q))
        for name, value in zip(self.robot.joints, effort, strict=True):
            self.data.actuator(name).ctrl = value
        mujoco.mj_forward(self.model, self.data)
        return self.data.qacc[self.rows]


def energy_of(physics):
    """Kinetic and potential energy of a simulated robot, rotors included [J]."""
    mujoco.mj_fwdPosition(physics.model, physics.data)
    mujoco.mj_energyPos(physics.model, physics.data)
    speed = np.array(physics.data.qvel)
    return float(physics.data.energy[0] + 0.5 * speed @ physics.mass_matrix() @ speed)
