"""Efforts that follow from the motion are refused, torques are not."""

import dataclasses

import numpy as np
import pytest

import robotid_ros as rid
from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import inverse_dynamics
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.invalid_samples import MANY, refuse_derived_efforts, unlikeness
from robotid_ros.exceptions import RecordingError

from ..conftest import motion, RATE

TIME = np.arange(round(20.0 * RATE)) / RATE
Q, DQ, DDQ = motion(TIME, seed=0)
JOINTS = ('j1', 'j2', 'j3')
COUNT = 2.0 * np.pi / 4096.0  # of an encoder [rad]


def late(values, seconds):
    """Return what a low-pass filter of first order makes of values."""
    share, found = 1.0 - np.exp(-1.0 / (RATE * seconds)), np.empty_like(values)
    state = values[0]
    for k, row in enumerate(values):
        state = state + share * (row - state)
        found[k] = state
    return found


DERIVED = {
    'positions': (Q, 'positions'),
    'positions in degrees from another zero': (np.degrees(Q) + 20.0, 'positions'),
    'velocities': (DQ, 'derivatives of the positions'),
    'velocities in rpm': (DQ * 30.0 / np.pi, 'derivatives of the positions'),
    'velocities of a drive that filters': (late(DQ, 0.01), 'derivatives of the positions'),
    'velocities with noise': (
        DQ + 0.01 * np.random.default_rng(1).normal(size=DQ.shape),
        'derivatives of the positions',
    ),
    'differences': (np.gradient(Q, axis=0), 'derivatives of the positions'),
    'velocities of other joints': (DQ[:, [1, 2, 0]], 'derivatives of the positions'),
    'accelerations': (DDQ, 'accelerations'),
    'each another constant': (DQ * [1.0, 3.0, -2.0], 'derivatives of the positions'),
}


@pytest.mark.parametrize(('effort', 'words'), DERIVED.values(), ids=list(DERIVED))
@pytest.mark.parametrize('step', [0.0, COUNT])
def test_what_derives_from_the_motion_is_refused(effort, words, step):
    position = step * np.round(Q / step) if step else Q
    with pytest.raises(RecordingError, match=rf'efforts of j1, j2, j3 are the {words} times'):
        refuse_derived_efforts(JOINTS, position, effort, rate=RATE)


def test_a_copy_of_one_velocity_is_refused(robot, truth):
    tau = inverse_dynamics(robot, truth, Q, DQ, DDQ)
    noisy = DQ + 0.3 * np.random.default_rng(0).normal(size=DQ.shape)
    refuse_derived_efforts(JOINTS, Q, tau, noisy, RATE)
    tau[:, 1] = noisy[:, 1]
    with pytest.raises(RecordingError, match=r'efforts of j2 are the velocities times'):
        refuse_derived_efforts(JOINTS, Q, tau, noisy, RATE)


@pytest.mark.parametrize('seed', range(5))
@pytest.mark.parametrize('friction', [1.0, 0.0])
def test_torques_without_noise_are_accepted(robot, truth, seed, friction):
    """Also with viscous friction alone, of which a light joint has hardly more."""
    q, dq, ddq = motion(TIME, seed)
    chi = truth.copy()
    for joint in (1, 2, 3):
        chi[robot.column(f'Fc{joint}')] *= friction
        chi[robot.column(f'Fv{joint}')] *= 1.0 if joint < 3 else 300.0
    refuse_derived_efforts(JOINTS, q, inverse_dynamics(robot, chi, q, dq, ddq), dq, RATE)


def test_a_jump_makes_nothing_alike():
    still = 1e-5 * np.sin(np.arange(len(Q)))[:, None] + np.zeros(3)
    effort = np.ones_like(still)
    still[0], effort[0] = 0.02, 1.1
    refuse_derived_efforts(JOINTS, still, effort, rate=RATE)


def test_parts_of_a_long_log_are_alike_as_all():
    time = np.arange(3 * MANY) / RATE
    q, dq, _ = motion(time, seed=2)
    signals, derivatives = unlikeness(q, dq, orders=2)
    assert np.diag(derivatives).max() < 1e-3
    assert signals.min() > 0.1


@pytest.mark.parametrize('jitter', [0.0, 0.2])
def test_the_library_refuses_arrays_of_velocities(robot, jitter):
    rng = np.random.default_rng(0)
    stamps = TIME + jitter / RATE * rng.uniform(-1.0, 1.0, len(TIME))
    log = rid.from_arrays(stamps, Q, DQ, joints=robot.joints, source='the log')
    with pytest.raises(RecordingError, match=r'the log: .* derivatives of the positions'):
        identify(log, robot, IdentificationSettings())


def test_an_exact_fit_is_a_finding(record, robot):
    clean, noisy = record(), record(noise=0.005)
    found = identify(clean, robot, IdentificationSettings())
    (exact,) = select(found.findings, 'exact_fit')
    assert exact.joints == robot.joints
    other = identify(noisy, robot, IdentificationSettings())
    assert not select(other.findings, 'exact_fit')
    mixed = dataclasses.replace(
        clean, effort=np.where(np.arange(3) == 1, clean.effort, noisy.effort)
    )
    (exact,) = select(identify(mixed, robot, IdentificationSettings()).findings, 'exact_fit')
    assert exact.joints == ('j2',)
