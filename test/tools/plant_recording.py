"""A recording made by physics, without a clock: an arm under PD control along sums of sines."""

import dataclasses
from functools import lru_cache
from pathlib import Path

import numpy as np

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.core.signals.recording import Recording
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import NoiseSettings, SimulationSettings

URDF = (Path(__file__).resolve().parents[2] / 'urdf' / 'arm3.urdf').read_text()
JOINTS = ('joint_1', 'joint_2', 'joint_3')
PERIOD, SECONDS, HARMONICS = 6.0, 12.0, np.arange(1, 5)
AMPLITUDE = np.array([0.6, 0.6, 0.7])
P, D = np.array([500.0, 1500.0, 600.0]), np.array([20.0, 57.0, 14.0])
START = (0.0, 0.3, -0.5)


@dataclasses.dataclass(frozen=True)
class PlantRecording:
    """What was recorded at 500 Hz, and the parameters that are true."""

    recording: Recording
    truth: dict[str, dict[str, float]]

    def base(self, robot):
        """Return the true base parameters by name."""
        values = [self.truth[p.joint].get(p.symbol, 0.0) for p in robot.parameters]
        base = base_parameters(robot)
        return dict(zip(base.names, base.of(np.array(values)), strict=True))


@lru_cache
def plant(
    gravity=(), still=(), springs=(0.0, 0.0, 0.0), ripple=(0.0,), ripple_order=60.0, late=0.0
):
    """
    Run the arm; joints in `still` hold their position; springs [N·m/rad] rest at `START`.

    With a mean `late` [s], the stamps of its updates, all recorded, are late by chance, and the
    controller goes by these.
    """
    noise = NoiseSettings(ripple=ripple, ripple_order=ripple_order)
    settings = SimulationSettings(
        initial_positions=START, inertial_error=0.1, viscous=(0.5, 0.277, 0.1),
        coulomb=(1.7, 0.8, 0.7), limit_effort=False, gravity=gravity, noise=noise,
    )  # fmt: skip
    physics = Physics(URDF, settings, JOINTS)
    for joint, stiffness, rest in zip(JOINTS, springs, START, strict=True):
        own = physics.model.joint(joint)
        own.stiffness[0], physics.model.qpos_spring[own.qposadr[0]] = stiffness, rest
    rng = np.random.default_rng(3)
    a, b = rng.uniform(-1.0, 1.0, (2, 3, HARMONICS.size))
    size = AMPLITUDE * [joint not in still for joint in JOINTS]
    w = 2.0 * np.pi / PERIOD * HARMONICS
    time, every = np.arange(round(SECONDS * 1000)) * 1e-3, 2
    if late:
        time, every = time + np.minimum(late * rng.exponential(size=time.size), 0.9e-3), 1
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    q_ref = START + size * ((s / HARMONICS) @ a.T + ((1.0 - c) / HARMONICS) @ b.T)
    dq_ref = size * ((c * w / HARMONICS) @ a.T + (s * w / HARMONICS) @ b.T)
    physics.set_state(q_ref[0], dq_ref[0])
    rows, effort = [], np.zeros(3)
    for wanted, speed in zip(q_ref, dq_ref, strict=True):
        q, dq = physics.position, physics.velocity
        rows.append((q.copy(), dq.copy(), effort))
        effort = P * (wanted - q) + D * (speed - dq)
        physics.step(effort.tolist())
    q, dq, tau = (np.array(values)[::every] for values in zip(*rows, strict=True))
    q = q + 2e-5 * rng.normal(size=q.shape)
    tau = tau + 0.01 * np.abs(tau).max(axis=0) * rng.normal(size=tau.shape)
    truth = {joint.name: dict(joint.values) for joint in physics.true_parameters()}
    for joint, stiffness, rest in zip(JOINTS, springs, START, strict=True):
        truth[joint]['Kq'] = stiffness
        truth[joint]['off'] = truth[joint].get('off', 0.0) - stiffness * rest
    return PlantRecording(Recording(JOINTS, time[::every], q, tau, dq, source='the bag'), truth)


def arm(**settings):
    """Build the model of the arm, with the friction that its physics has."""
    settings = {'friction': {'default': ('viscous', 'coulomb', 'offset')}, **settings}
    return build_robot(URDF, RobotSettings(joints=JOINTS, **settings))


def sines(seconds, rate, seed):
    """Return a generator, times (N,), motion and torques of the true arm along slow sines."""
    robot, truth, rng = arm(), plant().truth, np.random.default_rng(seed)
    chi = np.array([truth[p.joint].get(p.symbol, 0.0) for p in robot.parameters])
    time = np.arange(round(seconds * rate)) / rate
    w = 2.0 * np.pi * 0.1 * np.arange(1, 6) * rng.uniform(0.9, 1.1, 5)
    a, b = rng.uniform(-0.25, 0.25, (2, 5, 3))
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    q, dq, ddq = START + s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b
    return rng, time, q, dq, inverse_dynamics(robot, chi, q, dq, ddq)
