"""One fault in one session: begin it at an instant, judge what the robot does by its motion."""

from collections.abc import Callable, Mapping
import contextlib
import dataclasses
import os
from pathlib import Path
import random
import re
import signal
import sys
import time
from typing import Any

from common import ROOT
from fault_observer import Client, Observer, Turns
import numpy as np

sys.path.insert(0, str(ROOT / 'test' / 'tools'))
from live_session import child_of
from loopback import loopback_environment
from waiting import log_to, tails, wait_until

from robotid_ros.exceptions import ControllerError, RecordingError, RobotIdError
from robotid_ros.files.bags import open_recording
from robotid_ros.nodes.common.messages import values_of
from robotid_ros.nodes.common.processes import prefer_threads
from robotid_ros.nodes.demo.node_processes import claim_domain, NodeProcesses, release_domain

NODES = ('simulated_robot', 'recorder', 'identification', 'excitation')
ENDS = ('done', 'failed')
# Latest instant of a fault after the robot began to move in a phase, which lasts longer [s].
LATEST = {'approaching': 0.3, 'exciting': 3.0, 'validating': 1.0}
# Bounds [s]: rest after a fault, its publication, and how long the robot is watched for it. They
# are the product's; to each comes the time for which the machine held up the processes that answer
# one another, see `Turns`: milliseconds on a quiet one.
REST_BOUND, SAID_BOUND, WATCHED = 1.0, 1.3, 1.5
# Applied efforts over their limits, which are reported with noise.
EFFORT_BOUND = 1.02
# A fault that must not end a session is watched for so long [s].
UNHARMED = 1.0
# A machine that holds up a session for longer may end it [s]: the guardian then cancels the
# motion, as it must. No fault is judged by that: such a trial is counted as not judged.
HELD_UP = 1.0
# Longest wait for what follows a fault, and for anything else: it hangs [s].
PATIENCE, DEADLINE = 8.0, 60.0


@dataclasses.dataclass(frozen=True)
class Fault:
    """
    Something that goes wrong.

    Attributes
    ----------
    name : as the table has it
    inject : does it
    says : pattern of the excitation's sentence; '' where the session goes on; None: either
    victims : processes that are gone or useless afterwards
    robot : parameters of the simulated robot, which is started for it
    is_seen : whether the robot can still be seen
    is_recorded : whether there must be a readable bag

    """

    name: str
    inject: Callable[['Trial'], None]
    says: str | None
    victims: tuple[str, ...] = ()
    robot: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    is_seen: bool = True
    is_recorded: bool = True


@dataclasses.dataclass(frozen=True)
class Verdict:
    """
    What became of a fault.

    Attributes
    ----------
    fault, phase : which, and when
    rest, said : times from it on [s], NaN where there is none
    complaints : what is wrong
    held_up : for how long the machine held up the session's processes [s]
    not_judged : how the machine ended the session, '' where it did not

    """

    fault: str
    phase: str
    rest: float = float('nan')
    said: float = float('nan')
    complaints: tuple[str, ...] = ()
    held_up: float = 0.0
    not_judged: str = ''


class EndedError(RobotIdError):
    """A session that nothing was done to has ended."""


class AcceptedError(RobotIdError):
    """A request that has to be refused during a session was not."""


