"""Whatever breaks while the robot moves, the session says what, and the robot is stopped."""

from collections.abc import Iterator
from pathlib import Path
import time

from controller_manager_msgs.srv import ListControllers
from live_session import Nodes
import pytest

from .conftest import LONG, Session, SLOW

pytestmark = pytest.mark.ros

# Fault → what the sentence must say, and whether the robot can be seen to rest afterwards.
FAULTS = {
    'stale_joint_states': ('joint states stopped', False),
    'nan_joint_state': ('joint_1 is not a number', False),
    'dead_effort': ('effort of joint_1 stays the same', True),
    'frozen_joint': ('joint_1', False),
    'hardware_error': ('stopped', False),
    'deactivate': ('deactivate', False),
}


# The fault comes when it is called for [s].
NEVER = 1e6


@pytest.fixture
def robots(joined: Session, nodes: Nodes) -> Iterator[Session]:
    """One robot after another, for one and the same excitation."""
    yield joined
    nodes.processes.stop(('simulated_robot',))


@pytest.mark.parametrize('fault', FAULTS)
def test_fault_stops_the_motion(fault: str, robots: Session, trajectory: Path):
    session, (says, visible) = robots, FAULTS[fault]
    session.start(
        *('simulated_robot', 'excitation'),
        simulated_robot={**SLOW, 'simulation.fault.kind': fault, 'simulation.fault.time': NEVER},
        excitation={'excitation.trajectory': str(trajectory), 'excitation.periods': LONG},
    )
    session.robot.wait()
    session.ready('excitation')
    session.client.call_trigger('excitation/start')
    session.until('excitation', 'exciting')
    session.robot.wait_moving()
    assert session.client.call_trigger('simulated_robot/break') == fault
    assert says in session.until('excitation', 'failed')
    if visible:
        assert session.robot.rest_after(session.robot.now) < 0.5
    # The node is ready for another try, and says why there can be none.
    assert session.client.call_trigger('excitation/stop') == 'nothing was running'


def break_sensor(session: Session, trajectory: Path, fault: str, setting: str, value: bool) -> str:
    """Let a fault begin while the robot moves, with an excitation setting; return what is said."""
    faults = {'simulation.fault.kind': fault, 'simulation.fault.time': NEVER}
    session.start(
        *('simulated_robot', 'excitation'),
        simulated_robot={**faults, 'simulation.effort_controller': 'efforts'},
        excitation={
            'excitation.trajectory': str(trajectory),
            f'excitation.{setting}': value,
        },
    )
    session.robot.wait()
    session.ready('excitation')
    session.client.call_trigger('excitation/start')
    session.until('excitation', 'exciting')
    session.robot.wait_moving()
    session.client.call_trigger('simulated_robot/break')
    return session.until('excitation', 'failed')


@pytest.mark.parametrize('deactivates', [False, True])
def test_a_controller_that_cannot_hold_the_arm_is_deactivated(
    deactivates: bool, session: Session, trajectory: Path
):
    setting = 'deactivate_effort_controller'
    said = break_sensor(session, trajectory, 'frozen_joint', setting, deactivates)
    assert 'joint_1 stays the same' in said
    assert ("'arm_controller' deactivated: activate again" in said) is deactivates
    answer = session.client.call(
        ListControllers, '/controller_manager/list_controllers', ListControllers.Request()
    )
    states = {controller.name: controller.state for controller in answer.controller}
    assert states['arm_controller'] == ('inactive' if deactivates else 'active')


def test_hardware_that_brakes_stops_a_joint_whose_velocity_is_lost(
    session: Session, trajectory: Path
):
    said = break_sensor(session, trajectory, 'nan_velocity', 'deactivate_hardware', True)
    assert "'arm_controller' and simulated_robot deactivated: activate again" in said
    position = session.robot.positions[-1]
    time.sleep(1.0)  # without brakes it coasts for as long
    assert session.robot.positions[-1] == pytest.approx(position, abs=0.01)


def test_hardware_that_brakes_stops_a_drive_that_turns_the_wrong_way(
    session: Session, trajectory: Path
):
    said = break_sensor(session, trajectory, 'reversed_drive', 'deactivate_hardware', True)
    assert "0.3 s; 'arm_controller' and simulated_robot deactivated: activate again" in said
    time.sleep(0.2)  # for joint states that are on their way
    position = session.robot.positions[-1]
    time.sleep(1.0)  # held by its controller it would turn on
    assert session.robot.positions[-1] == pytest.approx(position, abs=0.01)


def test_a_joint_a_little_beyond_its_limit_is_led_back_inside(session: Session, trajectory: Path):
    limit = 2.4994
    session.start(
        *('simulated_robot', 'excitation'),
        simulated_robot={'simulation.initial_positions': [limit + 6e-4, -0.2]},
        excitation={
            'excitation.trajectory': str(trajectory),
            'robot.lower': [-2.6, -2.4],
            'robot.upper': [limit, 2.4],
        },
    )
    session.robot.wait()
    session.ready('excitation')
    assert session.robot.positions[-1][0] > limit
    session.client.call_trigger('excitation/start')
    session.until('excitation', 'exciting')
