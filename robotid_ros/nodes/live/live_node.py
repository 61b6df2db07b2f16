"""
Node `live`: the session in a browser, with a button that stops it.

It only listens, and asks the node `excitation` for what a button says; a session goes on without
it. All that it keeps is bounded, and joint states are taken ten times a second.
"""

import asyncio
from collections import deque
import contextlib
from functools import partial
import json
import math
from pathlib import Path
import socket
import threading
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from ...core.arrays import expand_per_joint
from ...core.findings import Severity
from ...core.model import build_robot, Robot
from ...exceptions import RobotIdError
from ...files.report.plots import plotting_library
from ...files.results import read_results
from ...node_settings import LiveSettings
from ..common import messages, runtime
from ..common.batched_subscription import BatchedSubscription
from ..common.controller import by_joint, is_well_formed_state, subscribe_states
from ..common.messages import MOVING, one_line, stack_joint_states, State, values_of
from ..common.model_node import expect_own
from ..common.runtime import ConfiguredNode, LATCHED, LATCHED_HISTORY, STEADY

# How often joint states are taken [s], what is kept of them, and of messages and sessions.
POLL_PERIOD, ROWS, MESSAGES, SESSIONS = 0.1, 600, 50, 50
SESSIONS_PERIOD = 5.0  # from one look at the folder of sessions to the next [s]
STALE = 1.0  # joint states older than this are shown as old [s]
# Longest wait for the answer to a button [s]: a start is checked before it is accepted. From one
# look for the answer to the next.
TIMEOUT, STOP_TIMEOUT, ANSWER_PERIOD = 60.0, 2.0, 0.02
ACTIONS = ('design', 'rehearse', 'start', 'verify')
NODES = ('excitation', 'recorder', 'identification')
LEVELS = {DiagnosticStatus.OK: '', DiagnosticStatus.WARN: 'warning'}
DIGITS = 6
WAITING = (
    '<!DOCTYPE html><html lang="en"><title>live</title><meta http-equiv="refresh" content="1">'
    '<p>Waiting for the description of the robot.</p></html>'
)


