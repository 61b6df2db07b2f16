"""
Play and hysteresis of transmissions, where both of their sides are measured.

The row of a link behind a spring, L + K d + K_b clip(d, ±w/2) + F_h s(d) = 0 with the torque L of
the link and the deflection d = q − θ, says how far the spring is wound up,

    d = −L/K + w/2 sign(−L) − F_h/K s(d),

w the play and s the state of a spring that slips beyond a distance, −1 to 1. That holds no effort.
Whether there is play or hysteresis at all is told by the deflection that the link predicts on the
right, so that noise of the encoders stands on the left alone. It has to explain blocks that were
left out, and all rows together: where a short motion determines the link badly without one block,
any column may happen to bend what is predicted there. Width and distance are then searched
along the measured one, against the torque that accelerates and lifts the link, beside columns of
its friction: that of weighted least squares, where rows of a link that the model has wrong count
little beside those of drives.
"""

from collections.abc import Callable
import dataclasses
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding
from ..model.base_parameters import BaseParameters
from ..model.elastic_robot import with_transmission
from ..model.friction import FrictionTerm, make_terms, TERMS
from ..model.parameters import INERTIAL
from ..model.robot import ElasticRobot
from ..regression.estimators import fit
from ..regression.least_squares import scaled_least_squares
from ..regression.observation_system import decimate, System
from ..signals.samples import Samples

# Distances of a hysteresis that are tried, over the spread of the deflection, and how often the
# deflection that the link predicts is computed again.
DISTANCES, ROUNDS = (0.03, 0.1, 0.3, 1.0), 4
# Widths and distances are searched times such factors of what is found first, one after the other,
# so often; on a grid, for the residual has several minima.
FACTORS, SWEEPS = np.geomspace(0.25, 4.0, 13), 2
# Contiguous parts that are predicted in turn. What is added has to save so much of their squared
# error, and a torque of such a share: less than that no effort is known to.
BLOCKS, LEAST_GAIN, NOTICEABLE = 8, 0.05, 2e-3


@dataclasses.dataclass(frozen=True)
class _Rows:
    """
    Rows of a joint.

    Attributes
    ----------
    deflection : (N,) [rad or m]
    link : (N, c) columns of the link's torque L
    torque : returns L but for friction (N,) [N·m or N]
    friction : (N, f) columns of friction in L
    used : (N,) which rows count
    path : deflection and its rate at full rate, (M,) each
    keep : one row in so many of these

    """

    deflection: Array
    link: Array
    torque: Callable[[], Array]
    friction: Array
    used: npt.NDArray[np.bool_]
    path: tuple[Array, Array]
    keep: int

    def column(self, term: FrictionTerm) -> Array:
        """Return the column (N,) of a term along the measured deflection."""
        (values,) = term.columns(*self.path, successive=True)
        return decimate(values[None], self.keep)[0]


class Score(NamedTuple):
    """Squared errors and squares (K,) of the blocks."""

    errors: Array
    powers: Array

    def least_gain(self) -> float:
        """Return the gain of a block from which on an error is noticeably less."""
        error, power = float(self.errors.mean()), float(self.powers.mean())
        return max(LEAST_GAIN * error, NOTICEABLE**2 * power)

    def is_clearly_less(self, other: 'Score') -> bool:
        """Tell whether the error is less than another's by more than chance, and noticeably."""
        each = other.errors - self.errors
        error = float(each.std(ddof=1) / np.sqrt(len(each)))
        return float(each.mean()) > max(error, other.least_gain())


class _Scores(NamedTuple):
    """Errors of blocks by a fit of the others, and by that of all of them."""

    left_out: Score
    fitted: Score


def choose_transmission(
    robot: ElasticRobot, base: BaseParameters, samples: Samples, system: System
) -> tuple[ElasticRobot, list[Finding]]:
    """
    Choose play and hysteresis of each spring that the configuration leaves open.

    Either has to explain the deflection better, of blocks that it was not fitted to and of all
    together, by more than chance, and to be positive.

    Parameters
    ----------
    robot, base : the model
    samples, system : of the excitation

    Returns
    -------
    The robot, and notes on what was chosen

    """
    inertial = np.array([robot.parameters[k].symbol in INERTIAL for k in base.columns])

    @cache
    def value() -> Array:
        return np.where(inertial, fit(system, 'wls').value, 0.0)

    def rows(j: int) -> _Rows:
        spring, W = system.names.index(f'K{j + 1}'), system.W[j]
        others = [k for k in range(W.shape[1]) if k != spring and W[:, k].any()]
        link, friction = W[:, others], W[:, [k for k in others if not inertial[k]]]
        q, dq = (x[:, j] - x[:, robot.motors[j]] for x in (samples.q, samples.dq))
        parts = W[:, spring], link, lambda: W @ value(), friction
        return _Rows(*parts, system.valid[j], (q, dq), samples.decimation)

    chosen, notes = list(robot.transmission), list[Finding]()
    for j in np.flatnonzero(robot.open_transmission).tolist():
        terms = _choose(rows(j))
        if terms:
            chosen[j] = terms
            unit = 'm' if robot.prismatic[j] else 'rad'
            sizes = [(t.name, value) for t in terms for value in t.constants.values()]
            names, values = zip(*sizes, strict=True)
            notes.append(
                finding(
                    'transmission_found', [robot.joints[j]], terms=names, sizes=values, unit=unit
                )
            )
    return (with_transmission(robot, tuple(chosen)) if notes else robot), notes


