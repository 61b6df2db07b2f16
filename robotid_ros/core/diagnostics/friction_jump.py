"""Friction of a joint that jumps in the course of a recording, at any time of it."""

import dataclasses

import numpy as np

from ..arrays import Array
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..regression.least_squares import project_out
from .advice import Advice, FRICTION, LEAST
from .torque_parts import rms
from .trials import Rows, Trial, Trials

# Relative residual of a joint from which its friction is looked into.
LARGE_RESIDUAL = 0.02
# Least rows on either side of a jump, and pieces of either side that are left out in turn.
MIN_ROWS, PIECES = 6, 6
# Least share of the joint's squared error that a jump explains, and least size over its effort.
MIN_EXPLAINED, MIN_JUMP = 0.3, 0.05
ROUNDING = 1e-10  # below which columns depend on others


def friction_jumps(
    robot: Robot, base: BaseParameters, rows: Rows, residual: Array, known: set[str]
) -> list[Advice]:
    """
    Find the joints whose Coulomb friction is another one from some time on.

    Parameters
    ----------
    robot, base : the model
    rows : of all joints
    residual : (n,) relative residual of each joint
    known : joints that other findings are about

    """
    found = []
    for j in np.flatnonzero(residual > LARGE_RESIDUAL):
        jump = None if robot.joints[j] in known else _jump(robot, base, rows, int(j))
        if jump is not None:
            found.append(jump)
    return found


def _sign(robot: Robot, base: BaseParameters, rows: Rows, joint: int) -> Array:
    """Return the column (N,) of a joint's Coulomb friction, filtered where the model has one."""
    for k, column in enumerate(base.columns):
        parameter = robot.parameters[column]
        if parameter.symbol == 'Fc' and parameter.joint == robot.joints[joint]:
            return np.asarray(rows.W[joint, :, k])
    return np.asarray(np.sign(rows.dq[:, joint]))


def _jump(robot: Robot, base: BaseParameters, rows: Rows, joint: int) -> Advice | None:
    """
    Return the jump that explains most of what a joint's own columns leave of its effort.

    For each time t_0 the column sign(q̇) [t ≥ t_0] is tried at once: its product with the error,
    and its square without what W explains, are sums from t_0 on.
    """
    used = rows.valid[joint]
    W, y, time = rows.W[joint][used], rows.Y[joint][used], rows.time[used]
    sign = _sign(robot, base, rows, joint)[used]
    W = W[:, np.abs(W).max(axis=0, initial=0.0) > 0.0]
    if len(y) < 2 * MIN_ROWS + 2 * W.shape[1]:
        return None
    error = project_out(W, ROUNDING)(y)
    U, s, _ = np.linalg.svd(W / np.linalg.norm(W, axis=0), full_matrices=False)
    U = U[:, s > ROUNDING * s[0]]

    def from_here_on(values: Array) -> Array:
        return np.asarray(np.cumsum(values[::-1], axis=0)[::-1])

    product = from_here_on(sign * error)
    square = from_here_on(sign**2) - np.sum(from_here_on(sign[:, None] * U) ** 2, axis=1)
    inside = slice(MIN_ROWS, len(y) - MIN_ROWS)
    explained = product[inside] ** 2 / np.maximum(square[inside], 1.0)
    place = MIN_ROWS + int(np.argmax(explained))
    size = float(product[place] / max(square[place], 1.0))
    share = float(explained.max()) / max(float(error @ error), 1e-300)
    if share < MIN_EXPLAINED or abs(size) < MIN_JUMP * rms(y):
        return None
    trial = _try(rows, joint, place, sign)
    if not trial.is_better(LEAST[FRICTION]):
        return None
    since, early = float(time[place]), 2 * place < len(time)
    part = (float(time[0]), since) if early else (since, float(time[-1]))
    return Advice(FRICTION, (robot.joints[joint],), (size, since, *part), trial)


def _try(rows: Rows, joint: int, place: int, sign: Array) -> Trial:
    """Try another friction from a row on; pieces of both sides are left out in turn."""
    used = rows.valid[joint]
    count, late = int(used.sum()), np.arange(int(used.sum())) >= place
    order = np.where(late, np.arange(count) - place, np.arange(count))
    piece = order * PIECES // np.where(late, count - place, place)
    own = dataclasses.replace(
        rows, time=rows.time[used], q=rows.q[used], dq=rows.dq[used],
        W=rows.W[[joint]][:, used], Y=rows.Y[[joint]][:, used], valid=np.ones((1, count), bool),
    )  # fmt: skip
    split = (sign * late)[None, :, None]
    other = dataclasses.replace(own, W=np.concatenate([own.W, split], axis=2))
    folds = np.array([piece == k for k in range(PIECES)])
    before, after = Trials(own, None, folds), Trials(other, None, folds)
    trial = before.compare(before.errors(), after.errors())
    return dataclasses.replace(trial, joint=joint)
