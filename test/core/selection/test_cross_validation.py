"""Cross-validation from products alone against fits of rows, and what is simplest among equals."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats

from robotid_ros.core.selection.block_grams import BlockGrams, Columns
from robotid_ros.core.selection.candidates import (
    Candidate,
    COULOMB,
    FRICTION,
    OFFSET,
    PLAIN,
    SPRING,
    VISCOUS,
)
from robotid_ros.core.selection.cross_validation import (
    cross_validate,
    fit_candidate,
    LEAST_GAIN,
    NOTICEABLE,
    Score,
    simplest,
)

BLOCKS, ROWS, RANK, JOINTS = 6, 30, 3, 2
TERMS = (SPRING, *PLAIN)
# Columns of each joint, of base parameters and its own friction, and their places in a fit.
OWN = [[0, 1, 2, 4, 5], [0, 1, 2, 4, 5, 6]]
PLACES = [[0, 1, 2, 3, 4], [0, 1, 2, 5, 6, 7]]


@pytest.fixture
def columns():
    robot, base = SimpleNamespace(n=JOINTS), SimpleNamespace(rank=RANK)
    return Columns(robot, base, TERMS)


def rows_of(seed):
    """Return [W F Y] of each joint and block, (n, K, N, c), with much more noise in the second."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(JOINTS, BLOCKS, ROWS, RANK + len(TERMS) + 1))
    noise, value = (0.1, 1.0), np.array([2.0, 3.0, -1.0, 0.5, 0.7, 0.9, 0.4, -0.3])
    for j in range(JOINTS):
        rows[j, ..., -1] *= noise[j]
        rows[j, ..., -1] += rows[j][..., OWN[j]] @ value[PLACES[j]]
    return rows


def grams(rows):
    products = np.einsum('jkra,jkrb->kjab', rows, rows)
    return BlockGrams(products, np.full((BLOCKS, JOINTS), rows.shape[2]))


def candidate_of(estimator='ols', **fields):
    friction = ((VISCOUS, COULOMB), (VISCOUS, COULOMB, OFFSET))
    return dataclasses.replace(Candidate(12.5, 5.0, 'all', estimator, friction), **fields)


def design(rows):
    """Return each joint's rows in the columns of a fit, (n, K, N, 8)."""
    full = np.zeros((*rows.shape[:3], 8))
    for j in range(JOINTS):
        full[j][..., PLACES[j]] = rows[j][..., OWN[j]]
    return full


def fit_of_rows(A, y, weights):
    """Return weighted least squares of (n, M, 8), (n, M)."""
    root = np.sqrt(weights)[:, None]
    return np.linalg.lstsq(np.vstack(A * root[..., None]), np.ravel(y * root))[0]


def flat(x):
    return x.reshape(JOINTS, -1, *x.shape[3:])


@pytest.mark.parametrize('estimator', ['ols', 'wls'])
def test_products_tell_what_fits_of_the_rows_do(estimator, columns):
    """Of some blocks, and of all but one, which is judged by other rows of its time."""
    training, judging = rows_of(0), rows_of(1)
    A, y = design(training), training[..., -1]
    weights = np.ones(JOINTS)
    if estimator == 'wls':
        plain = fit_of_rows(flat(A), flat(y), weights)
        weights = BLOCKS * ROWS / np.sum((flat(y) - flat(A) @ plain) ** 2, axis=1)
    candidate = candidate_of(estimator)
    score = cross_validate(candidate, columns, grams(training), grams(judging))
    for k in range(BLOCKS):
        others = np.arange(BLOCKS) != k
        value = fit_of_rows(flat(A[:, others]), flat(y[:, others]), weights)
        left = judging[:, k, :, -1] - design(judging)[:, k] @ value
        np.testing.assert_allclose(score.errors[k], np.sum(left**2, axis=1), rtol=1e-6)
    np.testing.assert_allclose(score.powers, np.sum(judging[..., -1] ** 2, axis=2).T)
    value = fit_of_rows(flat(A), flat(y), weights)
    expected = np.zeros((JOINTS, RANK + len(TERMS)))
    for j in range(JOINTS):
        expected[j, OWN[j]] = value[PLACES[j]]
    found = fit_candidate(candidate, columns, grams(training))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_units_of_parameters_do_not_matter(columns):
    rows, units = rows_of(0), np.array([1.0, 1e12, 1e-9, 1.0, 1e-5, 1e7, 1.0, 1.0])
    candidate = candidate_of('wls')
    one, other = (
        cross_validate(candidate, columns, grams(each), grams(each))
        for each in (rows, rows * units)
    )
    np.testing.assert_allclose(other.errors, one.errors, rtol=1e-5)