def _choose(rows: _Rows) -> tuple[FrictionTerm, ...]:
    """Add the shape that saves most, and then perhaps the other one."""
    spread = float(rows.deflection[rows.used].std()) if rows.used.any() else 0.0
    terms: tuple[FrictionTerm, ...] = ()
    options = [('backlash', 0.0), *(('hysteresis', share * spread) for share in DISTANCES)]
    while options and spread > 0.0:
        columns = [rows.column(term) for term in terms]
        before, _ = _scores(rows, columns)
        if float(before.left_out.errors.mean()) <= before.left_out.least_gain():  # nothing is left
            break
        tried = {}
        for new in options:
            found, size = _scores(rows, [*columns, _predicted(rows, columns, *new)])
            tried[new] = (found, size[-1])
        best = min(tried, key=lambda new: float(tried[new][0].left_out.errors.sum()))
        (found, size), (name, distance) = tried[best], best
        if size <= 0.0 or not all(map(Score.is_clearly_less, found, before)):
            break
        constant = 2.0 * size if name == 'backlash' else distance
        terms = _searched(rows, (*terms, _term(name, constant)))
        options = [new for new in options if new[0] != name]
    return terms


def _term(name: str, size: float) -> FrictionTerm:
    """Return a term with its one shape constant."""
    return make_terms((name,), dict.fromkeys(TERMS[name].constants, size))[0]


def _predicted(rows: _Rows, others: list[Array], name: str, distance: float) -> Array:
    """
    Return what a unit of a shape adds to the deflection (N,), by what the link predicts.

    Parameters
    ----------
    rows : of the joint
    others : columns of other shapes
    name, distance : of the shape; of a hysteresis [rad or m]

    """
    y = rows.deflection[rows.used]
    A = without = np.column_stack([rows.link, *others])
    own = np.zeros(len(A))
    for _ in range(ROUNDS):
        value = scaled_least_squares(A[rows.used], y)
        wound, predicted = without @ value[: without.shape[1]], A @ value
        if name == 'backlash':
            own = np.sign(wound)
        else:
            own = -_term(name, distance).columns(
                predicted, np.gradient(predicted), successive=True
            )[0]
        A = np.column_stack([without, own])
    return own


def _searched(rows: _Rows, terms: tuple[FrictionTerm, ...]) -> tuple[FrictionTerm, ...]:
    """Replace width and distance by those that leave the least residual."""
    torque = rows.torque()

    def other(k: int, factor: float) -> tuple[FrictionTerm, ...]:
        constants = {name: float(factor * size) for name, size in terms[k].constants.items()}
        return (*terms[:k], FrictionTerm(terms[k].name, constants), *terms[k + 1 :])

    def squares(k: int, factor: float) -> float:
        columns = [rows.column(term) for term in other(k, factor)]
        A = np.column_stack([rows.deflection, rows.friction, *columns])[rows.used]
        y = torque[rows.used]
        return float(np.sum((y - A @ scaled_least_squares(A, y)) ** 2))

    for _ in range(SWEEPS):
        for k in range(len(terms)):
            terms = other(k, minimum_near_grid(partial(squares, k), FACTORS))
    return terms


def _scores(rows: _Rows, columns: list[Array]) -> tuple[_Scores, Array]:
    """Return the errors of each block, and what each column is multiplied by."""
    y, c = rows.deflection[rows.used], rows.link.shape[1]
    A = np.column_stack([rows.link, *columns])[rows.used]
    block, value = np.arange(len(y)) * BLOCKS // len(y), scaled_least_squares(A, y)
    left_out, fitted, powers = np.zeros((3, BLOCKS))
    for k in range(BLOCKS):
        out = block == k
        left_out[k] = np.sum((y[out] - A[out] @ scaled_least_squares(A[~out], y[~out])) ** 2)
        fitted[k] = np.sum((y[out] - A[out] @ value) ** 2)
        powers[k] = np.sum(y[out] ** 2)
    return _Scores(Score(left_out, powers), Score(fitted, powers)), value[c:]


def minimum_near_grid(function: Callable[[float], float], grid: Array) -> float:
    """Return the minimum beside the best point of a grid: residuals have several of them."""
    from scipy.optimize import minimize_scalar

    best = int(np.argmin([function(x) for x in grid]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return float(minimize_scalar(function, bounds=around, method='bounded').x)
