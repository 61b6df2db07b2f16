"""Base parameters explain every torque, and nothing more can be found."""

import dataclasses
from pathlib import Path

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.model import (
    base_parameters as module,
    build_robot,
    inverse_dynamics,
    regressor,
    RobotSettings,
)
from robotid_ros.core.model.base_parameters import base_parameters, reduce_by_qr

from .arms import arm


def states(robot, seed=0, count=60):
    return np.random.default_rng(seed).normal(size=(3, count, robot.n))


def test_base_columns_give_the_torque(robot, truth):
    base = base_parameters(robot)
    q, dq, ddq = states(robot)
    W = regressor(robot, q, dq, ddq)[:, :, base.columns]
    np.testing.assert_allclose(
        (W @ base.of(truth)).T, inverse_dynamics(robot, truth, q, dq, ddq), atol=1e-9
    )


def test_rank_is_the_numerical_rank(robot):
    base = base_parameters(robot)
    W = regressor(robot, *states(robot, 1)).reshape(-1, robot.p)
    assert base.rank == np.linalg.matrix_rank(W)
    assert np.linalg.matrix_rank(W[:, base.columns]) == base.rank


def test_joints_without_limits_turn_as_others_do():
    robot = arm()
    assert np.isinf(robot.limits.lower).any() and np.isinf(robot.limits.upper).any()
    test_rank_is_the_numerical_rank(robot)


def test_joints_that_may_not_move_have_those_of_their_model_too(robot):
    fixed = dataclasses.replace(robot.limits, upper=robot.limits.lower)
    locked = dataclasses.replace(robot, limits=fixed)
    assert base_parameters(locked).names == base_parameters(robot).names


def test_seed_does_not_matter(robot):
    one, other = base_parameters(robot, seed=1), base_parameters(robot, seed=2)
    assert one.combinations == other.combinations
    np.testing.assert_allclose(one.matrix, other.matrix, atol=1e-9)


def test_combinations_say_what_the_matrix_does(robot, truth):
    base = base_parameters(robot)
    values = {p.name: value for p, value in zip(robot.parameters, truth, strict=True)}
    assert [name.endswith('R') for name in base.names] == [' = ' in c for c in base.combinations]
    for text, value in zip(base.combinations, base.of(truth), strict=True):
        terms = text.partition(' = ')[2] or text
        assert ' 1·' not in terms
        expression = terms.replace('·', '*')
        np.testing.assert_allclose(eval(expression, {}, values), value, rtol=1e-4, atol=1e-9)


def test_classes(robot):
    base = base_parameters(robot)
    kinds = dict(zip((p.name for p in robot.parameters), base.classes, strict=True))
    assert kinds['Fv1'] == kinds['Fc2'] == 'identifiable'
    assert kinds['M1'] == kinds['XX1'] == 'unidentifiable'
    assert kinds['ZZ1'] == kinds['M3'] == 'in combination'


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_reduction_is_exact(rank, seed):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(30, rank)) @ rng.integers(-2, 3, size=(rank, 8)).astype(float)
    columns, matrix = reduce_by_qr(W)
    assert len(columns) == np.linalg.matrix_rank(W)
    np.testing.assert_allclose(W[:, columns] @ matrix, W, atol=1e-7 * max(1.0, np.abs(W).max()))


@pytest.mark.parametrize('unit', [1e-9, 1e9])
def test_unit_of_the_torque_does_not_matter(unit):
    rng = np.random.default_rng(4)
    W = rng.normal(size=(30, 4)) @ rng.integers(-2, 3, size=(4, 8))
    W[:, 5] = 1e-15 * rng.normal(size=30)  # rounding
    columns, matrix = reduce_by_qr(W)
    assert 5 not in columns and not matrix[:, 5].any()
    again, other = reduce_by_qr(unit * W)
    np.testing.assert_array_equal(again, columns)
    np.testing.assert_allclose(other, matrix, atol=1e-9)


def test_full_rank_reduces_to_itself():
    W = np.random.default_rng(0).normal(size=(20, 5))
    columns, matrix = reduce_by_qr(W)
    np.testing.assert_array_equal(columns, np.arange(5))
    np.testing.assert_array_equal(matrix, np.eye(5))


URDF = Path(__file__).resolve().parents[3] / 'urdf'


def row_echelon(W):
    """Reduce W (r, p) by Gauss and Jordan: rows are exchanged for the largest pivot."""
    norms = np.linalg.norm(W, axis=0)
    norms[norms < 1e-6 * norms.max()] = 0.0
    rows = np.linalg.qr(W / np.where(norms > 0.0, norms, np.inf), mode='r')
    columns = []
    for column in range(W.shape[1]):
        top = len(columns)
        if top == len(rows):
            break
        place = top + int(np.argmax(np.abs(rows[top:, column])))
        if np.linalg.norm(rows[top:, column]) <= 1e-6:
            rows[top:, column] = 0.0
            continue
        rows[[top, place]] = rows[[place, top]]
        rows[top] /= rows[top, column]
        others = np.arange(len(rows)) != top
        rows[others] -= np.outer(rows[others, column], rows[top])
        columns.append(column)
    kept, combination = np.array(columns, dtype=int), rows[: len(columns)]
    matrix = combination * norms / norms[kept][:, None]
    matrix[np.abs(combination) < 1e-7] = 0.0
    near = np.round(matrix)
    matrix = np.where(np.abs(matrix - near) < 1e-7, near, matrix)
    matrix[:, kept] = np.eye(len(kept))
    return kept, matrix


@pytest.mark.parametrize('name', ['arm3', 'scara', 'tx40', 'ur10'])
def test_both_reductions_agree(name, monkeypatch):
    robot = build_robot((URDF / f'{name}.urdf').read_text(), RobotSettings())
    one = base_parameters(robot)
    monkeypatch.setattr(module, 'reduce_by_qr', row_echelon)
    other = base_parameters(robot)
    assert one.names == other.names
    assert one.classes == other.classes
    assert one.combinations == other.combinations
    np.testing.assert_allclose(one.matrix, other.matrix, atol=1e-8)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_echelon_form_is_exact(rank, seed):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(30, rank)) @ rng.integers(-2, 3, size=(rank, 8)).astype(float)
    columns, matrix = row_echelon(W)
    np.testing.assert_array_equal(columns, reduce_by_qr(W)[0])
    np.testing.assert_allclose(W[:, columns] @ matrix, W, atol=1e-7 * max(1.0, np.abs(W).max()))
    np.testing.assert_array_equal(matrix[:, columns], np.eye(len(columns)))
    for row, column in zip(matrix, columns, strict=True):
        assert not row[:column].any()


def test_fewer_rows_than_columns_have_no_more_pivots_than_rows():
    W = np.random.default_rng(0).normal(size=(3, 6))
    for reduction in (reduce_by_qr, row_echelon):
        columns, matrix = reduction(W)
        np.testing.assert_array_equal(columns, range(3))
        np.testing.assert_allclose(W[:, columns] @ matrix, W, atol=1e-7)
