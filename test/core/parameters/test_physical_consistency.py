"""Consistent standard parameters: possible bodies that fit data, and the prior in silence."""

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest
from scipy.linalg import eigh

from robotid_ros.core.parameters.physical_consistency import (
    BodyPrior,
    consistent_parameters,
    IDENTITY,
    inertial_parameters,
    least_norm,
    link_coordinates,
    project,
    pseudo_inertia,
    scaled_coordinates,
    SolverError,
)

pytest.importorskip('clarabel')


def body(rng, scale=1.0):
    """Return a random possible body: point masses seen from the joint frame."""
    points, masses = rng.normal(0.0, 0.3, (12, 3)), rng.uniform(0.1, 1.0, 12) * scale
    extended = np.column_stack([points, np.ones(12)])
    return inertial_parameters((extended.T * masses) @ extended)


def smallest_eigenvalue(inertial, prior):
    """Return that of S, the pseudo-inertia in units of the prior's."""
    return eigh(pseudo_inertia(inertial), pseudo_inertia(prior), eigvals_only=True)[0]


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_pseudo_inertia_and_parameters_are_inverse(seed):
    parameters = body(np.random.default_rng(seed))
    assert np.allclose(inertial_parameters(pseudo_inertia(parameters)), parameters, rtol=1e-13)
    identity = np.array([1, 0, 1, 0, 0, 1, 0, 0, 0, 1.0])
    assert np.allclose(link_coordinates(parameters) @ identity, parameters, rtol=1e-10, atol=1e-12)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_sharp_data_win_over_the_prior(seed):
    rng = np.random.default_rng(seed)
    truth = np.concatenate([body(rng), [0.4, 2.0]])
    prior = np.concatenate([body(rng, 1.3), [0.1, 0.0]])
    factor = rng.normal(size=(40, 12)) * 1e5
    result = consistent_parameters(factor, factor @ truth, BodyPrior(prior, [0], [10, 11]))
    assert np.allclose(result.value, truth, rtol=1e-5, atol=1e-6)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_silent_data_leave_the_prior(seed):
    rng = np.random.default_rng(seed)
    prior = np.concatenate([body(rng), body(rng)])
    result = consistent_parameters(np.zeros((1, 20)), np.zeros(1), BodyPrior(prior, [0, 10]))
    assert np.allclose(result.value, prior, rtol=1e-6, atol=1e-7)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_impossible_data_give_a_possible_body(seed):
    rng = np.random.default_rng(seed)
    prior = body(rng)
    wanted = prior * rng.uniform(-1.5, 1.5, 10)
    result = consistent_parameters(
        np.eye(10) * 1e3, wanted * 1e3, BodyPrior(prior, [0], margin=0.01)
    )
    eigenvalues = np.linalg.eigvalsh(pseudo_inertia(result.value))
    assert eigenvalues[0] > 0
    assert smallest_eigenvalue(result.value, prior) >= 0.01 - 1e-6
    J = np.array(result.value[[0, 1, 2, 1, 3, 4, 2, 4, 5]]).reshape(3, 3)
    moments = np.linalg.eigvalsh(J)
    assert moments[2] <= moments[0] + moments[1]


def test_no_body_is_thinner_than_the_margin_and_no_friction_pushes():
    """Be it all that is wrong with what the data say."""
    prior = np.append(body(np.random.default_rng(1)), 0.5)
    for least, friction in ((0.5, -0.3), (1e-3, 0.3), (1e-3, -0.3)):
        thin = link_coordinates(prior[:10]) @ np.array([least, 0, 1, 0, 0, 1, 0, 0, 0, 1.0])
        wanted = 1e3 * np.append(thin, friction)
        found = consistent_parameters(
            1e3 * np.eye(11), wanted, BodyPrior(prior, [0], [10], margin=0.01)
        )
        assert smallest_eigenvalue(found.value[:10], prior[:10]) >= 0.01 - 1e-6
        assert found.value[10] >= -1e-6


def test_value_and_uncertainty_are_those_of_the_posterior():
    """By Bayes, where no constraint is active; the data are noisier than they are weighted."""
    rng = np.random.default_rng(2)
    prior, spread = np.array([*body(rng), 0.4, -2.0]), np.array([0.5, 2.0])
    factor = 10.0 * rng.normal(size=(5, 12))
    noise = np.cov(rng.normal(size=(5, 20)))
    scaled = np.linalg.inv(link_coordinates(prior[:10]))
    precision = np.diag([*[0.0] * 10, *spread**-2.0])
    precision[:10, :10] = scaled.T @ scaled / 0.1**2
    inverse = np.linalg.inv(factor.T @ factor + precision)
    target = factor @ prior + 0.1 * rng.normal(size=5)
    known = BodyPrior(prior, [0], sigma=[*[np.inf] * 10, *spread], link_sigma=0.1)
    found = consistent_parameters(factor, target, known, noise)
    value = inverse @ (factor.T @ target + precision @ prior)
    covariance = inverse @ (factor.T @ noise @ factor + precision) @ inverse
    np.testing.assert_allclose(found.value, value, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.sigma, np.sqrt(np.diag(covariance)), rtol=1e-7)


