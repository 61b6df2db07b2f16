"""A sensor that freezes or lies is found at once; clean sessions, slow and rough ones, go on."""

from pathlib import Path

import numpy as np
import pytest
import yaml

import robotid_ros as rid
from robotid_ros.exceptions import RobotStateError
from robotid_ros.files.formats.joint_table import JointTable
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.nodes.common.watchdog import (
    FAILED_FOR,
    FrozenWatch,
    STICKING,
    VelocityWatch,
    WOUND_UP,
)

CONFIG = Path(__file__).parents[3] / 'config' / 'scara.yaml'
DESIGN = CONFIG.parent / 'trajectories' / 'scara.yaml'
POLL = 0.01  # of the supervisor [s]
TOLERANCE = 0.1  # excitation.tracking_error
GAINS = {'joint_1': {'p': 300.0, 'd': 60.0}, 'joint_2': {'p': 30.0, 'd': 3.0}}
CLEAN = {
    'as configured': {},
    'soft': {'gains': GAINS},
    'soft, with an integral': {'gains': {k: {**g, 'i': 100.0} for k, g in GAINS.items()}},
    'much friction': {'coulomb': [4.0, 1.0], 'viscous': [3.0, 1.0]},
    'an encoder of ten bits': {'noise': {'resolution': [6e-3] * 2, 'position': [0.0] * 2}},
    'states at 50 Hz': {'state_rate': 50.0},
    'an exact encoder': {'noise': {'position': [0.0] * 2, 'velocity': [0.0] * 2}},
}


@pytest.fixture(scope='module')
def design():
    return read_design(DESIGN)


@pytest.fixture(scope='module')
def config(tmp_path_factory):
    """Take one period of the excitation: all are the same motion."""
    values = yaml.safe_load(CONFIG.read_text())
    values['/**']['ros__parameters']['excitation']['periods'] = 1
    path = tmp_path_factory.mktemp('config') / CONFIG.name
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture(scope='module', params=CLEAN, ids=str)
def recording(request, config, design):
    return rid.simulate(config, design, update_rate=500.0, **CLEAN[request.param])


def supervise(recording, position, velocity, patience=WOUND_UP):
    """Check a session as the supervisor does, every 10 ms; return when it is stopped [s]."""
    joints, time, reference = recording.joints, recording.time, recording.reference
    frozen = FrozenWatch(joints, np.full(len(joints), STICKING * TOLERANCE))
    lying = VelocityWatch(joints, np.full(len(joints), 3.0))
    starts = [phase.start for phase in recording.phases]
    last = 0
    for now in np.arange(time[0] + POLL, time[-1], POLL):
        rows = slice(last, int(np.searchsorted(time, now, side='right')))
        if starts and now > starts[0]:
            starts.pop(0)
            frozen.begin()
        if rows.stop == last:
            continue
        last, newest = rows.stop, rows.stop - 1
        stamps = np.round(time[rows] * 1e9).astype(np.int64)
        states = JointTable(
            recording.joints, stamps, stamps, position[rows], velocity[rows],
            recording.effort[rows],
        )  # fmt: skip
        wanted = reference.q[np.searchsorted(reference.time, time[newest])]
        try:
            lying.check(states)
            error = wanted - position[newest]
            frozen.check(time[newest], position[newest], wanted, error, patience)
        except RobotStateError as error:
            return now, str(error)
    return None, ''


def test_a_clean_session_goes_on(recording):
    assert supervise(recording, recording.position, recording.velocity) == (None, '')


@pytest.mark.parametrize('patience', [WOUND_UP, FAILED_FOR])
@pytest.mark.parametrize(('joint', 'share'), [(0, 0.2), (1, 0.45), (1, 0.7)])
def test_a_frozen_joint_is_found(recording, joint, share, patience):
    phase = recording.phases[0]
    start = int(np.searchsorted(recording.time, phase.start + share * (phase.stop - phase.start)))
    q, dq = recording.position.copy(), recording.velocity.copy()
    q[start:, joint], dq[start:, joint] = q[start, joint], 0.0
    found, text = supervise(recording, q, dq, patience)
    wanted = recording.reference.q[:, joint]
    at = np.searchsorted(recording.reference.time, recording.time)
    error = np.abs(wanted[at] - recording.position[:, joint])[:start].max()
    moved = np.abs(wanted[at[start:]] - wanted[at[start]])
    known = recording.time[start + np.argmax(moved > max(5.0 * error, STICKING * TOLERANCE))]
    assert moved.max() > 5.0 * error
    begin = recording.time[start]
    assert begin + patience <= found <= max(known, begin + patience) + 0.05
    assert recording.joints[joint] in text


@pytest.mark.parametrize('lie', [50.0, -50.0])
def test_a_velocity_that_lies_is_found(recording, lie):
    phase = recording.phases[0]
    start = int(np.searchsorted(recording.time, 0.5 * (phase.start + phase.stop)))
    dq = recording.velocity.copy()
    dq[start:, 1] = lie
    found, text = supervise(recording, recording.position, dq)
    assert recording.time[start] <= found <= recording.time[start] + 0.25
    assert f'velocity of {recording.joints[1]}' in text


def test_velocities_that_are_always_zero_stop_nothing(recording):
    assert supervise(recording, recording.position, 0.0 * recording.velocity)[0] is None


def test_a_joint_that_counts_from_minus_pi_to_pi_goes_on(recording):
    turned = np.remainder(recording.position + 3.0 + np.pi, 2.0 * np.pi) - np.pi
    lying = VelocityWatch(recording.joints, np.full(2, 3.0))
    stamps = np.round(recording.time * 1e9).astype(np.int64)
    for rows in np.array_split(np.arange(len(stamps)), len(stamps) // 5):
        stamp, values = stamps[rows], (turned, recording.velocity, recording.effort)
        parts = (each[rows] for each in values)
        lying.check(JointTable(recording.joints, stamp, stamp, *parts))


def test_a_joint_that_moved_while_a_clock_jumped_or_nobody_looked_is_not_still():
    watch, none = FrozenWatch(('joint_1',), np.array([STICKING * TOLERANCE])), np.zeros(1)
    for stamp, place in ((0.0, 0.0), (0.01, 0.05), (0.02, 0.1)):
        watch.check(stamp, np.array([place]), np.array([place]), none, WOUND_UP)
    assert not watch.is_still(0, 5.02, 0.11)
    assert watch.is_still(0, 5.02, 0.1)
