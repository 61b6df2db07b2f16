"""What is wrong with joint states and efforts is found in a snapshot, and nothing else is."""

from collections.abc import Callable
import dataclasses

import numpy as np
import pytest

from robotid_ros.core.findings import Severity
from robotid_ros.core.model import RobotSettings
from robotid_ros.core.model.settings import ElasticSettings
from robotid_ros.files.configuration import Configuration
from robotid_ros.nodes.doctor.diagnose import diagnose, subject_of
from robotid_ros.nodes.doctor.graph_snapshot import GraphSnapshot
from robotid_ros.nodes.doctor.state_checks import effort_kind

from .conftest import controller, EPOCH, PERIOD, told, WEIGHT

N = 500


def at(index: int, value: float) -> np.ndarray:
    """Return efforts of a robot at rest, with one joint replaced."""
    effort = WEIGHT + 0.02 * np.random.default_rng(4).normal(size=(N, 3))
    effort[:, index] = value
    return effort


NAN = np.full((N, 3), np.nan)


STILL = np.zeros((N, 3))


STAMP = EPOCH + PERIOD * np.arange(N)


SLOW = EPOCH + 20 * (STAMP - EPOCH)


GAPS = STAMP + PERIOD * (np.arange(N) // 4)


@pytest.mark.parametrize(
    ('changes', 'severity', 'name', 'expected'),
    [
        (
            {'position': NAN},
            'ERROR',
            'not_a_number',
            {'joints': ('zjoint', 'joint2', 'joint3'), 'quantity': 'position'},
        ),
        (
            {'velocity': at(1, np.nan)},
            'ERROR',
            'not_a_number',
            {'joints': ('joint2',), 'quantity': 'velocity'},
        ),
        ({'velocity': NAN}, 'INFO', 'no_velocity', {}),
        (
            {'position': STILL, 'velocity': STILL, 'effort': STILL + WEIGHT + 0.001},
            'WARNING',
            'states_frozen',
            {},
        ),
        ({'effort': NAN}, 'WARNING', 'commands_for_efforts', {'what': 'no effort'}),
        ({'effort': at(2, np.nan)}, 'ERROR', 'effort_not_a_number', {'joints': ('joint3',)}),
        ({'effort': STILL}, 'WARNING', 'commands_for_efforts', {'what': 'an effort of exactly 0'}),
        (
            {'effort': 0.0 * at(2, np.nan)},
            'WARNING',
            'commands_for_efforts',
            {'what': 'an effort of exactly 0'},
        ),
        ({'effort': at(1, 0.0)}, 'WARNING', 'effort_zero', {'joints': ('joint2',)}),
        (
            {'effort': at(1, 10.0)},
            'WARNING',
            'efforts_opposite',
            {'joints': ('joint2',), 'efforts': (10.0,), 'weights': (-9.81,)},
        ),
        (
            {'effort': at(1, -80.0)},
            'WARNING',
            'efforts_unlike_weight',
            {'joints': ('joint2',), 'efforts': (-80.0,)},
        ),
        (
            {'effort': at(0, 9.0)},
            'WARNING',
            'efforts_beyond_weight',
            {'joints': ('zjoint',), 'efforts': (9.0,), 'weights': (0.0,)},
        ),
        (
            {'effort': 0.02 * np.random.default_rng(5).normal(size=(N, 3))},
            'WARNING',
            'efforts_without_weight',
            {'joints': ('joint2', 'joint3')},
        ),
        (
            {'position': np.linspace(0, 0.1, N)[:, None] * np.ones(3)},
            'INFO',
            'moves',
            {'joints': ('zjoint', 'joint2', 'joint3')},
        ),
        (
            {'position': np.array([0.0, np.pi / 2, 0.0]) + 1e-5 * at(0, 0.0)},
            'INFO',
            'no_weight',
            {},
        ),
        ({'stamp': 0 * STAMP}, 'ERROR', 'zero_stamps', {'zero': 500, 'count': 500}),
        ({'stamp': 0 * STAMP + EPOCH}, 'ERROR', 'stamps_stand', {}),
        (
            {'stamp': STAMP // 4_000_000 * 4_000_000},
            'WARNING',
            'irregular_stamps',
            {'repeated': 250, 'backward': 0},
        ),
        (
            {'stamp': np.where(np.arange(N) == 9, STAMP - 10 * PERIOD, STAMP)},
            'WARNING',
            'irregular_stamps',
            {'repeated': 0, 'backward': 1},
        ),
        ({'stamp': SLOW, 'received': SLOW}, 'WARNING', 'slow_states', {'rate': 25.0}),
        (
            {'stamp': STAMP + PERIOD * (np.arange(N) // 100)},
            'INFO',
            'states_lost',
            {'share': 0.007937, 'gap': 0.004},
        ),
        (
            {'stamp': GAPS, 'received': GAPS},
            'WARNING',
            'states_lost',
            {'share': 0.1987, 'gap': 0.004},
        ),
        (
            {'stamp': STAMP + np.where(np.arange(N) % 2, 10**6, 0)},
            'WARNING',
            'stamps_uneven',
            {'jitter': 0.001},
        ),
        (
            {'received': STAMP + 10**9},
            'WARNING',
            'clock_offset',
            {'offset': 1.0, 'side': 'behind'},
        ),
        (
            {'received': STAMP - 10**9},
            'WARNING',
            'clock_offset',
            {'offset': 1.0, 'side': 'ahead of'},
        ),
    ],
)
def test_what_is_wrong_with_states_is_told(
    snapshot: Callable[..., GraphSnapshot],
    stream: Callable,
    changes: dict,
    severity: str,
    name: str,
    expected: dict,
):
    found = snapshot(joint_states=(stream(**changes),))
    (seen, *_) = told(found, severity, name, **expected)
    others = [
        f
        for f in diagnose(found)
        if f.severity > Severity.INFO and subject_of(f) != subject_of(seen)
    ]
    assert not others


def test_one_joint_that_stands_still_to_the_last_bit_is_noted(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    states = stream()
    frozen = np.where(np.arange(3) == 1, 0.0, states.position)
    velocity = np.where(np.arange(3) == 1, 0.0, states.velocity)
    found = snapshot(joint_states=(stream(position=frozen, velocity=velocity),))
    told(found, 'INFO', 'joints_frozen', joints=('joint2',))


def test_without_any_effort_nothing_can_be_identified(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    found = snapshot(
        joint_states=(stream(effort=NAN),),
        controller_states=np.array([EPOCH]),
        commands_effort=False,
    )
    told(found, 'ERROR', 'no_efforts', what='no effort')
    found = dataclasses.replace(found, joint_states=(stream(effort=STILL),))
    told(found, 'ERROR', 'efforts_all_zero')


def test_a_drive_gain_of_the_configuration_counts(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    gain = (1.0, -1.0, 50.0)
    states = stream(effort=WEIGHT / gain + 0.001 * np.random.default_rng(6).normal(size=(N, 3)))
    configuration = Configuration(robot=RobotSettings(drive_gain=gain))
    # Gains in the unit of the commands, too.
    joints = zip(controller().joints, np.abs(gain), strict=True)
    commands = controller(gains={joint: {'p': 100.0 / k, 'd': 1.0 / k} for joint, k in joints})
    given = snapshot(configuration=configuration, joint_states=(states,), controller=commands)
    found = diagnose(given)
    assert {finding.severity for finding in found} == {Severity.OK}
    told(snapshot(joint_states=(states,)), 'WARNING', 'efforts_opposite', joints=('joint2',))


@pytest.mark.parametrize(
    ('effort', 'kind'),
    [
        (at(0, 0.0), 'joint_torque'),
        (at(0, 0.0) - WEIGHT, 'without_gravity'),
        (-at(0, 0.0), 'auto'),
        (NAN, 'auto'),
        (STILL, 'auto'),
    ],
)
def test_the_kind_of_effort_shows_at_rest(
    snapshot: Callable[..., GraphSnapshot], stream: Callable, effort: np.ndarray, kind: str
):
    assert effort_kind(snapshot(joint_states=(stream(effort=effort),))) == kind


def test_joints_that_are_not_meant_count_where_they_stand(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    """With joint3 folded back by 90°, its link loads joint2 by less."""
    position = stream().position + np.array([0.0, 0.0, np.pi / 2])
    effort = stream().effort + np.array([0.0, 2 * 9.81 * 0.1, 0.0])
    configuration = Configuration(robot=RobotSettings(joints=('zjoint', 'joint2')))
    found = snapshot(
        configuration=configuration,
        controller=controller(joints=('zjoint', 'joint2')),
        joint_states=(stream(position=position, effort=effort),),
    )
    fine = told(found, 'OK', 'efforts_like_weight', joints=('joint2',))
    assert np.allclose(fine[0].values['efforts'], fine[0].values['weights'], rtol=0.01)


def test_stamps_are_compared_with_simulated_time(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    states = stream()
    clock = np.stack([states.received, states.stamp - EPOCH + 500_000])
    simulated = stream(stamp=states.stamp - EPOCH + PERIOD)
    told(snapshot(joint_states=(simulated,), clock=clock), 'OK', 'clocks_agree')
    told(snapshot(joint_states=(simulated,)), 'WARNING', 'clock_offset', side='behind')


def test_motors_behind_springs_are_asked_for(snapshot: Callable[..., GraphSnapshot]):
    elastic = ElasticSettings(joints=('joint2',))
    configuration = Configuration(robot=RobotSettings(elastic=elastic))
    told(
        snapshot(configuration=configuration),
        'ERROR',
        'joints_lacking',
        joints=('joint2_motor',),
        published=('zjoint', 'joint2', 'joint3'),
    )
