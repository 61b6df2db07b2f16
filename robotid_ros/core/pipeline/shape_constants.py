"""Shape constants of friction, such as a Stribeck velocity, searched around the linear fit."""

import dataclasses

import numpy as np

from ..arrays import Array
from ..elastic_joints.transmission import minimum_near_grid
from ..finding_codes import finding
from ..findings import Finding
from ..model.base_parameters import base_parameters
from ..model.friction import FrictionTerm
from ..model.robot import ElasticRobot, Robot
from ..rank import PROJECTED
from ..regression.least_squares import project_out
from ..regression.observation_system import decimate, observe
from ..signals.preparation import prepare
from ..signals.recording import Recording
from ..signals.samples import Samples, SignalSettings

# By which factor around the configured one a constant is searched, and the points of the first
# grid: 8 to a decade, for the residual has several minima.
SEARCH_FACTOR, GRID_POINTS = 30.0, 25


def search_shape_constants(
    recording: Recording, robot: Robot, settings: SignalSettings
) -> tuple[Robot, list[Finding]]:
    """
    Replace shape constants of each joint's friction by those that leave the least residual.

    Given the constant, friction is linear: a joint's rows are projected on all other columns once,
    and each value of the constant costs a least squares problem of the term's columns alone.

    Parameters
    ----------
    recording, robot, settings : what is identified

    Returns
    -------
    The robot, and notes on what was found

    """
    if isinstance(robot, ElasticRobot):
        return robot, []
    searched = [[k for k, t in enumerate(own) if t.kind.searched] for own in robot.friction]
    if not any(searched):
        return robot, []
    samples, base = prepare(recording, robot, settings), base_parameters(robot)
    system = observe(samples, robot, base)
    friction, notes = list(robot.friction), list[Finding]()
    for j, places in enumerate(searched):
        for place in places:
            term = robot.friction[j][place]
            own = [f'{symbol}{j + 1}' for symbol in term.kind.symbols]
            others = [k for k, name in enumerate(base.names) if name not in own]
            W, Y = system.rows(j)
            if len(Y) <= len(own):
                continue
            factor = _factor(term, samples.q[samples.valid[:, j], j])
            best = _search(term, samples, j, W[:, others], Y, factor)
            constant = term.kind.searched
            found = FrictionTerm(term.name, {**term.constants, constant: best})
            friction[j] = (*friction[j][:place], found, *friction[j][place + 1 :])
            notes.append(
                finding(
                    'shape_found', [robot.joints[j]],
                    constant=constant, value=best, configured=term.constants[constant],
                )
            )  # fmt: skip
    return dataclasses.replace(robot, friction=tuple(friction)), notes


def _factor(term: FrictionTerm, q: Array) -> float:
    """Return the factor by which a constant may change."""
    if term.kind.of_position:  # half a period more or less over the joint's way
        return 1.0 + float(np.pi / (np.ptp(q) * term.constants[term.kind.searched]))
    return SEARCH_FACTOR


def _search(
    term: FrictionTerm,
    samples: Samples,
    joint: int,
    others: Array,
    Y: Array,
    factor: float,
) -> float:
    """Return the constant of least residual."""
    project, keep = project_out(others, PROJECTED), samples.decimation
    target = project(Y)
    valid = samples.valid[::keep, joint]

    def squares(logarithm: float) -> float:
        constants = {**term.constants, term.kind.searched: float(np.exp(logarithm))}
        other = FrictionTerm(term.name, constants)
        columns = other.columns(samples.q[:, joint], samples.dq[:, joint], successive=True)
        own = project(decimate(np.column_stack(columns)[None], keep)[0][valid])
        return float(
            np.sum((target - own @ np.linalg.lstsq(own, target, rcond=PROJECTED)[0]) ** 2)
        )

    centre = np.log(term.constants[term.kind.searched])
    grid = centre + np.linspace(-np.log(factor), np.log(factor), GRID_POINTS)
    best = minimum_near_grid(squares, grid)
    return float(np.exp(best if squares(best) < squares(centre) else centre))
