"""The design of a session: read where the settings name one, else made; published and saved."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
import threading
from typing import Any

from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from ...core.excitation import Design, Progress, waypoints
from ...core.model import build_robot, Robot
from ...exceptions import ControllerError
from ...files.atomic import expect_writable
from ...files.trajectory_file import dump_design, read_design, save_design
from ...node_settings import ExcitationNodeSettings
from ..common.messages import State
from ..common.runtime import ConfiguredNode, LATCHED
from .design_process import design_in_process, write_page
from .preflight import place_locked_joints, read_positions
from .supervised_goals import PublishState
from .trajectory_goal import trajectory_message

# What a recording needs at the most [bytes/s]: seven joints and their controller at 1 kHz; and how
# long a session may last besides its excitation [s].
RECORDING_RATE, OTHER_MOTIONS = 2e6, 60.0


class SessionDesign:
    """
    The design that sessions run, on `~/reference` and `~/trajectory` once there is one.

    Parameters
    ----------
    node : whose topics these are
    settings : of the session
    publish_state : called with each state, a sentence and values
    stop : set from outside to stop the search

    Attributes
    ----------
    plan : the design, or None
    file : where it is
    placed : the robot's settings, with other joints where they stood as the design was made

    """

    def __init__(
        self,
        node: ConfiguredNode,
        settings: ExcitationNodeSettings,
        publish_state: PublishState,
        stop: threading.Event,
    ):
        self._node, self._settings = node, settings
        self._publish_state, self._stop = publish_state, stop
        self.plan: Design | None = None
        self.file = ''
        self.placed = node.configuration.robot
        self._reference = node.create_publisher(JointTrajectory, '~/reference', LATCHED)
        self._trajectory = node.create_publisher(String, '~/trajectory', LATCHED)

    def build(self, urdf: str) -> Robot:
        """Build the robot; joints that it does not move stand as they did for the design."""
        if self.plan is None:
            node, self.placed = self._node, self._node.configuration.robot
            # Who is silent does not keep a design from being made; a session asks again.
            if self.placed.joints and node.count_publishers('joint_states'):
                with suppress(ControllerError):
                    positions = read_positions(node, self.placed.joints, self._settings.timeout)
                    self.placed = place_locked_joints(urdf, self.placed, positions)
        return build_robot(urdf, self.placed)

    def find(self) -> Design | None:
        """Return the design that is there, else the one that the settings name, if they do."""
        if self.plan is None and self._settings.trajectory:
            self.file = self._settings.trajectory
            self._publish(read_design(self.file))
        return self.plan

    def make(self, urdf: str) -> Design:
        """Design; it is published and saved, with a page, whatever becomes of the session."""
        self._publish_state(State.DESIGNING, 'designing the trajectory', {})
        folder = Path(self._node.configuration.recorder.folder).expanduser().absolute()
        robot, settings = self.placed, self._settings
        seconds = settings.periods * settings.period + OTHER_MOTIONS
        expect_writable(folder, round(seconds * RECORDING_RATE))
        plan = design_in_process(urdf, robot, settings, self._on_progress, self._stop)
        self._publish(plan)
        file = save_design(folder, robot.name, plan)
        self.file = str(file)
        condition, log = plan.condition_numbers['raw'], self._node.get_logger()
        log.info(f"condition number {condition:.3g}, {plan.verdict}: saved as '{self.file}'")
        for sentence in plan.notes:
            log.info(sentence)
        for sentence in (*plan.unchecked, *plan.shortcomings):
            log.warning(sentence)
        write_page(file, plan, urdf, replace(self._node.configuration, robot=robot), log)
        return plan

    def values(self) -> dict[str, Any]:
        """Return what a state says of the design."""
        if self.plan is None:
            return {}
        motions = {'trajectory': self.plan.trajectory, 'validation': self.plan.validation}
        hashes = {name: motion.hash for name, motion in motions.items() if motion is not None}
        return {**hashes, 'file': self.file, 'verdict': self.plan.verdict}

    def _on_progress(self, progress: Progress) -> None:
        best = 'none yet' if progress.criterion is None else f'{progress.criterion:.4g}'
        self._publish_state(
            State.DESIGNING,
            f'{progress.phase}: best so far {best}',
            {'progress': round(progress.fraction, 4), 'evaluations': progress.evaluations},
        )

    def _publish(self, plan: Design) -> None:
        """Keep and publish what will be run."""
        self.plan, settings = plan, self._settings
        motion = waypoints(plan.trajectory, settings.rate, settings.periods)
        self._reference.publish(trajectory_message(motion))
        self._trajectory.publish(String(data=dump_design(plan)))
