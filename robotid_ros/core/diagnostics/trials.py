"""Trials of remedies: what a model leaves with and without one, on rows that were not fitted."""

from collections.abc import Callable, Sequence
import dataclasses
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, diagonal_scale, Indices, Mask, SINGULAR
from ..model import regressor, Robot
from ..model.robot import BaseParameters
from ..regression.goodness_of_fit import rigid_and_offset
from ..regression.observation_system import folds, Rows
from ..signals.preparation import is_moving, MIN_MOVING_SHARE
from ..signals.recording import STANDSTILL

# A remedy is better when ln(squared error) falls by so many standard errors over the folds.
SIGNIFICANT = 2.0
MOST_LEFT = 0.9  # relative residual of a joint that a remedy explains
MAX_ROWS = 4000  # rows that a trial takes: enough for any fold, in a fraction of a second
# Added to the diagonal of normalised products: what a fold does not tell stays near zero.
RIDGE = 1e-9
EXACT = 1e-3  # σ of a joint that is fitted exactly, over its effort: no sensor is better
LEAST_SHOWN = 1e-4  # relative residual
ROUNDING = 1e-12  # of a column of size one
# States of each joint at which friction may not drive it and inertia may not be negative.
STATES = 8


def trial_rows(systems: Sequence[Rows]) -> Rows | None:
    """
    Return some rows of systems in memory; None where these do not know their motion.

    What holds a joint that never moves does not tell its sign, gain or column: it has none.
    """
    step = 1 + sum(len(system.time) for system in systems) // MAX_ROWS
    rows = Rows.concatenate([dataclasses.replace(each, D=None) for each in systems], step)
    if rows.q is None or rows.dq is None:
        return None
    moves = is_moving(rows.dq, STANDSTILL).mean(axis=0) > MIN_MOVING_SHARE
    return dataclasses.replace(rows, valid=rows.valid & moves[:, None])


def folds_of(rows: Rows) -> Mask:
    """Return parts (K, N) that are left out in turn: see `folds`, of positions in units of σ."""
    assert rows.q is not None and rows.dq is not None
    away = rows.q / np.maximum(rows.q.std(axis=0), 1e-9)
    return folds(away, rows.dq, np.ones(len(rows.time), dtype=bool))


class Efforts(NamedTuple):
    """
    What a remedy changes: the effort column that each joint takes and its factor, (n,) each.

    Several at once have arrays (K, n).
    """

    columns: Indices
    factors: Array

    @classmethod
    def as_recorded(cls, n: int) -> 'Efforts':
        """Return the columns in their order, as they are."""
        return cls(np.arange(n), np.ones(n))

    def scaled(self, factors: Array) -> 'Efforts':
        """Multiply the efforts of the joints by factors (n,), or by each of several (K, n)."""
        return self._replace(factors=self.factors * factors)

    def swapped(self, i: int, j: int) -> 'Efforts':
        """Exchange the columns of two joints."""
        order = np.arange(len(self.columns))
        order[[i, j]] = j, i
        return Efforts(self.columns[order], self.factors[order])


class Trial(NamedTuple):
    """What a remedy changed on rows that were not fitted."""

    joint: int  # whose residual changed most
    before: float  # its relative residual
    after: float
    gain: float  # mean of ln(squared error before/after) over the folds
    error: float  # standard error of that

    def is_better(self, least: float) -> bool:
        """
        Tell whether the squared error fell significantly, and by a factor of `least`.

        A remedy that predicts a joint hardly better than no torque at all does is none.
        """
        return self.after < MOST_LEFT and self.gain > max(
            SIGNIFICANT * self.error, float(np.log(least))
        )

    def values(self, joint: str, remedy: str) -> dict[str, Any]:
        """Return the values of a finding that say what a remedy left of a joint's effort."""
        before, after = (max(x, LEAST_SHOWN) for x in (self.before, self.after))
        return {'tried_with': remedy, 'tried_on': joint, 'before': before, 'after': after}


