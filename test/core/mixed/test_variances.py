"""Penalties and folds are what one large least squares problem says, however it is cut."""

import dataclasses
from types import SimpleNamespace

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.mixed.mixed_model import _rest_misleads
from robotid_ros.core.mixed.variances import (
    Choice,
    Fits,
    Grams,
    KIND,
    KINDS,
    products,
    squared_errors,
    strongest,
)
from robotid_ros.core.regression.least_squares import HOLD, Penalty, RIDGE
from robotid_ros.core.regression.observation_system import BLOCKS, folds

N, JOINTS, B, D = 200, 3, 7, len(KIND)


def rows(seed):
    rng = np.random.default_rng(seed)
    W, columns = rng.normal(size=(JOINTS, N, B)), rng.normal(size=(JOINTS, N, D))
    return W, columns, rng.normal(size=(JOINTS, N)), rng.random((JOINTS, N)) < 0.8


def large(W, columns, Y, valid, weights, penalty, size, pull, mean):
    """Solve all joints' rows and all penalties as one stacked problem."""
    count, blocks, target = valid.sum(), [], []
    m = JOINTS * D
    for j in range(JOINTS):
        own = np.zeros((valid[j].sum(), B + m))
        own[:, :B] = W[j][valid[j]]
        own[:, B + j * D : B + (j + 1) * D] = columns[j][valid[j]]
        root = np.sqrt(weights[j] / count)
        blocks.append(own * root)
        target.append(Y[j][valid[j]] * root)
    ridge = (RIDGE + 0.001) * size
    plain_rows = np.vstack([np.vstack(blocks)[:, :B], np.diag(np.sqrt(ridge))])
    plain = np.linalg.lstsq(plain_rows, np.concatenate([*target, np.zeros(B)]), rcond=None)[0]
    pulls = [(ridge, 0 * mean), (pull * size, mean)]
    rows_of_all = [np.vstack(blocks)[:, :B], *(np.diag(np.sqrt(own)) for own, _ in pulls)]
    wanted = np.concatenate([*target, *(np.sqrt(own) * where for own, where in pulls)])
    held = np.linalg.lstsq(np.vstack(rows_of_all), wanted, rcond=None)[0]
    for strength, where in (*pulls, (HOLD * size, held)):
        blocks.append(np.hstack([np.diag(np.sqrt(strength)), np.zeros((B, m))]))
        target.append(np.sqrt(strength) * where)
    each = penalty[np.tile(KIND, JOINTS)] * np.repeat(weights, D)
    open_ones = np.isfinite(each)
    blocks.append(np.hstack([np.zeros((m, B)), np.diag(np.sqrt(np.where(open_ones, each, 0.0)))]))
    target.append(np.zeros(m))
    kept = np.concatenate([np.ones(B, dtype=bool), open_ones])
    found = np.linalg.lstsq(np.vstack(blocks)[:, kept], np.concatenate(target), rcond=None)[0]
    value = np.zeros(B + m)
    value[kept] = found
    return value, plain


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 1000),
    st.lists(st.sampled_from([np.inf, 1.0, 1e-2, 1e-4]), min_size=len(KINDS), max_size=len(KINDS)),
)
def test_the_schur_complement_is_the_large_least_squares_problem(seed, penalty):
    W, columns, Y, valid = rows(seed)
    rng = np.random.default_rng(seed + 1)
    weights, mean, pull = rng.uniform(0.2, 5.0, JOINTS), rng.normal(size=B), 0.01
    grams = products(W, columns, Y, valid, np.ones((1, N), dtype=bool))
    share = grams.total * (weights[:, None, None] / grams.count)
    size = np.einsum('jkk->k', share[:, :B, :B])
    ridge = 0.001 * size
    fits = Fits(share[None], size, (ridge, np.diag(pull * size), mean))
    each = np.array(penalty)[np.tile(KIND, JOINTS)] * np.repeat(weights, D)
    (chi,), (delta,) = fits.solve(each)
    value, plain = large(W, columns, Y, valid, weights, np.array(penalty), size, pull, mean)
    np.testing.assert_allclose(np.append(chi, delta), value, atol=1e-9)
    (squares,) = squared_errors(grams.folds, chi[None], delta[None])
    (left_by_plain,) = squared_errors(grams.folds, fits.plain)
    for j in range(JOINTS):
        error = Y[j] - W[j] @ value[:B] - columns[j] @ value[B + j * D : B + (j + 1) * D]
        assert squares[j] == pytest.approx(np.sum(error[valid[j]] ** 2), rel=1e-9)
        left = (Y[j] - W[j] @ plain)[valid[j]]
        assert left_by_plain[j] == pytest.approx(left @ left, rel=1e-6)


