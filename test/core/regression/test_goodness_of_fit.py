"""Figures of fit are those of textbooks."""

import numpy as np

from robotid_ros.core.regression.goodness_of_fit import Validation


def test_determination_is_the_squared_correlation_of_a_line_and_its_data():
    rng = np.random.default_rng(0)
    time = np.linspace(0.0, 1.0, 50)
    measured = 30.0 + time[:, None] * [5.0, -2.0] + rng.normal(size=(50, 2))
    line = np.column_stack([np.polyval(np.polyfit(time, y, 1), time) for y in measured.T])
    fit = Validation(('a', 'b'), time, measured, line, np.ones((50, 2), dtype=bool))
    squared = [np.corrcoef(measured[:, j], line[:, j])[0, 1] ** 2 for j in range(2)]
    np.testing.assert_allclose(fit.r2, squared, rtol=1e-9)
    np.testing.assert_allclose(fit.rms, np.std(measured - line, axis=0), rtol=1e-9)


def test_residuals_are_shares_of_the_effort_by_joint_and_where_it_moves():
    rng = np.random.default_rng(0)
    measured, error = rng.normal(size=(2, 60, 3))
    moving = rng.uniform(size=(60, 3)) < 0.6
    fit = Validation(('a', 'b', 'c'), np.arange(60.0), measured, measured - error, moving)
    norm = np.linalg.norm
    np.testing.assert_allclose(fit.relative_residual, norm(error, axis=0) / norm(measured, axis=0))
    by_joint = [norm(error[m, j]) / norm(measured[m, j]) for j, m in enumerate(moving.T)]
    np.testing.assert_allclose(fit.moving_residual, by_joint)
    ratio = norm(error[moving]) / norm(measured[moving])
    np.testing.assert_allclose(fit.total_residual(), norm(error) / norm(measured))
    np.testing.assert_allclose(fit.total_residual(moving=True), ratio)
