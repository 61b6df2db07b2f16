"""What the solver of consistent parameters does with numbers that are none."""

import numpy as np
import pytest

from robotid_ros.core.parameters.physical_consistency import least_norm, SolverError

pytest.importorskip('clarabel')


@pytest.mark.parametrize('value', [np.nan, np.inf, 1e200, -1e200])
@pytest.mark.parametrize('row, limit', [(1.0, 0.0), (0.0, 1.0)])
def test_what_the_solver_would_not_survive_is_an_error(value, row, limit):
    with (
        pytest.raises(SolverError, match=r'no numbers.*check the inertias'),
        np.errstate(invalid='ignore'),
    ):
        rows, limits = value * np.array([row]), value * np.array([limit])
        least_norm(np.array([[*rows], *[[0.0]] * 10]), np.array([*limits, *np.zeros(10)]), 1, 1)
