"""
Node `recorder`: everything an identification needs, in one self-contained bag a session.

Messages go from the middleware's queues straight into the bag. The recorder is the second to watch
the excitation: where that dies, the recording ends its session.
"""

from collections.abc import Callable, Mapping
import contextlib
from datetime import datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue
import threading
import time
from typing import Any

from action_msgs.srv import CancelGoal
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy._rclpy_pybind11 import RCLError
from rclpy.exceptions import InvalidHandle
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from ...core.findings import render
from ...exceptions import (
    ControllerError,
    FileError,
    RecordingError,
    RobotIdError,
    UnknownNameError,
)
from ...files.bags import BagWriter, dump_session, RecordedSession
from ...files.bags.session import SESSION_TOPIC
from ...files.bags.storage import open_bag
from ...files.provenance import versions
from ...files.yaml import parse_yaml
from ...node_settings import RecorderSettings
from ..common import messages, runtime
from ..common.batched_subscription import BatchedSubscription
from ..common.controller import CANCEL, ControllerClient, subscribe_states
from ..common.messages import ENDED, interface, MOVING, State, STATES, status, values_of
from ..common.processes import is_alive, own_process, prefer_threads
from ..common.runtime import (
    ConfiguredNode,
    LATCHED,
    LATCHED_HISTORY,
    serve,
    start_thread,
    STEADY,
    WorkerNode,
)
from ..common.waiting import run_in_executor

DEPTH = 5000  # messages that may wait to be written: 5 s at 1 kHz


def subscribe(node: ConfiguredNode, controller: str) -> list[BatchedSubscription]:
    """Subscribe to robot and controller first; UnknownNameError: nobody publishes a topic."""
    subscriptions = [
        BatchedSubscription(node, JointState, 'joint_states', depth=DEPTH),
        subscribe_states(node, controller, depth=DEPTH),
        BatchedSubscription(node, String, 'robot_description', depth=1, latched=True),
        BatchedSubscription(node, JointTrajectory, 'excitation/reference', depth=10, latched=True),
    ]
    known = dict(node.get_topic_names_and_types())
    for topic in node.configuration.recorder.topics:
        name = node.resolve_topic_name(topic)
        UnknownNameError.check('topic', (name,), sorted(known))
        message_type = interface(known[name][0])
        subscriptions.append(BatchedSubscription(node, message_type, topic, depth=DEPTH))
    return subscriptions


# Change of the clock that is a step [s]: a sample at 50 Hz. Time synchronisation that only slews
# makes none at all, as it slews the steady clock alike.
LEAST_STEP = 0.02
# Readings of which the quickest counts: a thread may lose the processor between two clocks.
READINGS = 3


def read_offset() -> int:
    """Return the time of the system less that of the steady clock [ns]."""
    found = []
    for _ in range(READINGS):
        before, now = time.monotonic_ns(), time.time_ns()
        found.append((time.monotonic_ns() - before, now - before))
    return min(found)[1]


class SystemClock:
    """Watches the system clock; `step` is by what it was set when `was_set` looked last [ns]."""

    def __init__(self) -> None:
        self._offset, self.step = read_offset(), 0

    def was_set(self) -> bool:
        """Look whether it was set since the beginning."""
        step = read_offset() - self._offset
        self.step = step if abs(step) > LEAST_STEP * 1e9 else 0
        return self.step != 0

    def now(self) -> int:
        """Return the system time as if it had not been set [ns]."""
        return time.time_ns() - self.step


# Silence of an excitation that moves the robot, after which it is lost [s], by whether it is seen
# to be alive: it publishes its state at least every 0.2 s. One that lives is short of processor,
# and its guardian is nearer to it: more than a second of silence was seen beside eight busy loops
# on two cores. Of one on another machine (None) nothing else is known.
SILENCE_TIMES = {False: 0.25, None: 0.8, True: 2.0}
# State of the excitation, and when it was received and published [ns, system time].
ReceivedState = tuple[DiagnosticStatus, int, int]