def test_unit_of_mass_and_length_do_not_change_the_body():
    rng = np.random.default_rng(3)
    truth, prior = body(rng), body(rng)
    factor = rng.normal(size=(4, 10)) * 30
    gram = np.array([1e6] * 6 + [1e3] * 3 + [1.0])  # m to mm
    one = consistent_parameters(factor, factor @ truth, BodyPrior(prior, [0]))
    other = consistent_parameters(factor / gram, factor @ truth, BodyPrior(prior * gram, [0]))
    assert np.allclose(other.value / gram, one.value, rtol=1e-5, atol=1e-7)


def test_a_massless_prior_becomes_a_small_body():
    result = consistent_parameters(np.zeros((1, 10)), np.zeros(1), BodyPrior(np.zeros(10), [0]))
    assert result.value[9] > 0
    assert np.linalg.eigvalsh(pseudo_inertia(result.value))[0] > 0


def test_what_is_a_body_keeps_its_scale_however_light_and_what_is_none_gets_one():
    identity = np.array([1, 0, 1, 0, 0, 1, 0, 0, 0, 1.0])
    grain = inertial_parameters(np.diag([*[2.5e-15] * 3, 1e-6]))  # 0.1 mm across
    np.testing.assert_allclose(link_coordinates(grain) @ identity, grain)
    rod = inertial_parameters(np.diag([1e-12, 1e-12, 0.1, 2.0]))
    placeholder = inertial_parameters(np.diag([1e-20] * 4))
    for none in (rod, placeholder):
        small = pseudo_inertia(link_coordinates(none) @ identity)
        assert np.sqrt(np.linalg.eigvalsh(small[:3, :3])[0] / small[3, 3]) > 1e-3


def test_the_scale_of_a_needle_is_that_of_a_body_of_some_thickness():
    """Its radii of gyration across become a share of the one along it, wherever it is."""
    mass, along, centre = 2.0, 0.3, np.array([0.5, -0.2, 0.1])

    def rod(across):
        P = np.diag([*(mass * np.array([across, across, along]) ** 2), mass])
        P[:3, :3] += mass * np.outer(centre, centre)
        P[:3, 3] = P[3, :3] = mass * centre
        return P

    T = scaled_coordinates(BodyPrior(inertial_parameters(rod(1e-6)), [0]), slenderness=0.25)[0]
    identity = np.array([1, 0, 1, 0, 0, 1, 0, 0, 0, 1.0])
    np.testing.assert_allclose(pseudo_inertia(T @ identity), rod(0.25 * along), rtol=1e-6)


@pytest.mark.parametrize('small', [1e-5, 1e-7])
@pytest.mark.parametrize('seed', range(3))
def test_links_of_which_data_tell_far_more_and_far_less_are_possible_together(small, seed):
    rng = np.random.default_rng(seed)
    size = np.repeat([small, 100.0], 10)
    root, inside = size[:, None] * rng.normal(size=(20, 20)), rng.normal(size=20)
    free = 0.5 * size * np.tile(IDENTITY, 2) - root @ inside  # a possible robot is at `inside`
    w = project(free, root, BodyPrior(np.zeros(20), [0, 10], margin=0.0))
    assert np.linalg.norm(w) <= (1.0 + 1e-6) * np.linalg.norm(inside)
    for block, scale in (slice(0, 10), small), (slice(10, 20), 100.0):
        S = np.zeros((4, 4))
        S[np.triu_indices(4)] = (free + root @ w)[block][[0, 1, 3, 6, 2, 4, 7, 5, 8, 9]]
        S[np.triu_indices(4, 1)] *= np.sqrt(0.5)
        assert np.linalg.eigvalsh(S, UPLO='U')[0] >= -1e-6 * scale


@pytest.mark.parametrize('value', [np.nan, np.inf, 1e200, -1e200])
@pytest.mark.parametrize('row, limit', [(1.0, 0.0), (0.0, 1.0)])
def test_what_the_solver_would_not_survive_is_an_error(value, row, limit):
    with (
        pytest.raises(SolverError, match=r'no numbers.*check the inertias'),
        np.errstate(invalid='ignore'),
    ):
        rows, limits = value * np.array([row]), value * np.array([limit])
        least_norm(np.array([[*rows], *[[0.0]] * 10]), np.array([*limits, *np.zeros(10)]), 1, 1)
