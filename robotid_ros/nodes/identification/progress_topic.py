"""The topic `identification/progress`: what is known after each period of a session."""

from collections.abc import Iterator
from contextlib import closing
import dataclasses
from importlib import import_module
import threading
import time
from typing import Any, TYPE_CHECKING

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
from sensor_msgs.msg import JointState

from ...core.excitation.settings import payload_settings
from ...core.model import build_robot, Robot
from ...exceptions import RobotIdError
from ...files.formats.joint_table import JointTable
from ...files.results import dump_known
from ..common import runtime
from ..common.batched_subscription import BatchedSubscription
from ..common.messages import one_line, stack_joint_states, State, status, values_of
from ..common.runtime import LATCHED, WorkerNode

if TYPE_CHECKING:
    from ...core.monitoring.progress import Knowledge
    from ...core.signals.recording import Recording

# From one message of `~/drift` or `~/progress` to the next; length of a motion's pieces [s].
PERIOD = 1.0
# The first piece, by which filters and delays are chosen: share of a period, and most of it [s].
FIRST_SHARE, LONGEST_FIRST = 0.8, 20.0
# How often joint states are taken [s], how many may wait (5 s at 1 kHz), and how many such parts
# a piece may have, should stamps stand still.
POLL_PERIOD, WAITING, MOST_PARTS = 0.1, 5000, 300
CORE_SHARE = 0.1  # most of a core that looks at what is known may take
WORST = 3  # parameters that are named


class ProgressTopic:
    """Follows the excitation where more than its time is asked for, until the node's `stop`."""

    def __init__(self, node: WorkerNode, stop: threading.Event):
        self._stop = stop
        self._node, self._excitation = node, payload_settings(node.configuration.excitation)
        # Of a payload, predictions of the arm are not asked for.
        carries, until = self._excitation.payload.mass, self._excitation.until
        self._until = dataclasses.replace(until, prediction=0.0) if carries else until
        self._session = self._state = ''
        self._known: Knowledge | None = None
        self._refusal = ''  # why the session is not followed, '' while it is
        if self._until.asks:
            self._publisher = node.create_publisher(DiagnosticStatus, '~/progress', LATCHED)
            self._known_publisher = node.create_publisher(DiagnosticStatus, '~/known', LATCHED)
            node.create_subscription(
                DiagnosticStatus, 'excitation/state', self._on_state, runtime.LATCHED_HISTORY
            )
            node.create_timer(PERIOD, self._publish, clock=runtime.STEADY)

    def _on_state(self, message: DiagnosticStatus) -> None:
        values = values_of(message)
        self._state, session = values.get('state', ''), values.get('session', '')
        if self._state == State.APPROACHING.value and session != self._session:
            self._session, self._known, self._refusal = session, None, ''
            self._publish()
            runtime.start_thread(self._follow, session)

    def _follow(self, session: str) -> None:
        """Follow a session to the end of its excitation."""
        from ...core.model.pinocchio_model import body_frame
        from ...core.monitoring.progress import follow

        for name in ('scipy.interpolate', 'scipy.optimize'):  # the robot would wait for them
            import_module(name)
        configuration = self._node.configuration
        settings = configuration.identification
        try:
            robot = build_robot(self._node.wait_for_urdf(), configuration.robot)
            frame = settings.payload.frame or self._excitation.workspace.frame
            carrier = body_frame(robot, frame) if self._excitation.payload.mass else None
            pieces = self._pieces(session, robot)
            for known in follow(pieces, robot, settings, self._until, carrier):
                if session == self._session:
                    self._known = known
                    self._publish()
                    if known.design is not None and not known.enough(self._until):
                        text = dump_known(*known.design)
                        told = status('known', 'so far', {'session': session, 'known': text})
                        self._known_publisher.publish(told)
        except Exception as error:
            if self._stop.is_set():  # what the node has is gone
                return
            if session == self._session:
                self._refusal = one_line(error)
                self._publish()
                self._node.get_logger().info(f'the motion is not followed: {self._refusal}')
            if not isinstance(error, RobotIdError):
                raise

    def _is(self, session: str, state: State) -> bool:
        current = self._session == session and self._state == state.value
        return current and not self._stop.is_set()

    def _pieces(self, session: str, robot: Robot) -> 'Iterator[Recording]':
        """Yield pieces of the excitation as they are over."""
        from ...core.signals.recording import Recording

        first = min(FIRST_SHARE * self._excitation.period, LONGEST_FIRST)
        parts, origin, wanted = list[JointTable](), 0, first
        states = BatchedSubscription(self._node, JointState, 'joint_states', depth=WAITING)
        with closing(states) as stream:
            while self._is(session, State.APPROACHING):
                list(stream.take_serialized())
                time.sleep(POLL_PERIOD)
            while self._is(session, State.EXCITING):
                time.sleep(POLL_PERIOD)
                part = stack_joint_states(stream.take_messages(), robot.joints)
                if len(part.stamp):
                    parts = [*parts[-MOST_PARTS:], part]
                if not parts or parts[-1].stamp[-1] - parts[0].stamp[0] < wanted * 1e9:
                    continue
                stamp, position, effort = (
                    np.concatenate([getattr(each, name) for each in parts])
                    for name in ('stamp', 'position', 'effort')
                )
                parts, origin = [], origin or int(stamp[0])
                begin, known = time.thread_time(), self._known
                yield Recording(robot.joints, (stamp - origin) * 1e-9, position, effort)
                # A first piece that told nothing, as gaps are in it, is followed by another one.
                spent = 0.0 if known is None else time.thread_time() - begin
                rest = min(max(PERIOD, spent / CORE_SHARE), LONGEST_FIRST)
                wanted = first if self._known is None else rest

    def _publish(self) -> None:
        """Say what is known; whoever hears nothing any more runs on as planned."""
        following = self._is(self._session, State.APPROACHING)
        if not following and not self._is(self._session, State.EXCITING):
            return
        known, until = self._known, self._until
        values: dict[str, Any] = {'session': self._session, 'following': not self._refusal}
        text = self._refusal or 'nothing is known yet'
        if known is not None and not self._refusal:
            worst, joint = known.worst, known.joints[known.worst]
            values |= {'enough': known.enough(until), 'motion': known.time, 'joint': joint}
            values['prediction'] = float(known.error[worst])
            values['prediction_highest'] = float(known.highest[worst])
            values['prediction_after_period'] = known.error_after(self._excitation.period)
            values['model'] = float(np.nanmax(known.model, initial=0.0))
            names = dict.fromkeys([*until.sigma, *list(known.sigma)[:WORST]])
            values |= {f'sigma.{name}': known.sigma.get(name, np.inf) for name in names}
            text = (
                f'{joint} is predicted within {values["prediction"]:.1%}, after another period '
                f'{values["prediction_after_period"]:.1%}; error of the model '
                f'{values["model"]:.1%}'
            )
        self._publisher.publish(status('progress', text, values, warn=bool(self._refusal)))
