"""Base parameters by QR are those of the row echelon form of W (STICTION eq. 10-14)."""

from pathlib import Path

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.model import base_parameters as module, build_robot, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters, reduce_by_qr

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
