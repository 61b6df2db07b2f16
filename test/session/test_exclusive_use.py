"""Only one client moves the robot: other sessions and goals are noticed before and meanwhile."""

from collections.abc import Iterator
import contextlib
from pathlib import Path
import subprocess
import sys
import threading
import uuid

from diagnostic_msgs.msg import DiagnosticStatus
from loopback import loopback_environment
import pytest
from std_srvs.srv import Trigger
from waiting import PATIENCE, wait_until

from robotid_ros.core.excitation.trajectory import point_to_point
from robotid_ros.nodes.common.controller import TrajectoryClient
from robotid_ros.nodes.common.messages import values_of
from robotid_ros.nodes.common.processes import child_environment
from robotid_ros.nodes.common.runtime import LATCHED

from .conftest import LONG, Session, SLOW

pytestmark = pytest.mark.ros


class Second:
    """A second excitation node, of another name."""

    def __init__(self, session: Session, config: Path, trajectory: Path):
        self.states: list[DiagnosticStatus] = []
        self._client = session.client
        session.client.node.create_subscription(
            DiagnosticStatus, 'excitation2/state', self.states.append, LATCHED
        )
        self.process = subprocess.Popen(
            [
                *(sys.executable, '-m', 'robotid_ros.nodes', 'excitation', '--ros-args'),
                *('-r', '__node:=excitation2', '--params-file', str(config)),
                *('-p', f'excitation.trajectory:={trajectory}'),
                *('-p', f'excitation.periods:={LONG}', '-p', 'excitation.require_recorder:=false'),
            ],
            env=child_environment(**loopback_environment(session.domain)),
        )
        wait_until(lambda: self.states, 'the second node says something', session.describe)

    def start(self) -> Trigger.Response:
        return self._client.call(Trigger, 'excitation2/start', Trigger.Request())

    @property
    def seen(self) -> list[str]:
        return [values_of(state)['state'] for state in self.states]


@pytest.fixture
def session(joined: Session) -> Iterator[Session]:
    yield joined
    joined.end_motion()


@pytest.fixture
def ready(session: Session, trajectory: Path) -> Session:
    session.start(
        *('simulated_robot', 'excitation'),
        simulated_robot=SLOW,
        excitation={'excitation.trajectory': str(trajectory), 'excitation.periods': LONG},
    )
    session.robot.wait()
    session.ready('excitation')
    return session


@pytest.fixture
def second(ready: Session, config: Path, trajectory: Path) -> Iterator[Second]:
    second = Second(ready, config, trajectory)
    yield second
    second.process.terminate()
    second.process.wait()


def test_a_second_session_is_refused_and_the_first_goes_on(ready: Session, second: Second):
    ready.client.call_trigger('excitation/start')
    ready.until('excitation', 'exciting')
    ready.robot.wait_moving()
    assert second.start().success
    wait_until(lambda: 'failed' in second.seen, 'the second one is refused', ready.describe)
    assert "another session uses 'arm_controller' (/excitation)" in second.states[-1].message
    assert not {'approaching', 'exciting'} & set(second.seen)
    stamp = ready.robot.now
    ready.client.wait_for(lambda: ready.robot.now > stamp, what='the robot goes on')
    ready.robot.wait_moving()
    assert ready.client.state('excitation') == 'exciting'


@pytest.mark.slow
def test_two_sessions_that_begin_at_once_leave_one_motion_at_most(ready: Session, second: Second):
    threads = [
        threading.Thread(target=ready.client.call_trigger, args=('excitation/start',)),
        threading.Thread(target=second.start),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    def failed() -> int:
        return (ready.client.state('excitation') == 'failed') + (second.seen[-1] == 'failed')

    def excites() -> bool:
        return 'exciting' in (ready.client.state('excitation'), second.seen[-1])

    wait_until(lambda: failed() == 2 or (failed() and excites()), 'one ends', ready.describe)


@contextlib.contextmanager
def other_goal(session: Session, duration: float) -> Iterator[uuid.UUID]:
    """Let another client send a slow motion from where the robot is, and cancel it at the end."""
    here = session.robot.positions[-1]
    points = point_to_point(('joint_1', 'joint_2'), here, here + 1.0, [1.0 / duration] * 2, [9, 9])
    action = TrajectoryClient(session.client.node, '/arm_controller', 120.0)
    action.wait_for_server()
    goal_id = uuid.uuid4()
    goal = action.send(goal_id, points, [0.0] * 2, [0.0] * 2, 10.0)
    session.client.wait_for(goal.accepted, what='the other goal is accepted')
    yield goal_id
    assert action.cancel(goal_id, PATIENCE)


@pytest.mark.slow
def test_no_session_begins_while_a_goal_of_another_client_runs(ready: Session):
    with other_goal(ready, 100.0) as goal_id:
        ready.client.call_trigger('excitation/start')
        assert f'goal {goal_id} of another client' in ready.until('excitation', 'failed')
        assert 'approaching' not in ready.client.states('excitation')
        # Nobody has ended it.
        ready.robot.wait_moving(0.005)


def test_a_goal_of_another_client_ends_the_session_by_name(ready: Session):
    ready.client.call_trigger('excitation/start')
    ready.until('excitation', 'exciting')
    ready.robot.wait_moving()
    with other_goal(ready, 100.0) as goal_id:
        assert f'goal {goal_id} of another client' in ready.until('excitation', 'failed')
