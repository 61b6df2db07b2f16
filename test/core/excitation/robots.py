"""Robots for the tests of excitation."""

from functools import lru_cache
from pathlib import Path

from hypothesis import strategies as st
import numpy as np

from robotid_ros.core.excitation.limits import motion_limits
from robotid_ros.core.excitation.settings import ExcitationSettings, ValidationSettings, Workspace
from robotid_ros.core.model import build_robot, inverse_dynamics, Robot, RobotSettings
from robotid_ros.core.model.settings import CoupledMotorSettings

URDF = Path(__file__).resolve().parents[3] / 'urdf'
CONFIG = URDF.parent / 'config'
NONE = ValidationSettings(kind='none')
FREE = Workspace(self_collision=False)
SPRINGS = {'default': ('viscous', 'coulomb', 'spring', 'ripple')}
ORDERS = {'default': {'ripple_order': 7.0}}
WRIST = {'wrist': CoupledMotorSettings((0.0, 0.0, 0.0, 0.0, 1.0, 1.0))}


@lru_cache
def robot_named(name: str) -> Robot:
    """Build one of the package's robots with plain settings."""
    couplings = WRIST if name == 'tx40' else {}
    friction = SPRINGS if name == 'puma560' else {}
    text = (URDF / f'{name}.urdf').read_text()
    return build_robot(
        text, RobotSettings(couplings=couplings, friction=friction, friction_constants=ORDERS)
    )


def quick(**changes) -> ExcitationSettings:
    """Make settings of a design that takes a moment."""
    values = {'period': 8.0, 'starts': 1, 'iterations': 15, **changes}
    return ExcitationSettings(**values)


@st.composite
def arms(draw, most=5) -> Robot:
    """Draw arms, and trees of arms, whose joints turn or slide about axes of any direction."""
    count, seed = draw(st.integers(1, most)), draw(st.integers(0, 9999))
    kinds = [draw(st.sampled_from(['revolute', 'revolute', 'prismatic'])) for _ in range(count)]
    parents = [draw(st.integers(max(0, j - 1), j)) for j in range(count)]
    rng = np.random.default_rng(seed)
    parts = ['<robot name="arm"><link name="link_0"/>']
    for j, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        xyz, rpy, axis, centre = (words(x) for x in rng.uniform(-0.5, 0.5, (4, 3)))
        mass, (a, b, c) = rng.uniform(0.5, 8.0), rng.uniform(0.02, 0.04, 3)
        parts.append(
            f'<link name="link_{j + 1}"><inertial><origin xyz="{centre}"/><mass value="{mass}"/>'
            f'<inertia ixx="{a}" iyy="{b}" izz="{c}" ixy="0" ixz="0.002" iyz="0"/></inertial>'
            f'</link><joint name="joint_{j + 1}" type="{kind}"><parent link="link_{parent}"/>'
            f'<child link="link_{j + 1}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
            '<limit lower="-2" upper="2" velocity="3" effort="400"/></joint>'
        )
    return build_robot(''.join([*parts, '</robot>']), RobotSettings())


def words(values) -> str:
    return ' '.join(repr(float(x)) for x in values)


def worst(robot, trajectory, excitation):
    """Largest shares of the limits at 1 kHz, by plain sampling: a second implementation."""
    limits = motion_limits(robot, excitation)
    t = np.arange(0.0, trajectory.period, 1e-3)
    q, dq, ddq = trajectory.sample(t)
    jerk = np.gradient(ddq, t, axis=0)[2:-2]
    tau = inverse_dynamics(robot, robot.prior, q, dq, ddq)
    half = 0.5 * (limits.upper - limits.lower)
    return {
        'position': (np.abs(q - 0.5 * (limits.lower + limits.upper)) / half).max(axis=0),
        'velocity': (np.abs(dq) / limits.velocity).max(axis=0),
        'acceleration': (np.abs(ddq) / limits.acceleration).max(axis=0),
        'jerk': (np.abs(jerk) / limits.jerk).max(axis=0),
        'effort': (np.abs(tau) / limits.effort).max(axis=0),
    }
