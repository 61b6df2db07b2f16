"""The joint_trajectory_controller: there, active, with what a session, a stop and DIDIM need."""

from collections.abc import Iterator

import numpy as np

from ...core.finding_codes import finding
from ...core.findings import Finding
from ...core.model.robot import Robot
from ...exceptions import ControllerError
from ..common.controller import check_controller, ControllerDescription
from .graph_snapshot import GraphSnapshot

# States that tell a rate, and the share of them that has to arrive: real publishers drop few.
LEAST_STATES, MIN_STATE_SHARE = 20, 0.8
# A rate that divides another is a whole number of hertz, rounded.
RATE_ROUNDING = 0.01
_BROADCASTER = 'joint_state_broadcaster/JointStateBroadcaster'


def controller_findings(snapshot: GraphSnapshot, robot: Robot | None) -> Iterator[Finding]:
    """Check the controller; `robot` is None where its description cannot be used."""
    name, controller = snapshot.controller_name, snapshot.controller
    if controller is None:
        yield _missing(snapshot)
        return
    if not snapshot.name_was_given:
        yield finding('controller_not_named', controller=name)
    interfaces, rate = _interfaces(controller), snapshot.rate or None
    joints = controller.joints
    yield finding('controller_found', joints, controller=name, interfaces=interfaces, rate=rate)
    if name not in snapshot.candidates:
        yield finding('not_serving', controller=name)
    elif snapshot.controller_states is None:
        yield _silent(snapshot)
    if robot is not None:
        try:
            check_controller(controller, robot)
        except ControllerError as reason:
            yield finding('controller_unfit', reason=str(reason))
    yield from _rate_findings(snapshot)
    yield from _tolerance_findings(controller)
    yield from _stopping_findings(controller)
    yield from _starting_findings(controller)
    yield _didim_finding(controller)


def _missing(snapshot: GraphSnapshot) -> Finding:
    """Say that there is no controller, and which ones there are."""
    name = snapshot.controller_name
    if name in snapshot.candidates:
        return finding('controller_mute', controller=name)
    if snapshot.candidates:
        return finding('other_controllers', controller=name, others=tuple(snapshot.candidates))
    return finding('no_controller', controller=name)


def _interfaces(controller: ControllerDescription) -> tuple[str, ...]:
    return tuple(controller.command_interfaces) or ('nothing',)


def _silent(snapshot: GraphSnapshot) -> Finding:
    """Say that the controller is not active, unless controller_manager knows better."""
    name, topic = snapshot.controller_name, snapshot.topic('controller_state').name
    state = snapshot.manager.controllers.get(name, '') if snapshot.manager else ''
    which = {'active' if state == 'active' else 'inactive': name}
    return finding('controller_silent', topic=topic, state=state or None, **which)


def _rate_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Compare how often the controller tells its state with how often it updates."""
    states, manager = snapshot.controller_states, snapshot.manager
    update = snapshot.controller.rate if snapshot.controller else 0.0
    if manager and manager.rate and update:
        better = round(manager.rate / max(round(manager.rate / update), 1))
        if abs(better - update) > RATE_ROUNDING * update:
            rates = {'update': update, 'manager': manager.rate, 'better': better}
            yield finding('uneven_updates', controller=snapshot.controller_name, **rates)
    if states is None or len(states.received) < LEAST_STATES or not snapshot.rate:
        return
    rate = 1e9 * (len(states.received) - 1) / max(float(np.ptp(states.received)), 1.0)
    if rate < MIN_STATE_SHARE * snapshot.rate:
        yield finding('slow_controller_states', update=snapshot.rate, rate=rate)


def _tolerance_findings(controller: ControllerDescription) -> Iterator[Finding]:
    """Path tolerances are all that stops a robot whose states no client can trust."""
    unset = [
        joint
        for joint in controller.joints
        if not controller.values.get(f'constraints.{joint}.trajectory')
    ]
    if unset:
        yield finding('no_path_tolerance', unset, controller=controller.name)


def _stopping_findings(controller: ControllerDescription) -> Iterator[Finding]:
    """Yield what settings make of a stop and of the end of a motion; old versions lack some."""
    values, name = controller.values, controller.name
    ramp = values.get('constraints.decelerate_on_cancel')
    if ramp:
        key = 'constraints.{}.max_deceleration_on_cancel'
        if unset := [j for j in controller.joints if not values.get(key.format(j))]:
            yield finding('no_deceleration', unset, controller=name)
    elif ramp is not None:
        yield finding('stops_at_once', controller=name)
    if values.get('allow_nonzero_velocity_at_trajectory_end'):
        yield finding('ends_in_motion', controller=name)
    awaited = [j for j in controller.joints if values.get(f'constraints.{j}.goal')]
    if awaited and not values.get('constraints.goal_time'):
        yield finding('waits_for_goal', awaited, controller=name)


def _starting_findings(controller: ControllerDescription) -> Iterator[Finding]:
    """Yield settings by which a motion begins elsewhere than where the robot is."""
    values, name = controller.values, controller.name
    last = values.get('set_last_command_interface_value_as_state_on_activation')
    if last and 'position' in controller.command_interfaces:
        yield finding('starts_at_last_command', controller=name)
    if values.get('open_loop_control'):
        yield finding('open_loop', controller=name)


def _didim_finding(controller: ControllerDescription) -> Finding:
    """Check for DIDIM, which replays the law that makes the effort."""
    if controller.command_interfaces == ('effort',):
        lacking = [j for j in controller.joints if not controller.gains.get(j, {}).get('p')]
        return finding('didim_gains', lacking) if lacking else finding('didim_possible')
    interfaces = _interfaces(controller)
    return finding('didim_commands', controller=controller.name, interfaces=interfaces)


def manager_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check what controller_manager says of controllers and hardware."""
    manager = snapshot.manager
    if manager is None:
        yield finding('no_manager')
        return
    if manager.obstacle:
        yield finding('manager_unanswered', reason=manager.obstacle)
    for text in manager.warnings:
        yield finding('manager_warning', text=text)
    for name, state in manager.hardware.items():
        if state != 'active':
            yield finding('hardware_inactive', hardware=name, state=state)
    if manager.hardware and set(manager.hardware.values()) == {'active'}:
        yield finding('hardware_active', hardware=tuple(manager.hardware))
    yield from _state_findings(snapshot)


def _state_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Find inactive controllers, and who has the joints instead."""
    manager, name = snapshot.manager, snapshot.controller_name
    assert manager is not None
    for other, kind in manager.types.items():
        state = manager.controllers.get(other)
        if kind == _BROADCASTER and state != 'active':
            yield finding('broadcaster_inactive', controller=other, state=str(state))
    if manager.controllers.get(name, 'active') == 'active':
        return
    for other, interfaces in manager.claimed.items():
        held = {interface.partition('/')[0] for interface in interfaces}
        if other != name and held & set(snapshot.joints):
            state = manager.controllers[name]
            yield finding('joints_taken', controller=name, state=state, other=other)
