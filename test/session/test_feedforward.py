"""Goals of others through the node `feedforward`: better tracked, refused, cancelled, orphaned."""

from collections.abc import Iterator
import os
from pathlib import Path
import signal
import subprocess
import sys
import time
from typing import Any
import uuid

from action_msgs.msg import GoalStatus
from control_msgs.action import FollowJointTrajectory
from live_session import Nodes
import numpy as np
import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.action import ActionClient
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from unique_identifier_msgs.msg import UUID
from waiting import PATIENCE

from robotid_ros.core.model import build_robot
from robotid_ros.exceptions import ControllerError
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.payload.makers import RELAY
from robotid_ros.nodes.common.messages import duration_message, to_nanoseconds, to_time, values_of
from robotid_ros.nodes.common.waiting import result_of
from robotid_ros.nodes.demo.demo import RelayClient, ROBOT, tool_link, work
from robotid_ros.nodes.identification.payload_setting import PayloadSetter

from .conftest import Session

pytestmark = pytest.mark.ros

JOINTS = ('joint_1', 'joint_2')
START = np.array([0.2, -0.2])
INVALID = FollowJointTrajectory.Result.INVALID_GOAL
ACTION = '/feedforward/follow_joint_trajectory'


class Mover:
    """Sends goals as a planner does: points every 0.1 s, from rest to rest."""

    def __init__(self, session: Session):
        self.session = session
        self.client = ActionClient(session.client.node, FollowJointTrajectory, ACTION)
        session.client.wait_for(self.client.server_is_ready, what='the relay offers its action')

    def goal(
        self,
        end: Any,
        duration: float,
        start: Any = START,
        names: tuple[str, ...] = JOINTS,
        **changes: Any,
    ) -> FollowJointTrajectory.Goal:
        count = round(duration / 0.1) + 1
        s = np.linspace(0.0, 1.0, count)
        travel = np.asarray(end) - start
        profiles = (
            (10 * s**3 - 15 * s**4 + 6 * s**5),
            (30 * s**2 - 60 * s**3 + 30 * s**4) / duration,
            (60 * s - 180 * s**2 + 120 * s**3) / duration**2,
        )
        q, dq, ddq = (np.outer(profile, travel) for profile in profiles)
        fields = {'positions': q + start, 'velocities': dq, 'accelerations': ddq} | changes
        points = [
            JointTrajectoryPoint(
                time_from_start=duration_message(k * duration / (count - 1)),
                **{key: rows[k].tolist() for key, rows in fields.items() if rows is not None},
            )
            for k in range(count)
        ]
        goal = FollowJointTrajectory.Goal(trajectory=JointTrajectory(joint_names=list(names)))
        goal.trajectory.points = points
        return goal

    def send(self, *motion: Any, **changes: Any) -> Any:
        """Send a motion; return the goal's handle."""
        return self.begin(self.goal(*motion, **changes))

    def begin(self, goal: FollowJointTrajectory.Goal) -> Any:
        """Send a goal; return its handle."""
        executor = self.session.client.node.executor
        sent = executor.create_task(lambda: self.client.send_goal_async(goal))
        handle = result_of(result_of(sent, PATIENCE, 'the executor'), PATIENCE, 'the relay')
        assert handle.accepted
        return handle

    def result(self, handle: Any) -> Any:
        executor = self.session.client.node.executor
        future = result_of(executor.create_task(handle.get_result_async), PATIENCE, 'executor')
        return result_of(future, PATIENCE, 'the result')

    def move(self, end: Any, duration: float, **changes: Any) -> Any:
        return self.result(self.send(end, duration, **changes))

    def errors(self, count: int) -> np.ndarray:
        """Return the tracking errors (n,) of the goal number `count`."""
        found = self.session.client.history['feedforward/tracking']
        self.session.client.wait_for(lambda: len(found) >= count, what='a tracking error is told')
        return np.array([float(values_of(s)['rms']) for s in found[count - 1].status])