class Live(ConfiguredNode):
    """Shows a session on a page; options of `ConfiguredNode`."""

    def __init__(self, **options: Any):
        plotting_library()
        from .page_server import PageServer  # Tornado comes with Bokeh

        groups = 'robot', 'excitation', 'recorder', 'identification', 'live'
        super().__init__('live', groups, **options)
        self.settings: LiveSettings = self.configuration.live
        self._robot: Robot | None = None
        self.page = WAITING  # what the server shows
        self._lock = threading.Lock()
        self._rows: deque[tuple[int, list[float | None]]] = deque(maxlen=ROWS)
        self._messages: deque[tuple[float, str, str]] = deque(maxlen=MESSAGES)
        self._states = dict[str, DiagnosticStatus]()
        self._known, self._sigmas, self._asking = '', dict[str, float](), False
        self._begun = 0.0  # the present motion, by the robot's clock [s]
        self._duration, self._heard, self._zero, self._stamp = 0.0, -math.inf, 0, 0
        self._sessions, self._looked = list[tuple[str, str]](), -math.inf
        self._folder = Path(self.configuration.recorder.folder).expanduser().absolute()
        for name in NODES:
            callback = partial(self._on_state, name)
            self.create_subscription(DiagnosticStatus, f'{name}/state', callback, LATCHED_HISTORY)
        for kind, topic, heard in (
            (DiagnosticStatus, 'identification/progress', self._on_progress),
            (JointTrajectory, 'excitation/reference', self._on_reference),
        ):
            self.create_subscription(kind, topic, heard, LATCHED)
        self._clients_of = {
            name: self.create_client(Trigger, f'excitation/{name}') for name in ('stop', *ACTIONS)
        }
        controller = self.configuration.excitation.controller
        self._joint_states = BatchedSubscription(self, JointState, 'joint_states')
        self._controller = subscribe_states(self, controller)
        self._residuals = BatchedSubscription(self, JointState, 'identification/residual')
        self.follow_description(self._take_description)
        own = '0.0.0.0' if self.settings.allow else '127.0.0.1'
        self._server = PageServer(self, own, self.settings.port, self._folder)
        self.create_timer(POLL_PERIOD, self._take, clock=STEADY)
        host = socket.gethostname() if self.settings.allow else 'localhost'
        # The address is a key: it goes to whoever started the node, whatever is logged.
        address = f'http://{host}:{self._server.port}/?token={self._server.token}'
        print(f'the session is at {address}', flush=True)

    def close(self) -> None:
        """End the server."""
        self._server.close()

    def _take_description(self, urdf: str) -> None:
        from ...files.report.page import live_page

        robot = build_robot(urdf, self.configuration.robot)
        settings, efforts = self.configuration.excitation, robot.largest_efforts
        name = 'excitation.tracking_error'
        allowed = expand_per_joint(settings.tracking_error, len(robot.joints), name)
        efforts = np.where(np.isfinite(efforts), settings.effort_share * efforts, 0.0)
        bounds = [*zip(map(float, allowed), map(float, efforts), strict=True)]
        units = [*robot.units.values()]
        page = live_page(robot.name or 'robot', robot.joints, units, bounds, ACTIONS)
        with self._lock:
            self._robot, self.page = robot, page
            self._rows.clear()

    def _on_state(self, name: str, message: DiagnosticStatus) -> None:
        before, values = self._states.get(name), values_of(message)
        begun = float(values.get('stamp') or 0.0)  # else passed over: the page needs numbers
        with self._lock:
            self._begun = begun if name == 'excitation' else self._begun
            self._states[name] = message
            if before is None or before.message != message.message:
                level = LEVELS.get(message.level, 'error')
                self._messages.appendleft((time.time(), level, f'{name}: {message.message}'))
        if name == 'excitation' and values.get('state') == State.APPROACHING.value:
            self._known, self._sigmas = '', {}  # nothing is known of a motion that begins
        if name == 'identification' and values.get('state') == State.DONE.value:
            runtime.start_thread(self._tell_findings, values.get('folder', ''))

    def _tell_findings(self, folder: str) -> None:
        """Show what an identification has found, the worst first."""
        from ...core.findings import render

        try:
            found = read_results(expect_own(folder, self.configuration)).findings
        except RobotIdError as error:
            self.get_logger().warning(f'findings are not shown: {one_line(error)}')
            return
        with self._lock:
            for each in reversed(found):
                if each.severity > Severity.INFO:
                    self._messages.appendleft((time.time(), each.severity.word, render(each)))

    def _on_progress(self, message: DiagnosticStatus) -> None:
        found = {k.partition('sigma.')[2]: v for k, v in values_of(message).items()}
        sigmas = {name: float(value) for name, value in found.items() if name}
        self._sigmas = {name: value for name, value in sigmas.items() if math.isfinite(value)}
        self._known = message.message

    def _on_reference(self, message: JointTrajectory) -> None:
        last = message.points[-1].time_from_start
        self._duration = last.sec + 1e-9 * last.nanosec

    def _take(self) -> None:
        """Take the newest state of each topic as a row."""
        if time.monotonic() - self._looked > SESSIONS_PERIOD:
            self._looked = time.monotonic()
            reports = list(self._folder.glob('*/report.html'))
            with contextlib.suppress(OSError):  # somebody may remove one meanwhile
                reports.sort(key=lambda path: path.stat().st_mtime, reverse=True)
            names = [(path.parent.name, path.name) for path in reports[:SESSIONS]]
            self._sessions = [(name, f'sessions/{name}/{page}') for name, page in names]
        if (robot := self._robot) is None:
            return
        complete = partial(messages.is_complete, joints=robot.joints)
        well_formed = partial(is_well_formed_state, joints=robot.joints)
        found, _ = self._joint_states.take_newest(complete, 1)
        states, _ = self._controller.take_newest(well_formed, 1)
        left, _ = self._residuals.take_newest(complete, 1)
        if not found:
            return
        table = stack_joint_states(found, robot.joints)
        columns = np.full((5, robot.n), np.nan)
        columns[0], columns[3] = table.position[0], table.effort[0]
        for state in states:
            for k, values in ((1, state.reference.positions), (2, state.error.positions)):
                own = by_joint(state, values, robot.joints)
                columns[k] = np.nan if own is None else own
        if left:
            columns[4] = stack_joint_states(left, robot.joints).effort[0]
        stamp = messages.to_nanoseconds(found[-1].header.stamp)
        with self._lock:
            self._zero, self._stamp = self._zero or stamp, stamp
            self._heard = time.monotonic()
            row = [1e-9 * (stamp - self._zero), *columns.T.ravel().tolist()]
            number = self._rows[-1][0] + 1 if self._rows else 0
            shown = [round(x, DIGITS) if math.isfinite(x) else None for x in row]
            self._rows.append((number, shown))

    # What follows is called from the thread of the server.

    def news(self, since: int) -> tuple[int, str]:
        """Return the number of the newest row, and what is new since one, as JSON."""
        with self._lock:
            rows = [row for number, row in self._rows if number > since]
            newest = self._rows[-1][0] if self._rows else -1
            message = self._states.get('excitation')
            values = values_of(message) if message else {}
            moving = values.get('state') in MOVING
            # By the robot's clock.
            gone = 1e-9 * self._stamp - self._begun
            content = {
                'joints': self._robot.joints if self._robot else [],
                'rows': rows,
                'state': values.get('state', 'no session'),
                'message': message.message if message else 'The node excitation is not there.',
                'duration': self._duration if moving else 0.0,
                'left': self._duration - gone if moving and math.isfinite(gone) else 0.0,
                'stale': time.monotonic() - self._heard > STALE,
                'known': self._known,
                'sigmas': self._sigmas,
                'messages': list(self._messages),
                'sessions': self._sessions,
            }
        return newest, json.dumps(content)

    async def call(self, name: str) -> tuple[bool, str]:
        """Ask the node `excitation`; of all that may move the robot one at a time, by anybody."""
        client, moves = self._clients_of.get(name), name != 'stop'
        if client is None:
            return False, f"there is no button '{name}'"
        if moves and self._asking:
            return False, 'another request waits for its answer'
        if not client.service_is_ready():
            return False, 'the node excitation is not there: start it, or use the robot’s own stop'
        self._asking = self._asking or moves
        end = time.monotonic() + (TIMEOUT if moves else STOP_TIMEOUT)
        try:
            answer = client.call_async(Trigger.Request())
            while not answer.done():
                if time.monotonic() > end:
                    return False, 'the node excitation does not answer: use the emergency stop'
                await asyncio.sleep(ANSWER_PERIOD)
            return bool(answer.result().success), answer.result().message
        except Exception as error:  # of a node that ends
            return False, one_line(error)
        finally:
            if moves:
                self._asking = False


main = partial(runtime.run, Live)
