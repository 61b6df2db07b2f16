"""Base parameters by row echelon form (STICTION) are those by QR."""

from pathlib import Path

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters, reduce_by_qr, row_echelon
from robotid_ros.exceptions import UnknownNameError

URDF = Path(__file__).resolve().parents[3] / 'urdf'


@pytest.mark.parametrize('name', ['arm3', 'scara', 'tx40', 'ur10'])
def test_both_reductions_agree(name):
    robot = build_robot((URDF / f'{name}.urdf').read_text(), RobotSettings())
    one, other = (base_parameters(robot, reduction=kind) for kind in ('qr', 'rref'))
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


def test_unknown_reduction_lists_the_known(robot):
    with pytest.raises(UnknownNameError, match='rref'):
        base_parameters(robot, reduction='svd')
