"""Shape constants of friction, such as a Stribeck velocity, searched around the linear fit."""

from collections.abc import Callable
import dataclasses

import numpy as np

from ..arrays import Array
from ..model.base_parameters import base_parameters
from ..model.friction import FrictionTerm, RIPPLES, TERMS, WARM_UPS
from ..model.robot import ElasticRobot, Robot
from ..regression.least_squares import project_out
from ..regression.observation_system import decimate, observe
from ..signals.preparation import prepare
from ..signals.recording import Recording
from ..signals.samples import Samples, SignalSettings

RANK_TOLERANCE = 1e-10  # smallest singular value over the largest
# Constant of a term that is searched [s/rad, rad/s, rad, 1/rad], by which factor around the
# configured one, and the points of the first grid: 8 to a decade, for the residual has several
# minima.
SHAPE_CONSTANTS = {
    'stiction': 'stribeck_slope',
    'makkar': 'makkar_gamma3',
    'stribeck': 'stribeck_velocity',
    'presliding': 'presliding_distance',
    **{name: constant for name in (*RIPPLES, *WARM_UPS) for constant in TERMS[name].constants},
}
SEARCH_FACTOR, GRID_POINTS = 30.0, 25
# Where a constant was chosen among a few: only of a term whose shape is physical, and between its
# neighbours, where that saves so much of the squared error. Others follow what they were fitted
# to, and predict worse (TX-40: 24 % instead of 17).
CHOSEN = ('stribeck', 'presliding', *RIPPLES, *WARM_UPS)
CHOSEN_FACTOR, CHOSEN_GAIN, WARM_UP_FACTOR = 2.0, 0.1, 2.5


def search_shape_constants(
    recording: Recording, robot: Robot, settings: SignalSettings, chosen: bool = False
) -> tuple[Robot, list[str]]:
    """
    Replace shape constants of each joint's friction by those that leave the least residual.

    Given the constant, friction is linear: a joint's rows are projected on all other columns once,
    and each value of the constant costs a least squares problem of the term's columns alone.

    Parameters
    ----------
    recording, robot, settings : what is identified
    chosen : only of joints whose friction the configuration leaves open

    Returns
    -------
    The robot, and notes on what was found

    """
    if isinstance(robot, ElasticRobot):
        return robot, []
    searched = _searched_terms(robot, chosen)
    if not any(searched):
        return robot, []
    samples, base = prepare(recording, robot, settings), base_parameters(robot)
    system = observe(samples, robot, base)
    friction, notes = list(robot.friction), []
    for j, places in enumerate(searched):
        for place in places:
            term = robot.friction[j][place]
            own = [f'{symbol}{j + 1}' for symbol in term.kind.symbols]
            others = [k for k, name in enumerate(base.names) if name not in own]
            W, Y = system.rows(j)
            if len(Y) <= len(own):
                continue
            bounds = _bounds(term, samples.q[samples.valid[:, j], j], chosen)
            best = _search(term, samples, j, W[:, others], Y, *bounds)
            constant = SHAPE_CONSTANTS[term.name]
            found = FrictionTerm(term.name, {**term.constants, constant: best})
            friction[j] = (*friction[j][:place], found, *friction[j][place + 1 :])
            notes.append(
                f'{constant} of {robot.joints[j]} is {best:.3g} by the data, '
                f'{term.constants[constant]:.3g} by the configuration'
            )
    return dataclasses.replace(robot, friction=tuple(friction)), notes


def _searched_terms(robot: Robot, chosen: bool) -> list[list[int]]:
    return [
        [k for k, t in enumerate(terms) if t.name in (CHOSEN if chosen else SHAPE_CONSTANTS)]
        if free or not chosen
        else []
        for free, terms in zip(robot.open_friction, robot.friction, strict=True)
    ]


def _bounds(term: FrictionTerm, q: Array, chosen: bool) -> tuple[float, float]:
    """Return the factor by which a constant may change, and the share of the error to save."""
    if term.name in RIPPLES:  # half a period more or less over the joint's way
        return 1.0 + np.pi / (np.ptp(q) * term.constants[SHAPE_CONSTANTS[term.name]]), 0.0
    if term.name in WARM_UPS and chosen:  # from one of the ways that were tried to the other
        return WARM_UP_FACTOR, 0.0
    return (CHOSEN_FACTOR, CHOSEN_GAIN) if chosen else (SEARCH_FACTOR, 0.0)


def _search(
    term: FrictionTerm,
    samples: Samples,
    joint: int,
    others: Array,
    Y: Array,
    factor: float,
    least_gain: float,
) -> float:
    """Return the constant of least residual, the one before where that saves too little."""
    project, keep = project_out(others, RANK_TOLERANCE), samples.decimation
    target = project(Y)
    valid = samples.valid[::keep, joint]

    def squares(logarithm: float) -> float:
        constants = {**term.constants, SHAPE_CONSTANTS[term.name]: float(np.exp(logarithm))}
        other = FrictionTerm(term.name, constants)
        columns = other.columns(samples.q[:, joint], samples.dq[:, joint], successive=True)
        own = project(decimate(np.column_stack(columns)[None], keep)[0][valid])
        return float(
            np.sum((target - own @ np.linalg.lstsq(own, target, rcond=RANK_TOLERANCE)[0]) ** 2)
        )

    centre = np.log(term.constants[SHAPE_CONSTANTS[term.name]])
    grid = centre + np.linspace(-np.log(factor), np.log(factor), GRID_POINTS)
    best = minimum_near_grid(squares, grid)
    if squares(best) > (1.0 - least_gain) * squares(centre):
        best = centre
    return float(np.exp(best))


def minimum_near_grid(function: Callable[[float], float], grid: Array) -> float:
    """Return the minimum beside the best point of a grid: residuals have several of them."""
    from scipy.optimize import minimize_scalar

    best = int(np.argmin([function(x) for x in grid]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return float(minimize_scalar(function, bounds=around, method='bounded').x)
