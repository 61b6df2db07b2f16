"""Who hears whom: ROS domain, discovery range, transport, quality of service."""

from collections.abc import Iterator

from ...core.finding_codes import finding
from ...core.findings import Finding
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


def network_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check that there is anybody, and who could be."""
    environment = snapshot.environment
    chosen = environment.get('ROS_AUTOMATIC_DISCOVERY_RANGE') or 'SUBNET'
    if environment.get('ROS_LOCALHOST_ONLY') == '1':
        chosen = 'LOCALHOST'
        yield finding('localhost_only')
    if chosen not in RANGES:
        yield finding('discovery_range', range=chosen, ranges=RANGES)
    domain = environment.get('ROS_DOMAIN_ID') or '0'
    where = {'domain': domain, 'range': chosen}
    if not snapshot.nodes:
        yield finding('no_nodes', **where)
        return
    yield finding('nodes_heard', count=len(snapshot.nodes), **where)
    if chosen in ('SUBNET', 'SYSTEM_DEFAULT') and environment.get('ROS_SECURITY_ENABLE') != 'true':
        yield finding('open_network')
    yield from _transport_findings(snapshot)


def _transport_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Nodes that are seen, and nothing of what they publish."""
    heard = snapshot.joint_states or snapshot.controller_states or snapshot.descriptions
    silent = [topic for topic in map(snapshot.topic, HEARD) if topic.publishers]
    if heard or len(silent) < 2:
        return
    yield finding('no_messages', topics=[topic.name for topic in silent])


def quality_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check who cannot be connected although the topic is the same."""
    for key, kind in TYPES.items():
        topic = snapshot.topic(key)
        if others := [end for end in topic.publishers if end.type not in ('', kind)]:
            end = others[0]
            yield finding(
                'wrong_type', node=end.node, type=end.type, topic=topic.name, expected=kind
            )
    for topic in snapshot.topics.values():
        yield from _mismatches(topic)
    description = snapshot.topic('robot_description')
    if late := [end.node for end in description.publishers if not end.latched]:
        yield finding('not_latched', node=late[0], topic=description.name)


def _mismatches(topic: Topic) -> Iterator[Finding]:
    told = set()
    for publisher in topic.publishers:
        for reader in topic.subscribers:
            lacks = incompatibility(publisher, reader)
            if lacks and (publisher.node, reader.node) not in told:
                told.add((publisher.node, reader.node))
                ends = {'reader': reader.node, 'publisher': publisher.node}
                yield finding('quality_mismatch', topic=topic.name, lacks=lacks, **ends)


def incompatibility(publisher: Endpoint, reader: Endpoint) -> str:
    """Say what a subscription asks for and a publisher does not offer, '' when they connect."""
    lacks = []
    if reader.reliable and not publisher.reliable:
        lacks.append('reliable messages')
    if reader.latched and not publisher.latched:
        lacks.append('earlier messages (transient_local)')
    return ' and '.join(lacks)
