"""
How much each kind of column may explain: variances of a mixed model, by folds that extrapolate.

y_j = W_j χ + D_j δ_j + ε_j with δ_jk ~ N(0, s_k² I). The estimate minimises
Σ_j (1/σ_j) [‖y_j − W_j χ − D_j δ_j‖²/N + Σ_k λ_k ‖δ_jk‖²] + h ‖S (χ − χ_plain)‖² + a weak prior
of χ: the best linear unbiased prediction (Robinson 1991) with penalties for variances (Ruppert,
Wand and Carroll 2003). λ_k are those that predict folds best which differ from the rest of the
motion; of choices that are not told apart the one nearest to plain friction, and to the bodies of
the description (Breiman et al. 1984).
"""

import dataclasses
from functools import cached_property

import numpy as np

from ..arrays import Array, Mask
from ..model.friction import FRICTION_TERMS
from ..regression.least_squares import HOLD, RIDGE
from ..regression.model_error import EFFECTS

# What the default opens, by name and in words: each predicts other motion better on the logs of
# benchmarks/foreign.py.
KINDS = {name: text for effect in EFFECTS.values() for name, text in effect.terms.items()}
# Which of them a column is of, (d,).
KIND = np.repeat(np.arange(len(KINDS)), [len(FRICTION_TERMS[name].symbols) for name in KINDS])
# λ of a kind, from closed to nearly free, in units of a column of size one.
GRID = (np.inf, 1.0, 1e-1, 1e-2, 1e-3, 1e-4)
# Pulls to the bodies of the description, and ridges where it has none.
PULLS = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
RIDGES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3)
# A choice has to gain so much of the log error, and so many standard errors over the folds: a
# filter or a model without gravity two, a kind or a pull one (Breiman et al. 1984).
LEAST_GAIN, ERRORS, KIND_ERRORS = 0.002, 2.0, 1.0
SWEEPS = 3
# What all kinds together gain of the log error of filtered rows, at least. Unfiltered rows leave
# what filters do, too, which kinds would explain: of two in twelve simulated recordings with plain
# friction, and σ would be three times as wide. Of logs of robots, both kinds of rows gain alike.
WORTH = 0.01
TINY = 1e-300


@dataclasses.dataclass(frozen=True)
class Grams:
    """Products [W D y]ᵀ [W D y] of the rows of each fold and joint."""

    total: Array  # (n, c, c) of all rows
    folds: Array  # (F, n, c, c)
    count: int  # number of rows of all joints

    def __add__(self, other: 'Grams') -> 'Grams':
        """Add those of another part of the recording, whose folds are others."""
        folds = np.concatenate([self.folds, other.folds])
        return Grams(self.total + other.total, folds, self.count + other.count)

    def over(self, size: Array) -> 'Grams':
        """Return those of columns [W D y] over sizes (n, c), or (c,) of all joints."""
        scale = 1.0 / (size[..., :, None] * size[..., None, :])
        return Grams(self.total * scale, self.folds * scale, self.count)


def products(W: Array, D: Array, Y: Array, valid: Mask, folds: Mask) -> Grams:
    """Return the products of rows (n, N, …) that are valid (n, N), fold by fold (F, N)."""
    n, size = len(W), W.shape[2] + D.shape[2] + 1
    found = np.zeros((len(folds) + 1, n, size, size))
    for j in range(n):
        rows, place = np.column_stack([W[j], D[j], Y[j]]), np.flatnonzero(valid[j])
        used = np.flatnonzero(rows.any(axis=0))  # few links hang on a joint
        rows = rows[np.ix_(place, used)]
        for k, own in enumerate([rows, *(rows[fold[place]] for fold in folds)]):
            found[k, j, used[:, None], used] = own.T @ own
    return Grams(found[0], found[1:], int(valid.sum()))


@dataclasses.dataclass(frozen=True)
class Shrinkage:
    """What was chosen."""

    penalty: Array  # (K,) λ of each kind; inf of one that is closed
    used: Mask  # (n, K) whether it is open at a joint
    pull: float  # to the bodies of the description, or ridge
    weights: Array  # (n,) 1/σ_j
    errors: Array  # (F,) squared error of each fold
    joint_errors: Array  # (n,) squared error of each joint, all folds
    plain_joint_errors: Array  # (n,) the same by plain friction
    powers: Array  # (n,) squared efforts of each joint, all folds

    @property
    def residual(self) -> float:
        """Relative residual of all joints on the folds."""
        return float(np.sqrt(self.joint_errors.sum() / max(self.powers.sum(), TINY)))

    @property
    def joint_residuals(self) -> Array:
        """Relative residuals (n,) of the joints on the folds."""
        return np.sqrt(self.joint_errors / np.maximum(self.powers, TINY))

    @property
    def plain_residual(self) -> float:
        """The same of plain friction."""
        return float(np.sqrt(self.plain_joint_errors.sum() / max(self.powers.sum(), TINY)))


