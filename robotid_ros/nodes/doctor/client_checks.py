"""Who else could move the robot, or speaks in its name."""

from collections.abc import Iterator

from ...core.finding_codes import finding
from ...core.findings import Finding
from .graph_snapshot import GraphSnapshot


def client_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check that a session would be alone with the robot."""
    name = snapshot.controller_name
    sessions, commands, goals = (
        snapshot.topic(key) for key in ('excitation_session', 'joint_trajectory', 'goals')
    )
    if sessions.publishers:
        nodes = sessions.publishing_nodes
        yield finding('session_runs', nodes=nodes, controller=name)
    elif snapshot.running_goals:
        yield finding('goal_runs', controller=name)
    if commands.publishers:
        nodes = commands.publishing_nodes
        yield finding('commanded_by_topic', nodes=nodes, controller=name, topic=commands.name)
    in_sessions = {end.node for end in sessions.publishers}
    others = sorted({end.node for end in goals.subscribers} - in_sessions)
    if others:
        yield finding('other_clients', nodes=others, controller=name)
    if not (sessions.publishers or commands.publishers or snapshot.running_goals):
        yield finding('alone', controller=name)


def publisher_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check that each topic of the robot has one publisher."""
    states = snapshot.topic('joint_states')
    streams = snapshot.joint_states
    names = [joint for stream in streams for joint in stream.joints]
    shared = len(streams) == 1 or len(set(names)) < len(names)
    if len(states.publishers) > 1 and streams and shared:
        count, nodes = len(states.publishers), states.publishing_nodes
        yield finding('rival_publishers', count=count, topic=states.name, nodes=nodes)
    if len(snapshot.descriptions) > 1:
        topic = snapshot.topic('robot_description')
        count, nodes = len(snapshot.descriptions), topic.publishing_nodes
        yield finding('several_descriptions', topic=topic.name, count=count, nodes=nodes)
