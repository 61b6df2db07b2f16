"""
How much each kind of column may explain: variances of a mixed model, by folds that extrapolate.

y_j = W_j χ + D_j δ_j + ε_j with δ_jk ~ N(0, s_k² I). The estimate minimises
Σ_j (1/σ_j) [‖y_j − W_j χ − D_j δ_j‖²/N + Σ_k λ_k ‖δ_jk‖²] + h ‖S (χ − χ_plain)‖² + a weak prior
of χ: the best linear unbiased prediction (Robinson 1991) with penalties for variances (Ruppert,
Wand and Carroll 2003). λ_k are those that predict folds best which differ from the rest of the
motion; of choices that are not told apart, the one nearest to plain friction (Breiman et al. 1984).
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array

# λ of a kind, from closed to nearly free, in units of a column of size one.
GRID = (np.inf, 1.0, 1e-1, 1e-2, 1e-3, 1e-4)
# Pull to the plain fit of the same rows, relative to the columns' size: without it a short recording
# was 1.48 times worse than plain friction.
HOLD = 3e-4
# Pulls to the bodies of the description, and ridges where it has none.
PULLS, RIDGES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1), (1e-9, 1e-6, 1e-5, 1e-4, 1e-3)
TINY_RIDGE = 1e-9
# A choice has to gain so much of the log error, and so many standard errors over the folds.
LEAST_GAIN, ERRORS = 0.002, 2.0
SWEEPS = 3


@dataclasses.dataclass(frozen=True)
class Grams:
    """
    Products [W D y]ᵀ [W D y] of the rows of each fold and joint, columns scaled.

    Attributes
    ----------
    total : (n, c, c) of all rows
    folds : (F, n, c, c)
    count : number of rows of all joints

    """

    total: Array
    folds: Array
    count: int

    def __add__(self, other: 'Grams') -> 'Grams':
        """Add those of another part of the recording."""
        return Grams(
            self.total + other.total, self.folds + other.folds, self.count + other.count
        )


def products(
    W: Array, D: Array, Y: Array, valid: npt.NDArray[np.bool_], folds: npt.NDArray[np.bool_]
) -> Grams:
    """Return the products of rows (n, N, …) that are valid (n, N), fold by fold (F, N)."""
    n, size = len(W), W.shape[2] + D.shape[2] + 1
    each = np.zeros((len(folds), n, size, size))
    total = np.zeros((n, size, size))
    for j in range(n):
        rows = np.column_stack([W[j], D[j], Y[j]])
        used = rows[valid[j]]
        total[j] = used.T @ used
        for k, fold in enumerate(folds):
            own = rows[valid[j] & fold]
            each[k, j] = own.T @ own
    return Grams(total, each, int(valid.sum()))


@dataclasses.dataclass(frozen=True)
class Shrinkage:
    """
    What was chosen.

    Attributes
    ----------
    penalty : (K,) λ of each kind; inf of one that is closed
    pull : to the bodies of the description, or ridge
    weights : (n,) 1/σ_j
    gain : (F,) log of the squared error of plain friction over that of the choice, fold by fold
    joint_gain : (n,) mean log of each joint's squared error over the folds

    """

    penalty: Array
    pull: float
    weights: Array
    gain: Array
    joint_gain: Array


class _Fold:
    """One fit, of the rows outside a fold or of all, reduced to δ by a Schur complement."""

    def __init__(
        self, train: Array, test: Array, b: int, weights: Array, count: int,
        size: Array, prior: tuple[float, Array, Array], links: bool,
    ):  # fmt: skip
        n, c = train.shape[:2]
        d = c - b - 1
        scaled = train * weights[:, None, None] / count
        A = scaled[:, :b, :b].sum(axis=0)
        A = A + TINY_RIDGE * np.diag(size)
        y = scaled[:, :b, -1].sum(axis=0)
        plain = np.linalg.solve(A, y)
        hold = HOLD * size
        pull, mean, where = prior
        extra = pull * size * where
        left = A + np.diag(hold + extra)
        right = y + hold * plain + extra * mean
        B = np.concatenate([scaled[j, :b, b:-1] for j in range(n)], axis=1)
        both = np.linalg.solve(left, np.column_stack([right, B]))
        self.base, self.take = both[:, 0], both[:, 1:]
        C = np.zeros((n * d, n * d))
        z = np.zeros(n * d)
        for j in range(n):
            own = slice(j * d, (j + 1) * d)
            C[own, own] = scaled[j, b:-1, b:-1]
            z[own] = scaled[j, b:-1, -1]
        self.schur = C - B.T @ self.take
        self.right = z - B.T @ self.base
        # Error of joint j: e = y − W χ0 − (D_j − W K) δ.
        self.quadratic = np.zeros((n, n * d + 1, n * d + 1))
        T = np.zeros((c, n * d + 1))
        T[:b, 0], T[:b, 1:], T[-1, 0] = -self.base, self.take, 1.0
        for j in range(n):
            own = T.copy()
            own[b : b + d, 1 + j * d : 1 + (j + 1) * d] = -np.eye(d)
            self.quadratic[j] = own.T @ test[j] @ own
        vector = np.zeros(c)
        vector[:b], vector[-1] = -plain, 1.0
        self.plain = np.array([vector @ test[j] @ vector for j in range(n)])


def solve_delta(schur: Array, right: Array, penalty: Array) -> Array:
    """Return δ (…, m) of penalties (m,), zero where they are infinite."""
    opened = np.flatnonzero(np.isfinite(penalty))
    delta = np.zeros(right.shape)
    if len(opened):
        left = schur[..., opened[:, None], opened] + np.diag(penalty[opened])
        delta[..., opened] = np.linalg.solve(left, right[..., opened, None])[..., 0]
    return delta


class Choice:
    """The folds of a recording, fitted with any penalties."""

    def __init__(
        self, grams: Grams, b: int, kind: Array, weights: Array,
        size: Array, mean: Array | None, where: Array,
    ):  # fmt: skip
        self.n = len(grams.total)
        self._grams, self._b = grams, b
        self._weights, self._size = weights, size
        self._mean, self._where = mean, where
        self._kind = np.tile(kind, self.n)
        self._weight_of = np.repeat(weights, len(kind))
        self._reduced: dict[float, tuple[Array, Array, Array]] = {}
        self.plain = np.zeros((len(grams.folds), self.n))

    @property
    def pulls(self) -> tuple[float, ...]:
        return RIDGES if self._mean is None else PULLS

    def _at(self, pull: float) -> tuple[Array, Array, Array]:
        if pull not in self._reduced:
            mean = np.zeros(self._b) if self._mean is None else self._mean
            where = np.ones(self._b) if self._mean is None else self._where
            grams = self._grams
            share = [grams.total - fold for fold in grams.folds]
            parts = [
                _Fold(train, test, self._b, self._weights, grams.count, self._size,
                      (pull, mean, where), self._mean is not None)
                for train, test in zip(share, grams.folds, strict=True)
            ]  # fmt: skip
            self.plain = np.array([part.plain for part in parts])
            self._reduced[pull] = (
                np.array([part.schur for part in parts]),
                np.array([part.right for part in parts]),
                np.array([part.quadratic for part in parts]),
            )
        return self._reduced[pull]

    def errors(self, penalty: Array, pull: float) -> Array:
        """Return the squared errors (F, n) of the folds."""
        schur, right, quadratic = self._at(pull)
        each = np.asarray(penalty)[self._kind] * self._weight_of
        delta = solve_delta(schur, right, each)
        vector = np.concatenate([np.ones((len(delta), 1)), delta], axis=1)
        return np.maximum(np.einsum('fa,fjab,fb->fj', vector, quadratic, vector, optimize=True), 0)

    def run(self) -> Shrinkage:
        """Open kinds, and set the prior, as far as the folds tell that it helps."""
        count = int(self._kind.max()) + 1
        penalty = np.full(count, np.inf)
        pull = self.pulls[0]
        current = self.errors(penalty, pull)
        for _ in range(SWEEPS):
            before = (*penalty, pull)
            for k in range(count):
                options = {}
                for value in GRID:
                    tried = penalty.copy()
                    tried[k] = value
                    options[value] = self.errors(tried, pull)
                chosen = self._best(options, penalty[k], current)
                penalty[k], current = chosen, options[chosen]
            options = {value: self.errors(penalty, value) for value in self.pulls}
            pull = self._best(options, pull, current)
            current = options[pull]
            if (*penalty, pull) == before:
                break
        return Shrinkage(
            penalty, pull, self._weights, np.log(total(self.plain) / total(current)),
            np.log(self.plain.sum(axis=0) / np.maximum(current.sum(axis=0), 1e-300)),
        )  # fmt: skip

    def _best(self, options: dict[float, Array], now: float, current: Array) -> float:
        """Return the option with the least error of those that clearly gain, or that close."""
        best, least = now, 0.0
        for value, errors in options.items():
            if value == now:
                continue
            gains = np.log(total(current) / total(errors))
            gain = float(gains.mean())
            error = float(gains.std(ddof=1) / np.sqrt(len(gains)))
            needed = LEAST_GAIN if value == np.inf else max(LEAST_GAIN, ERRORS * error)
            if gain > needed and gain > least and (value == np.inf or self._guards(errors)):
                best, least = value, gain
        return best

    def _guards(self, errors: Array) -> bool:
        """Tell whether no joint is predicted worse than by plain friction, beyond chance."""
        gain = self.plain - errors
        error = gain.std(axis=0, ddof=1) * np.sqrt(len(gain))
        return bool(np.all(gain.sum(axis=0) >= -error))


def total(errors: Array) -> Array:
    """Return the error of all joints together (F,)."""
    return np.maximum(errors.sum(axis=1), 1e-300)
