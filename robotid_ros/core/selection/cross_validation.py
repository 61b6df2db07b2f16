"""Blocked cross-validation: fit all blocks but one, predict that one, from products alone."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array, diagonal_scale
from .block_grams import BlockGrams, Columns
from .candidates import Candidate

# Added to the diagonal of a normalised WᵀW: what the blocks do not tell stays near zero.
RIDGE = 1e-9
# Further friction parameters have to earn so much of the squared error, and a torque of such a
# share: less than that no effort is known to.
LEAST_GAIN, NOTICEABLE = 0.05, 2e-3
# Nearer than this, a friction without shape constants goes before one that has some.
SAME = 1.002
# Among those within one standard error, the least residual counts up to this share of it: nearer
# candidates are equal, and weighted least squares, whose σ hold joint by joint, goes first, then
# the band nearest to a usual one [Hz]: lower ones lose what was measured, higher ones let noise
# of the accelerations into W, which shrinks inertias.
EQUAL, USUAL = 1.03, 8.0

# A joint of small efforts is lost beside large ones where so many times its effort are left.
LOST = 1.5

Places = list[npt.NDArray[np.intp]]


@dataclasses.dataclass(frozen=True)
class Score:
    """
    Squared errors of a candidate on blocks that it was not fitted to.

    Attributes
    ----------
    errors : (K, n) ‖Y − W χ‖² of each block and joint
    powers : (K, n) ‖Y‖²
    is_physical : whether no friction beyond the plain one is negative that physics wants positive

    """

    errors: Array
    powers: Array
    is_physical: bool = True

    @property
    def residual(self) -> float:
        """‖Y − W χ‖/‖Y‖ of all joints together."""
        return float(np.sqrt(self.errors.sum() / max(self.powers.sum(), 1e-300)))

    @property
    def joint_residuals(self) -> Array:
        """The same of each joint, (n,)."""
        return np.asarray(
            np.sqrt(self.errors.sum(axis=0) / np.maximum(self.powers.sum(axis=0), 1e-300))
        )

    @property
    def lost_joints(self) -> int:
        """How many joints are predicted worse than by no model, not only by chance."""
        return int((self.joint_residuals > LOST).sum())

    def mean_error(self, joint: int | None = None) -> float:
        """Return the mean error of a block, of all joints together or of one."""
        return float(_by_block(self.errors, joint).mean())

    def least_gain(self, joint: int | None = None) -> float:
        """Return the gain of a block from which on an error is noticeably less."""
        power = float(_by_block(self.powers, joint).mean())
        return max(LEAST_GAIN * self.mean_error(joint), NOTICEABLE**2 * power)

    def gain_over(self, other: 'Score', joint: int | None = None) -> tuple[float, float]:
        """Return by how much the error is less than another's, a block, and its standard error."""
        each = _by_block(other.errors - self.errors, joint)
        return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))

    def is_clearly_less(self, other: 'Score', joint: int | None = None) -> bool:
        """Tell whether the error is less than another's by more than chance, and noticeably."""
        gain, error = self.gain_over(other, joint)
        return gain > max(error, other.least_gain(joint))


def _by_block(values: Array, joint: int | None) -> Array:
    """Return values (K, n) of one joint, or of all together, (K,)."""
    return np.asarray(values.sum(axis=1) if joint is None else values[:, joint])


def cross_validate(
    candidate: Candidate, columns: Columns, training: BlockGrams, judging: BlockGrams
) -> Score:
    """
    Leave each block out once, and predict it (k-fold cross-validation with contiguous folds).

    Neighbouring samples are alike, so that only whole stretches of time are independent enough to
    be predicted (Burman, Chow and Nolan 1994).
    """
    problem = _Problem(candidate, columns, training)
    values = problem.solve_without_each()
    errors = [problem.squares(judging.products[:, j], values, j) for j in range(columns.robot.n)]
    powers = judging.products[:, :, -1, -1].copy()
    return Score(np.stack(errors, axis=1), powers, problem.is_physical(values.sum(axis=0)))


