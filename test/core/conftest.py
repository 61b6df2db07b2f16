"""A small arm with a gripper's worth of everything, and recordings that it might have made."""

from collections.abc import Callable

import numpy as np
import pytest

from robotid_ros.core.model import build_robot, inverse_dynamics, Robot, RobotSettings
from robotid_ros.core.signals.recording import Recording

LINK = """
<link name="{name}"><inertial><origin xyz="{c}" rpy="0 0 0"/><mass value="{m}"/>
<inertia ixx="0.03" ixy="0.002" ixz="0.001" iyy="0.04" iyz="-0.002" izz="0.02"/></inertial></link>
"""
JOINT = """
<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" velocity="10" effort="100"/></joint>
"""
RIGHT = '1.5707963267948966 0 0'
URDF = (
    '<robot name="arm3"><link name="base"/>'
    + LINK.format(name='a', c='0.02 0.01 0.1', m=4)
    + LINK.format(name='b', c='0.2 0.03 0.01', m=3)
    + LINK.format(name='c', c='0.15 -0.02 0.02', m=1.5)
    + JOINT.format(name='j1', parent='base', child='a', xyz='0 0 0.3', rpy='0 0 0')
    + JOINT.format(name='j2', parent='a', child='b', xyz='0 0 0', rpy=RIGHT)
    + JOINT.format(name='j3', parent='b', child='c', xyz='0.5 0 0', rpy='0 0 0')
    + '</robot>'
)
RATE = 200.0


@pytest.fixture(scope='session')
def robot() -> Robot:
    return build_robot(URDF, RobotSettings(friction={'default': ('viscous', 'coulomb', 'offset')}))


@pytest.fixture(scope='session')
def truth(robot: Robot) -> np.ndarray:
    """Return standard parameters that differ from the prior by some 20 %, with friction."""
    rng = np.random.default_rng(5)
    chi = robot.prior * (1.0 + 0.2 * rng.uniform(-1.0, 1.0, robot.p))
    for symbol, value in (('Ia', 0.2), ('Fv', 0.8), ('Fc', 0.6), ('off', 0.1)):
        for joint in range(1, 4):
            chi[robot.column(f'{symbol}{joint}')] = value * (1.0 + 0.1 * joint)
    return chi


def motion(time: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, dq, ddq (N, 3) of a sum of sines with a period of 10 s."""
    rng = np.random.default_rng(seed)
    w = 2.0 * np.pi * 0.1 * np.arange(1, 6)
    a, b = rng.normal(size=(2, 5, 3)) * 0.5
    phase = np.outer(time, w)
    q = np.sin(phase) @ a + np.cos(phase) @ b
    dq = (np.cos(phase) * w) @ a - (np.sin(phase) * w) @ b
    ddq = -(np.sin(phase) * w**2) @ a - (np.cos(phase) * w**2) @ b
    return q, dq, ddq


@pytest.fixture(scope='session')
def record(robot: Robot, truth: np.ndarray) -> Callable[..., Recording]:
    """Make recordings: seed of the motion, duration [s], torque noise over the torque, of whom."""

    def make(seed: int = 0, duration: float = 20.0, noise: float = 0.0, of=None) -> Recording:
        time = np.arange(round(duration * RATE)) / RATE
        q, dq, ddq = motion(time, seed)
        tau = inverse_dynamics(robot, truth if of is None else of, q, dq, ddq)
        rng = np.random.default_rng(seed + 1000)
        tau = tau + noise * tau.std(axis=0) * rng.normal(size=tau.shape)
        return Recording(robot.joints, time, q, tau)

    return make