def test_of_no_torque_nothing_is_estimated(columns):
    rows = rows_of(0)
    rows[..., -1] = 0.0
    assert not fit_candidate(candidate_of('wls'), columns, grams(rows)).any()


def scored(ratio, wiggle=0.5):
    """Return errors of so many times 1 % of small powers, which change from block to block."""
    errors = 1e-5 * (ratio + wiggle * (-1.0) ** np.arange(8))
    return Score(errors[:, None], np.full((8, 1), 1e-3))


SMOOTH = FRICTION[2]


@pytest.mark.parametrize(
    ('best', 'other', 'ratio', 'expected'),
    [
        # Nearer than 0.2 % of the residual, no shape constants; nearer than 3 %, WLS.
        ({'friction': (SMOOTH,)}, {'friction': (PLAIN,)}, 1.0035, True),
        ({'friction': (SMOOTH,)}, {'friction': (PLAIN,)}, 1.0045, False),
        ({'estimator': 'ols'}, {'estimator': 'wls'}, 1.05, True),
        ({'estimator': 'ols'}, {'estimator': 'wls'}, 1.07, False),
        # The band that is nearest to a usual one, all rows, and few parameters.
        ({'band': 5.0}, {'band': 8.0}, 1.01, True),
        ({'band': 5.0}, {'band': 12.0}, 1.01, True),
        ({'band': 12.0}, {'band': 5.0}, 1.01, False),
        ({'band': 20.0}, {'band': 8.0}, 1.01, True),
        ({'rows': 'moving'}, {'rows': 'all'}, 1.01, True),
        ({'friction': ((*PLAIN, SPRING),)}, {'friction': (PLAIN,)}, 1.15, True),
        ({'friction': ((*PLAIN, SPRING),)}, {'friction': (PLAIN,)}, 1.9, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize('swapped', [False, True])
def test_the_simplest_of_those_that_are_equal_is_taken(best, other, ratio, expected, swapped):
    plain = candidate_of('wls', friction=(PLAIN,))
    first, second = (dataclasses.replace(plain, **fields) for fields in (best, other))
    scores = {first: scored(1.0, 0.0), second: scored(ratio)}
    if swapped:
        scores = dict(reversed(scores.items()))
    assert simplest(scores) == simplest(scores, 0) == (second if expected else first)


def test_gains_have_the_standard_error_of_a_mean():
    rng = np.random.default_rng(4)
    one, other = (Score(rng.uniform(size=(8, 2)), np.ones((8, 2))) for _ in range(2))
    for joint, of in ((None, lambda x: x.sum(axis=1)), (1, lambda x: x[:, 1])):
        gains = of(other.errors) - of(one.errors)
        assert one.gain_over(other, joint) == pytest.approx((gains.mean(), scipy.stats.sem(gains)))


@pytest.mark.parametrize('unit', [1e-3, 1.0, 1e4])
def test_a_gain_is_noticed_by_its_share_of_the_error_and_of_the_torque(unit):
    """A torque of two thousandths of the measured one is not, however small the error is."""
    powers = unit**2 * np.full((8, 1), 3.0)
    residual = np.array([0.1, 1e-3])
    large, small = (Score(powers * share**2, powers) for share in residual)
    assert large.least_gain() == pytest.approx(LEAST_GAIN * large.mean_error())
    assert small.least_gain(0) == pytest.approx(
        Score((NOTICEABLE**2) * powers, powers).mean_error()
    )


@pytest.mark.parametrize('small', [1e-3, 1.0])
def test_joints_of_small_efforts_are_not_given_up_for_those_of_large_ones(small):
    """The best sum of squares, which leaves three times the effort of the second joint."""
    powers = np.tile([1.0, small], (8, 1))
    ols, wls = (Candidate(8.0, 20.0, 'all', kind, (PLAIN,) * 2) for kind in ('ols', 'wls'))
    scores = {
        ols: Score(powers * [0.0100, 9.0 if small < 1.0 else 0.01], powers),
        wls: Score(powers * [0.0200 + 9.0 * small, 0.04], powers),
    }
    assert simplest(scores) == (wls if small < 1.0 else ols)


def test_residuals_are_shares_of_the_effort():
    powers = np.array([[4.0, 1.0], [12.0, 3.0]])
    score = Score(powers * [0.01, 0.36], powers)
    np.testing.assert_allclose(score.joint_residuals, [0.1, 0.6])
    assert score.residual == pytest.approx(np.sqrt(0.01 * 0.8 + 0.36 * 0.2))