def test_products_of_parts_add_up():
    W, columns, Y, valid = rows(3)
    one = np.ones((1, N), dtype=bool)
    whole = products(W, columns, Y, valid, one)
    parts = [
        products(W[:, cut], columns[:, cut], Y[:, cut], valid[:, cut], one[:, cut])
        for cut in (slice(0, 70), slice(70, N))
    ]
    added = parts[0] + parts[1]
    np.testing.assert_allclose(added.total, whole.total, rtol=1e-12)
    assert added.count == whole.count and len(added.folds) == 2
    np.testing.assert_allclose(added.folds.sum(axis=0), whole.total, rtol=1e-12)


def test_a_penalised_fit_is_the_normal_equations_with_the_penalties():
    rng = np.random.default_rng(0)
    W, Y = rng.normal(size=(100, 6)), rng.normal(size=100)
    shrunk = np.arange(6) >= 4
    precision, size = np.where(shrunk, 30.0, [0.0, 5.0] * 3), np.where(shrunk, 0.0, 5e4)
    spread = np.where(shrunk, 0.0, 2.0 * precision)
    hold, ridge = HOLD * size, RIDGE * size
    R, r, group = rng.normal(size=(3, 6)), rng.normal(size=3), np.where(shrunk, 0, -1)
    U = rng.normal(size=(9, 7))
    penalty = Penalty(np.ones(1), precision, spread, size, shrunk, group, R, r, 0.0, U)
    found = penalty.solve(W, Y)
    plain = np.zeros(6)
    free = W.T @ W + np.diag(ridge + precision) + R.T @ R
    plain[:4] = np.linalg.solve(free[:4, :4], (W.T @ Y + R.T @ r)[:4])
    alone = W.T @ W + np.diag(precision + hold + ridge) + R.T @ R
    normal = alone + U[:, :6].T @ U[:, :6]
    right = W.T @ Y + R.T @ r + hold * plain + U[:, :6].T @ U[:, 6]
    np.testing.assert_allclose(found.value, np.linalg.solve(normal, right), rtol=1e-9)
    np.testing.assert_allclose(W.T @ W + penalty.curvature, normal, rtol=1e-12)
    # The bread is the derivative with respect to Wᵀ Y, the plain fit's part included. Rows at
    # instants are of the same data: they move as the others' estimate does.
    step = 1e-6 * rng.normal(size=100)
    moved = U.copy()
    moved[:, 6] += U[:, :6] @ np.linalg.solve(alone, W.T @ step)
    other = dataclasses.replace(penalty, instants=moved).solve(W, Y + step)
    np.testing.assert_allclose(other.value - found.value, found.bread @ (W.T @ step), atol=1e-12)


def test_the_strongest_pull_that_folds_do_not_tell_from_the_best_is_taken():
    rng = np.random.default_rng(0)
    base = rng.uniform(1.0, 2.0, (14, 3))
    alike = base * np.exp(0.05 * (-1.0) ** np.arange(14)[:, None] + 0.01)
    assert strongest({0.0: base, 1.0: base * 1.0005, 10.0: base * 1.5}) == 1.0
    assert strongest({0.0: base, 1.0: alike, 10.0: base * 1.5}) == 1.0
    assert strongest({0.0: base * 1.5, 1.0: base, 10.0: base * 1.5}) == 1.0


