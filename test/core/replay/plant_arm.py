"""A motion of the simulated arm under its own trajectory controller, as a session records it."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from robotid_ros.core.model import build_robot, Robot, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot import BaseParameters
from robotid_ros.core.signals.recording import Controller, Recording, Reference
from robotid_ros.plant.physics import Physics, Sensors
from robotid_ros.plant.trajectory import Goal, Point
from robotid_ros.plant.trajectory_controller import (
    ControllerSettings,
    GoalTolerances,
    TrajectoryController,
)
from robotid_ros.simulation_settings import GainSettings, NoiseSettings, SimulationSettings

from ..conftest import URDF

JOINTS = ('j1', 'j2', 'j3')
RATE, DURATION, PERIOD = 1000.0, 8.0, 4.0
GAINS = dict(zip(JOINTS, (
    GainSettings(p=1800.0, d=90.0), GainSettings(p=1600.0, d=80.0), GainSettings(p=260.0, d=13.0)
), strict=True))  # fmt: skip
SETTINGS = SimulationSettings(
    update_rate=RATE,
    state_rate=RATE,
    initial_positions=(0.0, 0.3, -0.5),
    gains=GAINS,
    inertial_error=0.1,
    rotor_inertia=(0.3, 0.3, 0.1),
    viscous=(1.5, 1.2, 0.4),
    coulomb=(2.0, 1.5, 0.8),
    offset=(0.2, -0.1, 0.1),
    limit_effort=False,
    noise=NoiseSettings(position=(2e-5,), velocity=(1e-3,), effort=(0.3, 0.5, 0.1)),
)


class Session(NamedTuple):
    """What was recorded, the model that identifies, and the plant's own base parameters."""

    recording: Recording
    robot: Robot
    base: BaseParameters
    true: np.ndarray


def _reference() -> tuple[np.ndarray, ...]:
    """Return time, q, dq, ddq of four harmonics a joint, from rest to rest."""
    t = np.arange(0.0, DURATION + 1e-9, 0.01)
    rng = np.random.default_rng(7)
    q, dq, ddq = (np.zeros((t.size, 3)) for _ in range(3))
    for harmonic in range(1, 5):
        w = 2.0 * np.pi / PERIOD * harmonic
        a = rng.uniform(-0.4, 0.4, 3) / harmonic
        q += a * (1.0 - np.cos(w * t[:, None]))
        dq += a * w * np.sin(w * t[:, None])
        ddq += a * w * w * np.cos(w * t[:, None])
    return t, q + SETTINGS.initial_positions, dq, ddq


def run_arm(settings: SimulationSettings) -> tuple[Physics, list[np.ndarray]]:
    """
    Run the arm: MuJoCo, the plant's controller and sensors, nothing of `core`.

    Return it, and measured q, dq and tau, desired q, dq and ddq of every update.
    """
    physics, sensors = Physics(URDF, settings, JOINTS), Sensors(settings, JOINTS)
    period = round(1e9 / RATE)
    controller = TrajectoryController(
        ControllerSettings(JOINTS, physics.wraparound, period, settings.gains)
    )
    controller.activate(physics.position.tolist(), physics.velocity.tolist())
    points = [
        Point(round(t * 1e9), q.tolist(), dq.tolist(), ddq.tolist())
        for t, q, dq, ddq in zip(*_reference(), strict=True)
    ]
    goal, rows, effort = Goal(JOINTS, 0, points), [], [0.0] * 3
    for k in range(round((DURATION + 0.5) * RATE)):
        if k == round(0.5 * RATE):
            controller.start(goal, GoalTolerances())
        measured = sensors.read(
            k * physics.period, physics.position.tolist(), physics.velocity.tolist(), effort
        )
        effort = list(controller.update(k * period, physics.period, *measured[:2]))
        desired = controller.state.desired
        rows.append((*measured, desired.positions, desired.velocities, desired.accelerations))
        physics.step(effort)
    return physics, [np.array(column) for column in zip(*rows, strict=True)]


def true_parameters(physics: Physics, robot: Robot) -> np.ndarray:
    """Return the standard parameters (p,) that the arm really has."""
    own = {j.name: j.values for j in physics.true_parameters()}
    return np.array([own[p.joint].get(p.symbol, 0.0) for p in robot.parameters])


@lru_cache
def session() -> Session:
    """Record the arm."""
    physics, (q, dq, tau, *wanted) = run_arm(SETTINGS)
    time = np.arange(len(q)) / RATE
    recording = Recording(
        JOINTS,
        time,
        q,
        tau,
        dq,
        source='the simulated arm',
        reference=Reference(time, *wanted),
        controller=_controller(),
    )
    robot = build_robot(
        URDF,
        RobotSettings(joints=JOINTS, friction={'default': ('viscous', 'coulomb', 'offset')}),
    )
    base = base_parameters(robot)
    return Session(recording, robot, base, base.of(true_parameters(physics, robot)))


def _controller() -> Controller:
    gains = {joint: {'p': g.p, 'i': g.i, 'd': g.d} for joint, g in GAINS.items()}
    kind = 'joint_trajectory_controller/JointTrajectoryController'
    return Controller('arm_controller', kind, RATE, JOINTS, ('effort',), gains)
