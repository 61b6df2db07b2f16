"""What the doctor would hear of a healthy robot, and what it says of a graph."""

from collections.abc import Callable
from typing import Any

from controller_manager_msgs.msg import ControllerState, HardwareComponentState
from lifecycle_msgs.msg import State
import numpy as np
import pytest
from three_joint_robot import three_joint_urdf

from robotid_ros.core.findings import CODES, Finding
from robotid_ros.files.configuration import Configuration
from robotid_ros.files.formats.joint_table import JointTable
from robotid_ros.nodes.common.controller import ControllerDescription
from robotid_ros.nodes.doctor.diagnose import diagnose
from robotid_ros.nodes.doctor.graph_snapshot import Endpoint, GraphSnapshot, ManagerState, Topic

JOINTS = ('zjoint', 'joint2', 'joint3')
URDF = three_joint_urdf(30)
# 2 kg at 0.1 m from joint3, and at 0.1 and 0.4 m from joint2; turning about y lowers them.
WEIGHT = np.array([0.0, -2 * 9.81 * 0.5, -2 * 9.81 * 0.1])
EPOCH, PERIOD = 1_700_000_000_000_000_000, 2_000_000


@pytest.fixture
def stream() -> Callable[..., JointTable]:
    """Make a second of joint states at rest; arguments replace what is in them."""

    def make(**changes) -> JointTable:
        rng = np.random.default_rng(3)
        n = 500
        stamp = EPOCH + PERIOD * np.arange(n)
        fields = {
            'joints': JOINTS,
            'stamp': stamp,
            'received': stamp + rng.integers(200_000, 900_000, n),
            'position': 1e-5 * rng.normal(size=(n, 3)),
            'velocity': 1e-3 * rng.normal(size=(n, 3)),
            'effort': WEIGHT + 0.02 * rng.normal(size=(n, 3)),
        }
        return JointTable(**fields | changes)

    return make


@pytest.fixture
def snapshot(stream: Callable[..., JointTable]) -> Callable[..., GraphSnapshot]:
    """Make a snapshot of a healthy robot; arguments replace what is in it."""

    def make(**changes) -> GraphSnapshot:
        fields = {
            'configuration': Configuration(),
            'controller_name': 'arm_controller',
            'name_was_given': True,
            'candidates': ('arm_controller',),
            'controller': controller(),
            'nodes': ('/robot',),
            'topics': topics(),
            'joint_states': (stream(),),
            'controller_states': np.array([EPOCH]),
            'commands_effort': True,
            'descriptions': (URDF,),
            'manager': manager({'arm_controller': 'active'}, {'arm': 'active'}),
            'environment': {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'},
            'free_space': 10**11,
        }
        return GraphSnapshot(**fields | changes)

    return make


def manager(
    controllers: dict[str, str],
    hardware: dict[str, str] | None = None,
    kind: str = '',
    claimed: dict[str, list[str]] | None = None,
    plugin: str = '',
    **options: Any,
) -> ManagerState:
    """Return what controller_manager says: states by name, types, claims by name, a plug-in."""
    claims = claimed or {}
    states = [
        ControllerState(name=name, state=state, type=kind, claimed_interfaces=claims.get(name, []))
        for name, state in controllers.items()
    ]
    components = [
        HardwareComponentState(name=name, state=State(label=label), plugin_name=plugin)
        for name, label in (hardware or {}).items()
    ]
    return ManagerState(states, components, **options)


def controller(**changes) -> ControllerDescription:
    """Return the description of a controller that can run a session."""
    fields = {
        'name': 'arm_controller',
        'joints': JOINTS,
        'command_interfaces': ('effort',),
        'state_interfaces': ('position', 'velocity'),
        'rate': 500.0,
        'gains': {joint: {'p': 100.0, 'd': 1.0} for joint in JOINTS},
        'values': {
            f'{group}.{joint}.{name}': value
            for joint in JOINTS
            for group, name, value in (
                ('constraints', 'trajectory', 0.1),
                ('gains', 'p', 100.0),
                ('gains', 'd', 1.0),
            )
        },
    }
    return ControllerDescription(**fields | changes)


def topics(**changes: Topic) -> dict[str, Topic]:
    """Return what a robot publishes, and nobody else."""
    robot = Endpoint('/robot', True, True)
    return {
        'joint_states': Topic('/joint_states', (robot,)),
        'robot_description': Topic('/robot_description', (robot,)),
        'controller_state': Topic('/arm_controller/controller_state', (Endpoint('/robot'),)),
        'joint_trajectory': Topic('/arm_controller/joint_trajectory'),
        'goals': Topic('/arm_controller/follow_joint_trajectory/_action/feedback'),
        **changes,
    }


def told(
    snapshot: GraphSnapshot, severity: str, name: str, /, joints: tuple = (), **values: Any
) -> list[Finding]:
    """Return the findings of a severity and name that have these joints and values."""
    found = diagnose(snapshot)
    of_kind = [f for f in found if (f.severity.name, CODES[f.code].name) == (severity, name)]
    expected = {
        key: pytest.approx(value, rel=1e-3) if np.asarray(value).dtype.kind in 'if' else value
        for key, value in values.items()
    }
    matching = [
        each
        for each in of_kind
        if joints in ((), each.joints) and {**each.values, **expected} == each.values
    ]
    assert matching, '\n'.join(map(str, found))
    return matching