def test_a_hold_alone_changes_nothing():
    rng = np.random.default_rng(1)
    W, Y = rng.normal(size=(100, 6)), rng.normal(size=100)
    none = np.zeros(6)
    nothing = np.zeros((0, 6)), np.zeros(0)
    size = np.sum(W**2, axis=0)
    penalty = Penalty(
        np.ones(1), none, none, size, none > 1.0, np.full(6, -1), *nothing, 0.0, np.zeros((0, 7))
    )
    found = penalty.solve(W, Y)
    inverse = np.linalg.inv(W.T @ W + RIDGE * np.diag(size))
    np.testing.assert_allclose(found.value, inverse @ W.T @ Y, rtol=1e-9)
    np.testing.assert_allclose(found.bread, inverse, rtol=1e-9)
    assert not found.moved.any()
    # What the ridge takes over is of the order of its square.
    assert np.abs(found.bias).max() < 1e3 * RIDGE**2 * np.abs(inverse).max()


def test_what_the_rows_do_not_tell_apart_is_shared_and_as_uncertain_as_all_torques():
    rng = np.random.default_rng(2)
    W, Y = rng.normal(size=(100, 3)), rng.normal(size=100)
    W[:, 1] = 1.0
    W = np.column_stack([W, W[:, 1]])  # a joint that turns one way: sign(v) is the offset
    none, nothing = np.zeros(4), (np.zeros((0, 4)), np.zeros(0))
    size = np.sum(W**2, axis=0)
    penalty = Penalty(
        np.ones(1), none, none, size, none > 1.0, np.full(4, -1), *nothing, 0.0, np.zeros((0, 5))
    )
    found = penalty.solve(W, Y)
    assert not found.moved.any()
    one = np.linalg.lstsq(W[:, :3], Y, rcond=None)[0]
    np.testing.assert_allclose(found.value, [one[0], one[1] / 2, one[2], one[1] / 2], rtol=1e-4)
    sigma = np.sqrt(np.diag(found.bias))
    largest = np.linalg.norm(Y) / np.sqrt(size)
    assert np.all(sigma[[0, 2]] < 1e-4 * largest[[0, 2]])
    np.testing.assert_allclose(sigma[[1, 3]], largest[[1, 3]] / np.sqrt(2.0), rtol=1e-2)


def test_folds_are_blocks_of_time_and_outer_quarters():
    time = np.linspace(0.0, 20.0, 1000)
    q = np.column_stack([np.sin(time), 0.3 * np.cos(1.7 * time)])
    dq = np.gradient(q, time, axis=0)
    used = np.ones(1000, dtype=bool)
    used[100:200] = False
    found = folds(q, dq, used)
    assert found.shape == (BLOCKS + 6, 1000) and not found[:, ~used].any()
    np.testing.assert_array_equal(found[:BLOCKS].sum(axis=0), used)
    np.testing.assert_allclose(found[BLOCKS:].sum(axis=1), 0.25 * used.sum(), atol=2)
    speed = np.linalg.norm(dq / np.quantile(np.abs(dq[used]), 0.95, axis=0), axis=1)
    slow, fast = found[BLOCKS], found[BLOCKS + 1]
    assert speed[slow].max() < speed[fast].min()


def test_every_kind_has_its_columns():
    assert len(KINDS) == len(set(KIND.tolist()))
    assert dataclasses.is_dataclass(Penalty)


def test_a_kind_stays_open_only_at_joints_that_it_clearly_helps():
    blocks = np.arange(N) // 25 == np.arange(BLOCKS)[:, None]
    opened, penalty = np.zeros((20, JOINTS)), np.full(len(KINDS), np.inf)
    penalty[0] = 0.1
    for seed, own in enumerate(opened):
        W, columns, Y, valid = rows(seed)
        Y[0] += columns[0, :, 0]
        grams = products(W, columns, Y, valid, blocks)
        none = Grams(0.0 * grams.total, 0.0 * grams.folds, grams.count)
        choice = Choice(
            grams, none, B, np.ones(JOINTS), None, np.eye(B), np.zeros(B), np.zeros(JOINTS)
        )
        choice._close_at_joints(penalty, 0.0)
        own[:] = choice._used[:, 0]
    assert opened[:, 0].all() and opened[:, 1:].mean() < 0.25


