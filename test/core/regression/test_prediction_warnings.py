"""What is said of efforts that given parameters predict badly."""

import re

import numpy as np
import pytest

from robotid_ros.core.diagnostics.prediction import prediction_warnings
from robotid_ros.core.regression.goodness_of_fit import Validation

TIME = np.linspace(0.0, 20.0, 2000)
PREDICTED = np.column_stack([5.0 * np.sin(TIME), 2.0 * np.cos(2.0 * TIME)])


def warnings(measured):
    valid = np.ones(PREDICTED.shape, dtype=bool)
    return prediction_warnings(Validation(('a', 'b'), TIME, measured, PREDICTED, valid))


@pytest.mark.parametrize(
    ('scale', 'offset', 'words'),
    [
        (1.05, 0.0, None),
        (
            1.3,
            0.0,
            r'23 % of the effort of b .* is 1.3 times .* by 1.3 \(tried: .* 23.1 → < 0.01 %',
        ),
        (-1.0, 0.0, '200 % of the effort of b .* measured is -1 times .* 200 → < 0.01 %'),
        (1.0, 0.8, 'measured is 0.8 beside it: check the zero'),
    ],
)
def test_factors_and_offsets_are_told(scale, offset, words):
    found = warnings(PREDICTED * [1.0, scale] + [0.0, offset])
    if words is None:
        assert found == []
    else:
        assert len(found) == 1 and re.search(words, found[0])


def test_other_errors_have_other_reasons():
    noise = np.random.default_rng(0).normal(size=PREDICTED.shape)
    (text,) = warnings(PREDICTED + noise * [0.0, 0.5])
    assert 'no factor and no zero explains it; payload' in text and 'tried' not in text
    assert all('of this robot' in text for text in warnings(9.0 * noise))
