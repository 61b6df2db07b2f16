"""A session in one straight line: the robot is checked, and approaches and runs each motion."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from functools import partial
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.excitation.collision_scene import CollisionScene
from ...core.excitation.design import Design
from ...core.excitation.limits import check_trajectory
from ...core.excitation.pieces import in_pieces, Piece
from ...core.excitation.trajectory import point_to_point, Trajectory, Waypoints, waypoints
from ...core.findings import Finding, render
from ...core.model.robot import Robot
from ...exceptions import ConfigurationError, ControllerError, RobotStateError, shortened
from ...node_settings import ExcitationNodeSettings
from ..common.controller import check_controller, ControllerDescription, unbearable_gains
from ..common.messages import State
from ..common.processes import prefer_threads
from ..common.watchdog import AT_END
from .motion_clock import MotionClock
from .supervisor import GoalPhase, SessionContext, Supervisor

# Speed that an approach takes for the limit of joints that have none, or a higher one [rad/s].
MAX_APPROACH_VELOCITY = 10.0
# Largest step to a motion's first position [rad or m]: times the gain, the torque steps by it.
MAX_STEP = 1e-4
# Least patience with the recorder, which then subscribes [s]: 2.2 were seen on a quiet machine.
OPENING_TIME = 15.0
# Of a period, what the robot rests after it while nothing is known yet.
THINKING = 0.25


class Session(Supervisor):
    """Moves a robot, once all but the design is checked; `RobotIdError`: why not. `close` it."""

    description: ControllerDescription

    def __init__(self, context: SessionContext):
        self._scene = CollisionScene(context.robot, context.settings.workspace)
        check_accepted(self._scene.unchecked, context.settings, context.node.get_logger())
        context.accept()
        super().__init__(context)
        # From here on: robot and controller are discovered in these threads, too.
        prefer_threads(True)
        try:
            self.check_robot()
            self.guardian.wait_ready(context.settings.timeout, self.check_request)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of everything; a goal that still runs is cancelled by the guardian."""
        try:
            super().close()
        finally:
            prefer_threads(False)

    def check_robot(self) -> None:
        """Check robot, controller, recorder and other clients as they are now."""
        self.others.check_alone()
        controller, robot = self.context.controller, self.context.robot
        self.description = description = controller.describe()
        self.gains.expect(description.values)
        check_controller(description, robot)
        in_gazebo = controller.hardware.is_gazebo(robot.joints)
        if joints := unbearable_gains(description, robot, description.rate) if in_gazebo else []:
            raise ControllerError(
                f'the gains of {shortened(joints)} are too high at {description.rate:g} Hz for '
                'bodies without rotor inertia, as Gazebo simulates them: take those that '
                'gazebo.launch.py derives'
            )
        self.holds_itself = (
            'effort' not in description.command_interfaces
            or self._settings.deactivate_effort_controller
            or self._settings.deactivate_hardware
        )
        if self._settings.deactivate_hardware:
            self.braking_hardware = controller.hardware.names(robot.joints)
            if not self.braking_hardware:
                raise ControllerError(
                    'controller_manager names no hardware of the joints that can be deactivated: '
                    'set excitation.deactivate_hardware to false'
                )
        controller.wait_for_server()
        self.check_ready()

    def check_motion(self, motion: Waypoints) -> None:
        """Check a motion between its points too; raises `TrajectoryError`."""
        check_trajectory(self.context.robot, motion, self._settings, scene=self._scene)

    def run_design(self, design: Design) -> None:
        """Run the excitation, then the validation, each after an approach and a rest."""
        settings = self._settings
        most = settings.until.most_periods(settings.periods, design.trajectory.period)
        motions = [(State.EXCITING, design.trajectory, most)]
        if design.validation is not None:
            motions.append((State.VALIDATING, design.validation, 1))
        points = [waypoints(motion, settings.rate, periods) for _, motion, periods in motions]
        for motion in points:
            self.check_motion(motion)
        # Again: a design takes minutes, and by now who began in the same instant is known, too.
        self.check_robot()
        for motion, (state, trajectory, periods) in zip(points, motions, strict=True):
            self.move_to(State.APPROACHING, motion.q[0], f'moving to the start of {state.value}')
            phase = GoalPhase(state, state.value, periods, motion.duration)
            self._run_periods(motion, trajectory, phase)
            # What follows is not part of the phase any more, though the robot still settles.
            self.publish_standing(State.APPROACHING, 1.0)
            self.wait_at_rest()

    def _run_periods(self, motion: Waypoints, present: Trajectory, phase: GoalPhase) -> None:
        """
        Run periods, a goal each, until enough is known; one goal if no identification follows.

        While one runs, a next motion is designed for what is still unknown, which begins where
        this one ends; as long as there is none, the same runs again. The robot rests for a while
        if nothing is known yet: that costs less than a period in vain.
        """
        done, periods = 0, phase.periods
        next_points = motion.leading(1, of=periods)
        while done < periods:
            if done:
                self.wait_at_rest(THINKING * motion.duration / periods, self._is_decided)
            known = self.context.known()
            if done and known.get('enough') == 'True':
                *before, last = phase.before
                seconds = sum(clock.duration for clock in phase.before)
                ended = phase._replace(periods=done, duration=seconds, before=before)
                self.publish_motion(ended, last, last.duration)
                text = f'ends after {done} of {periods} periods: {known.get("text", "")}'
                self.context.node.get_logger().info(text)
                return
            if known.get('following') != 'True':
                self.run(motion.leading(periods - done, of=periods), phase)
                return
            is_last = done + 1 == periods
            designed = None if is_last else self.context.design_next(present)
            ran = self.run(next_points, phase)
            phase, done = phase._replace(before=(*phase.before, ran)), done + 1
            if designed is not None and (found := designed()) is not None:
                present, next_points = found, waypoints(found, self._settings.rate)
                text = f'another motion, for what is unknown: {found.hash}'
                self.context.node.get_logger().info(text)

    def _is_decided(self) -> bool:
        known = self.context.known()
        return known.get('following') != 'True' or 'enough' in known

    def run(self, points: Waypoints, phase: GoalPhase, parts: Sequence[Piece] = ()) -> MotionClock:
        """Run one motion, in pieces where `horizon` asks for it and it has no efforts."""
        horizon = self._settings.horizon
        if horizon and points.tau is None and not parts:
            parts = in_pieces(points, horizon, self._checker(points.q[0], points.q[-1]))
        return super().run(points, phase, parts)

    def move_to(self, state: State, goal: Array, what: str, speed: float = np.inf) -> None:
        """
        Move straight in joint space to (n,), unless that is held, and rest.

        No faster than `speed` [rad/s or m/s].
        """
        stamp, start = self.wait_for_reference()
        self.publish_standing(state, 0.0, stamp)
        if self.recorder is not None:
            # It has heard that the session begins.
            timeout = max(self._settings.timeout, OPENING_TIME)
            self.recorder.wait_recording(timeout, self.raise_if_stopped)
        phase = GoalPhase(state, what)
        if np.abs(start - goal).max() <= AT_END:
            self.wait_at_rest()
            return
        self._approach(phase, start, goal, speed)
        # A controller that was restarted, or holds what it measured, would begin with a step.
        _, held = self.wait_for_reference()
        if (away := np.abs(held - goal)).max() > MAX_STEP:
            joint = self.context.robot.joints[int(np.argmax(away))]
            self.context.node.get_logger().warning(
                f'the controller holds {joint} {away.max():.4g} away from where the motion '
                'begins, as if it had been restarted: moving there again'
            )
            self._approach(phase, held, goal, speed)

    def _approach(self, phase: GoalPhase, start: Array, goal: Array, speed: float) -> None:
        robot, settings = self.context.robot, self._settings
        share = settings.approach_speed
        velocity = share * np.minimum(robot.limits.velocity, MAX_APPROACH_VELOCITY)
        velocity = np.minimum(velocity, speed)
        # Slow in acceleration too: from rest to that speed in a second.
        acceleration = np.minimum(velocity, share * robot.limits.acceleration)
        motion = point_to_point(robot.joints, start, goal, velocity, acceleration)
        self._checker(start, goal)(motion)
        self.run(motion, phase)
        self.wait_at_rest()

    def _checker(self, start: Array, goal: Array) -> Callable[[Waypoints], object]:
        """Return the check of a motion that may begin a little outside, see `let_in`."""
        tolerance = self.context.per_joint('position_tolerance')
        robot = let_in(self.context.robot, start, goal, tolerance)
        return partial(check_trajectory, robot, settings=self._settings, scene=self._scene)


