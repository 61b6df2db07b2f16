"""Figures behind the charts against SciPy's."""

import numpy as np
import pytest
from scipy.signal import welch

from robotid_ros.files.report.drawing import power_density


@pytest.mark.parametrize('count', [7, 512, 513, 5000])
@pytest.mark.parametrize('window', [511, 512])
def test_the_power_density_is_that_of_scipy(count, window):
    values = np.random.default_rng(count).normal(size=count).cumsum()
    frequency, power = power_density(values, 250.0, window)
    expected = welch(values, 250.0, nperseg=min(window, count))
    np.testing.assert_allclose(frequency, expected[0], rtol=1e-12)
    np.testing.assert_allclose(power, expected[1], rtol=1e-9, atol=1e-12 * power.max())
