"""Requests that come all at once are answered, each of them."""

from pathlib import Path

import pytest
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_srvs.srv import Trigger
from waiting import PATIENCE, wait_until

from robotid_ros.files.configuration import read_mapping
from robotid_ros.nodes.common.runtime import parameter_overrides, result_of
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


def start(executor: SingleThreadedExecutor, **settings: object) -> Excitation:
    values = read_mapping(CONFIG)
    values['excitation'].update(settings)
    excitation = Excitation(
        context=executor.context, parameter_overrides=parameter_overrides(values)
    )
    executor.add_node(excitation)
    return excitation


def test_parallel_requests_are_all_answered_and_one_start_succeeds(
    executor: SingleThreadedExecutor, node: Node
):
    # A search that only ~/stop can end.
    excitation = start(executor, starts=1_000_000)
    stops = answers(node, 'excitation/stop', 100)
    assert [answer.message for answer in stops] == ['nothing was running'] * 100
    starts = answers(node, 'excitation/start', 20)
    assert sum(answer.success for answer in starts) == 1
    refused = {answer.message for answer in starts if not answer.success}
    assert refused == {'busy: call ~/stop first'}
    assert answers(node, 'excitation/stop', 1)[0].message == 'stopping: see ~/state'
    wait_until(lambda: not excitation.busy, 'the design ends')
    excitation.close()


def test_sessions_leave_nothing_behind(executor: SingleThreadedExecutor, node: Node):
    excitation = start(executor, trajectory=str(STORED), timeout=0.1)

    def entities() -> list[int]:
        found = (excitation.clients, excitation.waitables, excitation.subscriptions)
        return [len(list(kind)) for kind in (*found, excitation.publishers)]

    before = entities()
    assert answers(node, 'excitation/start', 1)[0].success
    wait_until(lambda: not excitation.busy, 'there is no controller')
    assert entities() == before
    excitation.close()
