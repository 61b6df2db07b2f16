"""Surroundings: who hears whom, who else moves the robot, and room for a recording."""

from collections.abc import Iterator
import itertools
from pathlib import Path
import shutil

from ...core.finding_codes import finding
from ...core.findings import Finding, Severity
from ...exceptions import FileError
from ...files.atomic import expect_writable
from .graph_snapshot import Disk, Endpoint, GraphSnapshot

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
# Topics on which a robot that is up is heard.
HEARD = ('joint_states', 'controller_state', 'robot_description')


def network_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check that there is anybody, and who could be."""
    environment = snapshot.environment
    chosen = environment.get('ROS_AUTOMATIC_DISCOVERY_RANGE') or 'SUBNET'
    if environment.get('ROS_LOCALHOST_ONLY') == '1':
        chosen = 'LOCALHOST'
        yield finding('localhost_only')
    where = {'domain': environment.get('ROS_DOMAIN_ID') or '0', 'range': chosen}
    if not snapshot.nodes:
        yield finding('no_nodes', **where)
        return
    yield finding('nodes_heard', count=len(snapshot.nodes), **where)
    if chosen in ('SUBNET', 'SYSTEM_DEFAULT') and environment.get('ROS_SECURITY_ENABLE') != 'true':
        yield finding('open_network')
    # Nodes that are seen, and nothing of what they publish.
    heard = snapshot.joint_states or snapshot.controller_states or snapshot.descriptions
    silent = [topic.name for topic in map(snapshot.topic, HEARD) if topic.publishers]
    if not heard and len(silent) > 1:
        yield finding('no_messages', topics=silent)


def quality_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check who cannot be connected although the topic is the same."""
    for topic in snapshot.topics.values():
        pairs = itertools.product(topic.publishers, topic.subscribers)
        lacks = {(p.node, r.node): text for p, r in pairs if (text := incompatibility(p, r))}
        for (publisher, reader), text in lacks.items():
            ends = {'reader': reader, 'publisher': publisher}
            yield finding('quality_mismatch', topic=topic.name, lacks=text, **ends)
    description = snapshot.topic('robot_description')
    if late := [end.node for end in description.publishers if not end.latched]:
        yield finding('not_latched', node=late[0], topic=description.name)


def incompatibility(publisher: Endpoint, reader: Endpoint) -> str:
    """Say what a subscription asks for and a publisher does not offer, '' when they connect."""
    lacks = ['reliable messages'] * (reader.reliable and not publisher.reliable)
    lacks += ['earlier messages (transient_local)'] * (reader.latched and not publisher.latched)
    return ' and '.join(lacks)


def client_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check that a session would be alone with the robot, and each topic of one publisher."""
    name = snapshot.controller_name
    sessions, commands, goals = (
        snapshot.topic(key) for key in ('excitation_session', 'joint_trajectory', 'goals')
    )
    if sessions.publishers:
        yield finding('session_runs', nodes=sessions.publishing_nodes, controller=name)
    elif snapshot.running_goals:
        yield finding('goal_runs', controller=name)
    if nodes := commands.publishing_nodes:
        yield finding('commanded_by_topic', nodes=nodes, controller=name, topic=commands.name)
    in_sessions = {end.node for end in sessions.publishers}
    if others := sorted({end.node for end in goals.subscribers} - in_sessions):
        yield finding('other_clients', nodes=others, controller=name)
    if not (sessions.publishers or commands.publishers or snapshot.running_goals):
        yield finding('alone', controller=name)
    # Each topic of the robot has one publisher.
    streams, publishers = snapshot.joint_states, snapshot.topic('joint_states').publishers
    names = [joint for stream in streams for joint in stream.joints]
    shared = len(streams) == 1 or len(set(names)) < len(names)
    for rival, key, count, shows in (
        ('rival_publishers', 'joint_states', len(publishers), streams and shared),
        ('several_descriptions', 'robot_description', len(snapshot.descriptions), True),
    ):
        if count > 1 and shows:
            topic = snapshot.topic(key)
            yield finding(rival, count=count, topic=topic.name, nodes=topic.publishing_nodes)


# A minute of seven joints at 1 kHz, with the controller's states, takes about 60 MB: room for
# a session, and for a day of them [B].
LEAST_SPACE, ENOUGH_SPACE = 200e6, 2e9


def look_at_disk(folder: str) -> Disk:
    """Look whether a folder, which may be missing yet, can be written to."""
    path = Path(folder).expanduser().absolute()
    try:
        expect_writable(path)
        there = next(part for part in (path, *path.parents) if part.exists())
        return Disk(str(path), '', shutil.disk_usage(there).free)
    except (FileError, OSError) as error:
        return Disk(str(path), str(error))


def disk_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check the folder of the recorder, should it run on this machine."""
    disk = snapshot.disk
    if disk is None:
        return
    if disk.obstacle:
        yield finding('not_writable', reason=disk.obstacle)
        return
    severity = Severity.OK
    if disk.free < ENOUGH_SPACE:
        severity = Severity.ERROR if disk.free < LEAST_SPACE else Severity.WARNING
    setting = 'recorder.folder' if severity else None
    space = finding('disk_space', free=disk.free / 1e9, folder=disk.folder, setting=setting)
    yield space.at(severity)