class Trials:
    """
    Fits of some rows to all but one fold, judged on that fold, by products of rows alone.

    Of (m, b) A with A χ ≥ 0 for robots that can exist, or None, and parts (K, N) to leave out in
    turn, `folds_of` the rows by default. `moving` are numbers of the joints that have rows, and
    `sigma` (n,) the units of effort columns' errors: what each joint alone leaves of its own.
    """

    def __init__(self, rows: Rows, possible: Array | None = None, parts: Mask | None = None):
        self._rows, self._possible, self._folds = rows, possible, parts
        self.n, _, self.b = rows.W.shape
        self.moving = [int(j) for j in np.flatnonzero(rows.valid.any(axis=1))]
        self._counts = rows.valid.sum(axis=1)
        everything = np.ones((1, len(rows.time)), dtype=bool)
        self._total = self._products(everything)[0]
        self._variances = self._own_variances()
        # Errors of every trial count in these units, those of effort columns as recorded.
        self.sigma = np.sqrt(np.diag(self._variances))

    @property
    def alone(self) -> float:
        """Return the largest relative residual that a joint alone leaves of its own effort."""
        own = self.b + np.array(self.moving, dtype=np.intp)
        power = self._total[self.moving, own, own] / self._counts[self.moving]
        shares = self.sigma[self.moving] / np.sqrt(np.maximum(power, 1e-300))
        return float(shares.max(initial=0.0))

    def _products(self, parts: Mask) -> Array:
        """Return those of [W_j Y_1 … Y_n], (K, n, b + n, b + n)."""
        result = np.zeros((len(parts), self.n, self.b + self.n, self.b + self.n))
        for j, (W, valid) in enumerate(zip(self._rows.W, self._rows.valid, strict=True)):
            table = np.column_stack([W, self._rows.Y.T])
            for k, part in enumerate(parts):
                own = table[part & valid]
                result[k, j] = own.T @ own
        return result

    @cached_property
    def parts(self) -> Array:
        """Products of each fold."""
        return self._products(folds_of(self._rows) if self._folds is None else self._folds)

    def _own_variances(self) -> Array:
        """Return the variance (n, n) that each joint alone leaves of each effort column."""
        result = np.full((self.n, self.n), np.inf)  # of a joint without rows nothing counts
        for j in self.moving:
            G = self._total[j]
            used, power = np.flatnonzero(np.diag(G)[: self.b] > 0.0), np.diag(G)[self.b :]
            normal, scale = scaled(G[np.ix_(used, used)])
            right = G[used, self.b :] / scale[:, None]
            left = power - np.sum(right * np.linalg.solve(normal, right), axis=0)
            free = max(self._counts[j] - len(used), 1)
            floor = EXACT**2 * power / self._counts[j]
            result[j] = np.maximum(np.maximum(left / free, floor), 1e-300)
        return result

    def _solutions(self, products: Array, efforts: Efforts, possible: bool) -> Array:
        """
        Fit Y_c = (W_j χ)/f, weighted by the columns' variances, to robots that are possible.

        Of products (n, m, m) and one or several efforts, or of several products and one of these.
        """
        (columns, factors), n, b, m = efforts, self.n, self.b, self.b + self.n
        weights = 1.0 / (factors * self._variances[np.arange(n), columns])
        picked = (weights[..., None] * self._taken(columns)).reshape(*weights.shape[:-1], 1, n * n)
        every = (weights / factors)[..., None, :] @ products.reshape(*products.shape[:-2], m * m)
        normal = every.reshape(*every.shape[:-2], m, m)[..., :b, :b]
        others = products[..., b:, :b].reshape(*products.shape[:-3], n * n, b)
        value, A = normal_solution(normal, (picked @ others)[..., 0, :]), self._possible
        if possible and A is not None:
            for k in np.ndindex(value.shape[:-1]):
                if np.any(A @ value[k] < -1e-9 * np.abs(A) @ np.abs(value[k])):
                    value[k] = _least_distance(normal[k], value[k], A)
        return value

    def _taken(self, columns: Indices) -> Mask:
        """Return which column (…, n, n) each joint takes."""
        return np.asarray(columns[..., None] == np.arange(self.n))

    def _squares(self, products: Array, efforts: Efforts, value: Array) -> Array:
        """Return squared errors (…, n) of each effort column."""
        fitted = -value[..., None, :] / efforts.factors[..., None]
        taken = self._taken(efforts.columns)
        vectors = np.empty((*fitted.shape[:-1], self.b + self.n))
        vectors[..., : self.b], vectors[..., self.b :] = fitted, taken
        squares = np.sum((vectors[..., None, :] @ products)[..., 0, :] * vectors, axis=-1)
        return np.asarray((np.maximum(squares, 0.0)[..., None, :] @ taken)[..., 0, :])

    def fitted(self, efforts: Efforts, possible: bool = False) -> Array:
        """Return the squared error of a fit to all rows, in units of `sigma`; () or (K,)."""
        value = self._solutions(self._total, efforts, possible)
        squares = self._squares(self._total, efforts, value)
        return np.asarray(np.sum(squares / self.sigma**2, axis=-1))

    def contradiction(self, efforts: Efforts) -> float:
        """Return by how much all joints' squared error exceeds what each alone leaves, a share."""
        rows = max(float(self._counts.sum()), 1.0)
        return float(self.fitted(efforts, possible=True)) / rows - 1.0

    def errors(self, efforts: Efforts) -> Array:
        """Return squared errors (K, n) of effort columns on folds, robots fitted to the others."""
        values = self._solutions(self._total - self.parts, efforts, True)
        return self._squares(self.parts, efforts, values)

    @cached_property
    def recorded(self) -> Array:
        """Squared errors (K, n) of the efforts as recorded."""
        return self.errors(Efforts.as_recorded(self.n))

    @property
    def powers(self) -> Array:
        """Squared efforts (K, n) of each fold."""
        own = np.arange(self.n)
        return np.asarray(self.parts[:, own, self.b + own, self.b + own])

    def compare(self, before: Array, after: Array) -> Trial:
        """Compare squared errors (K, n) of two models."""
        return compare(before, after, self.powers, self.sigma)


