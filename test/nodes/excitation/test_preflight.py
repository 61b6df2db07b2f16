"""What is missing before a motion is said in one sentence with the remedy."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from robotid_ros.exceptions import (
    ConfigurationError,
    ControllerError,
    RobotStateError,
    TrajectoryError,
)
from robotid_ros.node_settings import ExcitationNodeSettings
from robotid_ros.nodes.common.controller import (
    check_controller,
    ControllerDescription,
    reference_positions,
)
from robotid_ros.nodes.excitation.session import check_accepted
from robotid_ros.nodes.excitation.session_design import check_design
from robotid_ros.nodes.excitation.supervisor import check_states

ROBOT = SimpleNamespace(joints=('a', 'b'))
GOOD = ControllerDescription(
    name='arm',
    joints=('b', 'a'),
    command_interfaces=('effort',),
    state_interfaces=('position', 'velocity'),
    rate=500.0,
    gains={'a': {'p': 1.0}, 'b': {'p': 2.0}},
    values={},
)


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'command_interfaces': ('position',), 'state_interfaces': ('position',), 'gains': {}},
        {'command_interfaces': ('position', 'velocity'), 'gains': {}},
    ],
)
def test_controllers_that_can_run_a_session_pass(changes: dict):
    check_controller(dataclasses.replace(GOOD, **changes), ROBOT)


@pytest.mark.parametrize(
    ('changes', 'says'),
    [
        ({'joints': ('a', 'b', 'c')}, 'controls a, b, c, the configuration names a, b'),
        ({'joints': ('a',)}, 'controls a, the configuration names'),
        ({'state_interfaces': ('position',)}, 'lacks the state interface velocity'),
        ({'state_interfaces': ()}, 'position and velocity'),
        ({'gains': {'a': {'p': 1.0}, 'b': {'p': 0.0}}}, r'set gains\.b\.p'),
        ({'gains': {}}, 'no proportional gain for a, b'),
        ({'command_interfaces': ('velocity',), 'gains': {}}, 'no proportional gain'),
    ],
)
def test_others_are_told_what_they_lack(changes: dict, says: str):
    with pytest.raises(ControllerError, match=says):
        check_controller(dataclasses.replace(GOOD, **changes), ROBOT)


def test_what_is_not_checked_is_a_warning_and_has_to_be_accepted():
    unchecked = {'ground': 'no ground', 'collision_geometry': 'no mesh'}
    warnings: list[str] = []
    logger = SimpleNamespace(warning=warnings.append)
    settings = ExcitationNodeSettings(accept_unchecked=('ground',))
    with pytest.raises(ConfigurationError) as refusal:
        check_accepted(unchecked, settings, logger)
    remedy = 'accept it by excitation.accept_unchecked: [ground, collision_geometry]'
    assert str(refusal.value) == f'no mesh; or {remedy}'
    check_accepted(unchecked, ExcitationNodeSettings(accept_unchecked=tuple(unchecked)), logger)
    assert warnings == 2 * ['no ground', 'no mesh']


def test_a_poor_design_is_not_run():
    with pytest.raises(TrajectoryError, match='the design is poor: slow; small'):
        check_design(SimpleNamespace(shortcomings=('slow', 'small')))
    check_design(SimpleNamespace(shortcomings=()))


def state(names, positions):
    return SimpleNamespace(joint_names=names, reference=SimpleNamespace(positions=positions))


def test_held_reference_is_in_the_robots_order():
    assert reference_positions(state(['x', 'b', 'a'], [9.0, 2.0, 1.0]), ROBOT.joints).tolist() == [
        1.0,
        2.0,
    ]


@pytest.mark.parametrize(
    'message', [state(['a'], [1.0]), state(['a', 'b'], []), state(['a', 'b'], [1.0, float('nan')])]
)
def test_no_motion_starts_from_an_unknown_reference(message: SimpleNamespace):
    with pytest.raises(RobotStateError, match='activate it'):
        reference_positions(message, ROBOT.joints)


def streams(effort=(), output='effort', speed=1.0, command=(0.0, 0.0)):
    """Give topics on which joint states and a controller's states arrive."""
    header = SimpleNamespace(stamp=SimpleNamespace(sec=1, nanosec=0))
    names, zeros = list(ROBOT.joints), [0.0, 0.0]
    states = SimpleNamespace(
        header=header, name=names, position=zeros, velocity=zeros, effort=list(effort)
    )
    fields = {'positions': [], 'velocities': [], 'effort': [], output: list(command)}
    controller = SimpleNamespace(
        joint_names=names, output=SimpleNamespace(**fields), speed_scaling_factor=speed
    )
    return (
        SimpleNamespace(topic='joint_states', wait_for_latest=lambda *_: states),
        SimpleNamespace(topic='controller_state', wait_for_latest=lambda *_: controller),
    )


def check(**given):
    limits = SimpleNamespace(lower=-np.ones(2), upper=np.ones(2), effort=np.full(2, 10.0))
    robot = SimpleNamespace(joints=ROBOT.joints, limits=limits, drive_gain=np.ones(2), locked={})
    return check_states(streams(**given), robot, ExcitationNodeSettings())


@pytest.mark.parametrize('output', ['positions', 'velocities', 'effort'])
@pytest.mark.parametrize('effort', [(), (0.1, 0.2), (np.nan, np.nan)])
def test_torques_are_reported_or_commanded_or_nothing_moves(output, effort):
    reported = bool(effort) and not np.isnan(effort).any()
    if reported or output == 'effort':
        assert check(effort=effort, output=output) == reported
    else:
        with pytest.raises(RobotStateError, match='nothing tells the torques'):
            check(effort=effort, output=output)


@pytest.mark.parametrize(
    ('effort', 'output', 'command', 'reported'),
    [
        ((0.0, 0.0), 'effort', (0.0, 3.0), False),
        ((0.0, 1e-9), 'effort', (0.0, 3.0), True),
        ((0.0, np.nan), 'effort', (0.0, 3.0), False),
        # At rest without weight: nothing tells yet.
        ((0.0, 0.0), 'effort', (0.0, 0.0), True),
        ((0.0, 0.0), 'positions', (0.0, 3.0), True),
    ],
)
def test_zeros_beside_commands_are_no_efforts(effort, output, command, reported):
    assert check(effort=effort, output=output, command=command) == reported


# A controller that leaves its factor at 0 may know none.
@pytest.mark.parametrize('speed', [0.0, 0.1, 1.0])
def test_a_session_may_be_slow(speed):
    assert check(effort=(0.1, 0.2), speed=speed)


@pytest.mark.parametrize('speed', [0.03, 1.5])
def test_a_session_is_neither_creeping_nor_faster_than_designed(speed):
    with pytest.raises(RobotStateError, match='the speed scaling is'):
        check(effort=(0.1, 0.2), speed=speed)
