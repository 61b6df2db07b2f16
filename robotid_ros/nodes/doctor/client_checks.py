"""Who else could move the robot, or speaks in its name."""

from collections.abc import Iterator

from .findings import error, Finding, fine, note, warning
from .graph_snapshot import GraphSnapshot

_CLIENTS = 'other clients'


def client_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check that a session would be alone with the robot."""
    name = snapshot.controller_name
    sessions, commands, goals = (
        snapshot.topic(key) for key in ('excitation_session', 'joint_trajectory', 'goals')
    )
    if sessions.publishers:
        yield warning(
            _CLIENTS,
            f"a session of {sessions.publishing_nodes} uses '{name}'",
            'wait for its end, no other one starts meanwhile',
        )
    elif snapshot.running_goals:
        yield error(
            _CLIENTS,
            f"a goal of another client runs on '{name}'",
            'end it, only one may move the robot',
        )
    if commands.publishers:
        yield error(
            _CLIENTS,
            f"{commands.publishing_nodes} can command '{name}' on '{commands.name}'",
            'end it, no session starts beside it',
        )
    in_sessions = {end.node for end in sessions.publishers}
    nodes = sorted({end.node for end in goals.subscribers} - in_sessions)
    if nodes:
        yield note(
            _CLIENTS,
            f"{', '.join(nodes)} can send goals to '{name}'",
            'send none while a session runs',
        )
    if not (sessions.publishers or commands.publishers or snapshot.running_goals):
        yield fine(_CLIENTS, f"nobody else commands '{name}'")


def publisher_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check that each topic of the robot has one publisher."""
    states = snapshot.topic('joint_states')
    streams = snapshot.joint_states
    names = [joint for stream in streams for joint in stream.joints]
    shared = len(streams) == 1 or len(set(names)) < len(names)
    if len(states.publishers) > 1 and streams and shared:
        yield warning(
            'joint states',
            f"{len(states.publishers)} publishers send the same joints on '{states.name}' "
            f'({states.publishing_nodes})',
            'remap or end all but the joint_state_broadcaster',
        )
    if len(snapshot.descriptions) > 1:
        topic = snapshot.topic('robot_description')
        yield warning(
            'description',
            f"'{topic.name}' holds {len(snapshot.descriptions)} different descriptions "
            f'({topic.publishing_nodes})',
            "end all but the robot's own publisher",
        )