class SessionWatch:
    """Follows the excitation by a clock [ns]; `silence` [s] counts while it is listened to."""

    def __init__(self, clock: Callable[[], int]):
        self._clock, self._last = clock, DiagnosticStatus()
        self._heard = clock()
        self.silence = 0.0

    @property
    def state(self) -> str:
        """Last state."""
        return values_of(self._last).get('state', '')

    @property
    def lost(self) -> bool:
        """Whether the excitation died while it moved the robot."""
        if self.state not in MOVING or self.silence <= SILENCE_TIMES[False]:
            return False
        return self.silence > SILENCE_TIMES[is_alive(values_of(self._last))]

    def hear(self, message: DiagnosticStatus) -> None:
        """Take in a state, unless it is none."""
        if values_of(message).get('state') in STATES:
            self._last, self._heard, self.silence = message, self._clock(), 0.0

    def cut(self, sentence: str) -> DiagnosticStatus:
        """Make the state that ends this session where it was heard of last, and take it in."""
        stamp, last = messages.format_seconds(self._heard), self._last
        values = {**values_of(last), 'state': State.FAILED.value, 'stamp': stamp, 'cut': 'true'}
        self._last = status(last.name, sentence, values, hardware=last.hardware_id, failed=True)
        return self._last


# How often the middleware's queues are emptied [s]: they hold many times what a period brings.
POLL_PERIOD = 0.02
# Longest time that one turn counts as silence of the excitation [s]: this process may be the one
# that was held up.
MAX_SILENCE_PER_TURN = 2.0 * POLL_PERIOD
# What the session publishes last arrives after its state says that it has ended [s].
TRAILING_TIME = 0.3
GONE = InvalidHandle, RCLError  # the node's subscriptions and publishers have ended
NODE_GONE = 'the node of the recorder was destroyed while it recorded'


