"""Shapes that a model may leave out, by what they are to hold, and their variances."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.regression import model_error
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.model_error import COLUMNS, FADING, ModelErrors
from robotid_ros.core.regression.observation_system import observe, Rows
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import SignalSettings

ROWS, JOINT = 400, 1


def case():
    """Return errors and a system of two joints, with positions and velocities of the second."""
    rng, time = np.random.default_rng(0), 5.0 + np.linspace(0.0, 20.0, ROWS)
    q = 2.0 + 0.7 * np.sin(1.3 * time) + 0.4 * np.sin(2.9 * time + 1.0)
    dq = np.gradient(q, time)
    W, valid = rng.normal(size=(2, ROWS, 3)), np.ones((2, ROWS), dtype=bool)
    W[:, :, 0] = np.sin(3.0 * time)
    rigid, both = np.array([2.0, 0.0, 0.0]), np.array([1.0, 1.0])
    errors = ModelErrors(0.8 * both, 2.0 * both, 0.5 * both, 15.0, 20.0, rigid)
    some = Rows(tuple('abc'), ('',) * 3, ('j', 'k'), W, np.zeros((2, ROWS)), valid, time)
    return errors, some, q, dq


def shapes(some, q, dq):
    """Return torques that the columns are to hold, with the friction of the model."""
    time, s = some.time, np.sign(dq)
    load = 2.0 * some.W[JOINT, :, 0]
    return {
        'Stribeck': s * np.exp(-np.abs(dq) / (0.8 * FADING[0])),
        'slower Stribeck': s * np.exp(-np.abs(dq) / (0.8 * FADING[1])),
        'drag': dq * np.abs(dq),
        'Coulomb by load': np.abs(load) * s,
        'viscous by load': np.abs(load) * dq,
        'Coulomb that warms up': (time - 5.0) * s,
        'viscous that warms up': (time - 5.0) * dq,
        'spring': q - 2.5,
        'quadratic spring': (q - 2.5) ** 2,
        'Coulomb by position': (q - 1.0) * s,
        'viscous by direction': np.abs(dq),
        'delay': np.gradient(load, time),
        'offset': np.ones(ROWS),
        'half a wave': np.cos(np.pi * (time - 5.0) / 20.0),
        'a wave': np.cos(2.0 * np.pi * (time - 5.0) / 20.0),
        'three half waves': np.cos(3.0 * np.pi * (time - 5.0) / 20.0),
    }


def test_columns_hold_the_torques_that_they_are_for():
    errors, some, q, dq = case()
    D = errors.columns(JOINT, q, dq, some)
    assert D.shape == (ROWS, COLUMNS)
    known = np.column_stack([np.sign(dq), dq])
    every = np.column_stack([D, known])
    assert np.linalg.matrix_rank(every / np.linalg.norm(every, axis=0), tol=1e-4) == COLUMNS + 2
    for name, torque in shapes(some, q, dq).items():
        left = torque - every @ np.linalg.lstsq(every, torque)[0]
        assert np.linalg.norm(left) < 1e-8 * np.linalg.norm(torque), name


def test_columns_are_of_the_size_of_what_they_are_made_of_and_odd_or_even():
    errors, some, q, dq = case()
    plain = errors.columns(JOINT, q, dq, some)
    turned = errors.columns(JOINT, q, -dq, some)
    np.testing.assert_allclose(turned[:, [*range(7), 9]], -plain[:, [*range(7), 9]])
    np.testing.assert_allclose(
        turned[:, [7, 8, *range(10, COLUMNS)]], plain[:, [7, 8, *range(10, COLUMNS)]]
    )
    mirrored = errors.columns(JOINT, 4.0 - q, dq, some)
    np.testing.assert_allclose(mirrored[:, [7, 9]], -plain[:, [7, 9]], atol=1e-12)
    np.testing.assert_allclose(mirrored[:, 8], plain[:, 8], atol=1e-12)


@pytest.fixture(scope='module')
def observed(robot, record):
    base, settings = base_parameters(robot), SignalSettings(cutoff=10.0)
    samples = prepare(record(noise=0.1), robot, settings)
    return samples, observe(samples, robot, base), robot, base


def test_columns_do_not_depend_on_units_of_the_motion_nor_on_when_and_where_it_began(observed):
    samples, system, robot, base = observed
    later = dataclasses.replace(
        samples, time=samples.time + 1e3, q=4.0 * samples.q - 7.0, dq=4.0 * samples.dq
    )
    shifted = dataclasses.replace(system, time=system.time + 1e3)
    plain, other = (
        ModelErrors.of(some, seen, robot, base).attach(some, seen).D
        for some, seen in ((samples, system), (later, shifted))
    )
    np.testing.assert_allclose(other, plain, rtol=1e-6, atol=1e-8 * np.abs(plain).max())
    ends = plain[:, [0, -1], -4:]
    np.testing.assert_allclose(ends[:, 0], 1.0)
    np.testing.assert_allclose(ends[:, 1], [[1.0, -1.0, 1.0, -1.0]] * 3)
    long = ModelErrors.of(samples, system, robot, base, least=60.0)
    assert long.duration == 60.0 and long.middle == pytest.approx(system.time[0] + 30.0)
    scaled = ModelErrors.of(samples, system, robot, base)
    v = samples.dq / scaled.speed
    assert scaled.duration == pytest.approx(np.ptp(system.time))
    np.testing.assert_allclose(np.mean(v**2, axis=0), 1.0)


def test_the_load_is_told_by_rows_in_units_of_their_joints_noise():
    rng, count = np.random.default_rng(3), np.array([300, 90])
    W = rng.normal(size=(2, 300, 3))
    Y = W @ [1.0, -2.0, 0.5] + [[0.1], [0.6]] * rng.normal(size=(2, 300))
    valid = np.arange(300) < count[:, None]
    some = Rows(tuple('abc'), ('',) * 3, ('j', 'k'), W, Y, valid, np.arange(300.0))
    own = [y - w @ np.linalg.lstsq(w, y)[0] for w, y in map(some.rows, range(2))]
    sigma = np.array([np.sqrt(np.mean(each**2)) for each in own])
    expected = fit(dataclasses.replace(some, noise=sigma), 'mle').value
    np.testing.assert_allclose(model_error._least_squares(some), expected, rtol=1e-9)


@pytest.mark.parametrize('count', [50.0, 400.0])
def test_variances_of_an_orthogonal_design_are_those_of_textbooks(monkeypatch, count):
    """λ = |δ|²/m − 1/n of m values of variance 1/n each (Searle, Casella, McCulloch 1992)."""
    monkeypatch.setattr(model_error, 'TOLERANCE', 1e-9)
    free, labels = np.array([0.9, -0.7, 0.5, 0.02, 0.01, -0.6]), np.array([0, 0, 0, 1, 1, 2])
    found = model_error._second_moment(count * np.eye(6), count * free, labels)
    variance = np.zeros(6)
    for group in (labels == 0, labels == 2):
        variance[group] = np.mean(free[group] ** 2) - 1.0 / count
    shrunk = variance / (variance + 1.0 / count)
    expected = np.outer(shrunk * free, shrunk * free) + np.diag(shrunk / count)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


def test_what_one_group_explains_another_need_not():
    """The second column is half the first: alone it would be significant too."""
    rng = np.random.default_rng(4)
    z = rng.normal(size=(500, 3))
    D = np.column_stack([z[:, 0], 0.5 * z[:, 0] + 0.9 * z[:, 1], z[:, 2]])
    y = 3.0 * D[:, 0] + rng.normal(size=500)
    found = model_error._second_moment(D.T @ D, D.T @ y, np.arange(3))
    assert found[0, 0] == pytest.approx(9.0, rel=0.1)
    assert not found[1:].any() and not found[:, 1:].any()


@pytest.mark.parametrize('share, seen', [(3e-5, False), (3e-3, True)])
def test_what_hardly_differs_from_the_models_own_columns_is_not_seen(share, seen):
    rng = np.random.default_rng(5)
    W, valid = rng.normal(size=(1, 600, 2)), np.ones((1, 600), dtype=bool)
    D = np.zeros((1, 600, COLUMNS))
    D[0, :, 7] = W[0, :, 0] + share * rng.normal(size=600)
    Y = W @ [1.0, 2.0] + D[:, :, 7] + 1e-6 * rng.normal(size=(1, 600))
    some = Rows(('a', 'b'), ('',) * 2, ('j',), W, Y, valid, np.arange(600.0), D=D)
    assert fit(some, 'ols').model_error.any() == seen