class Fits:
    """
    Fits of some rows each, reduced to δ by a Schur complement.

    χ = χ_0 − K δ minimises for any δ; `value` (F, b) is χ_0, `plain` (F, b) the fit without δ. The
    products `train` (F, n, c, c) are weighted. `prior` is a ridge (b,), and a pull (b, b) to the
    mean (b,), of one row; None: nothing pulls.
    """

    def __init__(self, train: Array, size: Array, prior: tuple[Array, Array, Array] | None = None):
        b = len(size)
        ridge, pull, mean = prior or (np.zeros(b), np.zeros((b, b)), np.zeros(b))
        normal, y = train[:, :, :b, :b].sum(axis=1), train[:, :, :b, -1].sum(axis=1)
        weak, y_pulled = normal + np.diag(RIDGE * size + ridge), y + pull @ mean
        self.plain = _solve(weak, y)
        held = self.plain if prior is None else _solve(weak + pull, y_pulled)
        self._train, self._normal = train, weak + np.diag(HOLD * size) + pull
        self.value = _solve(self._normal, y_pulled + HOLD * size * held)

    @cached_property
    def reduced(self) -> tuple[Array, Array, Array]:
        """K (F, b, m), and the normal equations (F, m, m), (F, m) of δ without penalties."""
        train, b = self._train, self.value.shape[1]
        B = np.concatenate([*train[:, :, :b, b:-1].swapaxes(0, 1)], axis=2)
        take, d = np.linalg.solve(self._normal, B), train.shape[2] - b - 1
        left, right = -B.swapaxes(1, 2) @ take, -(B.swapaxes(1, 2) @ self.value[..., None])[..., 0]
        for j, own in enumerate(train.swapaxes(0, 1)):
            place = slice(j * d, (j + 1) * d)
            left[:, place, place] += own[:, b:-1, b:-1]
            right[:, place] += own[:, b:-1, -1]
        return take, left, right

    def solve(self, penalty: Array) -> tuple[Array, Array]:
        """Return χ (F, b) and δ (F, m) of penalties (m,), δ zero where they are infinite."""
        opened, value = np.flatnonzero(np.isfinite(penalty)), self.value
        delta = np.zeros((len(value), len(penalty)))
        if len(opened):
            take, left, right = self.reduced
            left = left[:, opened[:, None], opened] + np.diag(penalty[opened])
            delta[:, opened] = _solve(left, right[:, opened])
            value = value - (take @ delta[..., None])[..., 0]
        return value, delta


def _solve(left: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(left, right[..., None])[..., 0])


def squared_errors(judged: Array, value: Array, delta: Array | None = None) -> Array:
    """Return ‖y − W χ − D δ‖² (F, n) by products (F, n, c, c), of χ (F, b) and δ (F, m)."""
    folds, n, c, _ = judged.shape
    vector = np.zeros((folds, n, c, 1))
    vector[:, :, : value.shape[1], 0], vector[:, :, -1] = -value[:, None], 1.0
    if delta is not None:
        vector[:, :, value.shape[1] : -1, 0] = -delta.reshape(folds, n, -1)
    return np.asarray((vector * (judged @ vector)).sum(axis=(2, 3)))