class BagWriterLoop:
    """An open bag and its topics; a session or a hand ends it."""

    def __init__(self, node: 'Recorder', name: str, started_by_session: bool):
        self._node, self.started_by_session = node, started_by_session
        self._end = threading.Event()
        self._immediately, self._reason = False, ''
        self.reason = ''  # why a session was cut
        self._clock = SystemClock()
        # The controller before, and a snapshot that is to be written.
        self._before, self._snapshot = dict[str, Any](), ''
        self._watch = SessionWatch(lambda: node.get_clock().now().nanoseconds)
        controller = node.controller.name
        self._subscriptions = subscribe(node, controller)
        self._cancel = node.create_client(CancelGoal, f'{controller}/{CANCEL}')
        try:
            self._writer = BagWriter(Path(node.settings.folder).expanduser().absolute(), name)
        except RobotIdError:
            self._unsubscribe()
            raise
        self.path = self._writer.path  # of the bag's folder
        # The node hears the states from its start: a subscription of this recording would begin
        # when it is discovered, which on a busy machine is after the first of them.
        self._states: SimpleQueue[ReceivedState] = SimpleQueue()
        self._state_topic = node.resolve_topic_name('excitation/state')
        topics = [(s.topic, s.message_type, s.latched) for s in self._subscriptions]
        topics.insert(0, (self._state_topic, DiagnosticStatus, True))
        self.counts = {topic: 0 for topic, *_ in topics}  # messages that were written
        for topic, kind, latched in topics:
            # Full name of the class, as a bag has it.
            full = '/'.join((*kind.__module__.split('.')[:2], kind.__name__))
            self._writer.add_topic(topic, full, latched=latched)

    @property
    def receiving(self) -> bool:
        """Whether the robot and its controller are heard: discovery takes its time."""
        return all(self.counts[subscription.topic] for subscription in self._subscriptions[:2])

    @property
    def ending(self) -> bool:
        """Whether it closes, or has closed."""
        return self._end.is_set()

    def stop(self, reason: str = '', *, immediately: bool = False) -> None:
        """Close the bag soon; `immediately`: without last gains; `reason`: a session goes on."""
        self._reason = self._reason or reason
        self._immediately = self._immediately or immediately
        self._end.set()

    def hear(self, state: ReceivedState) -> None:
        """Take in a state of the excitation, from any thread."""
        self._states.put(state)

    def run(self) -> None:
        """Record until `stop`; FileError: disk full or bag gone; what was written stays."""
        start_thread(self._compose_snapshot)
        prefer_threads(True)
        try:
            before = time.monotonic()
            while not self._end.is_set():
                if self._clock.was_set():
                    # Stamps tell no time any more.
                    self.reason = (
                        f'the system clock was set by {self._clock.step * 1e-9:+.2f} s: let time '
                        'synchronisation only slew it during a session, and record again'
                    )
                    self._node.get_logger().error(self.reason)
                    self.stop(self.reason, immediately=True)
                    break
                self._write()
                now = time.monotonic()
                self._watch.silence += min(now - before, MAX_SILENCE_PER_TURN)
                before = now
                if self._watch.lost:
                    self._end_dead_session()
                self._end.wait(POLL_PERIOD)
            self._finish()
        except GONE:
            self.reason = self._reason or NODE_GONE
            self.stop(self.reason, immediately=True)
            self._write_states()
            if self._watch.state in MOVING:
                self._cut_session(self.reason)
        finally:
            prefer_threads(False)
            try:
                self._writer.close()
            finally:
                self._unsubscribe()
        check_bag(self.path, self.counts)

    def _put_state(self, message: DiagnosticStatus, received: int, published: int) -> None:
        self._watch.hear(message)
        self._writer.write(self._state_topic, serialize_message(message), received, published)
        self.counts[self._state_topic] += 1

    def _write_states(self) -> None:
        while not self._clock.step and not self._states.empty():
            self._put_state(*self._states.get())

    def _write(self) -> None:
        """Write what has arrived since the last call, unless the clock of its stamps was set."""
        self._write_states()
        for subscription in self._subscriptions if not self._clock.step else ():
            topic, count = subscription.topic, 0
            for sample in subscription.take_serialized():
                self._writer.write(topic, sample.data, sample.received, sample.published)
                count += 1
            self.counts[topic] += count
        if self._snapshot:
            text, self._snapshot = self._snapshot, ''
            self._writer.write_text(SESSION_TOPIC, text, self._clock.now())
        self._node.beat()

    def _end_dead_session(self) -> None:
        """Stop the robot as well: whoever guarded the excitation may have died with it."""
        self._cancel.call_async(CancelGoal.Request())
        sentence = (
            f'the excitation was silent for {self._watch.silence:.1f} s while '
            f'{self._watch.state}: it has died, was suspended or hangs, and all motions '
            'of the controller were cancelled'
        )
        self._node.get_logger().error(sentence)
        self._cut_session(sentence)
        if self.started_by_session:
            self._end.set()

    def _cut_session(self, sentence: str) -> None:
        """Write where the session ends, as nobody else says so."""
        self.reason, now = sentence, self._clock.now()
        self._put_state(self._watch.cut(sentence), now, now)
        self._writer.flush()

    def _finish(self) -> None:
        """Write what arrives last, and the controller as it is afterwards."""
        self._write_states()
        if self._reason and self._watch.state in MOVING:
            self._cut_session(self._reason)
        self._write()
        if not self._immediately:
            asking = start_thread(self._compose_snapshot)
            end = time.monotonic() + TRAILING_TIME
            while (asking.is_alive() or time.monotonic() < end) and not self._immediately:
                self._write()
                time.sleep(POLL_PERIOD)
        self._write()

    def _compose_snapshot(self) -> None:
        """Ask the controller, which takes its time, for what the session runs with."""
        try:
            found = self._node.controller.describe().to_dict()
        except ControllerError as error:
            self._node.get_logger().warn(f'recording without controller parameters: {error}')
            found = {}
        except GONE:
            return
        self._before = self._before or found
        if found and found['gains'] != self._before['gains']:
            self._node.get_logger().warn("the controller's gains were changed while recording")
        plan, names = self._node.design, {'trajectory': 'exciting', 'validation': 'validating'}
        design = {k: v for k, v in plan.items() if k not in names}
        session = RecordedSession(
            controller=self._before,
            trajectories={v: plan[k] for k, v in names.items() if plan.get(k)},
            configuration=self._node.values,
            versions=versions(),
            values={'gains_after': found.get('gains', {}), 'design': design},
        )
        self._snapshot = dump_session(session)

    def _unsubscribe(self) -> None:
        for subscription in self._subscriptions:
            subscription.close()
        run_in_executor(self._node, lambda: self._node.destroy_client(self._cancel))


