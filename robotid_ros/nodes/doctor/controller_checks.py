"""The joint_trajectory_controller: there, active, with what a session and DIDIM need."""

from collections.abc import Iterator

import numpy as np

from ...core.model.robot import Robot
from ...exceptions import ControllerError, shortened
from ..common.controller import check_controller, ControllerDescription
from .findings import error, Finding, fine, note, split_remedy, warning
from .graph_snapshot import GraphSnapshot

# States that tell a rate, and the share of them that has to arrive: real publishers drop few.
LEAST_STATES, MIN_STATE_SHARE = 20, 0.8
_CONTROLLER, _HARDWARE = 'controller', 'hardware'
_BROADCASTER = 'joint_state_broadcaster/JointStateBroadcaster'


def controller_findings(snapshot: GraphSnapshot, robot: Robot | None) -> Iterator[Finding]:
    """Check the controller; `robot` is None where its description cannot be used."""
    name, controller = snapshot.controller_name, snapshot.controller
    if controller is None:
        yield _missing(snapshot)
        return
    if not snapshot.name_was_given:
        yield note(
            _CONTROLLER,
            f"no controller was named, '{name}' is taken",
            f'set excitation.controller to {name} in the configuration',
        )
    yield fine(_CONTROLLER, _summary(snapshot, controller))
    if name not in snapshot.candidates:
        yield error(
            _CONTROLLER,
            f"'{name}' does not serve follow_joint_trajectory",
            'configure and activate it',
        )
    elif snapshot.controller_states is None:
        yield _silent(snapshot)
    if robot is not None:
        try:
            check_controller(controller, robot)
        except ControllerError as reason:
            yield error(_CONTROLLER, *split_remedy(str(reason)))
    yield from _rate_findings(snapshot)
    yield from _tolerance_findings(controller)
    yield _didim_finding(controller)


def _missing(snapshot: GraphSnapshot) -> Finding:
    """Say that there is no controller, and which ones there are."""
    name = snapshot.controller_name
    if name in snapshot.candidates:
        return error(
            _CONTROLLER,
            f"'{name}' does not say which joints and interfaces it has",
            'restart it, it must be a joint_trajectory_controller',
        )
    if snapshot.candidates:
        found = shortened(snapshot.candidates)
        return error(
            _CONTROLLER,
            f"there is no controller '{name}', but {found}",
            'name one in excitation.controller or by --controller, without its --namespace',
        )
    return error(
        _CONTROLLER,
        f"there is no controller '{name}', nobody serves follow_joint_trajectory",
        'load and activate a joint_trajectory_controller, or set --namespace',
    )


def _summary(snapshot: GraphSnapshot, controller: ControllerDescription) -> str:
    return (
        f"'{controller.name}' commands {', '.join(controller.command_interfaces) or 'nothing'} of "
        f'{shortened(controller.joints)}' + (f' at {snapshot.rate:g} Hz' if snapshot.rate else '')
    )


def _silent(snapshot: GraphSnapshot) -> Finding:
    """Say that the controller is not active, unless controller_manager knows better."""
    name, topic = snapshot.controller_name, snapshot.topic('controller_state').name
    state = snapshot.manager.controllers.get(name, '') if snapshot.manager else ''
    remedy = f"activate the controller: 'ros2 control switch_controllers --activate {name}'"
    if state == 'active':
        remedy = "its update loop stands still, see controller_manager's log"
    known = f", the controller is '{state}'" if state else ''
    return error(_CONTROLLER, f"'{topic}' is silent{known}", remedy)


def _rate_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Compare how often the controller tells its state with how often it updates."""
    states = snapshot.controller_states
    if states is None or len(states.received) < LEAST_STATES or not snapshot.rate:
        return
    rate = 1e9 * (len(states.received) - 1) / max(float(np.ptp(states.received)), 1.0)
    if rate < MIN_STATE_SHARE * snapshot.rate:
        yield note(
            'timing',
            f'the controller updates at {snapshot.rate:g} Hz, its states arrive at {rate:.3g} Hz',
            'record on the robot itself with less load, DIDIM replays the commands between them',
        )


def _tolerance_findings(controller: ControllerDescription) -> Iterator[Finding]:
    """Path tolerances are all that stops a robot whose states no client can trust."""
    unset = [
        joint
        for joint in controller.joints
        if not controller.values.get(f'constraints.{joint}.trajectory')
    ]
    if unset:
        yield warning(
            _CONTROLLER,
            f"'{controller.name}' has no path tolerance for {shortened(unset)}, so that the robot "
            'runs on when its states freeze',
            f'set constraints.{unset[0]}.trajectory and so on (docs/safety.md)',
        )


def _didim_finding(controller: ControllerDescription) -> Finding:
    """Check for DIDIM, which replays the law that makes the effort."""
    if controller.command_interfaces == ('effort',):
        lacking = [j for j in controller.joints if not controller.gains.get(j, {}).get('p')]
        if not lacking:
            return fine('DIDIM', 'possible, with effort commands and gains')
        return note(
            'DIDIM',
            f'DIDIM lacks the gains of {shortened(lacking)}',
            'set them in the controller, or identify by wls',
        )
    return note(
        'DIDIM',
        f"DIDIM needs effort commands, '{controller.name}' commands "
        f'{", ".join(controller.command_interfaces) or "nothing"}',
        'identify by wls, which needs positions and efforts only',
    )


def manager_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check what controller_manager says of controllers and hardware."""
    manager = snapshot.manager
    if manager is None:
        yield note(
            _HARDWARE,
            'no controller_manager is heard, the states of hardware and other controllers are '
            'not checked',
        )
        return
    if manager.obstacle:
        yield note(
            _HARDWARE,
            f'hardware and other controllers are not checked, {manager.obstacle}',
            "look at 'ros2 control list_hardware_components'",
        )
    for text in manager.warnings:
        yield warning(_HARDWARE, text, "see controller_manager's log")
    for name, state in manager.hardware.items():
        if state != 'active':
            yield error(
                _HARDWARE,
                f"hardware '{name}' is '{state}'",
                f"see its log, then 'ros2 control set_hardware_component_state {name} active'",
            )
    if manager.hardware and set(manager.hardware.values()) == {'active'}:
        yield fine(_HARDWARE, f'{", ".join(manager.hardware)} active')
    yield from _state_findings(snapshot)


def _state_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Find inactive controllers, and who has the joints instead."""
    manager, name = snapshot.manager, snapshot.controller_name
    assert manager is not None
    for other, kind in manager.types.items():
        state = manager.controllers.get(other)
        if kind == _BROADCASTER and state != 'active':
            yield warning(
                _HARDWARE,
                f"'{other}', which publishes joint states, is '{state}'",
                f"activate it: 'ros2 control switch_controllers --activate {other}'",
            )
    if manager.controllers.get(name, 'active') == 'active':
        return
    for other, interfaces in manager.claimed.items():
        held = {interface.partition('/')[0] for interface in interfaces}
        if other != name and held & set(snapshot.joints):
            yield error(
                _CONTROLLER,
                f"'{name}' is '{manager.controllers[name]}', and '{other}' has its joints",
                f"'ros2 control switch_controllers --deactivate {other} --activate {name}'",
            )
