"""A session without ROS: a design that runs on the simulated robot becomes a recording."""

from collections.abc import Iterator, Sequence
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from .core.excitation.design import Design
from .core.excitation.trajectory import point_to_point, Waypoints, waypoints
from .core.model.assumed_inertials import with_inertials
from .core.signals.recording import Controller, Phase, Recording, Reference
from .exceptions import ConfigurationError, ControllerError, RobotIdError
from .files.configuration import Configuration, from_mapping, read_mapping, read_urdf
from .files.identification_input import EXCITING, VALIDATING
from .plant.trajectory import Goal, Point
from .plant.trajectory_controller import ControllerSettings, GoalTolerances, TrajectoryController

# Rest behind each motion [s], speed and acceleration of the way to the next [rad/s, rad/s²].
REST, APPROACH_VELOCITY, APPROACH_ACCELERATION = 0.5, 0.3, 0.3


def simulate(config: str | Path, design: Design, **settings: Any) -> Recording:
    """
    Run a design on the simulated robot: MuJoCo, its trajectory controller, noisy sensors.

    As fast as the machine computes, and without ROS; the node `simulated_robot` is the same robot.

    Parameters
    ----------
    config : configuration with a group `simulation`, as `robotid init` writes it
    design : of the same robot, with or without a validation motion
    settings : keys of `simulation` in place of the file's, such as `seed` or `viscous`

    Returns
    -------
    Joint states, reference, controller, description and phases, as a session's bag holds them:
    `identify` needs nothing else.

    Raises
    ------
    RobotIdError : MuJoCo is not installed, the configuration names no description, or the
        controller does not command efforts

    """
    values = read_mapping(config)
    values['simulation'] = {**(values.get('simulation') or {}), **settings}
    configuration = from_mapping(values, Path(config).parent)
    urdf = read_urdf(configuration)
    if urdf is None:
        raise ConfigurationError(f"'{config}' names no URDF: set robot.urdf")
    session = _Session(urdf, configuration, design.trajectory.joints)
    phases = list(session.phases(design))
    return session.recording(phases, values)


class _Session:
    """The simulated robot under its controller, and what is recorded of it."""

    def __init__(self, urdf: str, configuration: Configuration, joints: tuple[str, ...]):
        try:
            from .plant.physics import Physics, Sensors
        except ImportError as error:
            raise RobotIdError(
                f"a simulation needs MuJoCo ({error}): pip install 'robotid_ros[sim]'"
            ) from error
        settings = configuration.simulation
        if settings.command_interface != 'effort':
            raise ConfigurationError(
                f"simulation.command_interface is '{settings.command_interface}': only 'effort' "
                "is simulated without ROS, 'robotid demo' simulates all"
            )
        gravity = settings.gravity or configuration.robot.gravity
        self.settings = dataclasses.replace(settings, gravity=gravity)
        self.urdf, self.joints, self.excitation = urdf, joints, configuration.excitation
        with_bodies, _ = with_inertials(urdf, configuration.robot.mass)
        self.physics = Physics(with_bodies, self.settings, joints, configuration.robot.locked)
        if self.physics.joint_state_names != self.physics.joints:
            raise ConfigurationError(
                "joints are elastic: their motors are recorded by 'robotid demo' alone"
            )
        self.sensors = Sensors(self.settings, joints)
        self.period = round(1e9 / settings.update_rate)
        self.controller = TrajectoryController(
            ControllerSettings(joints, self.physics.wraparound, self.period, settings.gains)
        )
        self.rows: list[tuple[Sequence[float], ...]] = []
        self.goal, self.effort = self.physics.position.copy(), [0.0] * len(joints)
        self.controller.activate(self.goal.tolist(), self.physics.velocity.tolist())

    def phases(self, design: Design) -> Iterator[Phase]:
        """Run the motions of a design, each from rest to rest; give when each was run."""
        motions = [(EXCITING, design.trajectory, self.excitation.periods)]
        if design.validation is not None:
            motions.append((VALIDATING, design.validation, 1))
        size = len(self.joints)
        bounds = np.full(size, APPROACH_VELOCITY), np.full(size, APPROACH_ACCELERATION)
        for name, trajectory, periods in motions:
            points = waypoints(trajectory, self.excitation.rate, periods)
            self._run(point_to_point(self.joints, self.goal, points.q[0], *bounds))
            start = len(self.rows) * self.physics.period
            self._run(points)
            yield Phase(name, start, start + points.duration)

    def _run(self, points: Waypoints) -> None:
        values = (x.tolist() for x in (points.time, points.q, points.dq, points.ddq))
        rows = zip(*values, strict=True)
        goal = Goal(self.joints, 0, [Point(round(t * 1e9), *row) for t, *row in rows])
        physics, controller = self.physics, self.controller
        if reason := controller.rejection_reason(goal, len(self.rows) * self.period):
            raise ControllerError(f'the simulated controller refuses the motion: {reason}')
        controller.start(goal, GoalTolerances())
        for _ in range(round((points.duration + REST) / physics.period)):
            count = len(self.rows)
            measured = self.sensors.read(count * physics.period, *physics.joint_state(self.effort))
            now, (q, dq, _) = count * self.period, measured
            command = list(controller.update(now, physics.period, q, dq))
            desired = controller.state.desired
            wanted = desired.positions, desired.velocities, desired.accelerations
            self.rows.append((*measured, *wanted, command))
            self.effort = physics.step(command)
        self.goal = points.q[-1]

    def recording(self, phases: list[Phase], values: dict[str, Any]) -> Recording:
        """Return what was recorded."""
        q, dq, tau, *reference = map(np.array, zip(*self.rows, strict=True))
        time = self.physics.period * np.arange(len(q), dtype=np.float64)
        settings = self.settings
        step = round(settings.update_rate / (settings.state_rate or settings.update_rate)) or 1
        gains = {
            joint: {k: v for k, v in dataclasses.asdict(gain).items() if isinstance(v, float)}
            for joint, gain in settings.gains.items()
        }
        kind, commands = 'joint_trajectory_controller/JointTrajectoryController', ('effort',)
        rate, name = settings.update_rate, settings.controller
        return Recording(
            self.joints,
            time[::step],
            q[::step],
            tau[::step],
            dq[::step],
            source='simulation',
            reference=Reference(time, *reference),
            controller=Controller(name, kind, rate, self.joints, commands, gains),
            phases=tuple(phases),
            urdf=self.urdf,
            configuration=values,
        )
