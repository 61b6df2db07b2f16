"""Node `identification`: bag → parameters, files and topics; then live prediction and gains."""

from collections.abc import Callable, Iterator, Sequence
import contextlib
from functools import partial
import math
from pathlib import Path
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from ...core.model import build_robot, Robot
from ...core.verification.gains import GainProposal
from ...exceptions import RecordingError, RobotIdError
from ...files.atomic import is_below
from ...node_settings import IdentificationNodeSettings
from ..common import runtime
from ..common.batched_subscription import BatchedSubscription
from ..common.messages import log_findings, one_line, stack_joint_states
from ..common.runtime import LATCHED, serve, start_thread, WorkerNode
from ..common.worker_process import run_in_process
from .gain_proposal import GainUpdate
from .live_topics import DriftTopics, ExternalEffortTopics, LivePrediction, ProgressTopic
from .payload_service import PayloadService
from .result_messages import (
    effort_message,
    effort_messages,
    gains_message,
    IdentificationOutcome,
    parameters_message,
    summary_message,
)

# How often joint states are taken [s]: a contact may be told so much later; and how often
# predicted efforts are told.
POLL_PERIOD, PREDICTION_PERIOD = 0.005, 0.02
# Every sample of the validation is kept for subscribers that come late: 20 s at 1 kHz.
SERIES_QOS = QoSProfile(depth=20000, durability=DurabilityPolicy.TRANSIENT_LOCAL)
MAX_SHOWN = 200  # characters of a path that somebody else wrote


