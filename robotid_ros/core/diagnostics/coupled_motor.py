"""A motor that turns two joints: the ratio at which it explains what is left of both."""

from collections.abc import Callable
import dataclasses
from fractions import Fraction

import numpy as np

from ..arrays import Array
from ..findings import Finding
from ..model.robot import Robot
from ..regression.least_squares import project_out
from ..regression.observation_system import decimate, Rows
from ..signals.recording import Samples
from .trials import compare, RIDGE, Trial, trial_rows, Trials

# By how much the motor has to lower the squared error of both joints, and a ratio that of one of
# small whole numbers, which teeth of wheels have: friction that the model lacks moves the best one
# (at a TX-40's wrist, whose ratio is 1, to 0.8).
LEAST, SIMPLER = 1.5, 1.25
DIRECTIONS, ACCURACY = 60, 1e-4  # of two ratios (cos θ, sin θ): how many are tried, of the best θ
MOST_TEETH = 12


def with_ratios(robot: Robot, samples: Samples, system: Rows, found: Finding) -> Finding:
    """
    Add to a coupling of two joints the lines that describe it, where they help when tried.

    A motor that turns with r · q̇ has Ia, Fv and Fc, none below zero, and a torque on each joint of
    r times its own. The ratios that leave least of both joints are judged on rows that were not
    fitted, and replaced by small whole numbers where these leave as much there.
    """
    pair = [robot.joints.index(name) for name in (found.joints[0], found.values['other'])]
    values = {**found.values, 'neither': ' and '.join(robot.joints[j] for j in sorted(pair))}
    rows = trial_rows([system])
    if rows is None:
        return dataclasses.replace(found, values=values)
    motor, recorded = _motor(samples, pair, system, rows), Trials(rows)

    def tried(ratios: Array) -> Trials:
        columns = np.zeros((robot.n, len(rows.time), 3))
        columns[pair] = ratios[:, None, None] * motor(ratios)
        longer = dataclasses.replace(rows, W=np.concatenate([rows.W, columns], axis=2))
        return Trials(longer, np.eye(longer.W.shape[2])[-3:], sigma=recorded.sigma)

    def better(before: Array, after: Array, least: float) -> Trial | None:
        errors = before[:, pair], after[:, pair], recorded.powers[:, pair]
        trial = compare(*errors, recorded.sigma[pair])
        return trial if trial.is_better(least) else None

    ratios = _best_ratios(rows, recorded.sigma, pair, motor)
    left = tried(ratios).recorded
    for simple in _simple(ratios):
        errors = tried(simple).recorded
        if better(errors, left, SIMPLER) is None:
            ratios, left = simple, errors
            break
    if trial := better(recorded.recorded, left, LEAST):
        every = np.zeros(robot.n)
        every[pair] = np.round(ratios, 3)
        name = '_'.join(robot.joints[j] for j in sorted(pair))
        joints = f'joints: [{", ".join(robot.joints)}], ' if robot.locked else ''
        numbers = ', '.join(f'{x:g}' for x in every)
        lines = f'robot: {{{joints}couplings: {{{name}: {{ratios: [{numbers}]}}}}}}'
        values |= {'lines': f'/**: {{ros__parameters: {{{lines}}}}}', 'neither': None}
        values |= trial.values(robot.joints[pair[trial.joint]], 'any masses')
    return dataclasses.replace(found, values={k: v for k, v in values.items() if v is not None})


def _motor(
    samples: Samples, pair: list[int], system: Rows, rows: Rows
) -> Callable[[Array], Array]:
    """Return a function of ratios (2,): columns (N, 3) of Ia, Fv, Fc of a motor on the rows."""
    step = -(-len(system.time) // len(rows.time))
    dq, ddq = samples.dq[:, pair], samples.ddq[:, pair]

    def columns(ratios: Array) -> Array:
        speed = dq @ ratios
        signals = np.stack([ddq @ ratios, speed, np.sign(speed)])
        return decimate(signals, samples.decimation)[:, ::step].T

    return columns


def _best_ratios(
    rows: Rows, sigma: Array, pair: list[int], motor: Callable[[Array], Array]
) -> Array:
    """Return the ratios (2,) that leave least of both joints, the larger one 1."""
    from scipy.optimize import minimize_scalar, nnls

    used = [rows.valid[j] for j in pair]
    W, Y = (
        np.concatenate([x[j][u] / sigma[j] for j, u in zip(pair, used, strict=True)])
        for x in (rows.W, rows.Y)
    )
    rest = project_out(W, RIDGE)
    error = rest(Y)

    def left(angle: float) -> float:
        ratios = np.array([np.cos(angle), np.sin(angle)])
        own = motor(ratios)
        parts = zip(ratios, used, pair, strict=True)
        columns = rest(np.concatenate([r * own[u] / sigma[j] for r, u, j in parts]))
        triangle = np.asarray(np.linalg.qr(np.column_stack([columns, error]), mode='r'))
        return float(nnls(triangle[:, :3], triangle[:, 3])[1])

    step = np.pi / DIRECTIONS
    start = min(step * np.arange(DIRECTIONS), key=left)
    options = {'xatol': ACCURACY}
    bounds = start - step, start + step
    angle = minimize_scalar(left, bounds=bounds, method='bounded', options=options).x
    ratios = np.array([np.cos(angle), np.sin(angle)])
    return np.asarray(ratios / ratios[np.argmax(np.abs(ratios))])


def _simple(ratios: Array) -> list[Array]:
    """Return ratios (2,) of small whole numbers near some, the smallest first."""
    small = int(np.argmin(np.abs(ratios)))
    near = (Fraction(float(ratios[small])).limit_denominator(k) for k in range(1, MOST_TEETH + 1))
    numbers = dict.fromkeys(x for x in near if x)
    return [np.where(np.arange(2) == small, float(x), 1.0) for x in numbers]