class Trial:
    """
    A robot and the nodes of a session, which live from one fault to the next.

    Parameters
    ----------
    config, trajectory : files of the session
    limits : (n,) effort limits
    folder : of logs and recordings
    seed : of the instants

    """

    def __init__(
        self, config: Path, trajectory: Path, limits: np.ndarray, folder: Path, seed: int
    ):
        self.config, self.trajectory, self._folder = config, trajectory, folder
        self._domain = claim_domain()
        self._logs = folder / 'log'
        log_to(self._logs)
        self.environment = loopback_environment(self._domain)
        os.environ.update(self.environment)
        self.processes = NodeProcesses(config, self._domain, environment=self.environment)
        self.client = Client(self._domain)
        self.observer = Observer(self.client, limits)
        # Who watches the robot here must not lack what a busy machine did not let it receive.
        prefer_threads(True)
        self._random = random.Random(seed)
        self._bag = Path()
        # Bags of sessions that were cut, from which nothing is ever identified.
        self.cut: list[Path] = []
        self._turns = Turns(())
        # What an injection leaves to be undone.
        self.cleanups: list[Callable[[], object]] = []

    def start(self) -> None:
        """Start robot and nodes, as every session does where they do not run."""
        self._prepare({})

    def process(self, name: str) -> int:
        """Process id of a node, or of the guardian."""
        if name == 'guardian':
            try:
                return child_of(self.processes.running['excitation'].pid, 'guardian')
            except AssertionError:
                sentence = self.client.message('excitation')
                raise EndedError(f'ended before the fault: {sentence}') from None
        return self.processes.running[name].pid

    def run(self, fault: Fault, phase: str) -> Verdict:
        """Begin a session, let the fault happen in a phase, judge, and clean up."""
        complaints: list[str] = []
        rest = said = float('nan')
        not_judged = ''
        try:
            self._prepare(fault.robot)
            self._begin(phase)
            time.sleep(self._random.uniform(0.0, LATEST[phase]))
            self.client.arrivals.clear()
            begun, stamp = time.monotonic(), time.time_ns()
            self._turns = Turns(self._pids())
            fault.inject(self)
            rest, said = self._judge_motion(fault, begun, stamp, complaints)
            if fault.is_recorded:
                self._judge_bag(fault, complaints)
        except EndedError as error:
            if self._turns.waited() > HELD_UP:
                not_judged = str(error)
            else:
                complaints.append(str(error))
        except RobotIdError as error:
            complaints.append(str(error))
        held_up = self._turns.waited()
        self._clean_up(fault, all_nodes=bool(complaints))
        return Verdict(fault.name, phase, rest, said, tuple(complaints), held_up, not_judged)

    def complete(self, name: str) -> Verdict:
        """Run a whole session, which has to be identified."""
        try:
            self._prepare({})
            self._begin('exciting')
            self._await(lambda: self._state('excitation') in ENDS, 'the end of the session')
            held_up = self._turns.waited()
            if self._state('excitation') == 'failed':
                sentence = self.client.message('excitation')
                if held_up > HELD_UP:
                    return Verdict(name, '', held_up=held_up, not_judged=sentence)
                raise RobotIdError(sentence)
            self._await(self._is_identified, 'an identification', 180.0)
        except RobotIdError as error:
            return Verdict(name, '', complaints=(str(error),))
        done = self._state('identification') == 'done'
        wrong = () if done else (self.client.message('identification'),)
        return Verdict(name, '', complaints=wrong, held_up=held_up)

    def identified_though_cut(self) -> list[Path]:
        """Bags of sessions that were cut and yet have results beside them."""
        self._await(self._is_identifier_free, 'the end of an identification', 180.0)
        return [bag for bag in self.cut if bag.with_name(f'{bag.name}_identified').exists()]

    def _is_identified(self) -> bool:
        """Whether the newest bag was worked on: the one before may be late."""
        bag = Path(self.client.value('identification', 'bag')).name
        return self._state('identification') in ENDS and bag == self._bag.name

    def _is_identifier_free(self) -> bool:
        return self._state('identification') != 'identifying'

    def _pids(self) -> list[int]:
        nodes = [p.pid for n, p in self.processes.running.items() if n != 'identification']
        with contextlib.suppress(EndedError):
            nodes.append(self.process('guardian'))
        return nodes

    def describe(self) -> str:
        """Return the last lines of the nodes' logs."""
        return tails(self._logs)

    def close(self) -> None:
        """End everything."""
        self.processes.stop()
        self.observer.close()
        self.client.close()
        release_domain(self._domain)

    def _state(self, node: str) -> str:
        return self.client.state(node)

    def _await(self, condition: Callable[[], bool], what: str, timeout: float = DEADLINE) -> None:
        try:
            wait_until(condition, what, deadline=timeout)
        except AssertionError as error:
            seen = ', '.join(f'{name} {self.client.states(name)[-3:]}' for name in NODES[1:])
            raise ControllerError(f'{error}; seen of {seen}') from None

    def _prepare(self, robot: Mapping[str, Any]) -> None:
        """Start what does not run; the robot anew where it is to break."""
        if robot:
            self.processes.stop(['simulated_robot'])
        recordings = {'recorder.folder': str(self._folder / 'recordings')}
        settings: dict[str, Mapping[str, Any]] = {
            'simulated_robot': robot,
            'recorder': recordings,
            'identification': recordings,
            'excitation': {'excitation.trajectory': str(self.trajectory)},
        }
        new = [name for name in NODES if not self._is_running(name)]
        since = time.time_ns() if 'simulated_robot' in new else 0
        for name in new:
            self.client.latest.pop(f'{name}/state', None)
            self.processes.start(name, settings.get(name))
        self.observer.reset()
        # Of this robot: what the one before has said may still be on its way.
        self._await(lambda: self.observer.latest > since, 'a state of the robot')
        for name in set(new) - {'simulated_robot'}:
            self._await(lambda n=name: self._state(n) != '', f'a state of {name}')
        # What comes of the session before is not of this one.
        self._await(self._is_identifier_free, 'the end of an identification', 180.0)

    def _is_running(self, name: str) -> bool:
        process = self.processes.running.get(name)
        return process is not None and process.poll() is None

    def _begin(self, phase: str) -> None:
        """Start a session, and wait until the robot moves in a phase."""
        for name in NODES[1:]:
            self.client.latest.pop(f'{name}/state', None)
        self._turns = Turns(self._pids())
        self.client.call_trigger('excitation/start', DEADLINE)
        seen = {phase, *ENDS}
        self._await(lambda: self._state('excitation') in seen, f'the phase {phase}')
        if self._state('excitation') != phase:
            raise EndedError(f'no session: {self.client.message("excitation")}')
        self._await(lambda: self._state('recorder') == 'recording', 'a recording')
        self._bag = Path(self.client.value('recorder', 'path'))
        self._await(self.observer.is_moving, 'a motion')

    def _judge_motion(
        self, fault: Fault, begun: float, stamp: int, complaints: list[str]
    ) -> tuple[float, float]:
        """Watch the robot and what is said of it: time to rest, time until it is said [s]."""
        patience = UNHARMED if fault.says == '' else PATIENCE
        said, sentence = self._await_end(begun, stamp, patience)
        held_up = self._turns.waited()
        rest = float('nan')
        if fault.says == '' and sentence:
            raise EndedError(f'ended the session: {sentence}')
        if not sentence:
            with contextlib.suppress(RobotIdError):
                self.client.call_trigger('excitation/stop', DEADLINE)
                self._await(lambda: self._state('excitation') in ENDS, 'the end of the session')
        elif fault.says != '':
            if fault.is_seen:
                rest = self.observer.rest_after(stamp, WATCHED, DEADLINE)
            # What need not end a session may harm the robot later than it began.
            bound = REST_BOUND if fault.says else max(REST_BOUND, said)
            if fault.is_seen and not rest <= bound + held_up:
                complaints.append(f'at rest after {rest:.2f} s')
            if fault.says and not re.search(fault.says, sentence):
                complaints.append(f'explained by: {sentence}')
        if fault.says and not said <= SAID_BOUND + held_up:
            complaints.append(f'said after {said:.2f} s')
        if self.observer.excess > EFFORT_BOUND:
            complaints.append(f'effort {self.observer.excess:.3f} of its limit')
        return rest, said

    def _await_end(self, begun: float, stamp: int, timeout: float) -> tuple[float, str]:
        """Wait until somebody says that the session is cut: how long after the fault, and why."""
        while time.monotonic() < begun + timeout:
            for published, topic, message in list(self.client.arrivals):
                state = values_of(message).get('state')
                if topic == 'excitation/state' and state == 'done':
                    return float('nan'), ''
                if state == 'failed' or (
                    topic == 'recorder/state' and state in ('closing', 'closed')
                ):
                    return (published - stamp) * 1e-9, message.message
            time.sleep(0.01)
        return float('nan'), ''

    def _judge_bag(self, fault: Fault, complaints: list[str]) -> None:
        """Read the bag; nothing may be identified from a session that was cut."""
        if not {'recorder', 'identification'} & set(fault.victims):
            with contextlib.suppress(ControllerError):
                self._await(self._is_identified, '', PATIENCE)
            if self._state('excitation') != 'done':
                self.cut.append(self._bag)
                if self._is_identified() and self._state('identification') == 'done':
                    complaints.append('identified from a session that was cut')
        try:
            recording = open_recording(self._bag)
        except RecordingError as error:
            complaints.append(f'bag: {error}')
        else:
            if not recording.phases:
                complaints.append('bag: no phases')

    def _clean_up(self, fault: Fault, *, all_nodes: bool) -> None:
        """Undo, and end what is of no use any more; after a complaint that may be everything."""
        for cleanup in self.cleanups:
            cleanup()
        self.cleanups.clear()
        robot = ('simulated_robot',) if fault.robot else ()
        victims = NODES if all_nodes else (*fault.victims, *robot)
        running = [name for name in victims if name in self.processes.running]
        for name in running:
            with contextlib.suppress(ProcessLookupError):
                self.processes.running[name].send_signal(signal.SIGCONT)
        self.processes.stop(running)
        # Who was suspended may have its session still to end.
        if self._is_running('excitation'):
            self._await(lambda: self._state('excitation') in ENDS, 'the end of the session')
