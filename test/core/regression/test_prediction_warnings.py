"""What is said of efforts that given parameters predict badly."""

import numpy as np
import pytest

from robotid_ros.core.diagnostics.data_warnings import prediction_warnings
from robotid_ros.core.regression.validation import Validation

TIME = np.linspace(0.0, 20.0, 2000)
PREDICTED = np.column_stack([5.0 * np.sin(TIME), 2.0 * np.cos(2.0 * TIME)])


def warnings(measured):
    valid = np.ones(PREDICTED.shape, dtype=bool)
    return prediction_warnings(Validation(('a', 'b'), TIME, measured, PREDICTED, valid))


@pytest.mark.parametrize(
    ('scale', 'offset', 'residual'),
    [(1.05, 0.0, None), (1.3, 0.0, 0.231), (-1.0, 0.0, 2.0), (1.0, 0.8, 0.492)],
)
def test_a_joint_that_is_predicted_badly_is_told(scale, offset, residual):
    found = warnings(PREDICTED * [1.0, scale] + [0.0, offset])
    assert [each.joints for each in found] == [('b',)] * (residual is not None)
    for each in found:
        assert each.values['residual'] == pytest.approx(residual, abs=5e-3)


def test_rows_at_rest_do_not_count():
    measured, valid = PREDICTED.copy(), np.ones(PREDICTED.shape, dtype=bool)
    measured[:500], valid[:500] = 9.0, False
    found = prediction_warnings(Validation(('a', 'b'), TIME, measured, PREDICTED, valid))
    assert found == []