def check_bag(path: Path, written: Mapping[str, int]) -> None:
    """Open a bag as its users will, and compare its counts; FileError: messages are missing."""
    if not any(written.values()):
        return
    try:
        with open_bag(path) as bag:
            found, notes = {topic: bag.count(topic) for topic in written}, bag.notes
    except RecordingError as error:
        raise FileError(f'the recording cannot be read: {error}') from error
    if found != written or notes:
        said = ''.join(f' {render(note)}' for note in notes)
        raise FileError(
            f"'{path}' holds {sum(found.values())} of the {sum(written.values())} messages that "
            f'were written: check the disk, and record again.{said}'
        )


PERIOD = 0.1  # from one heartbeat to the next [s]


class Recorder(WorkerNode):
    """Records from 'approaching' to 'done' or 'failed', or between calls of `~/record`."""

    def __init__(self, **options: Any):
        super().__init__('recorder', ('robot', 'recorder'), **options)
        self.settings: RecorderSettings = self.configuration.recorder
        self._loop: BagWriterLoop | None = None
        excitation = self.configuration.excitation
        self.controller = ControllerClient(self, excitation.controller, excitation.timeout)
        self.design: Mapping[str, Any] = {}
        # Whether it records a verification, from which nothing is to be identified.
        self._verification = False
        self._bag = self.create_publisher(String, '~/bag', LATCHED)
        self._heartbeat = self.create_publisher(DiagnosticStatus, '~/heartbeat', 10)
        # The session that has had its recording, for each gets one, whatever comes of it.
        self._session: str | None = None
        # Idle, opening, recording, closing or failed; a sentence; and the path of the bag.
        self._writing = 'idle', 'waiting for a session', ''
        self._beaten = 0.0
        self.create_timer(PERIOD, self._on_timer, clock=STEADY)
        self.create_subscription(
            DiagnosticStatus, 'excitation/state', self._on_state, LATCHED_HISTORY
        )
        self.create_subscription(String, 'excitation/trajectory', self._on_trajectory, LATCHED)
        serve(self, 'record', self._on_record, kind=SetBool)
        self.publish_state('idle', 'waiting for a session')

    @property
    def recording(self) -> bool:
        """Whether a bag is open."""
        return self._writing[0] in ('opening', 'recording', 'closing')

    def close(self) -> None:
        """End the recording; the bag is whole."""
        if self._loop is not None:
            self._loop.stop('the recorder was ended', immediately=True)
        super().close()

    def _on_trajectory(self, message: String) -> None:
        content = parse_yaml(message.data, 'excitation/trajectory')
        self.design = content if isinstance(content, Mapping) else {}

    def _on_state(self, message: DiagnosticStatus, info: Mapping[str, int]) -> None:
        published = info['source_timestamp']
        received = message, info['received_timestamp'] or published, published
        values, loop = values_of(message), self._loop
        state, session = values.get('state'), values.get('session', '')
        loop = loop if self.recording else None
        if state in MOVING and session != self._session:
            # The recording that runs or closes is of the session before. The excitation repeats
            # its state soon, and this session is taken up then.
            if loop is not None and (loop.started_by_session or loop.ending):
                if not loop.ending:
                    loop.stop('the end of its session was not heard')
                return
            self._session = session
            self._verification = state == State.VERIFYING.value
            if loop is None:
                self._start_recording(received)
                return
        own = loop if loop and loop.started_by_session and not loop.ending else None
        if own and state in STATES - MOVING - ENDED:
            # An excitation that was started anew: it does not move the robot, who did is gone.
            own.stop(f"the excitation is '{state}', the end of its session was not heard")
        elif loop is not None:
            loop.hear(received)
        if state in MOVING or state not in STATES:
            return
        self._session = None
        if self._writing[0] == 'failed':
            self._change('idle', 'waiting for a session')
        if state in ENDED and own:
            own.stop()

    def _on_record(self, wanted: bool) -> str:
        if wanted == self.recording:
            raise RecordingError('already recording' if wanted else 'not recording')
        if wanted:
            text = self._start_recording()
            if not self.recording:
                raise RecordingError(text)
            return text
        if self._loop is not None:
            self._loop.stop('the recording was ended by ~/record')
        return 'closing: its path will be on ~/bag'

    def _start_recording(self, state: ReceivedState | None = None) -> str:
        """Open a bag and record in a worker thread; say where, or why not."""
        now = datetime.now().strftime('%Y-%m-%d_%H-%M-%S')
        name = self.settings.name or f'{self.configuration.robot.name or "robot"}_{now}'
        try:
            self._loop = BagWriterLoop(self, name, state is not None)
        except RobotIdError as error:
            return self._fail(error, Path(self.settings.folder, name).expanduser().absolute())
        if state is not None:
            self._loop.hear(state)
        path = str(self._loop.path)
        # What an earlier recording came to, such as a failure, is not this one's.
        self._change('opening', f"opening '{path}'", path)
        self.publish_state('recording', f"recording '{path}'", {'path': path})
        self.get_logger().info(f"recording '{path}'")
        self.start_worker(self._record, self._loop)
        return path

    def _change(self, state: str, sentence: str, path: str = '') -> None:
        self._writing = state, sentence, path
        self._publish_heartbeat()

    def _publish_heartbeat(self) -> None:
        self._beaten = time.monotonic()
        state, sentence, path = self._writing
        values = {
            **{'state': state, **own_process(), 'path': path, 'session': self._session or ''},
            'messages': sum(self._loop.counts.values()) if self._loop else 0,
            'skipped': self.guard.total,
            'stamp': messages.format_seconds(self.get_clock().now().nanoseconds),
        }
        self._heartbeat.publish(status('recorder', sentence, values, failed=state == 'failed'))

    def _on_timer(self) -> None:
        # While it records, only the thread that writes may say that it does.
        if self._writing[0] != 'recording':
            self._publish_heartbeat()

    def beat(self) -> None:
        """Say that it records; called by the thread that writes."""
        loop = self._loop
        assert loop is not None
        state = 'closing' if loop.ending else 'recording' if loop.receiving else 'opening'
        path = str(loop.path)
        if self._writing[0] != state:
            why = f': {loop.reason}' if loop.reason else ''
            self._change(state, f"{state} '{path}'{why}", path)
            if loop.reason:
                self.publish_state(state, loop.reason, {'path': path})
        if time.monotonic() - self._beaten >= PERIOD:
            self._publish_heartbeat()

    def _record(self, loop: BagWriterLoop) -> None:
        try:
            loop.run()
        except Exception as error:
            self._fail(error, loop.path)
            if not isinstance(error, RobotIdError):
                raise
            return
        path = str(loop.path)
        sentence = f"recorded '{path}'" + (f', cut: {loop.reason}' if loop.reason else '')
        with contextlib.suppress(*GONE):
            # Before the state is published: a client that reads it may start the next one.
            self._change('idle', sentence)
            self.publish_state('closed', sentence, {'path': path, **loop.counts})
            if not (loop.started_by_session and self._verification):
                self._bag.publish(String(data=path))
        self.get_logger().info(sentence)

    def _fail(self, error: Exception, path: Path) -> str:
        sentence = f"'{path}' is not recorded: {messages.one_line(error)}"
        with contextlib.suppress(*GONE):
            self._change('failed', sentence, str(path))
            self.publish_state('failed', sentence, {'path': str(path)})
        self.get_logger().error(sentence)
        return sentence


main = partial(runtime.run, Recorder)
