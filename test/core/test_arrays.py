"""Values that cannot be written, and the scale of matrices."""

import numpy as np
import pytest
from scipy.ndimage import minimum_filter1d

from robotid_ros.core.arrays import (
    all_within,
    DEPENDENT,
    diagonal_scale,
    frozen,
    PREDICTED,
    SINGULAR,
)
from robotid_ros.core.model.base_parameters import reduce_by_qr


def test_frozen_arrays_cannot_be_written_and_leave_what_was_given():
    given = np.arange(3)
    array = frozen(given)
    with pytest.raises(ValueError, match='read-only'):
        array[0] = 1.0
    given[0] = 7
    assert array[0] == 0.0 and frozen(array) is array


def test_scaled_by_its_diagonal_a_matrix_has_ones_there_whatever_the_units():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(2, 9, 3))
    columns[1, :, 2] = 0.0
    units = np.array([1e-6, 1.0, 1e5])
    grams = [np.swapaxes(x, 1, 2) @ x for x in (columns, columns * units)]
    scales = [diagonal_scale(gram) for gram in grams]
    np.testing.assert_allclose(scales[0][0], np.linalg.norm(columns[0], axis=0))
    one, other = (g / (s[:, :, None] * s[:, None, :]) for g, s in zip(grams, scales, strict=True))
    np.testing.assert_allclose(one, other, atol=1e-14)
    np.testing.assert_allclose(np.einsum('kii->ki', one), [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])


@pytest.mark.parametrize(('share', 'count'), [(0.3, 4), (3.0, 5)])
def test_what_base_parameters_and_designs_take_for_dependent(share, count):
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.normal(size=(200, 5)))[0]
    W[:, 4] = (W[:, :4] @ [1.0, -2.0, 0.5, 1.0]) / 2.5 + share * DEPENDENT * W[:, 4]
    np.testing.assert_array_equal(reduce_by_qr(W)[0], range(count))


def test_what_is_solved_is_finer_than_what_decides_and_both_are_above_rounding():
    assert np.finfo(float).eps < SINGULAR < DEPENDENT < PREDICTED < 1.0


@pytest.mark.parametrize('shape', [(0, 2), (1,), (50,), (200, 3)])
@pytest.mark.parametrize('reach', [0, 1, 7, 300])
def test_all_within_is_the_minimum_filter_of_scipy(shape, reach):
    valid = np.random.default_rng(reach).random(shape) > 0.05
    expected = minimum_filter1d(valid, 2 * reach + 1, axis=0, mode='nearest')
    np.testing.assert_array_equal(all_within(valid, reach), expected)
