"""The design of a session, read or made in a process of its own; published, and saved."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
import dataclasses
from pathlib import Path
import threading
import time
from typing import Any, cast

from rclpy.impl.rcutils_logger import RcutilsLogger
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from ...core.excitation.design import Design, design, next_motion, Progress
from ...core.excitation.limits import check_trajectory
from ...core.excitation.trajectory import Trajectory, waypoints
from ...core.findings import render
from ...core.model import build_robot, Robot, RobotSettings
from ...core.setup.joint_choice import place_locked_joints
from ...exceptions import ControllerError, TrajectoryError
from ...files.atomic import expect_writable
from ...files.configuration import Configuration
from ...files.report.page import page_beside, save_page
from ...files.trajectory_file import dump_design, read_design, save_design
from ...node_settings import ExcitationNodeSettings
from ..common.joint_states import read_positions
from ..common.messages import log_findings, one_line, State, trajectory_message
from ..common.runtime import LATCHED, WorkerNode
from ..common.worker_process import describe_bug, run_in_process, start_in_process
from .supervisor import PublishState

# Most of a recording [bytes/s]: seven joints at 1 kHz; a session besides its excitation [s].
RECORDING_RATE, OTHER_MOTIONS = 2e6, 60.0
# Of a period, in which the next motion is sought, and in which it has to be there, checked.
NEXT_SEARCH, NEXT_LIMIT = 0.7, 0.9
GRACE = 60.0  # in which a design that does not keep its time limit may go on unkilled [s]
PAGE_LIMIT = 600.0  # how long its page may take [s]


class SessionDesign:
    """The design that sessions run, in a `file`; `placed`: where joints stood as it was made."""

    def __init__(
        self,
        node: WorkerNode,
        settings: ExcitationNodeSettings,
        publish_state: PublishState,
        stop: threading.Event,
    ):
        self._node, self._settings = node, settings
        self._publish_state, self._stop = publish_state, stop
        self.plan: Design | None = None
        self.file = self.urdf = ''
        self.placed = node.configuration.robot
        self._reference = node.create_publisher(JointTrajectory, '~/reference', LATCHED)
        self._trajectory = node.create_publisher(String, '~/trajectory', LATCHED)

    def build(self) -> Robot:
        """Build the robot; joints that it does not move stand as they did for the design."""
        self.urdf = self._node.wait_for_urdf()
        if self.plan is None:
            node, self.placed = self._node, self._node.configuration.robot
            # Who is silent does not keep a design from being made; a session asks again.
            if self.placed.joints and node.count_publishers('joint_states'):
                with suppress(ControllerError):
                    positions = read_positions(node, self.placed.joints, self._settings.timeout)
                    self.placed = place_locked_joints(self.urdf, self.placed, positions)
        return build_robot(self.urdf, self.placed)

    def find(self) -> Design | None:
        """Return the design that is there, else the one that the settings name, if they do."""
        if self.plan is None and self._settings.trajectory:
            self.file = self._settings.trajectory
            self._publish(read_design(self.file))
        return self.plan

    def make(self) -> Design:
        """Design; it is published and saved, with a page, whatever becomes of the session."""
        self._publish_state(State.DESIGNING, 'designing the trajectory', {})
        folder = Path(self._node.configuration.recorder.folder).expanduser().absolute()
        robot, settings = self.placed, self._settings
        seconds = settings.periods * settings.period + OTHER_MOTIONS
        expect_writable(folder, round(seconds * RECORDING_RATE))
        end = time.monotonic() + settings.time_limit  # the start of its process counts
        plan: Design = run_in_process(
            *(_design_until, self.urdf, robot, settings, end),
            progress=self._on_progress,
            stop=self._stop,
            time_limit=settings.time_limit + GRACE,
        )
        self._publish(plan)
        file = save_design(folder, robot.name, plan)
        self.file, log = str(file), self._node.get_logger()
        condition = plan.condition_numbers['raw']
        log.info(f"condition number {condition:.3g}, {plan.verdict}: saved as '{self.file}'")
        log_findings(log, (*plan.notes, *plan.unchecked, *plan.shortcomings))
        configuration = dataclasses.replace(self._node.configuration, robot=robot)
        write_page(file, plan, self.urdf, configuration, log)
        return plan

    def begin_next(self, present: Trajectory, known: str) -> Callable[[], Trajectory | None]:
        """Begin to design the next motion in a process; return what gives it, once checked."""
        end = time.monotonic() + NEXT_SEARCH * present.period
        job = start_in_process(
            *(_design_next, self.urdf, self.placed, self._settings, present, known, end),
            stop=self._stop,
            time_limit=NEXT_LIMIT * present.period,
        )

        def collect() -> Trajectory | None:
            if not job.done():
                return None
            log = self._node.get_logger()
            if error := job.exception():
                if trace := describe_bug(error):
                    log.error(f'no other motion: {trace}')
                else:
                    log.info(f'no other motion: {one_line(error)}')
            elif motion := job.result():
                self._publish_reference(motion)
                return cast('Trajectory', motion)
            return None

        return collect

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
        self.plan = plan
        self._publish_reference(plan.trajectory)
        self._trajectory.publish(String(data=dump_design(plan)))

    def _publish_reference(self, motion: Trajectory) -> None:
        points = waypoints(motion, self._settings.rate, self._settings.periods)
        self._reference.publish(trajectory_message(points))


def check_design(plan: Design) -> None:
    """Refuse to run a poor design."""
    if plan.shortcomings:
        raise TrajectoryError(f'the design is poor: {" ".join(map(render, plan.shortcomings))}')


def _design_until(
    urdf: str,
    robot: RobotSettings,
    settings: ExcitationNodeSettings,
    end: float,
    progress: Callable[[Progress], None],
) -> Design:
    """Design until `end`, on the clock that all processes of a machine share."""
    built = build_robot(urdf, robot)
    remaining = max(0.0, end - time.monotonic())
    return design(built, dataclasses.replace(settings, time_limit=remaining), progress)


def _design_next(
    urdf: str,
    placed: RobotSettings,
    settings: ExcitationNodeSettings,
    present: Trajectory,
    known: str,
    end: float,
) -> Trajectory | None:
    """Design the next motion, and check it."""
    from ...files.results import read_known

    robot = build_robot(urdf, placed)
    told, identified = read_known(known, robot)
    motion = next_motion(identified, settings, told, present, end)
    if motion is not None:
        check_trajectory(robot, waypoints(motion, settings.rate), settings)
    return motion


def write_page(
    file: Path, plan: Design, urdf: str, configuration: Configuration, log: RcutilsLogger
) -> None:
    """Write a design's page, unless it is there, in a thread; the log says how that went."""
    page = page_beside(file)
    if page.exists():
        return
    never, job = threading.Event(), (_draw_page, page, plan, urdf, configuration)

    def tell(done: Future[None]) -> None:
        error = done.exception()
        if error and (trace := describe_bug(error)):
            log.error(f'the design has no page: {trace}')
        elif error:
            log.warning(f'the design has no page: {one_line(error)}')
        else:
            log.info(f"the arm along its motion: '{page}'")

    start_in_process(*job, stop=never, time_limit=PAGE_LIMIT).add_done_callback(tell)


def _draw_page(page: Path, plan: Design, urdf: str, configuration: Configuration) -> None:
    robot = build_robot(urdf, configuration.robot)
    save_page('design', page, plan, robot, configuration, overwrite=False)
