"""What is said of efforts that given parameters predict badly."""

import numpy as np
import pytest

from robotid_ros.core.diagnostics.data_warnings import prediction_warnings
from robotid_ros.core.findings import select
from robotid_ros.core.regression.validation import Validation

TIME = np.linspace(0.0, 20.0, 2000)
PREDICTED = np.column_stack([5.0 * np.sin(TIME), 2.0 * np.cos(2.0 * TIME)])


def warnings(measured):
    valid = np.ones(PREDICTED.shape, dtype=bool)
    return prediction_warnings(Validation(('a', 'b'), TIME, measured, PREDICTED, valid))


@pytest.mark.parametrize(
    ('scale', 'offset', 'name', 'values'),
    [
        (1.05, 0.0, '', {}),
        (1.3, 0.0, 'effort_scaled', {'factor': 1.3, 'residual': 0.231, 'after': 1e-4}),
        (-1.0, 0.0, 'effort_scaled', {'factor': -1.0, 'residual': 2.0, 'after': 1e-4}),
        (1.0, 0.8, 'effort_shifted', {'offset': 0.8}),
    ],
)
def test_factors_and_offsets_are_told(scale, offset, name, values):
    found = warnings(PREDICTED * [1.0, scale] + [0.0, offset])
    if not name:
        assert found == []
        return
    (told,) = select(found, name)
    assert told.joints == ('b',)
    assert {key: told.values[key] for key in values} == pytest.approx(values, abs=5e-3)


def test_other_errors_have_other_reasons():
    noise = np.random.default_rng(0).normal(size=PREDICTED.shape)
    found = warnings(PREDICTED + noise * [0.0, 0.5])
    assert len(found) == len(select(found, 'effort_not_predicted')) == 1
    found = warnings(9.0 * noise)
    assert len(found) == len(select(found, 'effort_not_predicted')) == 2