def set_parameter(session: Session, name: str, value: ParameterValue) -> Any:
    request = SetParametersAtomically.Request(parameters=[Parameter(name=name, value=value)])
    service = '/feedforward/set_parameters_atomically'
    return session.client.call(SetParametersAtomically, service, request).result


def mover_of(session: Session, identified: Path, **robot: object) -> Mover:
    """Start what does not run yet."""
    session.start(
        *('simulated_robot', 'feedforward'),
        simulated_robot={f'simulation.{key}': value for key, value in robot.items()},
        feedforward={'feedforward.results': str(identified), 'feedforward.ramp': 0.1},
    )
    session.robot.wait()
    session.until('feedforward', 'ready')
    return Mover(session)


@pytest.fixture
def mover(joined: Session, nodes: Nodes, identified: Path) -> Iterator[Mover]:
    """Share a robot, which begins at its start, and a relay that is well."""
    mover = mover_of(joined, identified)
    here = joined.robot.positions[-1]
    if np.abs(here - START).max() > 0.01:
        assert mover.move(START, 2.0, start=here).status == GoalStatus.STATUS_SUCCEEDED
    yield mover
    if joined.client.state('feedforward') != 'ready':
        nodes.processes.stop(('feedforward',))


def test_a_goal_is_tracked_better_and_its_result_comes_back(session: Session, identified: Path):
    mover, end = mover_of(session, identified), START + 0.8
    enabled = 'feedforward.enabled'
    off = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=False)
    assert set_parameter(session, enabled, off).successful
    assert mover.move(end, 1.0).status == GoalStatus.STATUS_SUCCEEDED
    assert mover.move(START, 1.0, start=end).status == GoalStatus.STATUS_SUCCEEDED
    on = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=True)
    assert set_parameter(session, enabled, on).successful
    assert mover.move(end, 1.0).status == GoalStatus.STATUS_SUCCEEDED
    # Between points without accelerations the controller takes cubics.
    back = mover.move(START, 1.0, start=end, accelerations=None)
    assert back.status == GoalStatus.STATUS_SUCCEEDED
    without, helped, cubic = (mover.errors(k) for k in (1, 3, 4))
    assert (helped < 0.2 * without).all(), (without, helped)
    assert (cubic < 0.3 * without).all(), (without, cubic)


def test_a_body_that_is_picked_up_shows_until_it_is_set(
    session: Session, config: Path, identified: Path
):
    configuration = load(config)
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    session.start(
        *('simulated_robot', 'feedforward'),
        simulated_robot={'simulation.payload.link': tool_link(robot)},
        feedforward={'feedforward.results': str(identified)},
    )
    session.robot.wait()
    client = RelayClient(session.client.node, robot, '/arm_controller')
    client.wait_ready()
    for _ in range(4):  # again where other processes delayed this one
        client.set(ROBOT, payload__mass=0.0)
        client.set(RELAY, payload__mass=0.0)
        found = work(client, robot, carries=False)
        without, helped, unknown, known = found.rms
        if (helped < 0.2 * without).all() and (known < 0.5 * unknown).all():
            break
    assert found.mass > 0.0 and found.units == ('rad', 'rad')
    assert (helped < 0.2 * without).all() and (known < 0.5 * unknown).all(), found
    with pytest.raises(ControllerError, match='finite'):
        client.set(ROBOT, payload__mass=float('inf'))


@pytest.mark.slow
def test_goals_that_a_controller_ends_late_do_not_count(session: Session, identified: Path):
    """Their clients are told by the relay, which goes on with the newest one."""
    mover = mover_of(session, identified, late_preemption=True)
    first = mover.send(START + 0.8, 8.0)
    session.robot.wait_moving(0.05)
    second = mover.send(START, 8.0, start=START + 0.1)
    ended = mover.result(first)
    assert (ended.status, ended.result.error_code) == (GoalStatus.STATUS_ABORTED, INVALID)
    assert 'newer goal' in ended.result.error_string
    executor = session.client.node.executor
    executor.create_task(second.cancel_goal_async)
    assert mover.result(second).status == GoalStatus.STATUS_CANCELED