def of_one_joint(W: Array, y: Array, parts: Mask) -> Trials:
    """Return the trials of rows of one joint, W (N, b) and y (N,)."""
    every, time = np.ones((1, len(y)), dtype=bool), np.arange(len(y), dtype=float)
    return Trials(Rows((), (), ('',), W[None], y[None], every, time), None, parts)


def compare(before: Array, after: Array, powers: Array, sigma: Array) -> Trial:
    """Compare two models by squared errors and efforts (K, n) of folds, in units of σ (n,)."""
    exact = LEAST_SHOWN**2 * powers
    total = [np.sum(np.maximum(x, exact) / sigma**2, axis=1) for x in (before, after)]
    used = np.all(np.array(total) > 0.0, axis=0)
    each = np.log(total[0][used] / total[1][used])
    count = max(len(each), 1)
    error = float(each.std(ddof=1) / np.sqrt(count)) if count > 1 else np.inf
    changed = np.abs((before - after).sum(axis=0)) / sigma**2
    joint = int(np.argmax(changed))
    power = max(float(powers[:, joint].sum()), 1e-300)
    shares = [float(np.sqrt(errors[:, joint].sum() / power)) for errors in (before, after)]
    gain = float(each.mean()) if len(each) else 0.0
    return Trial(joint, shares[0], shares[1], gain, error)


def refine(
    left: Callable[[Array], Array], start: float, step: float, accuracy: float
) -> tuple[float, float]:
    """Return where near a start, by steps, a function of (K,) is least, and what it is there."""
    while True:
        near = start + step * np.linspace(-1.0, 1.0, 9)
        each = left(near)
        start, least, step = float(near[np.argmin(each)]), float(each.min()), step / 4.0
        if step < accuracy:
            return start, least


