"""What is wrong with joint states and efforts is found in a snapshot, and nothing else is."""

from collections.abc import Callable
import dataclasses
import re

import numpy as np
import pytest

from robotid_ros.core.finding_codes import render
from robotid_ros.core.findings import Severity
from robotid_ros.core.model import RobotSettings
from robotid_ros.core.model.settings import ElasticSettings
from robotid_ros.files.configuration import Configuration
from robotid_ros.nodes.doctor.diagnose import diagnose, subject_of
from robotid_ros.nodes.doctor.effort_checks import effort_kind
from robotid_ros.nodes.doctor.graph_snapshot import ControllerStates, GraphSnapshot

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
    ('changes', 'severity', 'subject', 'says'),
    [
        ({'position': NAN}, 'ERROR', 'joint states', 'position of zjoint, joint2, joint3 is not'),
        ({'velocity': at(1, np.nan)}, 'ERROR', 'joint states', 'velocity of joint2 is not a numb'),
        ({'velocity': NAN}, 'INFO', 'joint states', 'hold no velocity'),
        (
            {'position': STILL, 'velocity': STILL, 'effort': STILL + WEIGHT + 0.001},
            'WARNING', 'joint states', 'never change by a single bit',
        ),
        ({'effort': NAN}, 'WARNING', 'efforts', 'what the controller commands is taken for it'),
        ({'effort': at(2, np.nan)}, 'ERROR', 'efforts', 'effort of joint3 is not a number'),
        ({'effort': STILL}, 'WARNING', 'efforts', '0: what the controller commands is taken for'),
        ({'effort': 0.0 * at(2, np.nan)}, 'WARNING', 'efforts', 'an effort of exactly 0: what'),
        ({'effort': at(1, 0.0)}, 'WARNING', 'efforts', 'effort of joint2 is exactly zero'),
        (
            {'effort': at(1, 10.0)},
            'WARNING', 'efforts', r'opposite to the weight, joint2 10 \(description: -9.81 N·m\)',
        ),
        ({'effort': at(1, -80.0)}, 'WARNING', 'efforts', r'do not fit the weight, joint2 -80'),
        (
            {'effort': at(0, 9.0)},
            'WARNING', 'efforts', r'more than weight and friction, zjoint 9 \(description: 0 N·m',
        ),
        (
            {'effort': 0.02 * np.random.default_rng(5).normal(size=(N, 3))},
            'WARNING', 'efforts', 'hold no weight, joint2 .*without_gravity',
        ),
        (
            {'position': np.linspace(0, 0.1, N)[:, None] * np.ones(3)},
            'INFO', 'efforts', 'moves, so that efforts are not compared',
        ),
        (
            {'position': np.array([0.0, np.pi / 2, 0.0]) + 1e-5 * at(0, 0.0)},
            'INFO', 'efforts', 'no joint bears a weight that would show',
        ),
        ({'stamp': 0 * STAMP}, 'ERROR', 'timing', '500 of 500 stamps are zero'),
        ({'stamp': 0 * STAMP + EPOCH}, 'ERROR', 'timing', 'never advance'),
        ({'stamp': STAMP // 4_000_000 * 4_000_000}, 'WARNING', 'timing', '250 of 500 stamps rep'),
        (
            {'stamp': np.where(np.arange(N) == 9, STAMP - 10 * PERIOD, STAMP)},
            'WARNING', 'timing', '1 jump back',
        ),
        ({'stamp': SLOW, 'received': SLOW}, 'WARNING', 'timing', 'states come at 25 Hz'),
        (
            {'stamp': STAMP + PERIOD * (np.arange(N) // 100)},
            'INFO', 'timing', r'0\.8 % of the joint states are lost, the longest gap is 4 ms',
        ),
        (
            {'stamp': GAPS, 'received': GAPS},
            'WARNING', 'timing', r'19\.9 % of the joint states are lost',
        ),
        (
            {'stamp': STAMP + np.where(np.arange(N) % 2, 10**6, 0)},
            'WARNING', 'timing', r'the stamps jitter by 1\.00 ms',
        ),
        ({'received': STAMP + 10**9}, 'WARNING', 'clock', '1 s behind the clock of this machine'),
        ({'received': STAMP - 10**9}, 'WARNING', 'clock', '1 s ahead of the clock'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_states_is_told(
    snapshot: Callable[..., GraphSnapshot],
    stream: Callable,
    changes: dict,
    severity: str,
    subject: str,
    says: str,
):
    found = snapshot(joint_states=(stream(**changes),))
    told(found, severity, subject, says)
    others = [
        f for f in diagnose(found) if f.severity > Severity.INFO and subject_of(f) != subject
    ]
    assert not others


def test_one_joint_that_stands_still_to_the_last_bit_is_noted(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    states = stream()
    frozen = np.where(np.arange(3) == 1, 0.0, states.position)
    velocity = np.where(np.arange(3) == 1, 0.0, states.velocity)
    found = snapshot(joint_states=(stream(position=frozen, velocity=velocity),))
    told(found, 'INFO', 'joint states', 'position and velocity of joint2 never change')


def test_without_any_effort_nothing_can_be_identified(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    found = snapshot(
        joint_states=(stream(effort=NAN),), controller_states=ControllerStates(np.array([EPOCH]))
    )
    told(found, 'ERROR', 'efforts', 'report no effort, and none is commanded')
    found = dataclasses.replace(found, joint_states=(stream(effort=STILL),))
    told(found, 'ERROR', 'efforts', 'exactly zero though the arm bears its weight')


def test_a_drive_gain_of_the_configuration_counts(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    gain = (1.0, -1.0, 50.0)
    states = stream(effort=WEIGHT / gain + 0.001 * np.random.default_rng(6).normal(size=(N, 3)))
    configuration = Configuration(robot=RobotSettings(drive_gain=gain))
    found = diagnose(snapshot(configuration=configuration, joint_states=(states,)))
    assert {finding.severity for finding in found} == {Severity.OK}
    told(snapshot(joint_states=(states,)), 'WARNING', 'efforts', 'opposite to the weight, joint2')


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
    fine = told(found, 'OK', 'efforts', 'agree at rest with the weight')
    values = re.findall(r'joint2 (-[\d.]+) \(description: (-[\d.]+)', render(fine[0]))
    assert np.allclose(*map(float, values[0]), rtol=0.01)


def test_stamps_are_compared_with_simulated_time(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    states = stream()
    clock = np.stack([states.received, states.stamp - EPOCH + 500_000])
    simulated = stream(stamp=states.stamp - EPOCH + PERIOD)
    told(snapshot(joint_states=(simulated,), clock=clock), 'OK', 'clock', 'agree with /clock')
    told(snapshot(joint_states=(simulated,)), 'WARNING', 'clock', 'behind the clock of this')


def test_motors_behind_springs_are_asked_for(snapshot: Callable[..., GraphSnapshot]):
    elastic = ElasticSettings(joints=('joint2',))
    configuration = Configuration(robot=RobotSettings(elastic=elastic))
    told(
        snapshot(configuration=configuration),
        'ERROR', 'joint states', 'the joint states lack joint2_motor',
    )  # fmt: skip