def test_what_efforts_cannot_be_added_to_is_refused_in_a_sentence(mover: Mover):
    session = mover.session
    nan = np.full((11, 2), 0.1)
    nan[5, 1] = np.nan
    for changes, sentence in (
        ({'names': ('joint_1', 'elbow')}, 'names the joints joint_1, elbow'),
        ({'velocities': None, 'accelerations': None}, 'lacks velocities'),
        ({'velocities': nan}, 'not a number'),
    ):
        sent = mover.move(START + 0.3, 1.0, **changes)
        assert (sent.status, sent.result.error_code) == (GoalStatus.STATUS_ABORTED, INVALID)
        assert sentence in sent.result.error_string
    off, on = (
        ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=x) for x in (False, True)
    )
    set_parameter(session, 'feedforward.enabled', off)
    assert 'not a number' in mover.move(START + 0.3, 1.0, positions=nan).result.error_string
    set_parameter(session, 'feedforward.enabled', on)
    sent = mover.move(START + 2.0, 0.1)
    assert sent.result.error_code == INVALID
    assert 'effort' in sent.result.error_string
    for value in (np.nan, np.inf, -1.0):
        wrong = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
        assert not set_parameter(session, 'feedforward.payload.mass', wrong).successful
    mass = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=1e5)
    assert set_parameter(session, 'feedforward.payload.mass', mass).successful
    assert mover.move(START + 0.3, 1.0).result.error_code == INVALID
    inertia = ParameterValue(
        type=ParameterType.PARAMETER_DOUBLE_ARRAY,
        double_array_value=[1.0, 0.0, 0.0, 0.1, 0.0, 0.1],
    )
    refused = set_parameter(session, 'feedforward.payload.inertia', inertia)
    assert not refused.successful
    assert 'no body has' in refused.reason
    assert np.allclose(session.robot.positions[-1], START, atol=0.02)
    mass = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=0.0)
    assert set_parameter(session, 'feedforward.payload.mass', mass).successful


def test_an_identified_payload_is_set_at_rest_and_restored(mover: Mover, tmp_path: Path):
    session = mover.session
    node, file = session.client.node, tmp_path / 'before.yaml'
    body = np.array([1.0, 0.0, 0.0, 0.05, *[np.nan] * 6])
    with pytest.raises(ControllerError, match='unknown frame'):
        PayloadSetter(node, PATIENCE).set(RELAY, 'tol0', body, file)
    PayloadSetter(node, PATIENCE).set(RELAY, 'tool0', body, file.with_name('again.yaml'))
    get = GetParameters.Request(names=['feedforward.payload.mass', 'feedforward.payload.frame'])

    def present() -> tuple[float, str]:
        answer = session.client.call(GetParameters, '/feedforward/get_parameters', get)
        return answer.values[0].double_value, answer.values[1].string_value

    assert present() == (1.0, 'tool0')
    assert mover.move(START + 0.3, 1.0).status == GoalStatus.STATUS_SUCCEEDED
    PayloadSetter(node, PATIENCE).restore(str(file.with_name('again.yaml')))
    assert present() == (0.0, '')


def has_priority(pid: int) -> bool:
    tasks = (int(task) for task in os.listdir(f'/proc/{pid}/task'))
    return any(os.sched_getscheduler(t) & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR for t in tasks)


def test_a_newer_goal_takes_over_and_a_cancelled_one_ends(mover: Mover):
    session = mover.session
    ask = 'import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))'
    allowed = (
        subprocess.run([sys.executable, '-c', ask], stderr=subprocess.DEVNULL).returncode == 0
    )
    # What passes a goal on, and watches a robot, must not wait behind those who compute.
    assert has_priority(session.process('feedforward').pid) == allowed
    first = mover.send(START + 0.8, 4.0)
    session.robot.wait_moving(0.1)
    second = mover.send(START, 3.0, start=START + 0.1)
    assert mover.result(first).status == GoalStatus.STATUS_ABORTED
    session.robot.wait_moving(0.05)
    executor = session.client.node.executor
    executor.create_task(second.cancel_goal_async)
    assert mover.result(second).status == GoalStatus.STATUS_CANCELED
    assert session.robot.rest_after(session.robot.now) < 0.5


