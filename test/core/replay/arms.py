"""Small arms for the tests of the replay, built without the package's own model."""

import dataclasses

import numpy as np
import pinocchio

from robotid_ros.core.replay.control_laws import ControlLaw
from robotid_ros.core.replay.simulation import DirectModel, RK4, runge_kutta


def block(mass=2.0, friction=0.0, viscous=0.0):
    """Return a mass on a horizontal rail."""
    model = pinocchio.Model()
    joint = model.addJoint(0, pinocchio.JointModelPX(), pinocchio.SE3.Identity(), 'rail')
    inertia = pinocchio.Inertia(mass, np.zeros(3), np.eye(3))
    model.appendBodyToJoint(joint, inertia, pinocchio.SE3.Identity())
    return DirectModel(
        model, np.diag([viscous]), np.zeros(1), np.eye(1), np.array([float(friction)])
    )


def arm(friction=(0.8, 0.4), viscous=(0.3, 0.1), gravity=9.81, **fields):
    """Return a double pendulum."""
    model = pinocchio.Model()
    model.gravity.linear = np.array([0.0, -gravity, 0.0])
    parent = 0
    for number, offset in enumerate((0.0, 0.5)):
        placement = pinocchio.SE3(np.eye(3), np.array([offset, 0.0, 0.0]))
        parent = model.addJoint(parent, pinocchio.JointModelRZ(), placement, f'joint_{number}')
        inertia = pinocchio.Inertia(1.5 - number, np.array([0.25, 0.03, 0.0]), 0.02 * np.eye(3))
        model.appendBodyToJoint(parent, inertia, pinocchio.SE3.Identity())
    model.armature = np.array([0.2, 0.1])
    return DirectModel(
        model,
        np.diag(viscous),
        np.zeros(2),
        fields.pop('slip_directions', np.eye(2)),
        np.array(friction, dtype=float),
        **fields,
    )


def stepper(direct, h, tableau=RK4):
    """Return a step from q, q̇ and τ to q and q̇ at its end, q̈ and friction signs at its start."""
    n = direct.model.nv
    step = runge_kutta(direct, h, np.zeros((n, 2 * n)), tableau)

    def apart(q, dq, tau):
        after, ddq, slip_sign = step(np.concatenate([q, dq]), tau)
        return after[:n], after[n:], ddq, slip_sign

    return apart


def planar_urdf(length=0.5, count=2):
    """Return the description of a planar arm, joints about z; the third link is a light one."""
    masses = (2, 1, 0.3)
    links = ''.join(
        f'<link name="link_{k}"><inertial><origin xyz="{0.25 + 0.05 * k} 0.03 0"/>'
        f'<mass value="{masses[k - 1]}"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.03" iyz="0" '
        'izz="0.04"/></inertial></link>'
        for k in range(1, count + 1)
    )
    joints = ''.join(
        f'<joint name="joint_{k}" type="revolute"><parent link="link_{k - 1}"/>'
        f'<child link="link_{k}"/><origin xyz="{(k - 1) * length} 0 0"/><axis xyz="0 0 1"/>'
        '<limit lower="-9" upper="9" velocity="9" effort="99"/></joint>'
        for k in range(1, count + 1)
    )
    return f'<robot name="planar"><link name="link_0"/>{links}{joints}</robot>'


def parameters(robot, seed):
    """Return standard parameters (p,): inertias of the description, the rest at random."""
    rng = np.random.default_rng(seed)
    chi = robot.prior.copy()
    for k, parameter in enumerate(robot.parameters):
        if parameter.symbol.startswith(('F', 'Kq', 'R')):
            chi[k] = rng.uniform(0.2, 0.9)
        elif parameter.symbol == 'off':
            chi[k] = rng.uniform(-0.3, 0.3)
        elif parameter.symbol == 'Ia':
            chi[k] = rng.uniform(0.05, 0.2)
    return chi


@dataclasses.dataclass(frozen=True)
class Pushed:
    """A control law beside which another torque (K, n) acts."""

    law: ControlLaw
    push: np.ndarray

    @property
    def rate(self):
        return self.law.rate

    def start(self, desired, initial_effort=None):
        step = self.law.start(desired, initial_effort)
        return lambda k, state: step(k, state) + self.push[k]