class Choice:
    """
    The folds of a recording, fitted with any penalties.

    Products are of b columns W that are scaled to the size one; those of rows at `instants` are
    weighted. Bodies of the description have the parameters `mean` (b,), None without any, from
    which others are away by `metric` (b, b), a ridge without any. Friction is not beyond the
    efforts: a ridge (b,) of it, and λ (n,) of every kind that is `least`, always count.
    """

    def __init__(
        self,
        grams: Grams,
        instants: Grams,
        b: int,
        weights: Array,
        mean: Array | None,
        metric: Array,
        friction: Array,
        least: Array,
    ):
        # The error that is stated is that of filtered rows: it has less noise.
        self._filtered = grams.folds
        total, self._folds = grams.total + instants.total, grams.folds + instants.folds
        share = weights[:, None, None] / (grams.count + instants.count)
        self._left = (total - self._folds) * share  # by each fold to be fitted
        self._weights, self._friction, self._least = weights, friction, least[:, None]
        # What is tried of the weak prior, from none to strong.
        self._pulls = RIDGES if mean is None else PULLS
        self._mean = np.zeros(b) if mean is None else mean
        self.size = np.einsum('jkk->k', (total * share)[:, :b, :b])  # of each column, weighted
        self.size = np.maximum(self.size, 1e-12 * self.size.max())
        metric = np.diag(self.size) if mean is None else metric
        self.metric = metric * (self.size.sum() / max(float(np.trace(metric)), TINY))
        self._used = np.ones((len(weights), len(KINDS)), bool)
        self._fits, self._known = dict[float, Fits](), dict[tuple[object, ...], Array]()
        self._plain = self.plain_on(self._folds)

    def _fits_of(self, pull: float) -> Fits:
        """Return the fits of what each fold leaves."""
        if pull not in self._fits:
            prior = self._friction, pull * self.metric, self._mean
            self._fits[pull] = Fits(self._left, self.size, prior)
        return self._fits[pull]

    def errors(self, penalty: Array, pull: float) -> Array:
        """Return the squared errors (F, n) of the folds."""
        key = (*penalty, pull, self._used.tobytes())
        if key not in self._known:
            self._known[key] = self.errors_on(self._folds, penalty, pull)
        return self._known[key]

    def errors_on(self, judged: Array, penalty: Array, pull: float) -> Array:
        """Return the squared errors (F, n) of products (F, n, c, c) of other rows of the folds."""
        each = np.where(self._used, penalty + self._least, np.inf)[:, KIND]
        each = each * self._weights[:, None]
        fitted = self._fits_of(pull).solve(each.ravel())
        return np.maximum(squared_errors(judged, *fitted), 0.0)

    def plain_on(self, judged: Array) -> Array:
        """Return the same of plain friction."""
        return squared_errors(judged, self._fits_of(self._pulls[0]).plain)

    def run(self) -> Shrinkage:
        """Open kinds, and set the prior, as far as the folds tell that it helps."""
        count = len(KINDS)
        penalty = np.full(count, np.inf)
        pull = self._pulls[0]
        for _ in range(SWEEPS):
            before = (*penalty, pull)
            for k in range(count):
                own = np.arange(count) == k
                tried = {x: self.errors(np.where(own, x, penalty), pull) for x in GRID}
                kept = (np.inf, penalty[k])  # whatever they do to single joints
                penalty[k] = strongest(
                    {x: errors for x, errors in tried.items() if x in kept or self._guards(errors)}
                )
            pull = strongest({value: self.errors(penalty, value) for value in self._pulls})
            if (*penalty, pull) == before:
                break
        self._close_at_joints(penalty, pull)
        closed = np.full(count, np.inf)
        left, without = (total(self.errors_on(self._filtered, x, pull)) for x in (penalty, closed))
        if not gains_clearly(left, without, KIND_ERRORS, WORTH):
            penalty = closed
            pull = strongest({value: self.errors(penalty, value) for value in self._pulls})
        used = self._used & np.isfinite(penalty)
        penalty = np.where(used.any(axis=0), penalty, np.inf)
        left = self.errors_on(self._filtered, penalty, pull)
        plain = self.plain_on(self._filtered)
        by_joint = left.sum(axis=0), plain.sum(axis=0)
        powers = self._filtered[:, :, -1, -1].sum(axis=0)
        return Shrinkage(penalty, used, pull, self._weights, total(left), *by_joint, powers)

    def _close_at_joints(self, penalty: Array, pull: float) -> None:
        """Close the kinds that do not clearly help a joint on its own folds, the least first."""
        opened = np.flatnonzero(np.isfinite(penalty))
        for j, used in enumerate(self._used):
            while used[opened].any():
                without = dict[int, Array]()
                for k in opened[used[opened]]:
                    used[k] = False
                    without[k] = self.errors(penalty, pull)[:, j] + TINY
                    used[k] = True
                least = min(without, key=lambda k: float(np.log(without[k]).mean()))
                now = self.errors(penalty, pull)[:, j] + TINY
                if gains_clearly(now, without[least], KIND_ERRORS):
                    break
                used[least] = False

    def _guards(self, errors: Array) -> bool:
        """Tell whether no joint is predicted worse than by plain friction, beyond chance."""
        gain = self._plain - errors
        error = gain.std(axis=0, ddof=1) * np.sqrt(len(gain))
        return bool(np.all(gain.sum(axis=0) >= -error))


def strongest(options: dict[float, Array]) -> float:
    """
    Return the largest pull or penalty whose errors (F, n) folds do not tell from the least.

    What the motion does not show is then as the description or plain friction has it: other motion
    may show it.
    """
    best = min(options.values(), key=lambda errors: float(np.log(total(errors)).mean()))
    return max(
        pull
        for pull, errors in options.items()
        if not gains_clearly(total(best), total(errors), KIND_ERRORS)
    )


def gains_clearly(
    errors: Array, others: Array, chances: float = ERRORS, least: float = LEAST_GAIN
) -> bool:
    """Tell whether errors (F,) are less than others, by the mean of their logs, beyond chance."""
    gains = np.log(others / errors)
    chance = float(gains.std(ddof=1) / np.sqrt(len(gains)))
    return float(gains.mean()) > max(least, chances * chance)


def total(errors: Array) -> Array:
    """Return the error of all joints together (F,)."""
    return np.maximum(errors.sum(axis=1), TINY)