class IdentificationNode(WorkerNode):
    """Identifies when the recorder has closed a bag, or when asked; options of `WorkerNode`."""

    def __init__(self, **options: Any):
        super().__init__('identification', ('robot', 'identification'), **options)
        self.settings: IdentificationNodeSettings = self.configuration.identification
        self._bag = ''
        self._outcome: IdentificationOutcome | None = None
        self._predicted_stamp, self._prediction_due = 0, -math.inf
        self._live: tuple[LivePrediction, BatchedSubscription, tuple[str, ...]] | None = None
        self._followers = (ExternalEffortTopics(self), DriftTopics(self))
        self._progress = ProgressTopic(self, self._stop)
        self._gain_update = GainUpdate(self)
        self._payloads = PayloadService(self, self._stop)

        def latched(message_type: type, name: str) -> Any:
            return self.create_publisher(message_type, f'~/{name}', LATCHED)

        # Not `_parameters`, which are those of every node.
        self._base_parameters = latched(DiagnosticArray, 'parameters')
        self._identified = latched(String, 'robot_description')
        self._summary = latched(DiagnosticArray, 'validation/summary')
        self._gains = latched(DiagnosticArray, 'proposed_gains')
        self._measured = self.create_publisher(JointState, '~/validation/measured', SERIES_QOS)
        self._predicted = self.create_publisher(JointState, '~/validation/predicted', SERIES_QOS)
        self._effort = self.create_publisher(JointState, '~/predicted_effort', 10)
        self._residual = self.create_publisher(JointState, '~/residual', 10)
        self.create_subscription(String, 'recorder/bag', self._on_bag, LATCHED)
        self.subscribe_description()
        serve(self, 'identify', self._on_identify)
        serve(self, 'update_controller', self._update_controller, start_thread)
        serve(self, 'identify_payload', self._identify_payload, self._start_if_free)
        serve(self, 'set_payload', self._payloads.set, start_thread)
        # Without a model there is nothing to predict.
        take = self.guard.wrap('joint_states', self._take_joint_states)
        self._live_timer = self.create_timer(POLL_PERIOD, take, autostart=False)
        self.publish_state('idle', 'waiting for a recording')

    def _on_bag(self, message: String) -> None:
        folders = (self.configuration.recorder.folder, *self.settings.folders)
        try:
            self._bag = str(find_bag(message.data, folders))
        except RecordingError as error:
            self.get_logger().error(one_line(error))
            if not self._busy:
                self.publish_state('failed', one_line(error))
            return
        self._payloads.note_recording(self._bag)
        if self.configuration.excitation.payload.mass:
            text = f"recorded '{self._bag}', a motion for payloads: call ~/identify_payload"
            self.publish_state('idle', text)
            return
        try:
            self._start_if_free(partial(self._identify, self._bag, False))
        except RecordingError:
            self.get_logger().warn(f"busy: call ~/identify for '{self._bag}' later")

    def _on_identify(self) -> str:
        if not self._bag:
            raise RecordingError('there is no recording yet: record a session')
        if not Path(self._bag).exists():
            raise RecordingError(f"'{self._bag}' is not there any more: record a session")
        self._start_if_free(partial(self._identify, self._bag, True))
        return f"identifying from '{self._bag}': see ~/state"

    @property
    def _busy(self) -> bool:
        return self._worker is not None and self._worker.is_alive()

    def _start_if_free(self, work: Callable[[], None]) -> None:
        if self._busy:
            raise RecordingError('busy: wait for ~/state')
        self.start_worker(work)

    def _identify_payload(self) -> str:
        bag = self._bag
        self._payloads.check(bag)
        with self._telling_failure(bag):
            return self._payloads.identify(bag, self.description)

    @contextlib.contextmanager
    def _telling_failure(self, bag: str) -> Iterator[None]:
        """Publish and log why an identification has failed."""
        try:
            yield
        except Exception as error:
            if self.context.ok():
                self.publish_state('failed', one_line(error), {'bag': bag})
                self.get_logger().error(one_line(error))
            raise

    def _identify(self, bag: str, include_failed: bool) -> None:
        with contextlib.suppress(RobotIdError), self._telling_failure(bag):
            outcome: IdentificationOutcome = run_in_process(
                identify_in_worker,
                *(bag, self.configuration, self.values, self.description, include_failed),
                progress=self._on_progress,
                stop=self._stop,
                time_limit=self.settings.time_limit,
            )
            self._publish_outcome(outcome, bag)

    def _on_progress(self, text: str) -> None:
        self.publish_state('identifying', text)
        self.get_logger().info(text)

    def _publish_outcome(self, outcome: IdentificationOutcome, bag: str) -> None:
        """Publish everything; the state comes last and says where the files are."""
        results, now = outcome.results, self.get_clock().now().to_msg()
        robot = build_robot(outcome.source_urdf, outcome.robot_settings)
        self._outcome = outcome
        self._payloads.note_results(bag, str(outcome.folder))
        self._base_parameters.publish(parameters_message(results, now))
        self._identified.publish(String(data=outcome.urdf))
        self._summary.publish(summary_message(results, now))
        series = results.torques.get('validation')
        if series is not None:
            # In turns: who keeps a few samples alone has the same ones of both.
            both = (series.measured, series.predicted)
            pairs = (effort_messages(series, values, outcome.origin) for values in both)
            for measured, predicted in zip(*pairs, strict=True):
                self._measured.publish(measured)
                self._predicted.publish(predicted)
        if isinstance(outcome.gains, GainProposal):
            self._gains.publish(gains_message(outcome.gains, now))
        elif outcome.gains:
            self.get_logger().warning(f'no gains are proposed: {outcome.gains}')
        self._start_live_prediction(robot, outcome)
        log_findings(self.get_logger(), results.findings)
        worst = max((row.moving for row in results.validation), default=float('nan'))
        self.publish_state(
            'done',
            f"identified {len(results.base)} base parameters, see '{outcome.folder}'",
            {'folder': outcome.folder, 'bag': bag, 'validation_residual': worst},
        )
        self.get_logger().info(f"results are in '{outcome.folder}'")

    def _start_live_prediction(self, robot: Robot, outcome: IdentificationOutcome) -> None:
        """Predict live from now on, watch for contacts, and follow what may drift."""
        for follower in self._followers:
            follower.start(robot, outcome)
        prediction = LivePrediction(robot, outcome.chi)
        old, self._live = self._live, None
        if old is not None:
            old[1].close()
        stream = BatchedSubscription(self, JointState, 'joint_states')
        self._live = prediction, stream, robot.joints
        self._live_timer.reset()

    def _take_joint_states(self) -> None:
        if self._live is None:
            return
        prediction, stream, joints = self._live
        states = stack_joint_states(stream.take_messages(), joints)
        prediction.update(states.stamp, states.position, states.effort)
        now = time.monotonic()
        found = prediction.predict() if now >= self._prediction_due else None
        if found is not None and found[0] != self._predicted_stamp:
            self._predicted_stamp, predicted, residual = found
            self._prediction_due = now + PREDICTION_PERIOD
            self._effort.publish(effort_message(joints, found[0], predicted))
            if residual is not None:
                self._residual.publish(effort_message(joints, found[0], residual))
        for follower in self._followers:
            follower.update(states)

    def _update_controller(self) -> str:
        outcome = self._outcome
        if outcome is None:
            raise RecordingError('nothing is identified yet: record a session')
        self._gain_update.set(outcome.gains, outcome.folder, outcome.results.created)
        self.get_logger().info('the controller has new gains: see ~/proposed_gains')
        return 'new gains are set: see ~/proposed_gains'


def find_bag(name: str, folders: Sequence[str]) -> Path:
    """Find a recording that anybody may have named, below these folders, links followed."""
    shown = ''.join(c if c.isprintable() else '?' for c in name[:MAX_SHOWN])
    try:
        path = Path(name).resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise RecordingError(f"there is no recording at '{shown}'") from error
    if not is_below(path, folders):
        known = ' or '.join(f"'{Path(folder).expanduser().resolve()}'" for folder in folders)
        raise RecordingError(
            f"'{shown}' is not below {known}, nothing was read or written: set recorder.folder "
            'alike in both nodes, or add its folder to identification.folders'
        )
    return path


def identify_in_worker(*arguments: Any) -> IdentificationOutcome:
    """Call `identify_bag`; only a worker imports what it needs, the node starts without."""
    from .bag_identification import identify_bag

    return identify_bag(*arguments)


main = partial(runtime.run, IdentificationNode)
