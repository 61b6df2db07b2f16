"""The joint_trajectory_controller: there, active, with what a session, a stop and DIDIM need."""

from collections.abc import Iterator, Sequence
from typing import Any

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
        state = snapshot.manager.controllers.get(name) if snapshot.manager else None
        which = {'active' if state == 'active' else 'inactive': name}
        topic = snapshot.topic('controller_state').name
        yield finding('controller_silent', topic=topic, state=state or None, **which)
    if robot is not None:
        try:
            check_controller(controller, robot)
        except ControllerError as reason:
            yield finding('controller_unfit', reason=str(reason))
    yield from _rate_findings(snapshot, controller.rate)
    yield from _setting_findings(controller)
    # DIDIM replays the law that makes the effort.
    if controller.command_interfaces != ('effort',):
        yield finding('didim_commands', controller=name, interfaces=interfaces)
    elif lacking := [j for j in joints if not controller.gains.get(j, {}).get('p')]:
        yield finding('didim_gains', lacking)
    else:
        yield finding('didim_possible')


def _rate_findings(snapshot: GraphSnapshot, update: float) -> Iterator[Finding]:
    """Compare how often the controller tells its state with how often it updates [Hz]."""
    states, manager = snapshot.controller_states, snapshot.manager
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
    for hardware, state in manager.hardware.items():
        if state != 'active':
            yield finding('hardware_inactive', hardware=hardware, state=state)
    if manager.hardware and set(manager.hardware.values()) == {'active'}:
        yield finding('hardware_active', hardware=tuple(manager.hardware))
    for other, kind in manager.types.items():
        known = manager.controllers.get(other)
        if kind == _BROADCASTER and known != 'active':
            yield finding('broadcaster_inactive', controller=other, state=str(known))
    if (own := manager.controllers.get(name, 'active')) == 'active':
        return
    # Who has the joints instead.
    for other, interfaces in manager.claimed.items():
        held = {interface.partition('/')[0] for interface in interfaces}
        if other != name and held & set(snapshot.joints):
            yield finding('joints_taken', controller=name, state=own, other=other)
