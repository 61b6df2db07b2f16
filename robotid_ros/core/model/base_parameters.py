"""Base parameters: the combinations of standard parameters that torques depend on."""

import numpy as np

from ..arrays import Array, DEPENDENT
from .dynamics import regressor
from .friction import SHRUNK
from .robot import BaseParameters, Robot

ROUNDING = 1e-7  # coefficients below this are rounding
# Random states see joints without limits over one turn, and speeds and accelerations up to these,
# so that no term of the dynamics outweighs the others [rad/s, rad/s²].
MAX_STATE = 2.0
SAMPLES = 200  # random states: several times as many rows as any arm has parameters


def base_parameters(robot: Robot, seed: int = 0) -> BaseParameters:
    """
    Find the base parameters of a robot numerically, χ_b = χ_L + B χ_K (STD II.B, Gautier 1991).

    W of random states is reduced by QR; of dependent columns the first in the standard order
    stays, so that a link's parameters regroup towards the base.
    """
    rng = np.random.default_rng(seed)
    n = robot.n
    lower = np.maximum(robot.limits.lower, -np.pi)
    upper = np.minimum(robot.limits.upper, np.pi)
    q = rng.uniform(lower, np.maximum(upper, lower + 0.1), (SAMPLES, n))
    dq, ddq = rng.uniform(-MAX_STATE, MAX_STATE, (2, SAMPLES, n))
    W = regressor(robot, q, dq, ddq).reshape(n * SAMPLES, robot.p)
    shrunk = np.array([p.symbol in SHRUNK for p in robot.parameters])
    columns, matrix = reduce_by_qr(W[:, ~shrunk])
    # Each column that a mixed model shrinks is a base parameter of its own.
    kept = np.concatenate([np.flatnonzero(~shrunk)[columns], np.flatnonzero(shrunk)])
    full = np.zeros((len(kept), robot.p))
    full[: len(columns), ~shrunk] = matrix
    full[len(columns) :, shrunk] = np.eye(int(shrunk.sum()))
    order = np.argsort(kept)
    columns, matrix = kept[order], full[order]
    standard = [p.name for p in robot.parameters]
    names, combinations = [], []
    for row, column in zip(matrix, columns, strict=True):
        others = [k for k in np.flatnonzero(row) if k != column]
        name = standard[column] + ('R' if others else '')
        names.append(name)
        terms = ''.join(
            f' {"-" if row[k] < 0 else "+"} '
            f'{"" if abs(row[k]) == 1.0 else f"{abs(row[k]):.6g}·"}{standard[k]}'
            for k in others
        )
        combinations.append(f'{name} = {standard[column]}{terms}' if others else name)
    alone = {c for row, c in zip(matrix, columns, strict=True) if np.count_nonzero(row) == 1}
    classes = (
        'identifiable' if column in alone else 'in combination' if used else 'unidentifiable'
        for column, used in enumerate(np.asarray(matrix.any(axis=0)))
    )
    units = tuple(robot.parameters[k].unit for k in columns)
    return BaseParameters(
        tuple(names), units, tuple(combinations), matrix, columns, tuple(classes)
    )


def reduce_by_qr(W: Array) -> tuple[np.ndarray, Array]:
    """Return the first independent columns (b,) of W (r, p), and (b, p) M: W = W[:, columns] M."""
    norms = np.linalg.norm(W, axis=0)
    norms[norms < DEPENDENT * norms.max()] = 0.0  # rounding only
    R = np.array(np.linalg.qr(W / np.where(norms > 0.0, norms, np.inf), mode='r'))
    columns, basis = list[int](), np.zeros((len(R), 0))
    for column in np.flatnonzero(norms).tolist():
        rest = R[:, column] - basis @ (basis.T @ R[:, column])
        rest -= basis @ (basis.T @ rest)
        length = np.linalg.norm(rest)
        if length > DEPENDENT:
            columns.append(column)
            basis = np.column_stack([basis, rest / length])
    kept = np.array(columns, dtype=np.intp)
    Q, upper = np.linalg.qr(R[:, kept])
    combination = np.linalg.solve(upper, Q.T @ R)
    # Without the scaling, and without rounding.
    matrix = combination * norms / norms[kept][:, None]
    matrix[np.abs(combination) < ROUNDING] = 0.0
    near = np.round(matrix)
    matrix = np.where(np.abs(matrix - near) < ROUNDING, near, matrix)
    matrix[:, kept] = np.eye(kept.size)
    return kept, np.asarray(matrix)
