"""What counts as a combination of other columns does so wherever columns are chosen."""

import numpy as np
import pytest

from robotid_ros.core.arrays import DEPENDENT, PREDICTED, PROJECTED, SINGULAR
from robotid_ros.core.model.base_parameters import reduce_by_qr


@pytest.mark.parametrize(('share', 'count'), [(0.3, 4), (3.0, 5)])
def test_what_base_parameters_and_designs_take_for_dependent(share, count):
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.normal(size=(200, 5)))[0]
    W[:, 4] = (W[:, :4] @ [1.0, -2.0, 0.5, 1.0]) / 2.5 + share * DEPENDENT * W[:, 4]
    np.testing.assert_array_equal(reduce_by_qr(W)[0], range(count))


def test_what_is_solved_is_finer_than_what_decides_and_both_are_above_rounding():
    assert np.finfo(float).eps < SINGULAR < PROJECTED < DEPENDENT < PREDICTED < 1.0