def test_a_goal_that_begins_later_takes_its_time_until_then(mover: Mover):
    """Its first point is 0.5 rad away: a tenth of a second would be too little for that."""
    session, clock = mover.session, mover.session.client.node.get_clock()
    goal = mover.goal(START + 0.6, 1.0, start=START + 0.5)
    for point in goal.trajectory.points:
        stamp = 1e-9 * to_nanoseconds(point.time_from_start)
        point.time_from_start = duration_message(stamp + 0.1)
    goal.trajectory.header.stamp = to_time(clock.now().nanoseconds + 2_000_000_000)
    before = len(session.robot.positions)
    assert mover.result(mover.begin(goal)).status == GoalStatus.STATUS_SUCCEEDED
    moved = np.array(session.robot.positions)[before:]
    np.testing.assert_allclose(moved[-1], START + 0.6, atol=0.02)
    assert 125.0 * np.abs(np.diff(moved, axis=0)).max() < 1.0


def test_joints_in_another_order_and_a_single_point_lead_to_the_same_place(mover: Mover):
    goal = mover.goal((START + 0.3)[::-1], 1.0, start=START[::-1], names=JOINTS[::-1])
    assert mover.result(mover.begin(goal)).status == GoalStatus.STATUS_SUCCEEDED
    np.testing.assert_allclose(mover.session.robot.positions[-1], START + 0.3, atol=0.02)
    goal = mover.goal(START, 1.0, start=START + 0.3)
    goal.trajectory.points = goal.trajectory.points[-1:]
    assert mover.result(mover.begin(goal)).status == GoalStatus.STATUS_SUCCEEDED
    np.testing.assert_allclose(mover.session.robot.positions[-1], START, atol=0.02)


def test_of_many_goals_at_once_the_last_one_counts_and_each_ends(mover: Mover):
    """From two clients: each goal ends the one before."""
    session, ends = mover.session, START + 0.02 * np.arange(1.0, 31.0)[:, None]
    other = ActionClient(session.client.node, FollowJointTrajectory, ACTION)
    session.client.wait_for(other.server_is_ready, what='the relay offers its action')
    executor, sent = session.client.node.executor, []
    for k, end in enumerate(ends):
        client = (mover.client, other)[k % 2]
        sent.append(executor.create_task(client.send_goal_async, mover.goal(end, 1.0)))
        time.sleep(0.02)
    handles = [result_of(result_of(x, PATIENCE, 'executor'), PATIENCE, 'relay') for x in sent]
    *before, last = [mover.result(handle) for handle in handles]
    assert {result.status for result in before} == {GoalStatus.STATUS_ABORTED}
    assert all(result.result.error_string for result in before)
    assert last.status == GoalStatus.STATUS_SUCCEEDED
    np.testing.assert_allclose(session.robot.positions[-1], ends[-1], atol=0.02)


def test_a_goal_that_is_sent_twice_runs_once(mover: Mover):
    session, executor = mover.session, mover.session.client.node.executor
    goal, name = mover.goal(START + 0.8, 2.0), UUID(uuid=list(uuid.uuid4().bytes))
    handles = []
    for _ in range(2):
        sent = executor.create_task(lambda: mover.client.send_goal_async(goal, goal_uuid=name))
        sent = result_of(sent, PATIENCE, 'the executor')
        handles.append(result_of(sent, PATIENCE, 'the relay'))
        session.robot.wait_moving(0.1)
    assert [handle.accepted for handle in handles] == [True, False]
    assert mover.result(handles[0]).status == GoalStatus.STATUS_SUCCEEDED


LOSES = """
import os
from rclpy.action import ActionServer
accept = ActionServer._execute_goal_request
async def lose(self, taken):
    if self._node.get_name() != 'feedforward' or os.path.exists(os.environ['ACCEPTS']):
        await accept(self, taken)
ActionServer._execute_goal_request = lose
"""
FAILS = """
import os
from rclpy.action.client import ClientGoalHandle
ask = ClientGoalHandle.get_result_async
def fail(self):
    if self._action_client._node.get_name() == 'feedforward':
        if not os.path.exists(os.environ['ACCEPTS']):
            raise MemoryError('none is left')
    return ask(self)
ClientGoalHandle.get_result_async = fail
"""