@pytest.mark.parametrize('changes', [False, True])
def test_a_kind_stays_closed_where_it_predicts_another_joint_worse(changes):
    W, columns, Y, _ = rows(1)
    block = np.arange(N) // 25
    Y[0] += 3.0 * columns[0, :, 0]
    if changes:  # so that what other blocks tell of the second joint is wrong
        Y[1] += 3.0 * (-1.0) ** block * columns[1, :, 0]
    valid = np.ones((JOINTS, N), dtype=bool)
    grams = products(W, columns, Y, valid, block == np.arange(BLOCKS)[:, None])
    none = Grams(0.0 * grams.total, 0.0 * grams.folds, grams.count)
    prior = None, np.eye(B), np.zeros(B), np.zeros(JOINTS)
    found = Choice(grams, none, B, np.ones(JOINTS), *prior).run()
    assert found.used[0, 0] != changes


@pytest.mark.parametrize('filtered', [False, True])
def test_kinds_stay_closed_that_help_rows_at_instants_alone(filtered):
    blocks = np.arange(N) // 25 == np.arange(BLOCKS)[:, None]
    valid, both = np.ones((JOINTS, N), dtype=bool), []
    for seed, explained in enumerate((filtered, True)):
        W, columns, Y, _ = rows(seed)
        Y += 3.0 * explained * columns[:, :, 0]
        both.append(products(W, columns, Y, valid, blocks))
    prior = None, np.eye(B), np.zeros(B), np.zeros(JOINTS)
    found = Choice(*both, B, np.ones(JOINTS), *prior).run()
    assert found.used.any() == filtered


def test_a_joint_is_given_no_friction_that_is_large_beside_its_efforts():
    """Of columns that nearly cancel, whose difference is in its noise, data alone take much."""
    rng = np.random.default_rng(5)
    W, columns, Y, _ = rows(2)
    valid = np.ones((JOINTS, N), dtype=bool)
    columns[1, :, 1] = columns[1, :, 0] + 1e-2 * rng.normal(size=N)
    blocks = np.arange(N) // 25 == np.arange(BLOCKS)[:, None]
    grams = products(W, columns, Y, valid, blocks)
    none = Grams(0.0 * grams.total, 0.0 * grams.folds, grams.count)
    penalty = np.full(len(KINDS), 1e-4)
    prior = None, np.eye(B), np.zeros(B)
    least = np.array([0.0, 0.3])[np.minimum(np.arange(JOINTS), 1)]
    weights = np.ones(JOINTS)
    some = Choice(grams, none, B, weights, *prior, least).errors(penalty, 0.0)
    free = Choice(grams, none, B, weights, *prior, 0.0 * least).errors(penalty, 0.0)
    held = Choice(grams, none, B, weights, *prior, 0.0 * least).errors(penalty + 0.3, 0.0)
    assert some[:, 1:].sum() < free[:, 1:].sum()
    every = Choice(grams, none, B, weights, *prior, np.full(JOINTS, 0.3)).errors(penalty, 0.0)
    np.testing.assert_allclose(every, held, rtol=1e-9)


@pytest.mark.parametrize(
    ('plain', 'mixed', 'misleads'),
    [
        (0.02, 0.2, True),
        (0.02, -0.2, False),
        (-0.02, 0.2, False),
        (0.02, 0.02, False),
        (0.02, np.array([0.4, -0.2, -0.2]), False),  # better in σ of the joints alone
        (0.02, np.array([-0.2, 0.4, 0.4]), False),  # better in total alone
    ],
)
def test_rest_misleads_if_plain_friction_and_the_model_both_say_so(plain, mixed, misleads):
    """By how much rows that move predict better; folds differ by 0.08, so that 0.02 is 0.9 σ."""
    folds_of = np.ones((14, JOINTS)) * np.exp(0.08 * np.resize([1.0, -1.0], 14))[:, None]
    found = SimpleNamespace(weights=np.array([3.0, 1.0, 1.0]), penalty=0.0, pull=0.0)

    def choice(gain, plain_gain):
        errors = folds_of ** np.sign(gain) * np.exp(-gain)
        return SimpleNamespace(
            run=lambda: found,
            errors_on=lambda *_: errors,
            plain_on=lambda _: np.full_like(folds_of, np.exp(-plain_gain)),
        )

    with_rest = choice(0.0, 0.0)
    assert _rest_misleads(with_rest, found, SimpleNamespace(folds=None), choice(mixed, plain)) == (
        misleads
    )
