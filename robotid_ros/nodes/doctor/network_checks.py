"""Who hears whom: ROS domain, discovery range, transport, quality of service."""

from collections.abc import Iterator

from .findings import error, Finding, fine, note, warning
from .graph_snapshot import Endpoint, GraphSnapshot, Topic

# Variables that decide who hears whom.
ENVIRONMENT = (
    'ROS_DOMAIN_ID',
    'ROS_AUTOMATIC_DISCOVERY_RANGE',
    'ROS_LOCALHOST_ONLY',
    'ROS_STATIC_PEERS',
    'ROS_SECURITY_ENABLE',
    'RMW_IMPLEMENTATION',
    'FASTDDS_BUILTIN_TRANSPORTS',
)
RANGES = ('SUBNET', 'LOCALHOST', 'OFF', 'SYSTEM_DEFAULT')
TYPES = {
    'joint_states': 'sensor_msgs/msg/JointState',
    'robot_description': 'std_msgs/msg/String',
}
# Topics on which a robot that is up is heard.
HEARD = ('joint_states', 'controller_state', 'robot_description')
_NETWORK = 'network'


def network_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check that there is anybody, and who could be."""
    environment = snapshot.environment
    chosen = environment.get('ROS_AUTOMATIC_DISCOVERY_RANGE') or 'SUBNET'
    if environment.get('ROS_LOCALHOST_ONLY') == '1':
        chosen = 'LOCALHOST'
        yield note(
            _NETWORK,
            'ROS_LOCALHOST_ONLY=1 overrules ROS_AUTOMATIC_DISCOVERY_RANGE',
            'unset it, and set ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST',
        )
    if chosen not in RANGES:
        yield error(
            _NETWORK,
            f"ROS_AUTOMATIC_DISCOVERY_RANGE is '{chosen}'",
            f'set it to one of {", ".join(RANGES)}',
        )
    domain = environment.get('ROS_DOMAIN_ID') or '0'
    where = f'in ROS domain {domain} with the discovery range {chosen}'
    if not snapshot.nodes:
        yield error(
            _NETWORK,
            f'no other node is heard {where}',
            'start the robot, and set ROS_DOMAIN_ID, ROS_AUTOMATIC_DISCOVERY_RANGE and '
            'RMW_IMPLEMENTATION here as it has them',
        )
        return
    yield fine(_NETWORK, f'{len(snapshot.nodes)} nodes {where}')
    if chosen in ('SUBNET', 'SYSTEM_DEFAULT') and environment.get('ROS_SECURITY_ENABLE') != 'true':
        yield note(
            _NETWORK,
            'anybody on the network may command the robot',
            'set ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST where the robot is on this machine, or '
            'see docs/security.md',
        )
    yield from _transport_findings(snapshot)


def _transport_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Nodes that are seen, and nothing of what they publish."""
    heard = snapshot.joint_states or snapshot.controller_states or snapshot.descriptions
    silent = [topic for topic in map(snapshot.topic, HEARD) if topic.publishers]
    if heard or len(silent) < 2:
        return
    names = ' and '.join(f"'{topic.name}'" for topic in silent)
    yield error(
        _NETWORK,
        f'{names} have publishers, and no message of any arrives',
        'export FASTDDS_BUILTIN_TRANSPORTS=UDPv4 ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET here and on '
        'the robot, and let the firewall pass UDP (docs/interface.md, nodes that do not hear each '
        'other)',
    )


def quality_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check who cannot be connected although the topic is the same."""
    for key, kind in TYPES.items():
        topic = snapshot.topic(key)
        if others := [end for end in topic.publishers if end.type not in ('', kind)]:
            yield error(
                'topics',
                f"{others[0].node} publishes {others[0].type} on '{topic.name}'",
                f'remap it, {kind} belongs there',
            )
    for topic in snapshot.topics.values():
        yield from _mismatches(topic)
    description = snapshot.topic('robot_description')
    if late := [end.node for end in description.publishers if not end.latched]:
        yield warning(
            'topics',
            f"{late[0]} does not keep '{description.name}' for nodes that start later",
            'publish it with the durability transient_local, as robot_state_publisher does',
        )


def _mismatches(topic: Topic) -> Iterator[Finding]:
    told = set()
    for publisher in topic.publishers:
        for reader in topic.subscribers:
            lacks = incompatibility(publisher, reader)
            if lacks and (publisher.node, reader.node) not in told:
                told.add((publisher.node, reader.node))
                yield warning(
                    'topics',
                    f"{reader.node} hears nothing of {publisher.node} on '{topic.name}', it asks "
                    f'for {lacks}',
                    'give both the same quality of service',
                )


def incompatibility(publisher: Endpoint, reader: Endpoint) -> str:
    """Say what a subscription asks for and a publisher does not offer, '' when they connect."""
    lacks = []
    if reader.reliable and not publisher.reliable:
        lacks.append('reliable messages')
    if reader.latched and not publisher.latched:
        lacks.append('earlier messages (transient_local)')
    return ' and '.join(lacks)