def possible_robots(robot: Robot, base: BaseParameters, rows: Rows) -> Array:
    """
    Return A (m, b) with A χ ≥ 0: friction takes energy, and no joint's inertia is negative.

    At some states of each joint or coupling its friction's power Σ_j q̇_j τ_j, and at some
    positions the diagonal of the mass matrix. Both are linear in the parameters.
    """
    assert rows.q is not None and rows.dq is not None
    rigid, offset = rigid_and_offset(robot, base.columns)
    owners: dict[str, list[int]] = {}
    for k in np.flatnonzero(~rigid & ~offset).tolist():
        owners.setdefault(robot.parameters[base.columns[k]].joint, []).append(k)
    lines = list[Array]()
    for places in owners.values():
        power = np.einsum('kj,jkb->kb', rows.dq, rows.W[:, :, places])
        order = np.argsort(np.linalg.norm(power, axis=1), kind='stable')
        chosen = order[np.linspace(len(order) // 10, len(order) - 1, STATES).astype(int)]
        own = np.zeros((STATES, base.rank))
        own[:, places] = power[chosen]
        lines.append(own)
    postures = np.linspace(0, len(rows.time) - 1, STATES).astype(int)
    inertias = mass_diagonal_columns(robot, rows.q[postures])[:, :, base.columns]
    A = np.concatenate([*lines, inertias.reshape(-1, base.rank)])
    size = np.linalg.norm(A, axis=1)
    return np.asarray(A[size > 0.0] / size[size > 0.0, None])


def mass_diagonal_columns(robot: Robot, q: Array) -> Array:
    """Return what each parameter adds to the diagonal of the mass matrix, (n, postures, p)."""
    n, count = robot.n, len(q)
    push = np.repeat(np.eye(n + 1, n, k=-1), count, axis=0)  # of no joint first, then of each
    rest = np.zeros((len(push), n))
    torques = regressor(robot, np.tile(q, (n + 1, 1)), rest, push)
    torques = torques.reshape(n, n + 1, count, robot.p)
    joints = np.arange(n)
    return np.asarray(torques[joints, joints + 1] - torques[:, 0])


def scaled(normal: Array) -> tuple[Array, Array]:
    """Return normal matrices with ones on the diagonals, and the scale (…, b) of their columns."""
    scale = diagonal_scale(normal)
    ridge = RIDGE * np.eye(normal.shape[-1])
    return normal / (scale[..., :, None] * scale[..., None, :]) + ridge, scale


def normal_solution(normal: Array, right: Array) -> Array:
    """Solve normal equations (…, b, b) with right sides (…, b)."""
    left, scale = scaled(normal)
    return np.asarray(np.linalg.solve(left, (right / scale)[..., None])[..., 0] / scale)


def _non_negative_least_squares(E: Array, goal: Array) -> Array | None:
    """Return the w ≥ 0 of least ‖E w − goal‖, None: not found; SciPy's is slow to import."""
    w, used = np.zeros(E.shape[1]), np.zeros(E.shape[1], dtype=bool)
    for _ in range(3 * len(w)):
        gain = np.where(used, 0.0, E.T @ (goal - E @ w))
        if gain.max() < ROUNDING:
            return w
        used[np.argmax(gain)] = True
        while True:
            other = np.zeros(len(w))
            other[used] = np.linalg.lstsq(E[:, used], goal, rcond=None)[0]
            below = np.flatnonzero(used & (other < 0.0))
            if not below.size:
                break
            shares = w[below] / (w[below] - other[below])
            w += shares.min() * (other - w)
            # The first one to reach 0 leaves, however it is rounded: each round has one less.
            used[below[np.argmin(shares)]] = False
            used[below[w[below] < ROUNDING]] = False
        w = other
    return None


def _least_distance(normal: Array, value: Array, A: Array) -> Array:
    """
    Minimise (χ − value)ᵀ N (χ − value) with A χ ≥ 0 (Lawson and Hanson 1974, chapter 23).

    With N = L Lᵀ and u = Lᵀ(χ − value): least ‖u‖ with G u ≥ h, G = A L⁻ᵀ, h = −A value. It is
    what non-negative least squares [Gᵀ; hᵀ] w ≈ [0; 1] leaves.
    """
    size = np.diag(normal)
    used = size > SINGULAR**2 * size.max(initial=0.0)
    # Parameters without data can make up for a limit that they are in.
    A = A[~A[:, ~used].any(axis=1)][:, used]
    if not len(A):
        return value
    left, scale = scaled(normal[np.ix_(used, used)])
    L = np.linalg.cholesky(left)
    G, h = np.linalg.solve(L, (A / scale).T).T, -A @ value[used]
    size = np.maximum(np.linalg.norm(G, axis=1), 1e-300)
    h = h / size
    unit = float(np.abs(h).max())
    E, goal = np.vstack([(G / size[:, None]).T, h / unit]), np.eye(len(L) + 1)[-1]
    w = _non_negative_least_squares(E, goal)
    if w is None or (rest := E @ w - goal)[-1] > -1e-12:
        return value
    result = value.copy()
    result[used] += np.linalg.solve(L.T, unit * rest[:-1] / -rest[-1]) / scale
    return result