def check_accepted(
    unchecked: Mapping[str, Finding], settings: ExcitationNodeSettings, logger: Any
) -> None:
    """Warn of what is not checked, by the names of `accept_unchecked`; the user accepts it."""
    for found in unchecked.values():
        logger.warning(render(found))
    missing = [name for name in unchecked if name not in settings.accept_unchecked]
    if missing:
        raise ConfigurationError(
            f'{" ".join(render(unchecked[name]) for name in missing)} Or accept it by '
            f'excitation.accept_unchecked: [{", ".join((*settings.accept_unchecked, *missing))}]'
        )


def let_in(robot: Robot, start: Array, goal: Array, tolerance: Array) -> Robot:
    """
    Widen limits to where an approach begins, if it is a little outside and leads inside.

    Joints rest beyond a limit by what calibrations, stops and gravity make of it. An approach from
    `start` to `goal` (n,) is a straight line in joint space: each joint moves towards its limits
    only. It may be as far beyond them as `tolerance` (n,) says, as while it moves [rad or m].
    """
    limits = robot.limits
    beyond = np.maximum(limits.lower - start, start - limits.upper)
    worst = int(np.argmax(beyond - tolerance))
    if beyond[worst] > tolerance[worst]:
        raise RobotStateError(
            f'{robot.joints[worst]} is held at {start[worst]:.4f}, {beyond[worst]:.2g} beyond its '
            f'limits [{limits.lower[worst]:.4f}, {limits.upper[worst]:.4f}], more than the '
            f'{tolerance[worst]:.2g} of excitation.position_tolerance: jog it back, or '
            'correct its limits'
        )
    inward = (goal >= limits.lower) & (goal <= limits.upper)
    lower = np.where(inward, np.minimum(limits.lower, start), limits.lower)
    upper = np.where(inward, np.maximum(limits.upper, start), limits.upper)
    return dataclasses.replace(robot, limits=dataclasses.replace(limits, lower=lower, upper=upper))
