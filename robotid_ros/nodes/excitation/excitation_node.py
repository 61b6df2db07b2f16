"""Node `excitation`: designs the motion, runs it on the robot, and stops the robot in need."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import closing
from functools import partial
import threading
import time
from typing import Any
import uuid

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.qos import QoSProfile, ReliabilityPolicy

from ...core.excitation.settings import payload_settings
from ...core.excitation.trajectory import Trajectory
from ...core.model import Robot
from ...exceptions import ControllerError, RobotIdError, SilentRobotError, TrajectoryError
from ...node_settings import ExcitationNodeSettings
from ..common import runtime
from ..common.controller import TrajectoryClient
from ..common.messages import format_seconds, MOVING, one_line, State, values_of
from ..common.runtime import LATCHED, serve, start_thread, STEADY, WorkerNode
from .rehearsal import Rehearsals
from .session import Session
from .session_design import check_design, SessionDesign
from .supervisor import SessionContext
from .verifications import KINDS, Verifications

HEARTBEAT_PERIOD = 0.1  # from one state in which the robot moves to the next, waits included [s]
# After this silence of `identification/progress`, three of its periods, the motion runs as planned
# [s].
FOLLOWER_SILENCE = 3.0
# Requests that may wait: more than these at once would go without an answer.
SERVICE_QUEUE = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
Job = Callable[[], tuple[State, str]]  # returns the state that it leaves, and a sentence


class Excitation(WorkerNode):
    """Drives a session: idle → designing → approaching → exciting → validating → done, failed."""

    def __init__(self, **options: Any):
        super().__init__('excitation', ('robot', 'excitation', 'recorder'), **options)
        self.settings: ExcitationNodeSettings = payload_settings(self.configuration.excitation)
        self._session = ''  # name of the job that runs, by which others tell jobs apart
        self.busy = self._closed = False
        self._accepted, self._lock = Future[None](), threading.Lock()
        self._design = SessionDesign(self, self.settings, self._publish_session_state, self._stop)
        self._progress: tuple[float, Mapping[str, str]] = 0.0, {}
        self._estimate: Mapping[str, str] = {}
        for name, hear in (('progress', self._on_progress), ('known', self._on_known)):
            self.create_subscription(DiagnosticStatus, f'identification/{name}', hear, LATCHED)
        self.subscribe_description()
        name, timeout = self.settings.controller, self.settings.timeout
        self._controller = TrajectoryClient(self, name, timeout)
        self._rehearsals = Rehearsals(self, self._controller)
        self._verifications = Verifications(self)
        jobs: dict[str, tuple[Job, str]] = {
            'design': (self._run_design, 'designing'),
            'rehearse': (self._run_rehearsal, 'rehearsing'),
            'start': (self._run_session, 'started'),
            **{kind: (partial(self._run_verification, kind), 'verifying') for kind in KINDS},
        }
        for name, (job, what) in jobs.items():
            request = partial(self._request, job, what)
            serve(self, name, request, start_thread, qos_profile=SERVICE_QUEUE)
        group = MutuallyExclusiveCallbackGroup()
        serve(self, 'stop', self._stop_all, qos_profile=SERVICE_QUEUE, callback_group=group)
        self._moving: tuple[str, str, dict[str, Any]] | None = None
        self._publish_lock = threading.Lock()
        self.create_timer(HEARTBEAT_PERIOD, self._on_timer, group, clock=STEADY)
        self._publish_session_state(State.IDLE, 'call ~/start', {})
        if self.settings.auto_start:
            self._start_job(self._run_session)

    def close(self) -> None:
        """Stop the robot, and begin nothing any more."""
        with self._lock:
            self._closed = True
        super().close()

    def _request(self, job: Job, what: str) -> str:
        """Start a job; return when it has accepted the request, or raise why it has not."""
        self._start_job(job).result()
        return f'{what}: see ~/state'

    def _stop_all(self) -> str:
        busy = self.busy
        self._stop.set()
        return 'stopping: see ~/state' if busy else 'nothing was running'

    def _start_job(self, job: Job) -> Future[None]:
        """Start a job in the worker thread unless one runs; the future is of its acceptance."""
        with self._lock:
            if self.busy or self._closed:
                ended, busy = 'this node is shutting down', 'busy: call ~/stop first'
                raise ControllerError(ended if self._closed else busy)
            self.busy, self._session, self._accepted = True, uuid.uuid4().hex, Future()
            self._stop.clear()
            self.start_worker(self._run_job, job, self._accepted)
            return self._accepted

    def _accept(self) -> None:
        """Accept the request of the job that runs: all that can be checked at once is checked."""
        if not self._accepted.done():
            self._accepted.set_result(None)

    def _run_job(self, job: Job, accepted: Future[None]) -> None:
        """Run a job; whatever goes wrong becomes the state 'failed' with one sentence."""
        try:
            state, text = job()
        except Exception as error:
            state, text = State.FAILED, one_line(error)
            if isinstance(error, SilentRobotError):
                text = f'{text} ({self._controller.hardware.explain_end(error.joints)})'
            if not isinstance(error, RobotIdError):
                raise
        finally:
            with self._lock:  # a job that begins now must not give its session to this state
                self.busy = False
                self._publish_session_state(state, text, {})
            if state is State.FAILED:
                self.get_logger().error(text)
            if not accepted.done():
                accepted.set_exception(ControllerError(text))

    def _run_design(self) -> tuple[State, str]:
        self._design.plan = None
        self._design.build()
        self._accept()
        plan = self._design.find() or self._design.make()
        return State.IDLE, f"a {plan.verdict} design is in '{self._design.file}': call ~/start"

    def _run_rehearsal(self) -> tuple[State, str]:
        robot, plan = self._design.build(), self._design.find()
        if plan is None:
            self._accept()
            plan = self._design.make()
        check_design(plan)
        self._accept()
        verdict = self._rehearsals.run(self._session_context(robot), plan)
        return State.IDLE, f'{verdict}: call ~/start'

    def _run_session(self) -> tuple[State, str]:
        """Check what can be checked, design where there is no design yet, and move."""
        self._rehearsals.require(self._design.plan)
        # Checks have no state of their own.
        self._publish_session_state(State.DESIGNING, 'checking the robot', {})
        robot, plan = self._design.build(), self._design.find()
        if plan is not None:
            check_design(plan)
        # It checks the robot, accepts the request and starts the guardian.
        with closing(Session(self._session_context(robot))) as session:
            if plan is None:
                plan = self._design.make()
                check_design(plan)
            session.run_design(plan)
        return State.DONE, 'the robot has moved through its trajectories'

    def _run_verification(self, kind: str) -> tuple[State, str]:
        """Verify what was identified, on the motion that validated it."""
        self._rehearsals.require(self._design.plan)
        plan = self._design.find()
        if plan is None or plan.validation is None:
            raise TrajectoryError(
                'there is no validation motion to verify on: call ~/start or ~/design first, or '
                'set excitation.trajectory; excitation.validation.kind must not be none'
            )
        context = self._session_context(self._design.build())
        self._publish_session_state(State.DESIGNING, 'checking the robot', {})
        return State.DONE, self._verifications.run(kind, context, plan.validation)

    def _on_progress(self, message: DiagnosticStatus) -> None:
        self._progress = time.monotonic(), {**values_of(message), 'text': message.message}

    def _on_known(self, message: DiagnosticStatus) -> None:
        self._estimate = values_of(message)

    def _design_next(self, present: Trajectory) -> Callable[[], Trajectory | None] | None:
        """Begin to design what follows the present motion, unless that must be rehearsed."""
        if self._estimate.get('session') != self._session or self.settings.require_rehearsal:
            return None
        return self._design.begin_next(present, self._estimate['known'])

    def _current_progress(self) -> Mapping[str, str]:
        """Return `identification/progress` of this session; {} if silent, or not asked for."""
        heard, values = self._progress
        fresh = time.monotonic() - heard < FOLLOWER_SILENCE
        used = fresh and values.get('session') == self._session and self.settings.until.asks
        return values if used else {}

    def _session_context(self, robot: Robot) -> SessionContext:
        return SessionContext(
            node=self,
            robot=robot,
            settings=self.settings,
            publish_state=self._publish_session_state,
            session=self._session,
            stop=self._stop,
            controller=self._controller,
            urdf=self._design.urdf,
            robot_settings=self._design.placed,
            accept=self._accept,
            known=self._current_progress,
            design_next=self._design_next,
        )

    def _publish_session_state(self, state: State, message: str, values: dict[str, Any]) -> None:
        """Publish a state; `start` among the values is when it began, on the robot's clock."""
        stamp = values.pop('start', None) or self.get_clock().now().nanoseconds
        values = {'stamp': format_seconds(stamp), 'session': self._session, **values}
        arguments = (state.value, message, {**values, **self._design.values()})
        with self._publish_lock:
            self._moving = arguments if state.value in MOVING else None
            self.publish_state(*arguments)

    def _on_timer(self) -> None:
        """Say again where a session is: who hears nothing may take this node for dead."""
        with self._publish_lock:
            if self._moving is not None:
                self.publish_state(*self._moving)


main = partial(runtime.run, Excitation)
