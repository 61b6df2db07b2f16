"""Which parameters predict rows that were not fitted: base, essential or consistent ones."""

from collections.abc import Sequence
import dataclasses
from functools import partial

import numpy as np

from ..arrays import Array, diagonal_scale
from ..diagnostics.trials import compare, Trial, trial_rows, Trials
from ..model.base_parameters import BaseParameters
from ..model.robot import ElasticRobot, Robot
from ..regression.estimate import Estimate
from ..regression.goodness_of_fit import Validation
from ..regression.observation_system import Rows
from .essential import backward_elimination
from .physical_consistency import SolverError
from .standard import refit, Standard

# By how much the squared error has to fall with other parameters to be advised.
LEAST = 1.1
# Relative residual of a joint from which parameters do not predict it, however bad others are.
USELESS = 0.5
BLOCKS = 8  # of a validation motion


def try_essential(
    systems: Sequence[Rows],
    estimate: Estimate,
    bound: float = 10.0,
    significance: float = 0.05,
    ratio: float = 0.0,
) -> Trial | None:
    """
    Try essential parameters, chosen anew without each fold; None where they do not predict better.

    `bound`, `significance` and `ratio` are those of `find_essential`.
    """
    rows = trial_rows(systems)
    if rows is None or rows.W.shape[2] != len(estimate.value):
        return None
    wider = np.sqrt(np.diag(estimate.covariance) / np.diag(estimate.classical))

    def fitted(normal: Array, right: Array) -> Array:
        scale = diagonal_scale(normal)
        inverse = np.linalg.pinv(normal / np.outer(scale, scale), hermitian=True)
        classical = inverse / np.outer(scale, scale)
        start = dataclasses.replace(
            estimate, value=classical @ right, classical=classical,
            covariance=classical * np.outer(wider, wider),
        )  # fmt: skip
        kept, _ = backward_elimination(start, bound, significance, ratio)
        value = np.zeros(len(right))
        value[kept] = np.linalg.lstsq(normal[np.ix_(kept, kept)], right[kept], rcond=None)[0]
        return value

    trials = Trials(rows)
    errors = trials.errors(solve=fitted)
    left = np.sqrt(errors.sum(axis=0) / np.maximum(trials.powers().sum(axis=0), 1e-300))
    trial = trials.compare(trials.errors(), errors)
    return trial if trial.is_better(LEAST) and left.max() < USELESS else None


def try_base(
    robot: Robot,
    base: BaseParameters,
    estimate: Estimate,
    standard: Standard,
    link_sigma: float,
    systems: Sequence[Rows],
) -> Trial | None:
    """
    Try base parameters in place of consistent ones; None where they do not predict better.

    `link_sigma` is the tightest pull of `standard_parameters`.
    """
    rows = trial_rows(systems)
    if rows is None or isinstance(robot, ElasticRobot) or len(base.columns) != rows.W.shape[2]:
        return None
    trials = Trials(rows)
    consistent = partial(refit, robot, base, estimate, (link_sigma, standard.spread))
    try:
        trial = trials.compare(trials.errors(solve=consistent), trials.errors())
    except SolverError:
        return None
    return trial if trial.is_better(LEAST) else None


def compare_on_motion(before: Validation, after: Validation) -> Trial | None:
    """Compare two predictions of a motion block by block; None where the second is not better."""
    rows = np.array_split(np.arange(len(before.time)), BLOCKS)

    def squares(values: Array) -> Array:
        own = np.where(before.valid, values, 0.0) ** 2
        return np.array([own[part].sum(axis=0) for part in rows])

    errors = [squares(each.measured - each.predicted) for each in (before, after)]
    sigma = np.sqrt(np.maximum(errors[0].sum(axis=0), 1e-300))
    trial = compare(errors[0], errors[1], squares(before.measured), sigma)
    return trial if trial.is_better(LEAST) else None
