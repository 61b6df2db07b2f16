"""All nodes of a session in one process, on one executor."""

from collections.abc import Iterator
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from parameter_overrides import parameter_overrides
import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from std_msgs.msg import String
from std_srvs.srv import Trigger
from waiting import PATIENCE, wait_until

from robotid_ros.files.configuration import read_mapping
from robotid_ros.nodes.common.messages import values_of
from robotid_ros.nodes.common.runtime import LATCHED, SpinThread
from robotid_ros.nodes.common.waiting import result_of
from robotid_ros.nodes.excitation.excitation_node import Excitation
from robotid_ros.nodes.identification.identification_node import IdentificationNode
from robotid_ros.nodes.recorder.recorder_node import Recorder

pytestmark = pytest.mark.ros
CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'scara.yaml'


@pytest.fixture
def nodes(tmp_path: Path, domain: int) -> Iterator[dict[str, rclpy.node.Node]]:
    context = Context()
    rclpy.init(context=context, domain_id=domain)
    values = read_mapping(CONFIG)
    values['recorder'] = {'folder': str(tmp_path)}
    # A search that only ~/stop can end.
    values['excitation']['starts'] = 1_000_000
    options = {'context': context, 'parameter_overrides': parameter_overrides(values)}
    made = {c.__name__: c(**options) for c in (Excitation, Recorder, IdentificationNode)}
    made['client'] = rclpy.create_node('client', context=context)
    executor = SingleThreadedExecutor(context=context)
    for node in made.values():
        executor.add_node(node)
    spinning = SpinThread(executor)
    yield made
    for name in ('Excitation', 'Recorder', 'IdentificationNode'):
        made[name].close()
    spinning.end()
    rclpy.try_shutdown(context=context)


def call(node: rclpy.node.Node, name: str) -> Trigger.Response:
    client = node.create_client(Trigger, name)
    wait_until(client.service_is_ready, f'{name} is served', node.get_service_names_and_types)
    return result_of(client.call_async(Trigger.Request()), PATIENCE, name)


def test_every_service_answers_while_nothing_is_there(nodes: dict[str, rclpy.node.Node]):
    client = nodes['client']
    assert call(client, 'excitation/stop').message == 'nothing was running'
    answer = call(client, 'identification/identify')
    assert (answer.success, answer.message) == (
        False,
        'there is no recording yet: record a session',
    )
    answer = call(client, 'identification/update_controller')
    assert (answer.success, answer.message) == (
        False,
        'nothing is identified yet: record a session',
    )


def test_a_design_can_be_stopped_and_the_node_answers_meanwhile(
    nodes: dict[str, rclpy.node.Node],
):
    client = nodes['client']
    assert call(client, 'excitation/design').success
    busy = call(client, 'excitation/start')
    assert (busy.success, busy.message) == (False, 'busy: call ~/stop first')
    assert call(client, 'excitation/stop').message == 'stopping: see ~/state'
    excitation = nodes['Excitation']
    assert isinstance(excitation, Excitation)
    wait_until(lambda: not excitation.busy, 'the design ends')


def test_every_node_tells_its_state_on_diagnostics(nodes: dict[str, rclpy.node.Node]):
    client = nodes['client']
    seen: dict[str, DiagnosticStatus] = {}

    def keep(message: DiagnosticArray) -> None:
        assert message.header.stamp.sec
        seen.update({status.name: status for status in message.status})

    client.create_subscription(DiagnosticArray, '/diagnostics', keep, 10)
    names = {f'{node}: state' for node in ('excitation', 'recorder', 'identification')}
    wait_until(lambda: set(seen) >= names, 'all nodes tell their state', lambda: seen)
    assert {values_of(seen[name])['state'] for name in names} == {'idle'}
    assert {(seen[name].hardware_id, seen[name].level) for name in names} == {
        ('scara', DiagnosticStatus.OK)
    }
    publisher = client.create_publisher(String, 'excitation/trajectory', LATCHED)
    publisher.publish(String(data='a: [1'))
    wait_until(
        lambda: seen['recorder: state'].level == DiagnosticStatus.WARN,
        'what was passed over is told',
        lambda: seen,
    )
    assert values_of(seen['recorder: state'])['messages_passed_over'] == '1'
