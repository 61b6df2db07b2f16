"""Rows as a model is used."""

import dataclasses

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.mixed import mixed_model
from robotid_ros.core.mixed.mixed_model import choose
from robotid_ros.core.mixed.variances import KIND
from robotid_ros.core.model import inverse_dynamics
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.parameters.standard import basic_solution
from robotid_ros.core.pipeline.choices import at_instants, position_bandwidth, ROWS
from robotid_ros.core.regression.delays import prepare_without_delay
from robotid_ros.core.regression.estimators import fit, MIXED
from robotid_ros.core.signals.recording import SignalSettings

from .test_mixed_model import coulomb, recorded, ROBOT, stribeck

SIGNALS = SignalSettings(rows='every', time_offset=False, cutoff=20.0, band=8.0)
BASE = base_parameters(ROBOT)


def ripple(q, dq, load):
    return np.sign(dq) * (1.0 + 0.5 * np.sin(15.0 * q))


@given(st.floats(0.3, 4.0), st.floats(1e-3, 1.0))
@settings(max_examples=20, deadline=None)
def test_the_bandwidth_is_that_of_the_fastest_joint(frequency, amplitude):
    time = np.arange(4000) / 200.0
    q = np.column_stack(
        [np.sin(0.2 * np.pi * time), amplitude * np.sin(2 * np.pi * frequency * time)]
    )
    # A window spreads a line over two of the spectrum's steps.
    assert position_bandwidth(q, 200.0) == pytest.approx(frequency, abs=3 / 20.0)


def test_rows_are_the_dynamics_at_instants():
    recording = recorded(lambda q, dq, load: 0.0 * dq, noise=0.0)
    part = at_instants(recording, ROBOT, BASE, SIGNALS)
    samples, system = part.samples, part.system
    standard = 1.1 * ROBOT.prior
    for j, damping in enumerate((0.5, 0.8, 0.4)):
        standard[ROBOT.column(f'Fv{j + 1}')] = damping
        standard[ROBOT.column(f'Fc{j + 1}')] = standard[ROBOT.column(f'off{j + 1}')] = 0.0
    predicted = system.predict(BASE.of(standard))
    exact = inverse_dynamics(ROBOT, standard, samples.q, samples.dq, samples.ddq)
    np.testing.assert_allclose(predicted, exact.T, atol=1e-9)
    inner = slice(200, -200)
    left = predicted[:, inner] - system.Y[:, inner]
    assert np.sqrt(np.mean(left**2)) < 2e-3 * np.sqrt(np.mean(system.Y**2))


def test_a_long_recording_is_thinned():
    recording = recorded(seconds=120.0)
    part = at_instants(recording, ROBOT, BASE, SIGNALS)
    assert ROWS <= len(part.system.time) < 2 * ROWS
    assert part.samples.rate == pytest.approx(200.0 / (len(recording.time) // ROWS))


def test_where_the_model_is_exact_rows_at_instants_count_for_little():
    shares = []
    for law in (coulomb, stribeck, ripple):
        recording = recorded(law, noise=1e-3)
        observed = prepare_without_delay(recording, ROBOT, BASE, SIGNALS)
        system = observed.system
        parts, instants = [observed], [at_instants(recording, ROBOT, BASE, SIGNALS)]
        model = choose(parts, instants, ROBOT, BASE)
        weights = model.shrinkage.weights
        torques = np.sum(model.penalty.instants[:, -1] ** 2)
        own = np.sum(weights * np.sum(system.Y**2 * system.valid, axis=1)) / system.valid.sum()
        shares.append(torques / own)
    exact, shaped, unknown = shares
    assert 0.0 < max(exact, shaped) < 0.02 < 0.1 < unknown


def test_of_few_rows_those_at_instants_count():
    """The fit of all columns leaves next to nothing of so few filtered rows."""
    recording = recorded(ripple, noise=1e-3, seconds=1.5)
    observed = prepare_without_delay(recording, ROBOT, BASE, SIGNALS)
    model = choose([observed], [at_instants(recording, ROBOT, BASE, SIGNALS)], ROBOT, BASE)
    system, weights = observed.system, model.shrinkage.weights
    torques = np.sum(weights * np.sum(system.Y**2 * system.valid, axis=1)) / system.valid.sum()
    assert np.sum(model.penalty.instants[:, -1] ** 2) > 0.1 * torques


def test_where_accelerations_are_noise_rows_at_instants_count_more(monkeypatch):
    """The fit to filtered rows, which have less noise, predicts other instants badly."""

    def noisy(seed):
        recording, rng = recorded(seed=seed), np.random.default_rng(seed)
        noise = rng.normal(0.0, 0.01, recording.position.shape)
        return dataclasses.replace(recording, position=recording.position + noise)

    first, other = noisy(1), at_instants(noisy(2), ROBOT, BASE, SIGNALS).samples
    parts = [prepare_without_delay(first, ROBOT, BASE, SIGNALS)]
    instants = [at_instants(first, ROBOT, BASE, SIGNALS)]

    def left():
        model = choose(parts, instants, ROBOT, BASE)
        base = base_parameters(model.robot)
        system = model.attach(prepare_without_delay(first, model.robot, base, SIGNALS).system)
        chi = basic_solution(base, fit(system, MIXED).value)
        predicted = inverse_dynamics(model.robot, chi, other.q, other.dq, other.ddq)
        return float(np.sum((other.tau - predicted)[other.valid] ** 2))

    often = left()
    monkeypatch.setattr(mixed_model, 'TIMES', (1.0,))
    assert often < 0.8 * left()


def test_the_factor_holds_the_rows():
    """U [χ; −1] has the squares that the weighted rows leave, of any parameters."""
    recording = recorded(stribeck)
    observed = prepare_without_delay(recording, ROBOT, BASE, SIGNALS)
    instants = at_instants(recording, ROBOT, BASE, SIGNALS)
    model = choose([observed], [instants], ROBOT, BASE)
    every = model.penalty.instants
    assert every.shape[1] == BASE.rank + len(KIND) * ROBOT.n + 1
    factor = every[:, [*map(model.names.index, BASE.names), -1]]
    rng = np.random.default_rng(0)
    squares = []
    for _ in range(2 * ROBOT.n):
        value = rng.normal(size=BASE.rank)
        error = (system_error(instants, value) ** 2).sum(axis=1)
        squares.append((*error, np.sum((factor @ np.append(value, -1.0)) ** 2)))
    *errors, total = np.array(squares).T
    # Of each joint, one weight for all of its rows.
    weights, _left, *_ = np.linalg.lstsq(np.array(errors).T, total, rcond=None)
    assert np.all(weights > 0.0)
    np.testing.assert_allclose(np.array(errors).T @ weights, total, rtol=1e-6)


def system_error(part, value):
    system = dataclasses.replace(part.system)
    return np.where(system.valid, system.Y - system.predict(value), 0.0)
