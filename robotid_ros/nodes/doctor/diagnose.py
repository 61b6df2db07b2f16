"""What there is to say about a graph: who is there, controller, surroundings, and all checks."""

from collections.abc import Iterator, Sequence
import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from ...core.findings import Finding, finding, in_order, Severity
from ...core.model.robot import Robot
from ...core.setup.robot_setup import KnownFacts
from ...exceptions import ControllerError, ModelError
from ...files.export.gazebo import friction_factors
from ...simulation_settings import GainSettings
from ..common.controller import check_controller, ControllerDescription, unbearable_gains
from .graph_snapshot import GraphSnapshot
from .state_checks import described_robot, effort_findings, effort_kind, joint_state_findings

# By the first three characters of a code.
SUBJECTS = dict(
    F10='network', F11='topics', F12='controller', F13='DIDIM', F14='hardware',
    F15='joint states', F16='timing', F17='clock', F18='efforts', F19='description',
    F20='other clients', F21='disk',
)  # fmt: skip


def subject_of(found: Finding) -> str:
    """Return what was looked at; findings of the model are about the description."""
    return SUBJECTS[found.code[:3]] if len(found.code) > 4 else 'description'


def known_facts(snapshot: GraphSnapshot) -> tuple[str, KnownFacts]:
    """Return a robot's description and what its graph tells besides; RobotIdError: too little."""
    controller = snapshot.controller
    if controller is None:
        found = ', '.join(snapshot.candidates)
        remedy = f'name one of {found} by --controller' if found else "'robotid doctor' says more"
        raise ControllerError(f"no controller answers as '{snapshot.controller_name}': {remedy}")
    if len(snapshot.descriptions) != 1:
        count = len(snapshot.descriptions) or 'no'
        raise ModelError(
            f'there are {count} robot descriptions on the graph, one is needed: start '
            'robot_state_publisher once, or name the URDF'
        )
    usual = dataclasses.asdict(GainSettings())
    gains = dict[str, dict[str, Any]]()
    for joint in controller.gains:
        given = controller.fields_of(GainSettings, f'gains.{joint}').items()
        gains[joint] = {k: v for k, v in given if v != usual[k] or k in ('p', 'd')}
    facts = KnownFacts(
        joints=controller.joints,
        controller=snapshot.controller_name,
        update_rate=snapshot.rate or KnownFacts.update_rate,
        command_interface=controller.followed_interface,
        gains=gains,
        effort_kind=effort_kind(snapshot),
    )
    return snapshot.descriptions[0], facts


def diagnose(snapshot: GraphSnapshot) -> tuple[Finding, ...]:
    """Return what there is to say about a graph, the worst first."""
    robot, description = described_robot(snapshot)
    found = [*network_findings(snapshot)]
    if snapshot.nodes:  # else, whatever is missing is missing for that reason
        found += [*controller_findings(snapshot, robot), *manager_findings(snapshot)]
        found += [*joint_state_findings(snapshot, robot), *effort_findings(snapshot, robot)]
        found += [*description, *client_findings(snapshot), *quality_findings(snapshot)]
    return in_order((*found, *disk_findings(snapshot)))


# States that tell a rate, and the share of them that has to arrive: real publishers drop few.
LEAST_STATES, MIN_STATE_SHARE = 20, 0.8
RATE_ROUNDING = 0.01  # a rate that divides another is a whole number of hertz, rounded
# Factor of a joint's dry friction in Gazebo from which it is said.
LIGHT = 1.1
_BROADCASTER = 'joint_state_broadcaster/JointStateBroadcaster'
LAST_COMMAND = 'set_last_command_interface_value_as_state_on_activation'


def controller_findings(snapshot: GraphSnapshot, robot: Robot | None) -> Iterator[Finding]:
    """Check the controller; `robot` is None where its description cannot be used."""
    name, controller = snapshot.controller_name, snapshot.controller
    if controller is None:
        others = tuple(snapshot.candidates)
        if name in others:
            yield finding('controller_mute', controller=name)
        elif others:
            yield finding('other_controllers', controller=name, others=others)
        else:
            yield finding('no_controller', controller=name)
        return
    if not snapshot.name_was_given:
        yield finding('controller_not_named', controller=name)
    joints, rate = controller.joints, snapshot.rate or None
    interfaces = tuple(controller.command_interfaces) or ('nothing',)
    yield finding('controller_found', joints, controller=name, interfaces=interfaces, rate=rate)
    if name not in snapshot.candidates:
        yield finding('not_serving', controller=name)
    elif snapshot.controller_states is None:
        # It is not active, unless controller_manager knows better.
        state = snapshot.manager.state_of(name) if snapshot.manager else None
        which = {'active' if state == 'active' else 'inactive': name}
        topic = snapshot.topic('controller_state').name
        yield finding('controller_silent', topic=topic, state=state or None, **which)
    if robot is not None:
        try:
            check_controller(controller, robot)
        except ControllerError as reason:
            yield finding('controller_unfit', reason=str(reason))
    manager, states, update = snapshot.manager, snapshot.controller_states, controller.rate
    if manager and manager.rate and update:
        better = round(manager.rate / max(round(manager.rate / update), 1))
        if abs(better - update) > RATE_ROUNDING * update:
            rates = {'update': update, 'manager': manager.rate, 'better': better}
            yield finding('uneven_updates', controller=name, **rates)
    if states is not None and len(states) >= LEAST_STATES and snapshot.rate:
        # How often it tells its state.
        told = 1e9 * (len(states) - 1) / max(float(np.ptp(states)), 1.0)
        if told < MIN_STATE_SHARE * snapshot.rate:
            yield finding('slow_controller_states', update=snapshot.rate, rate=told)
    yield from _setting_findings(controller)
    if robot is not None and manager and manager.in_gazebo:
        yield from _gazebo_findings(snapshot, controller, robot)
    # DIDIM replays the law that makes the effort.
    if controller.command_interfaces != ('effort',):
        yield finding('didim_commands', controller=name, interfaces=interfaces)
    elif lacking := [j for j in joints if not controller.gains.get(j, {}).get('p')]:
        yield finding('didim_gains', lacking)
    else:
        yield finding('didim_possible')


