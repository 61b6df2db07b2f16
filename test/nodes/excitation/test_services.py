"""Requests that come all at once are answered, each of them."""

import itertools
from pathlib import Path
import time

from diagnostic_msgs.msg import DiagnosticStatus
from parameter_overrides import parameter_overrides
import pytest
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_srvs.srv import Trigger
from waiting import PATIENCE, wait_until

from robotid_ros.files.configuration import read_mapping
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.nodes.common.messages import values_of
from robotid_ros.nodes.common.runtime import LATCHED
from robotid_ros.nodes.common.waiting import result_of
from robotid_ros.nodes.excitation.excitation_node import Excitation

pytestmark = pytest.mark.ros
CONFIG = Path(__file__).resolve().parents[3] / 'config' / 'scara.yaml'
STORED = CONFIG.parent / 'trajectories' / 'scara.yaml'


def answers(node: Node, service: str, count: int) -> list[Trigger.Response]:
    """Call a service so often at once; the client, too, must have a place for each answer."""
    client = node.create_client(Trigger, service, qos_profile=QoSProfile(depth=count))
    wait_until(client.service_is_ready, f'{service} is served')
    futures = [client.call_async(Trigger.Request()) for _ in range(count)]
    return [result_of(future, PATIENCE, service) for future in futures]


def start(
    executor: SingleThreadedExecutor, folder: Path = CONFIG.parent, **settings: object
) -> Excitation:
    values = read_mapping(CONFIG)
    values['excitation'].update(settings)
    values['recorder'] = {'folder': str(folder)}
    excitation = Excitation(
        context=executor.context, parameter_overrides=parameter_overrides(values)
    )
    executor.add_node(excitation)
    return excitation


def test_parallel_requests_are_all_answered_and_one_start_succeeds(
    executor: SingleThreadedExecutor, node: Node
):
    # A search that only ~/stop can end.
    excitation = start(executor, starts=1_000_000, time_limit=1e6)
    stops = answers(node, 'excitation/stop', 100)
    assert [answer.message for answer in stops] == ['nothing was running'] * 100
    starts = answers(node, 'excitation/design', 20)
    assert sum(answer.success for answer in starts) == 1
    refused = {answer.message for answer in starts if not answer.success}
    assert refused == {'busy: call ~/stop first'}
    assert answers(node, 'excitation/stop', 1)[0].message == 'stopping: see ~/state'
    wait_until(lambda: not excitation.busy, 'the design ends')
    excitation.close()


def test_what_needs_no_design_is_checked_before_it(executor: SingleThreadedExecutor, node: Node):
    states: list[DiagnosticStatus] = []
    node.create_subscription(DiagnosticStatus, 'excitation/state', states.append, LATCHED)
    excitation = start(executor, starts=1_000_000, time_limit=1e6, timeout=0.1)
    assert answers(node, 'excitation/start', 1)[0].success
    wait_until(lambda: not excitation.busy, 'there is no controller')
    wait_until(lambda: states and values_of(states[-1])['state'] == 'failed', 'it is said')
    assert "there is no controller 'arm_controller'" in states[-1].message
    assert not [state for state in states if 'designing' in state.message]
    excitation.close()


def test_a_design_is_saved_and_said(executor: SingleThreadedExecutor, node: Node, tmp_path: Path):
    states: list[DiagnosticStatus] = []
    node.create_subscription(DiagnosticStatus, 'excitation/state', states.append, LATCHED)
    quick = {'starts': 1, 'iterations': 1, 'validation': {'kind': 'none'}}
    excitation = start(executor, tmp_path, **quick)
    assert answers(node, 'excitation/design', 1)[0].success
    wait_until(lambda: not excitation.busy, 'the design ends')
    (path,) = tmp_path.glob('scara_trajectory_*.yaml')
    wait_until(path.with_suffix('.html').exists, 'its page is beside it')
    wait_until(lambda: str(path) in states[-1].message, 'its path is said')
    assert values_of(states[-1])['file'] == str(path)
    assert read_design(path).trajectory.hash == values_of(states[-1])['trajectory']
    excitation.close()


def test_sessions_leave_nothing_behind(executor: SingleThreadedExecutor, node: Node):
    excitation = start(executor, trajectory=str(STORED), timeout=0.1)

    def entities() -> list[int]:
        found = (excitation.clients, excitation.waitables, excitation.subscriptions)
        return [len(list(kind)) for kind in (*found, excitation.publishers)]

    before = entities()
    assert answers(node, 'excitation/start', 1)[0].success
    wait_until(lambda: not excitation.busy, 'there is no controller')
    # The executor destroys them, soon.
    wait_until(lambda: entities() == before, 'all is gone', lambda: (entities(), before))
    excitation.close()


@pytest.mark.parametrize(
    ('service', 'settings', 'says'),
    [
        ('start', {'trajectory': 'missing.yaml'}, 'missing.yaml'),
        ('rehearse', {'trajectory': 'missing.yaml'}, 'missing.yaml'),
        ('start', {'accept_unchecked': []}, 'accept it by excitation.accept_unchecked: [ground]'),
        ('start', {'require_rehearsal': True}, 'call ~/rehearse first'),
        ('verify', {}, 'there is no validation motion'),
        ('verify', {'trajectory': str(STORED)}, 'nothing is identified yet'),
    ],
)
def test_what_can_be_checked_at_once_is_refused_in_the_answer(
    service: str,
    settings: dict[str, object],
    says: str,
    executor: SingleThreadedExecutor,
    node: Node,
):
    excitation = start(executor, **settings)
    (answer,) = answers(node, f'excitation/{service}', 1)
    assert not answer.success
    assert says in answer.message
    # The next request finds nothing left behind.
    wait_until(lambda: not excitation.busy, 'the job has ended')
    assert answers(node, 'excitation/stop', 1)[0].message == 'nothing was running'
    excitation.close()


def test_a_session_that_begins_as_another_ends_has_its_own_states(
    executor: SingleThreadedExecutor, node: Node, monkeypatch: pytest.MonkeyPatch
):
    excitation = start(executor, trajectory=str(STORED), timeout=0.1)
    publish, said = excitation.publish_state, list[tuple[str, str]]()

    def publish_late(state: str, message: str, values: dict[str, str]) -> None:
        time.sleep(0.2 if state == 'failed' else 0.0)
        said.append((values['session'], state))
        publish(state, message, values)

    monkeypatch.setattr(excitation, 'publish_state', publish_late)
    for _ in range(3):
        answers(node, 'excitation/start', 1)
        wait_until(lambda: not excitation.busy, 'there is no controller')
    wait_until(lambda: [state for _, state in said].count('failed') == 3, 'each has failed')
    sessions = [[*group] for _, group in itertools.groupby(said, key=lambda each: each[0])]
    assert [[state for _, state in each] for each in sessions] == [['designing', 'failed']] * 3
    excitation.close()
    assert answers(node, 'excitation/start', 1)[0].message == 'this node is shutting down'
