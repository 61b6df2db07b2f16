"""Output error in open and closed loop: the truth, its σ, and what each of them needs."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.findings import finding
from robotid_ros.core.identification_settings import IdentificationSettings, ReplaySettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.replay.didim import didim
from robotid_ros.core.replay.replay_problem import make_open_loop_problem
from robotid_ros.core.replay.simulated_observation import linearise
from robotid_ros.core.signals.recording import Samples
from robotid_ros.exceptions import ControllerError

from .test_didim import case_of, RATE, recording_of, TIGHT

LOOSE = ReplaySettings(decimation=5, step=0.002)


def problem(method, noise=0.0, settings=TIGHT):
    """Return a replay of four seconds, noise in what its method fits, and the true parameters."""
    replay, true = case_of(settings, noise=noise * (method == 'clie'), duration=4.0)
    q, dq, ddq = replay.measured
    q = q + noise * 1e-3 * np.random.default_rng(5).normal(size=q.shape)
    if method == 'oe':
        tau = replay.torque.tau
        # Torques of samples are those at their stamps: between the updates before and after.
        at_stamps = 0.5 * (tau + np.vstack([tau[:1], tau[:-1]]))
        valid = np.ones(tau.shape, dtype=bool)
        time = np.arange(len(tau)) / RATE
        samples = Samples(replay.robot.joints, time, q, dq, ddq, at_stamps, RATE, valid)
        given = dataclasses.replace(settings, decimation=10)
        open_loop = make_open_loop_problem(samples, replay.robot, replay.base, given)
        held = dataclasses.replace(open_loop.law, torque=tau)
        replay = dataclasses.replace(open_loop, law=held)
    return dataclasses.replace(replay, method=method, measured=Motion(q, dq, ddq)), true


@pytest.mark.parametrize(('method', 'steps'), [('clie', 2), ('cloe', 2), ('oe', 3)])
def test_truth_within_few_steps_from_near_without_noise(method, steps):
    replay, true = problem(method, settings=dataclasses.replace(TIGHT, iterations=steps + 1))
    near = true * (1.0 + 0.05 * np.cos(np.arange(true.size)))
    found = didim(replay, replay.standard_parameters(near))
    np.testing.assert_allclose(found.estimate.value, true, atol=1e-3)


def test_the_motion_of_efforts_that_are_held_is_not_replayed():
    replay, _ = problem('oe')
    notes = (finding('efforts_slower', rate=10.0),)
    held = dataclasses.replace(replay.samples, notes=notes)
    with pytest.raises(ControllerError, match='record both at one rate'):
        make_open_loop_problem(held, replay.robot, replay.base, LOOSE)


@pytest.mark.parametrize('method', ['clie', 'cloe'])
def test_sensitivities_are_the_derivatives_of_the_output(method):
    replay, true = problem(method)
    rng, ones = np.random.default_rng(0), np.ones(2)
    direction = 1e-3 * np.abs(true) * rng.normal(size=true.size)
    chi = replay.standard_parameters(true)
    systems = [
        linearise(replay, replay.simulate(x, ones), x, ones)[0]
        for x in (chi, replay.standard_parameters(true + direction))
    ]
    # Y = y − y_s + W χ: what Y − W χ changes by is what y_s changes by, the other way round.
    left = [s.Y - s.predict(v) for s, v in zip(systems, (true, true + direction), strict=True)]
    predicted = systems[0].predict(direction)
    error = np.linalg.norm(left[0] - left[1] - predicted) / np.linalg.norm(predicted)
    assert error < 0.02


def test_states_at_the_starts_do_not_matter_to_open_loop_output_error():
    replay, true = problem('oe')
    rng = np.random.default_rng(1)
    q, dq = (x + 1e-3 * rng.normal(size=x.shape) for x in replay.desired[:2])
    moved = dataclasses.replace(replay, desired=replay.desired._replace(q=q, dq=dq))
    chi, ones = moved.standard_parameters(true), np.ones(2)
    system = linearise(moved, moved.simulate(chi, ones), chi, ones)[0]
    error = np.abs(fit(system).value - true)
    assert np.all(error <= 0.02 * np.abs(true).max())
    q_only = interpolated_error(moved, chi, ones)
    assert np.linalg.norm(system.Y - system.predict(true)) < 0.05 * q_only


def interpolated_error(replay, chi, ones):
    """Return the size of the output error of the same rows, initial states as they are."""
    run, rows = replay.simulate(chi, ones), replay.torque.row.astype(int)[:: replay.decimation]
    return np.linalg.norm(run.q[rows] - replay.measured[0][rows])


@pytest.mark.parametrize('method', ['clie', 'cloe', 'oe'])
def test_noise_stays_within_the_sigma(method):
    replay, true = problem(method, noise=0.03, settings=LOOSE)
    near = true * (1.0 + 0.05 * np.cos(np.arange(true.size)))
    estimate = didim(replay, replay.standard_parameters(near)).estimate
    assert np.all(np.abs(estimate.value - true) <= 4.5 * estimate.sigma)


def test_sigma_counts_that_residuals_correlate():
    replay, _ = problem('clie', settings=LOOSE)
    white = np.random.default_rng(3).normal(size=replay.torque.tau.shape)
    slow = np.zeros_like(white)
    for k in range(1, len(white)):
        slow[k] = 0.98 * slow[k - 1] + 0.2 * white[k]
    noisy = replay.torque._replace(tau=replay.torque.tau + slow)
    replay = dataclasses.replace(replay, torque=noisy)
    chi, ones = replay.standard_parameters(problem('clie')[1]), np.ones(2)
    estimate = fit(linearise(replay, replay.simulate(chi, ones), chi, ones)[0])
    ratio = estimate.sigma / np.sqrt(np.diag(estimate.classical))
    assert np.median(ratio) > 1.3


@pytest.mark.parametrize('method', ['clie', 'cloe', 'oe'])
def test_identify_by_output_error(method):
    replay, true = case_of(duration=4.0)
    recording, lines = recording_of(replay, replay.law), []
    noise = 0.01 * recording.effort.std(axis=0)
    noise = noise * np.random.default_rng(4).normal(size=recording.effort.shape)
    recording = dataclasses.replace(recording, effort=recording.effort + noise)
    if method == 'oe':
        recording = dataclasses.replace(recording, controller=None, reference=None)
    settings = IdentificationSettings(method=method, replay=LOOSE)
    found = identify(recording, replay.robot, settings, progress=lines.append)
    assert found.method == method and found.history.steps >= 1
    assert any(f'{method.upper()} iteration 1' in line for line in lines)
    assert found.essential is not None and found.standard.consistent.all()
    assert found.fitted.total_residual() < 0.02
    # Noise of the torque drives the open loop: its positions wander, which four seconds hardly
    # show.
    near = 0.08 if method == 'oe' else 0.02
    gap = np.abs(found.estimate.value - true)
    assert np.all(gap <= np.maximum(4.0 * found.estimate.sigma, near * np.abs(true).max()))


def test_closed_loops_need_the_controller():
    replay, _ = case_of(duration=4.0)
    recording = dataclasses.replace(recording_of(replay, replay.law), controller=None)
    settings = IdentificationSettings(method='cloe', essential=False, replay=LOOSE)
    with pytest.raises(ControllerError, match='does not hold the controller'):
        identify(recording, replay.robot, settings)
