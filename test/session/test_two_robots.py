"""Two robots in namespaces of their own on one domain: two sessions that never meet."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from xml.etree import ElementTree

from live_session import without_pages
from loopback import loopback_environment
import pytest
from rcl_interfaces.srv import GetParameters
from session_client import SessionClient
from waiting import log_to, PATIENCE, tails, wait_until

from robotid_ros.core.findings import select
from robotid_ros.files.bags.storage import open_bag
from robotid_ros.files.results import read_results
from robotid_ros.nodes.demo.node_processes import claim_domain, NodeProcesses, release_domain

from .conftest import SOFT

pytestmark = [pytest.mark.ros, pytest.mark.slow]

# Coulomb friction of the joints [N·m]: what tells one robot from the other.
COULOMB = {'arm1': [0.78, 0.145], 'arm2': [1.56, 0.29]}
# Reports no efforts, as in Gazebo: the commands of its controller are taken.
WITHOUT_EFFORTS = 'arm2'
NODES = ('simulated_robot', 'excitation', 'recorder', 'identification')
# A little slower than real time: each robot by a clock of its own.
OWN_CLOCK = {'simulation.real_time_factor': 0.99}
GAINS = 'arm_controller/get_parameters'
POLICY = Path(__file__).parents[2] / 'config' / 'security' / 'policy.xml'
# Which process a node lives in, where they differ in name.
PROCESSES = {'arm_controller': 'simulated_robot'}
# What an action is made of, as sros2 has it.
GOAL_SERVICES = tuple(f'/_action/{name}' for name in ('cancel_goal', 'get_result', 'send_goal'))
GOAL_TOPICS = ('/_action/feedback', '/_action/status')
ACTION_PARTS = {
    'call': {'request': GOAL_SERVICES, 'subscribe': GOAL_TOPICS},
    'execute': {'reply': GOAL_SERVICES, 'publish': GOAL_TOPICS},
}


class Arm:
    """The processes of one session and their client."""

    def __init__(self, name: str, config: Path, trajectory: Path, folder: Path, domain: int):
        self.name, self.folder, self._logs = name, folder / name, folder / 'log'
        environment = loopback_environment(domain) | without_pages()
        self.processes = NodeProcesses(
            config, domain, namespace=f'/{name}', environment=environment
        )
        self.client = SessionClient(domain, {GAINS: GetParameters}, f'/{name}')
        self.graph: dict[str, set[tuple[str, str]]] = {}
        parameters = {
            'simulated_robot': {
                **OWN_CLOCK,
                **SOFT,
                'simulation.coulomb': COULOMB[name],
                'simulation.report_effort': name != WITHOUT_EFFORTS,
            },
            'excitation': {'excitation.trajectory': str(trajectory)},
            'recorder': {'recorder.folder': str(self.folder)},
            'identification': {'recorder.folder': str(self.folder)},
        }
        for node in NODES:
            clock = {'use_sim_time': node != 'simulated_robot'}
            self.processes.start(node, {**clock, **parameters.get(node, {})})

    def wait(self, node: str, *states: str) -> None:
        """Wait until a node is in one of these states."""
        seen, what = self.client.state, f'{self.name}/{node} is {" or ".join(states)}'
        wait_until(lambda: seen(node) in {*states, 'failed'}, what, self.describe)
        assert seen(node) in states, self.describe()

    def describe(self) -> str:
        """Say all that is known, for a test that fails."""
        client = self.client
        lines = [f'{n}: {client.states(n)}, {client.message(n)!r}' for n in NODES[1:]]
        return '\n'.join([self.name, *lines, tails(self._logs)])

    def used(self) -> dict[str, set[tuple[str, str]]]:
        """Return what each node has on the graph: (way, full name) by node."""
        node, found = self.client.node, dict[str, set[tuple[str, str]]]()
        ways = {
            'publish': node.get_publisher_names_and_types_by_node,
            'subscribe': node.get_subscriber_names_and_types_by_node,
            'reply': node.get_service_names_and_types_by_node,
            'request': node.get_client_names_and_types_by_node,
        }
        for name in (*NODES, 'arm_controller'):
            found[name] = {
                (way, topic)
                for way, ask in ways.items()
                for topic, _ in ask(name, f'/{self.name}')
            }
        return found

    def gains(self) -> list[float]:
        """Return the derivative gains of the controller."""
        request = GetParameters.Request(names=[f'gains.joint_{k}.d' for k in (1, 2)])
        values = self.client.call(GetParameters, GAINS, request, PATIENCE).values
        return [value.double_value for value in values]

    def close(self) -> None:
        self.processes.stop()
        self.client.close()


@pytest.fixture
def arms(config: Path, trajectory: Path, tmp_path: Path) -> Iterator[list[Arm]]:
    """Run two sessions side by side to their ends."""
    folder, domain = tmp_path, claim_domain()
    log_to(folder / 'log')
    with pytest.MonkeyPatch.context() as patch:
        for name, value in loopback_environment(domain).items():
            patch.setenv(name, value)
        arms = [Arm(name, config, trajectory, folder, domain) for name in COULOMB]
        try:
            for arm in arms:
                for node in NODES[1:]:
                    arm.wait(node, 'idle')
            for arm in arms:
                arm.client.call_trigger('excitation/start', PATIENCE)
            arms[0].wait('excitation', 'exciting')
            arms[0].graph = arms[0].used()
            for arm in arms:
                arm.wait('excitation', 'done')
                arm.wait('identification', 'done')
            yield arms
        finally:
            for arm in arms:
                arm.close()
            release_domain(domain)


def test_two_sessions_never_meet(arms: list[Arm]):
    check_each_session_finds_its_own_robot(arms)
    check_each_bag_holds_its_own_robot(arms)
    check_the_graph_is_what_the_security_policy_allows(arms)
    check_gains_are_set_on_one_robot_alone(arms)
    check_one_session_is_not_stopped_by_the_other(arms)


def check_each_session_finds_its_own_robot(arms: list[Arm]) -> None:
    for arm in arms:
        folder = Path(arm.client.value('identification', 'folder'))
        assert folder.is_relative_to(arm.folder)
        results = read_results(folder)
        found = {entry.name: entry.value for entry in results.base}
        # One robot's friction is twice the other's.
        assert [found['Fc1'], found['Fc2']] == pytest.approx(COULOMB[arm.name], rel=0.05)
        commanded = bool(select(results.findings, 'commands_as_efforts'))
        assert commanded == (arm.name == WITHOUT_EFFORTS)
        assert max(row.moving for row in results.validation) < 0.03


def check_each_bag_holds_its_own_robot(arms: list[Arm]) -> None:
    for arm in arms:
        path = Path(arm.client.latest['recorder/bag'].data)
        assert path.parent == arm.folder
        with open_bag(path) as bag:
            topics = {c.topic for c in bag.connections}
        assert {f'/{arm.name}/joint_states', f'/{arm.name}/robot_description'} < topics
        assert not [t for t in topics - {'/recorder/session'} if not t.startswith(f'/{arm.name}/')]


def check_the_graph_is_what_the_security_policy_allows(arms: list[Arm]) -> None:
    for node, used in arms[0].graph.items():
        assert len(used) > 10
        allowed = permissions(PROCESSES.get(node, node), f'/{arms[0].name}')
        assert not [(way, name) for way, name in used if not is_allowed(allowed, way, name)], node


def check_gains_are_set_on_one_robot_alone(arms: list[Arm]) -> None:
    first, second = arms
    before = second.gains()
    assert first.gains() == before
    first.client.call_trigger('identification/update_controller', PATIENCE)
    assert first.gains() != before
    assert second.gains() == before


def check_one_session_is_not_stopped_by_the_other(arms: list[Arm]) -> None:
    first, second = arms
    second.client.call_trigger('excitation/start', PATIENCE)
    second.wait('excitation', 'approaching', 'exciting')
    first.client.call_trigger('excitation/stop', PATIENCE)
    second.wait('excitation', 'exciting')
    second.client.call_trigger('excitation/stop', PATIENCE)
    second.wait('excitation', 'failed')
    assert first.client.state('excitation') == 'done'


@pytest.mark.parametrize(
    ('way', 'name', 'who'),
    [
        ('request', 'arm_controller/follow_joint_trajectory/_action/send_goal', {'excitation'}),
        ('publish', 'arm_controller/joint_trajectory', set()),
        ('publish', 'recorder/bag', {'recorder'}),
        ('publish', 'excitation/state', {'excitation'}),
        ('publish', 'joint_states', {'simulated_robot'}),
        *(
            ('request', f'excitation/{each}', {'operator', 'live'})
            for each in ('design', 'rehearse', 'start', 'stop', 'verify')
        ),
        ('request', 'excitation/verify_gains', {'operator'}),
        ('request', 'excitation/set_parameters', {'operator'}),
        ('request', 'identification/update_controller', {'operator'}),
    ],
)
def test_the_security_policy_gives_to_these_alone(way: str, name: str, who: set[str]):
    found = {
        n for n in (*NODES, 'live', 'operator') if is_allowed(permissions(n), way, f'/{name}')
    }
    assert found == who


def permissions(process: str, namespace: str = '') -> list[tuple[str, str]]:
    """Return (way, pattern of full names) of all that the policy allows a process."""
    found = []
    (enclave,) = ElementTree.parse(POLICY).iterfind(f".//enclave[@path='/robotid/{process}']")
    for profile in enclave.iter('profile'):
        own = f'{namespace}/{profile.get("node")}'
        for group in profile:
            for way, entry in ((way, entry) for way in group.keys() for entry in group):
                name = str(entry.text).replace('~', own)
                full = name if name.startswith('/') else f'{namespace}/{name}'
                parts = ACTION_PARTS.get(way, {way: ('',)})
                found += [(part, full + end) for part, ends in parts.items() for end in ends]
    return found


def is_allowed(allowed: list[tuple[str, str]], way: str, name: str) -> bool:
    return any(way == kind and fnmatchcase(name, pattern) for kind, pattern in allowed)
