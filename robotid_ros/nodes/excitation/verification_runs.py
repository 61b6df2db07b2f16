"""The runs of a verification: each a straight line that leaves the robot at rest."""

from collections.abc import Callable
import threading
from typing import Any

import numpy as np
from rclpy.node import Node

from ....core.arrays import Array
from ....core.excitation import Trajectory, Waypoints, waypoints
from ....core.identification_settings import IdentificationSettings
from ....core.verification.feed_forward import check_feed_forward, REST, with_rests
from ....core.verification.static_postures import RestPair, static_postures
from ....core.verification.tracking import Tracking, tracks_better
from ....exceptions import TrajectoryError
from ....node_settings import GainSettings
from ...common.controller_client import ControllerDescription
from ...common.messages import State
from ...common.worker_process import run_in_process
from ...identification.gain_proposal import gain_parameters, Gains
from ..supervised_robot import SupervisedRobot
from .gain_trial import gains_for_motion, on_trial
from .identified_model import IdentifiedModel
from .motion_log import MotionLog, MotionMessages, RawMotion
from .worker_jobs import PresentRun, read_present_run, read_tracking

# How long the last stretch to a posture takes [s]: braking must need less than friction, or joints
# overshoot, come back, and are held from the other side.
CREEP_TIME = 4.0
# For how long the efforts of a posture are averaged [s]: they are noisy and do not change.
MEASURING_TIME = 1.0
# What a worker process may take for a motion [s]: a hundred times what it needs on a free machine.
WORKER_TIME = 600.0


class VerificationRuns:
    """
    Moves a robot along a motion, as it is or with what was identified.

    Parameters
    ----------
    node : whose executor spins
    robot : prepared, see `SupervisedRobot`
    model : what was identified
    motion : to verify on
    stop : set from outside to stop the robot

    """

    def __init__(
        self,
        node: Node,
        robot: SupervisedRobot,
        model: IdentifiedModel,
        motion: Trajectory,
        stop: threading.Event,
    ):
        self._stop = stop
        self.robot, self.model, self._motion = robot, model, motion
        self.points = with_rests(waypoints(motion, robot.settings.rate))
        robot.check_motion(self.points)
        self._log = MotionLog(node, robot.settings.controller, robot.robot.joints)

    @property
    def controller(self) -> ControllerDescription:
        """What the controller of the robot, which is prepared, says about itself."""
        assert self.robot.description is not None
        return self.robot.description

    def close(self) -> None:
        """Unsubscribe."""
        self._log.close()

    def present(self, settings: IdentificationSettings) -> PresentRun:
        """Run the motion as it is; `settings` of the signals."""
        raw = self._run('running the motion as it is', self.points)
        found: PresentRun = self._in_worker(
            read_present_run, raw, self.controller.rate, self.points, self.model, settings
        )
        return found

    def with_feed_forward(self, points: Waypoints) -> Tracking:
        """Run the motion with the identified efforts."""
        robot = self.robot
        robot.check_motion(points)
        check_feed_forward(points, robot.robot, robot.settings.effort_share)
        return self._track('running the motion with feed-forward', points)

    def _track(self, what: str, points: Waypoints) -> Tracking:
        tracking: Tracking = self._in_worker(read_tracking, self._run(what, points))
        return tracking

    def _run(self, what: str, points: Waypoints) -> RawMotion:
        """Run the motion between its rests."""
        robot, log = self.robot, self._log
        robot.check()
        robot.move_to(State.VERIFYING, points.q[0], 'moving to the start')
        log.begin()
        clock = robot.goals.run(State.VERIFYING, points, 1, what, log.poll)
        robot.goals.publish_standing(State.VERIFYING, 1.0)
        robot.goals.wait_at_rest(poll=log.poll)
        rest = round(REST * 1e9 / clock.speed.get('speed', 1.0))
        return log.raw()._replace(start=clock.known_start + rest, stop=clock.end - rest)

    def _in_worker(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return run_in_process(function, *arguments, stop=self._stop, time_limit=WORKER_TIME)

    def try_gains(
        self,
        settings: GainSettings,
        save_old: Callable[[Gains], object],
        save_new: Callable[[Gains], object],
    ) -> tuple[Gains, Gains, Tracking, Tracking, bool]:
        """
        Run the motion with present and with proposed gains; keep these only if they are better.

        Parameters
        ----------
        settings : of the proposal
        save_old : called before the new gains are set
        save_new : called before they are kept

        Returns
        -------
        Old and new gains, errors with them, and whether the new ones were kept.

        """
        robot, model = self.robot, self.model
        old, new = gains_for_motion(
            *(model.robot, model.consistent, self.points, self.controller.gains, settings)
        )
        before = self._track('running the motion with the present gains', self.points)
        save_old(old)
        parameters = gain_parameters(old), gain_parameters(new)
        robot.goals.monitor.gains.expect(parameters[1])
        with on_trial(robot.goals.guardian, robot.controller, *parameters) as keep:
            robot.goals.wait_at_rest()
            after = self._track('running the motion with the proposed gains', self.points)
            if kept := tracks_better(before, after):
                save_new(new)
                keep()
        return old, new, before, after, kept

    def rest_pairs(self, count: int, distance: float) -> list[RestPair]:
        """
        Rest in postures of the motion, after coming from below and from above.

        Parameters
        ----------
        count : of postures; those that cannot be reached on straight lines are left out
        distance : from which each joint comes [rad or m]

        Raises
        ------
        TrajectoryError : none can be reached

        """
        pairs, error = [], None
        postures = static_postures(self._motion, self.robot.robot, count, distance)
        for number, posture in enumerate(postures, start=1):
            what = f'resting in posture {number} of {len(postures)}'
            try:
                pairs.append(
                    RestPair(
                        *self._rest(posture - distance, posture, what),
                        *self._rest(posture + distance, posture, what),
                    )
                )
            except TrajectoryError as reason:
                error = reason
        if not pairs:
            raise TrajectoryError(f'no posture can be reached: {error}')
        return pairs

    def _rest(self, start: Array, posture: Array, what: str) -> tuple[Array, Array]:
        """Return mean position and effort at rest in a posture, coming from another one."""
        robot = self.robot
        robot.move_to(State.VERIFYING, start, what)
        # A quintic's largest speed is 15/8 of its mean.
        speed = 1.875 * float(np.abs(posture - start).max()) / CREEP_TIME
        robot.move_to(State.VERIFYING, posture, what, speed)
        self._log.begin()
        robot.goals.wait_at_rest(MEASURING_TIME, self._log.poll)
        position, effort = MotionMessages(self._log.raw()).means()
        return position, np.asarray(effort * robot.robot.drive_gain)


def why_no_feed_forward(controller: ControllerDescription) -> str:
    """Return why a controller is sent no efforts, '' where it takes them."""
    commands = controller.command_interfaces
    if commands == ('effort',):
        return ''
    if 'effort' in commands:
        return (
            f"'{controller.name}' commands {', '.join(commands)}: what its drives make of efforts "
            'beside these is not known here, so none are sent'
        )
    return (
        f"'{controller.name}' commands {', '.join(commands)} and takes no efforts: its "
        'command_interfaces would have to be [effort]'
    )
