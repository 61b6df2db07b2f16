"""A motion on the simulated robot: MuJoCo, its trajectory controller and noisy sensors."""

from collections.abc import Iterable
import dataclasses

import numpy as np

from robotid_ros.core.model import Robot
from robotid_ros.plant.physics import Physics, Sensors
from robotid_ros.plant.trajectory import Goal, Point
from robotid_ros.plant.trajectory_controller import (
    ControllerSettings,
    GoalTolerances,
    TrajectoryController,
)
from robotid_ros.simulation_settings import SimulationSettings

# Time at rest before a motion [s].
REST = 1.0


def follow(
    robot: Robot,
    settings: SimulationSettings,
    samples: Iterable[tuple[np.ndarray, ...]],
    duration: float,
    noise_seed: int | None = None,
    late: np.ndarray | None = None,
    in_time: bool = True,
) -> tuple[np.ndarray, ...]:
    """
    Hold the robot for `REST`, then send it a goal.

    Parameters
    ----------
    robot : its description and joints
    settings : of the simulated robot
    samples : time, q, dq, ddq, if any effort, of each point of the goal; the last velocity is
        replaced by zero
    duration : of the motion [s]
    noise_seed : of the sensors; None: the settings', which also draw the true robot
    late : (K + 1,) by which updates begin later than evenly, as on a busy machine [s]; the
        controller goes by that time
    in_time : whether the robot does too, as a real one; else it moves on by one period an update,
        as hardware that is simulated

    Returns
    -------
    measured q, dq and effort, desired q, dq and ddq, and the effort that is commanded, of every
    update, rest included, (K, n) each

    """
    physics = Physics(robot.urdf, settings, robot.joints)
    seed = settings.seed if noise_seed is None else noise_seed
    sensors = Sensors(dataclasses.replace(settings, seed=seed), robot.joints)
    period = round(1e9 / settings.update_rate)
    controller = active_controller(robot, physics, settings, period)
    goal, rows = goal_of(robot.joints, samples), []
    effort, hold = [0.0] * robot.n, round(REST / physics.period)
    updates = hold + round(duration / physics.period)
    time = physics.period * np.arange(updates + 1)
    time = (time if late is None else time + late[: len(time)]).tolist()
    for k in range(updates):
        now, last = round(1e9 * time[k]), time[k - 1] if k else -physics.period
        if k == hold:
            reason = controller.rejection_reason(goal, now)
            assert not reason, reason
            controller.start(goal, GoalTolerances())
        q, dq, tau = sensors.read(
            time[k], physics.position.tolist(), physics.velocity.tolist(), effort
        )
        effort = list(controller.update(now, time[k] - last, q, dq))
        desired = controller.state.desired
        wanted = desired.positions, desired.velocities, desired.accelerations
        rows.append((q, dq, tau, *wanted, effort))
        if in_time:
            physics.model.opt.timestep = (time[k + 1] - time[k]) / physics.substeps
        physics.step(effort)
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def active_controller(
    robot: Robot, physics: Physics, settings: SimulationSettings, period: int
) -> TrajectoryController:
    """Return a controller with this period [ns] that holds the robot where it is."""
    controller = TrajectoryController(
        ControllerSettings(robot.joints, physics.wraparound, period, settings.gains)
    )
    controller.activate(physics.position.tolist(), physics.velocity.tolist())
    return controller


def goal_of(joints: tuple[str, ...], samples: Iterable[tuple[np.ndarray, ...]]) -> Goal:
    """Make a goal of times, positions, velocities, accelerations and efforts; it ends at rest."""
    points = [Point(round(t * 1e9), *(row.tolist() for row in rows)) for t, *rows in samples]
    points[-1].velocities = [0.0] * len(joints)
    return Goal(joints, 0, points)