def simplest(scores: dict[Candidate, Score], joint: int | None = None) -> Candidate:
    """Return the simplest candidate within one standard error of the best, by one joint or all."""

    def error(candidate: Candidate) -> float:
        errors = scores[candidate].errors
        return float(errors.sum() if joint is None else errors[:, joint].sum())

    scores = {c: s for c, s in scores.items() if s.is_physical} or scores
    if joint is None:  # the large efforts do not decide alone
        lost = min(score.lost_joints for score in scores.values())
        scores = {c: s for c, s in scores.items() if s.lost_joints == lost}
    best = min(scores, key=error)
    near = []
    for candidate, score in scores.items():
        gain, spread = scores[best].gain_over(score, joint)
        if gain <= max(spread, score.least_gain(joint)):
            near.append(candidate)
    fewest = min(candidate.size for candidate in near)
    simple = [candidate for candidate in near if candidate.size == fewest]
    simple = [candidate for candidate in simple if candidate.rows == 'all'] or simple
    least = min(error(candidate) for candidate in simple)
    # Coulomb friction as the textbook has it, unless another shape is clearly better.
    least_constants = min(candidate.constants for candidate in simple)
    plain = [candidate for candidate in simple if candidate.constants == least_constants]
    if min(error(candidate) for candidate in plain) <= SAME**2 * least:
        simple = plain
    equal = [candidate for candidate in simple if error(candidate) <= EQUAL**2 * least]
    return min(equal, key=lambda c: (c.estimator != 'wls', abs(np.log(c.band / USUAL)), error(c)))


def fit_candidate(candidate: Candidate, columns: Columns, training: BlockGrams) -> Array:
    """Return what all blocks give for each joint's columns [W F], (n, b + f), 0 where unused."""
    return _Problem(candidate, columns, training).values_of_joints(training.products.shape[-1] - 1)


class _Problem:
    """Normal equations of one candidate, block by block."""

    def __init__(self, candidate: Candidate, columns: Columns, training: BlockGrams):
        own = [training.of(j, terms) for j, terms in enumerate(candidate.friction)]
        self._products = np.stack([products for products, _ in own], axis=1)
        counts = np.array([rows.sum() for _, rows in own])
        self._columns: Places = [columns.places(terms) for terms in candidate.friction]
        rank, self._places, first = columns.base.rank, Places(), columns.base.rank
        for chosen in self._columns:
            count = len(chosen) - rank
            self._places.append(np.concatenate([np.arange(rank), first + np.arange(count)]))
            first += count
        self._size = first
        self._wanted = np.concatenate(
            [np.zeros(rank, dtype=bool), *(columns.wanted_positive(t) for t in candidate.friction)]
        )
        n = len(self._columns)
        self._assemble(np.ones(n))
        if candidate.estimator == 'wls':
            value, total = self.solve()[None], self._products.sum(axis=0)
            squares = np.array([self.squares(total[None, j], value, j)[0] for j in range(n)])
            floor = 1e-12 * total[:, -1, -1] + 1e-300
            self._assemble(counts / np.maximum(squares, floor))

    def _assemble(self, weights: Array) -> None:
        count = len(self._products)
        self._left = np.zeros((count, self._size, self._size))
        self._right = np.zeros((count, self._size))
        for j, (columns, places) in enumerate(zip(self._columns, self._places, strict=True)):
            own = weights[j] * self._products[:, j]
            self._left[:, places[:, None], places] += own[:, columns[:, None], columns]
            self._right[:, places] += own[:, columns, -1]

    def solve(self) -> Array:
        """Solve the normal equations of all blocks (b,)."""
        return _solve(self._left.sum(axis=0)[None], self._right.sum(axis=0)[None])[0]

    def values_of_joints(self, width: int) -> Array:
        """Return the solution of all blocks in the columns of each joint, (n, width)."""
        value, result = self.solve(), np.zeros((len(self._columns), width))
        for own, columns, places in zip(result, self._columns, self._places, strict=True):
            own[columns] = value[places]
        return result

    def solve_without_each(self) -> Array:
        """Solve those of all blocks but one, which is each in turn (K, b)."""
        return _solve(self._left.sum(axis=0) - self._left, self._right.sum(axis=0) - self._right)

    def is_physical(self, value: Array) -> bool:
        """Tell whether no parameter is negative that is to be positive."""
        return not np.any(value[self._wanted] < 0.0)

    def squares(self, products: Array, values: Array, joint: int) -> Array:
        """Return ‖Y − W χ‖² of rows of a joint with each of some products and values, (K,)."""
        columns = np.append(self._columns[joint], -1)
        vectors = np.column_stack([-values[:, self._places[joint]], np.ones(len(values))])
        products = products[:, columns[:, None], columns]
        return np.asarray(
            np.maximum(np.einsum('ki,kij,kj->k', vectors, products, vectors, optimize=True), 0.0)
        )


def _solve(left: Array, right: Array) -> Array:
    """Solve systems of normal equations, (K, b, b) and (K, b), each normalised."""
    scale = diagonal_scale(left)
    normal = left / scale[:, :, None] / scale[:, None, :]
    normal[:, np.arange(left.shape[1]), np.arange(left.shape[1])] += RIDGE
    return np.asarray(np.linalg.solve(normal, (right / scale)[..., None])[..., 0] / scale)
