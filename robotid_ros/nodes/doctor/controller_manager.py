"""What controller_manager says: by its services where their types are installed, else less."""

from collections.abc import Iterable, Sequence
import importlib
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node

from ...exceptions import ControllerError
from ..common.controller import ControllerClient
from ..common.messages import values_of
from ..common.waiting import answer_of
from .graph_snapshot import ManagerState

MANAGER = 'controller_manager'
# What the updater of diagnostics puts behind the name of its node.
_ACTIVITY = f'{MANAGER}: '
_HARDWARE = 'Hardware Components Activity'


def ask_manager(node: Node, timeout: float, statuses: Sequence[DiagnosticStatus]) -> ManagerState:
    """
    Ask controller_manager for its state, in a worker thread.

    The executor of the node, which is in the same namespace, spins; `timeout` is the longest wait
    for each answer [s], `statuses` is what /diagnostics held.
    """
    try:
        rate = float(
            ControllerClient(node, MANAGER, timeout).get(['update_rate'])['update_rate'] or 0.0
        )
    except ControllerError:
        rate = 0.0
    warnings = tuple(
        f'{status.name}: {" ".join(status.message.split())}'
        for status in statuses
        if _ACTIVITY in status.name and status.level not in (DiagnosticStatus.OK, b'\0')
    )
    try:
        services = importlib.import_module('controller_manager_msgs.srv')
        controllers = _call(node, services.ListControllers, 'list_controllers', timeout)
        components = _call(
            node, services.ListHardwareComponents, 'list_hardware_components', timeout
        )
    except (ImportError, ControllerError) as error:
        missing = 'controller_manager_msgs is not installed here'
        obstacle = missing if isinstance(error, ImportError) else str(error)
        states = states_by_diagnostics(statuses)
        return ManagerState(*states, rate=rate, warnings=warnings, obstacle=obstacle)
    return state_from_answers(controllers.controller, components.component, rate, warnings)


def state_from_answers(
    controllers: Iterable[Any],
    components: Iterable[Any],
    rate: float = 0.0,
    warnings: tuple[str, ...] = (),
) -> ManagerState:
    """Make a state of ControllerState and HardwareComponentState messages."""
    controllers = list(controllers)
    return ManagerState(
        controllers={c.name: c.state for c in controllers},
        hardware={c.name: c.state.label for c in components},
        types={c.name: c.type for c in controllers},
        claimed={c.name: tuple(c.claimed_interfaces) for c in controllers},
        rate=rate,
        warnings=warnings,
    )


def states_by_diagnostics(
    statuses: Iterable[DiagnosticStatus],
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the states of controllers and of hardware that diagnostics hold, by name."""
    known = ('unconfigured', 'inactive', 'active', 'finalized')
    found: tuple[dict[str, str], dict[str, str]] = {}, {}
    for status in statuses:
        if _ACTIVITY in status.name:
            # The keys are '<name>.state', or '<name>' before.
            found[status.name.endswith(_HARDWARE)].update(
                {k.removesuffix('.state'): v for k, v in values_of(status).items() if v in known}
            )
    return found


def _call(node: Node, kind: Any, name: str, timeout: float) -> Any:
    client = node.create_client(kind, f'{MANAGER}/{name}')
    if not client.wait_for_service(timeout):
        raise ControllerError(f"nobody serves '{client.srv_name}'")
    return answer_of(lambda: client.call_async(kind.Request()), timeout, client.srv_name)
