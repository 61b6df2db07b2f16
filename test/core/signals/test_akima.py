"""Akima's interpolation is SciPy's."""

import numpy as np
import pytest
from scipy.interpolate import Akima1DInterpolator

from robotid_ros.core.signals.resampling import interpolate


@pytest.mark.parametrize('count', [2, 3, 4, 50, 3000])
def test_it_is_that_of_scipy(count):
    rng = np.random.default_rng(count)
    time = np.cumsum(rng.uniform(0.5, 1.5, count)) * 1e-3
    values = np.cumsum(rng.normal(size=(count, 3)), axis=0)
    values[:, 1] = np.round(values[:, 1])  # at rest in between: slopes are undetermined
    at = np.concatenate([time, rng.uniform(time[0], time[-1], 500)])
    expected = Akima1DInterpolator(time, values)(at)
    np.testing.assert_allclose(interpolate(time, values, at), expected, rtol=0.0, atol=1e-12)
