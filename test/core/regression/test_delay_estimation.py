"""A delay between positions and efforts is found, removed, and told; none is invented."""

import dataclasses

import numpy as np
from plant_recording import arm, plant
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.regression import delays as delays_module
from robotid_ros.core.regression.delays import estimate_delays, prepare_without_delay, remove_delay
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.core.signals.preparation import noise_between_periods, prepare, split_periods
from robotid_ros.core.signals.recording import Reference, SignalSettings
from robotid_ros.core.verdict import judge, POOR, UNUSABLE
from robotid_ros.exceptions import RecordingError

from ..conftest import motion

SIGNALS = SignalSettings(cutoff=15.0, rows='moving')


@pytest.mark.parametrize('delay', [0.0, 0.004, -0.0025])
def test_delay_is_found(robot, record, delay):
    late = remove_delay(record(noise=0.02), -delay)
    samples = prepare(late, robot, SIGNALS)
    system = observe(samples, robot, base_parameters(robot))
    found = estimate_delays(samples, system)
    assert abs(found.common - delay) < 4.0 * found.common_sigma
    assert found.common_sigma < 3e-4
    assert not found.outlier.any()


@pytest.mark.parametrize(
    ('joint', 'delay'), [('j1', 0.02), ('j2', -0.012), ('j3', 0.02), ('j2', 0.1)]
)
def test_one_joint_that_is_late_is_found_and_told(robot, truth, record, joint, delay):
    """Friction hides such a delay: the residual hardly shows it."""
    settings = IdentificationSettings(signals=SIGNALS)
    plain = identify(record(noise=0.02), robot, settings)
    late = identify(remove_delay(record(noise=0.02), {joint: -delay}), robot, settings)
    (told,) = select(late.findings, 'joint_delay_removed')
    assert told.joints == (joint,) and told.values['delay'] == pytest.approx(delay, abs=5e-4)
    away = np.abs(late.estimate.value - plain.estimate.value)
    assert np.all(away < 1.5 * plain.estimate.sigma + 5e-3)


@pytest.mark.parametrize(('rate', 'told'), [(1.01, True), (0.995, True), (1.0, False)])
def test_efforts_that_get_later_and_later_are_told(robot, record, rate, told):
    whole = record(noise=0.02)
    time, columns = whole.time, whole.effort.T
    effort = np.column_stack([np.interp(rate * time, time, own) for own in columns])
    apart = dataclasses.replace(whole, effort=effort).between(0.0, time[-1] / rate)
    found = identify(apart, robot, IdentificationSettings(signals=SIGNALS))
    differ = select(found.findings, 'clocks_differ')
    assert bool(differ) == told
    if told:
        assert differ[0].values['share'] == pytest.approx(1.0 / rate - 1.0, rel=0.02)
        assert differ[0].values['last'] == pytest.approx((1.0 / rate - 1.0) * time[-1], rel=0.05)
        assert not [each for each in found.findings if each.code.startswith('F4')]
        assert judge(found).level in (POOR, UNUSABLE)


def test_what_is_wrong_with_the_model_is_no_long_delay(robot, record):
    """Efforts with much that follows no motion: 0.1 s explains some of it, and not most."""
    whole = record(noise=0.02)
    effort = whole.effort.copy()
    late = remove_delay(whole, {'j2': -0.1}).effort[:, 1]
    effort[:, 1] = 0.4 * late + 0.6 * effort[:, 1] + np.sin(3.0 * whole.time) * effort[:, 1].std()
    found = identify(dataclasses.replace(whole, effort=effort), robot, IdentificationSettings())
    assert not select(found.findings, 'joint_delay_removed', 'clocks_differ')


def test_a_late_joint_of_a_recording_in_pieces(robot, record):
    settings = IdentificationSettings(method='wls', signals=SIGNALS, essential=False)
    late = remove_delay(record(duration=40.0, noise=0.02), {'j2': -0.02})
    pieces = [late.between(0.0, 20.0), late.between(20.0, 40.0)]
    whole, parts = (identify(r, robot, settings, late) for r in (late, iter(pieces)))
    (told,) = select(parts.findings, 'joint_delay_removed')
    assert told.joints == ('j2',) and told.values['delay'] == pytest.approx(0.02, abs=5e-4)
    away = np.abs(parts.estimate.value - whole.estimate.value)
    assert np.all(away < 0.5 * whole.estimate.sigma)
    assert parts.validation.total_residual() == pytest.approx(
        whole.validation.total_residual(), rel=0.05
    )


def sticking(robot, truth, record):
    """Record joints whose friction turns round 20 ms before their motion."""
    dry, friction = np.array(truth), 9.0
    dry[[robot.column(f'Fc{j}') for j in (1, 2, 3)]] = friction
    recording = record(noise=0.01, of=dry)
    sign = np.sign(np.gradient(recording.position, recording.time, axis=0))
    early = friction * (np.roll(sign, -4, axis=0) - sign)  # 20 ms
    return dataclasses.replace(recording, effort=recording.effort + early)


def test_friction_that_sticks_does_not_look_like_a_delay(robot, truth, record):
    """Near standstill the torque of a joint that sticks comes before its motion."""
    stuck = sticking(robot, truth, record)
    samples = prepare(stuck, robot, SIGNALS)
    system = observe(samples, robot, base_parameters(robot))
    found = estimate_delays(samples, system)
    assert np.all(np.abs(found.delay) < 4.0 * found.sigma) and not found.outlier.any()


