"""What the solver of consistent parameters does with numbers that are none."""

import numpy as np
import pytest

from robotid_ros.core.parameters.cone_program import least_norm, SolverError

pytest.importorskip('clarabel')


@pytest.mark.parametrize('value', [np.nan, np.inf, 1e200])
def test_what_the_solver_would_not_survive_is_an_error(value):
    with pytest.raises(SolverError, match='check the inertias'):
        least_norm(np.array([[value], *[[0.0]] * 10]), np.zeros(11), 1, 1)