def _gazebo_findings(
    snapshot: GraphSnapshot, controller: ControllerDescription, robot: Robot
) -> Iterator[Finding]:
    """Say what the description's bodies alone, which Gazebo simulates, do not bear or change."""
    fits = set(controller.joints) == set(robot.joints)
    if fits and (joints := unbearable_gains(controller, robot, snapshot.rate)):
        yield finding('unbearable_gains', joints, rate=snapshot.rate)
    if robot.elastic or robot.assumed_inertials:
        return
    factors = friction_factors(robot)
    more = (factors > LIGHT) & (robot.dry_friction > 0.0)
    if names := [*itertools.compress(robot.joints, more)]:
        yield finding('gazebo_friction', names, factors=factors[more])


def _setting_findings(controller: ControllerDescription) -> Iterator[Finding]:
    """Yield what settings make of a start, a stop and an end; old versions lack some of them."""
    values = controller.values

    def without(setting: str) -> list[str]:
        return [j for j in controller.joints if not values.get(f'constraints.{j}.{setting}')]

    unguarded, unbraked = without('trajectory'), without('max_deceleration_on_cancel')
    awaited = [joint for joint in controller.joints if joint not in without('goal')]
    ramp, last = (values.get(name) for name in ('constraints.decelerate_on_cancel', LAST_COMMAND))
    # Name, whether it is so, joints.
    table: tuple[tuple[str, Any, Sequence[str]], ...] = (
        # Path tolerances alone stop a robot whose states no client can trust.
        ('no_path_tolerance', unguarded, unguarded),
        ('no_deceleration', ramp and unbraked, unbraked),
        ('stops_at_once', ramp is not None and not ramp, ()),
        ('ends_in_motion', values.get('allow_nonzero_velocity_at_trajectory_end'), ()),
        ('waits_for_goal', awaited and not values.get('constraints.goal_time'), awaited),
        ('starts_at_last_command', last and 'position' in controller.command_interfaces, ()),
        ('open_loop', values.get('open_loop_control'), ()),
    )
    for name, applies, of in table:
        if applies:
            yield finding(name, of, controller=controller.name)


def manager_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check what controller_manager says of controllers and hardware."""
    manager, name = snapshot.manager, snapshot.controller_name
    if manager is None:
        yield finding('no_manager')
        return
    if manager.obstacle:
        yield finding('manager_unanswered', reason=manager.obstacle)
    for text in manager.warnings:
        yield finding('manager_warning', text=text)
    for component in manager.hardware:
        if (state := component.state.label) != 'active':
            yield finding('hardware_inactive', hardware=component.name, state=state)
    for each in manager.controllers:
        if each.type == _BROADCASTER and each.state != 'active':
            yield finding('broadcaster_inactive', controller=each.name, state=each.state)
    if (own := manager.state_of(name)) in (None, 'active'):
        return
    # Who has the joints instead.
    for each in manager.controllers:
        held = {interface.partition('/')[0] for interface in each.claimed_interfaces}
        if each.name != name and held & set(snapshot.joints):
            yield finding('joints_taken', controller=name, state=own, other=each.name)


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
    heard = snapshot.joint_states or snapshot.descriptions
    silent = [topic.name for topic in map(snapshot.topic, HEARD) if topic.publishers]
    if not heard and snapshot.controller_states is None and len(silent) > 1:
        yield finding('no_messages', topics=silent)


def quality_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check who cannot be connected although the topic is the same."""
    for topic in snapshot.topics.values():
        lacks = dict[tuple[str, str], str]()
        for offered, asked in itertools.product(topic.publishers, topic.subscribers):
            lacking = ['reliable messages'] * (asked.reliable > offered.reliable)
            lacking += ['earlier messages (transient_local)'] * (asked.latched > offered.latched)
            if lacking:
                lacks[offered.node, asked.node] = ' and '.join(lacking)
        for (publisher, reader), text in lacks.items():
            ends = {'reader': reader, 'publisher': publisher}
            yield finding('quality_mismatch', topic=topic.name, lacks=text, **ends)
    description = snapshot.topic('robot_description')
    if late := [end.node for end in description.publishers if not end.latched]:
        yield finding('not_latched', node=late[0], topic=description.name)


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


def disk_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check the folder of the recorder, should it run on this machine."""
    free = snapshot.free_space
    folder = Path(snapshot.configuration.recorder.folder).expanduser().absolute()
    if isinstance(free, str):
        yield finding('not_writable', reason=free)
        return
    scarce = Severity.ERROR if free < LEAST_SPACE else Severity.WARNING
    severity = scarce if free < ENOUGH_SPACE else Severity.OK
    setting = 'recorder.folder' if severity else None
    yield finding('disk_space', free=free / 1e9, folder=str(folder), setting=setting).at(severity)