def test_friction_that_sticks_does_not_hide_a_delay(robot, truth, record):
    """Near standstill nothing is gained by what is right elsewhere."""
    stuck = sticking(robot, truth, record)
    late = remove_delay(stuck, -0.003)
    delays = prepare_without_delay(late, robot, base_parameters(robot), SIGNALS).delays
    assert list(delays.values()) == pytest.approx([0.003] * 3, abs=0.6e-3)


def test_removed_delay_leaves_the_parameters(robot, truth, record):
    settings = IdentificationSettings(signals=SIGNALS)
    plain = identify(record(noise=0.01), robot, settings)
    late = identify(remove_delay(record(noise=0.01), -0.004), robot, settings)
    assert select(late.findings, 'delay_removed')
    assert not select(plain.findings, 'delay_removed', 'joint_delay_removed')
    away = np.abs(late.estimate.value - plain.estimate.value)
    assert np.all(away < 1.5 * plain.estimate.sigma + 5e-3)


def test_instruments_come_from_the_reference(robot, truth, record):
    recording = record(noise=0.01)
    time = recording.time[::2]
    asked = dataclasses.replace(recording, reference=Reference(time, *motion(time, 0)))
    settings = IdentificationSettings(method='iv', signals=SIGNALS)
    found = identify(asked, robot, settings)
    inside = np.abs(found.estimate.value - found.base.of(truth)) < 4.0 * found.estimate.sigma
    assert inside.mean() >= 0.85
    with pytest.raises(RecordingError, match='controller_state'):
        identify(recording, robot, settings)


def test_noise_of_periods(robot):
    rng = np.random.default_rng(0)
    time = np.arange(20000) / 1000.0
    clean = np.sin(2 * np.pi * time / 3.3)[:, None] * [1.0, 5.0]
    noisy = clean + rng.normal(size=clean.shape) * [0.1, 0.4]
    np.testing.assert_allclose(noise_between_periods(noisy, 1000.0, 3.3), [0.1, 0.4], rtol=0.03)
    assert noise_between_periods(noisy[:4000], 1000.0, 3.3) is None


def test_folded_periods_lie_on_each_other():
    time = np.arange(5000) / 997.0
    periods = split_periods(np.sin(2 * np.pi * time / 1.1)[:, None], 997.0, 1.1)
    assert periods.shape[0] == 4
    np.testing.assert_allclose(periods[1:], periods[:1].repeat(3, axis=0), atol=1e-4)


def test_noise_alone_is_no_delay(robot, record):
    """Of twenty recordings, a delay of one σ shows in seven, of three σ in none or one."""
    base, told = base_parameters(robot), []
    for seed in range(20):
        signals = dataclasses.replace(SIGNALS, decimation=20)
        told += prepare_without_delay(record(seed, 10.0, 0.3), robot, base, signals).notes
    assert told == []


def test_a_delay_that_one_quiet_joint_shows_is_not_removed_from_all(robot, record):
    """What one drive is late by outweighs the others in their mean, but explains none of them."""
    late = remove_delay(record(), {'j1': -0.003})
    rng, share = np.random.default_rng(1), np.array([5e-4, 0.02, 0.02])
    noise = share * late.effort.std(axis=0) * rng.normal(size=late.effort.shape)
    late = dataclasses.replace(late, effort=late.effort + noise)
    base = base_parameters(robot)
    samples = prepare(late, robot, SIGNALS)
    found = estimate_delays(samples, observe(samples, robot, base))
    assert found.common > 10.0 * found.common_sigma and not found.outlier.any()
    assert prepare_without_delay(late, robot, base, SIGNALS).delays == {}


def test_stamps_that_are_to_stay_do_in_pieces_too(robot, record, monkeypatch):
    monkeypatch.setattr(delays_module, 'with_sampling_times', lambda recording: pytest.fail())
    signals = dataclasses.replace(SIGNALS, stamps='recorded')
    settings = IdentificationSettings(method='wls', signals=signals, essential=False)
    late = record(duration=40.0, noise=0.01)
    late = remove_delay(late, -0.004, 'recorded')
    pieces = [late.between(0.0, 20.0), late.between(20.0, 40.0)]
    found = identify(iter(pieces), robot, settings, iter(pieces))
    assert select(found.findings, 'delay_removed')


def test_a_delay_stays_where_none_is_to_be_removed(robot, record):
    late, kept = (
        remove_delay(record(noise=0.01), -0.004),
        dataclasses.replace(SIGNALS, time_offset=False),
    )
    found = prepare_without_delay(late, robot, base_parameters(robot), kept)
    samples, delays, notes = found.samples, found.delays, found.notes
    assert (delays, notes) == ({}, ())
    np.testing.assert_array_equal(samples.tau, prepare(late, robot, kept).tau)


@pytest.mark.parametrize('delay', [0.002, 0.005])
def test_sigma_counts_a_delay_that_is_not_removed(delay):
    """Of a plant that the model does not share: without it friction is 5 σ off and more."""
    made, robot = plant(), arm()
    signals = SignalSettings(time_offset=False, cutoff=20.0, band=8.0, rows='smooth')
    settings = IdentificationSettings(essential=False, model='plain', signals=signals)
    found = identify(remove_delay(made.recording, -delay), robot, settings).estimate
    true = made.base(robot)
    error = np.abs(found.value - [true[name] for name in found.names])
    assert np.all(error < 3.0 * found.sigma)
    assert np.any(error > 5.0 * np.sqrt(np.diag(found.noise_covariance)))