@pytest.mark.parametrize('fault', [LOSES, FAILS])
def test_a_goal_that_cannot_be_followed_is_cancelled(
    fault: str, config: Path, identified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """
    It was sent before that.

    rclpy gives it up where the middleware cannot send its answer; else whatever has gone wrong is
    the goal's result.
    """
    (tmp_path / 'sitecustomize.py').write_text(fault)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    monkeypatch.setenv('ACCEPTS', str(tmp_path / 'accepts'))
    with Session(config, tmp_path) as session:
        mover = mover_of(session, identified)
        goal, executor = mover.goal(START + 1.5, 6.0), session.client.node.executor
        sent = executor.create_task(mover.client.send_goal_async, goal)
        session.client.wait_for(
            lambda: np.abs(session.robot.positions[-1] - START).max() > 1e-5, what='it moves'
        )
        assert session.robot.rest_after(session.robot.now) < 0.5
        here = session.robot.positions[-1]
        assert np.abs(here - START).max() < 0.1
        if fault == LOSES:
            assert not result_of(sent, PATIENCE, 'the executor').done()
        else:
            handle = result_of(result_of(sent, PATIENCE, 'the executor'), PATIENCE, 'the relay')
            ended = mover.result(handle)
            assert (ended.status, ended.result.error_code) == (GoalStatus.STATUS_ABORTED, INVALID)
            assert ended.result.error_string == 'MemoryError: none is left'
        (tmp_path / 'accepts').touch()
        ended = mover.move(START + 0.3, 1.0, start=here)
        assert ended.status == GoalStatus.STATUS_SUCCEEDED


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGSTOP, signal.SIGINT])
def test_a_relay_that_dies_leaves_the_robot_at_rest(mover: Mover, number: signal.Signals):
    session = mover.session
    mover.send(START + 1.5, 6.0)
    session.robot.wait_moving(0.1)
    process = session.process('feedforward')
    process.send_signal(number)
    if number == signal.SIGKILL:
        # How long the system takes to bury a process is not the guardian's matter.
        process.wait(PATIENCE)
    stamp = session.robot.now
    assert session.robot.rest_after(stamp) < 0.5
    assert np.abs(session.robot.positions[-1] - START - 1.5).min() > 0.2
    if number == signal.SIGSTOP:
        process.send_signal(signal.SIGCONT)


def test_a_goal_waits_for_a_guardian_that_is_started_again(mover: Mover):
    pid = mover.session.process('feedforward').pid
    children = Path(f'/proc/{pid}/task')
    guardians = [c for t in children.iterdir() for c in (t / 'children').read_text().split()]
    for guardian in guardians:
        os.kill(int(guardian), signal.SIGKILL)
    # The relay looks after it several times a second, and takes longer to start one.
    time.sleep(0.3)
    assert mover.move(START + 0.3, 1.0).status == GoalStatus.STATUS_SUCCEEDED
    session = mover.session
    states = session.client.history['feedforward/state']
    session.client.wait_for(lambda: values_of(states[-1])['state'] == 'ready', what='it is ready')


@pytest.mark.slow
def test_a_controller_that_stops_ends_the_goal(mover: Mover):
    session = mover.session
    handle = mover.send(START + 1.5, 6.0)
    session.robot.wait_moving(0.1)
    robot = session.process('simulated_robot')
    robot.send_signal(signal.SIGSTOP)
    ended = mover.result(handle)
    resumed = time.time_ns()
    robot.send_signal(signal.SIGCONT)
    assert ended.status == GoalStatus.STATUS_ABORTED
    assert 'stopped publishing its state' in ended.result.error_string
    # The cancellation waited for the controller, which then rests short of the goal.
    assert session.robot.rest_after(resumed) < 0.5
    assert np.abs(session.robot.positions[-1] - START - 1.5).min() > 0.2
