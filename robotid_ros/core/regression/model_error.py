"""What the model may leave out of joint torques, and how far that moves the estimate."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag
from scipy.special import chdtrc, gammaln

from ..arrays import Array
from ..model.parameters import INERTIAL
from .observation_system import read_only, System

if TYPE_CHECKING:
    from ..model.base_parameters import BaseParameters
    from ..model.robot import Robot
    from ..signals.samples import Samples

# Speeds over which friction at low speed fades, over the rms of the joint's own: of the first few
# degrees per second of an arm, and of much of its range.
FADING = (0.1, 0.5)
# Columns of one joint by what they are functions of, see `ModelErrors.columns`. Those of one
# group share a variance, of all joints: gears of one robot are alike, and so are delays. Columns
# that are torques or rates of them, by their group, have a factor as it is, others one that is
# relative to the joint's torque.
GROUPS = np.array([*3 * [0], 1, 2, *3 * [3], *4 * [4], 5])
COLUMNS, TORQUES = len(GROUPS), np.isin(GROUPS, (1, 2, 5))
# A group counts from this p-value on. Calibrated with benchmarks/coverage.py: of white noise alone
# one group in a hundred counts, and σ stay within some per cent of what they are without.
SIGNIFICANT = 0.01
# Share of a column that the model's own must leave: of less, nothing can be seen.
VISIBLE = 1e-8
RCOND = 1e-10  # least singular value over the largest of the fit that tells the load
# Most iterations for the variances, and the relative change of these that ends them. A group that
# explains less than NOTHING of the noise's variance is dropped.
ITERATIONS, TOLERANCE, NOTHING = 100, 0.01, 1e-3


@dataclasses.dataclass(frozen=True)
class ModelErrors:
    """
    Shapes of torques that a model of rigid links with simple friction may leave out.

    Attributes
    ----------
    speed, centre, spread : (n,) rms speed, mean and standard deviation of the position
    middle, duration : of the recording or its first part [s]
    links : (b,) parameters of the links, by least squares

    """

    speed: Array
    centre: Array
    spread: Array
    middle: float
    duration: float
    links: Array

    @classmethod
    def of(
        cls, samples: Samples, system: System, robot: Robot, base: BaseParameters
    ) -> ModelErrors:
        """Take the scales of a recording, or of its first part."""
        time = system.time
        inertial = np.array([robot.parameters[k].symbol in INERTIAL for k in base.columns])
        return cls(
            np.sqrt(np.mean(samples.dq**2, axis=0)),
            samples.q.mean(axis=0),
            samples.q.std(axis=0),
            float(time[0] + time[-1]) / 2.0,
            max(float(time[-1] - time[0]), 1e-300),
            np.where(inertial, _least_squares(system), 0.0),
        )

    def attach(self, samples: Samples, system: System) -> System:
        """Return the system with the columns of all joints (n, N, d)."""
        keep = samples.decimation
        D = np.stack(
            [
                self.columns(j, samples.q[::keep, j], samples.dq[::keep, j], system)
                for j in range(len(system.joints))
            ]
        )
        return dataclasses.replace(system, D=read_only(D))

    def columns(self, joint: int, q: Array, dq: Array, system: System) -> Array:
        """
        Return the columns of one joint (N, d): smooth functions of what its torque depends on.

        Of its speed, odd: friction at low speed (Stribeck), and that is not linear. Of its load:
        friction that grows with it. Of time: friction and zero that drift. Of position: springs,
        friction that changes with it, and friction that depends on the direction. Of the rate of
        its load: a delay of its effort that is too short to be removed.
        """
        v = dq / max(self.speed[joint], 1e-300)
        x = (q - self.centre[joint]) / max(self.spread[joint], 1e-300)
        t = (system.time - self.middle) / self.duration
        links = system.W[joint] @ self.links
        load, rate = np.abs(links), np.gradient(links, system.time)
        s, size = np.sign(v), np.abs(v)
        low = [s * np.exp(-size / speed) for speed in FADING]
        return np.column_stack(
            [*low, v * size, load * s, load * v, t, t * s, t * v, x, x**2, x * s, size, rate]
        )


def _least_squares(system: System) -> Array:
    """Return the parameters (b,), rows in units of the σ that their joint's own fit leaves."""
    weighted = []
    for w, y in (system.rows(j) for j in range(len(system.joints))):
        own = np.linalg.lstsq(w, y, rcond=RCOND)[0] if len(y) else np.zeros(w.shape[1])
        sigma = float(np.linalg.norm(y - w @ own)) / np.sqrt(max(len(y), 1))
        weighted.append(
            np.column_stack([w, y]) / max(sigma, 1e-9 * np.abs(y).max(initial=0.0), 1e-300)
        )
    rows = np.vstack(weighted)
    return np.asarray(np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=RCOND)[0])


def count_model_error(
    samples: Samples, system: System, robot: Robot, base: BaseParameters
) -> System:
    """Return the system with what the model may leave out, so that a fit of it counts that."""
    return ModelErrors.of(samples, system, robot, base).attach(samples, system)


def model_error_covariance(
    system: System, value: Array, gain: Array, correlation: float
) -> npt.NDArray[np.float64]:
    """
    Return how far an estimate (b,) may be off for what the model leaves out, as a covariance.

    The torques are taken as Y = W χ + D δ + ρ with δ ~ N(0, Λ): a mixed model, in which D δ is
    the discrepancy of the model (Kennedy and O'Hagan 2001), its variances shared by all joints:
    friction that grows with the load, seen in some, is to be reckoned with in others. The fit
    without D is off by H δ; the mean square of that, given the data, is H E[δ δᵀ] Hᵀ. Blocks of
    time cannot show it: where a motion repeats, so does the error.

    Parameters
    ----------
    system : with D
    value : (b,) the fit without D
    gain : (b, n·d) H, the change of the estimate for each column of D
    correlation : variance of sums of the noise over that of as many independent rows

    """
    information, score, scale = _information(system, value)
    labels = np.tile(GROUPS, len(system.joints))
    moment = _second_moment(information / correlation, score / correlation, labels)
    H = gain * scale
    return np.asarray(H @ moment @ H.T)


def _information(system: System, value: Array) -> tuple[Array, Array, Array]:
    """
    Return Dᵀ M D, Dᵀ M Y and the scale (n·d,) of columns, M the projection off W.

    Rows are in units of the σ of their joint, columns in those of their factors.
    """
    normal, right, crossed, own, scores, scales = 0.0, 0.0, [], [], [], []
    for j, count in enumerate(system.equations):
        w, y = system.rows(j)
        D = system.discrepancies(j)
        error = y - w @ value
        sigma = max(float(np.linalg.norm(error)), 1e-12 * float(np.linalg.norm(y)), 1e-300)
        root = np.sqrt(max(count, 1))
        scale = np.where(TORQUES, 1.0, np.linalg.norm(y) / root)
        w, error, D = (x * (root / sigma) for x in (w, error, D * scale))
        normal, right = normal + w.T @ w, right + w.T @ error
        crossed.append(w.T @ D)
        own.append(D.T @ D)
        scores.append(D.T @ error)
        scales.append(scale)
    length = 1.0 / np.sqrt(np.maximum(np.diag(normal), 1e-300))
    both = np.column_stack([*crossed, right]) * length[:, None]
    solved = np.linalg.lstsq(normal * np.outer(length, length), both, rcond=1e-13)[0]
    total = block_diag(*own)
    information = total - both[:, :-1].T @ solved[:, :-1]
    score = np.concatenate(scores) - both[:, :-1].T @ solved[:, -1]
    hidden = np.diag(information) <= VISIBLE * np.diag(total)
    information[hidden], information[:, hidden], score[hidden] = 0.0, 0.0, 0.0
    return information, score, np.concatenate(scales)


def _second_moment(information: Array, score: Array, labels: npt.NDArray[np.intp]) -> Array:
    """
    Return E[δ δᵀ | Y], the variance of each group being the one that makes Y likeliest.

    Groups are added while one's score test is significant beside those before, the clearest first.
    """
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    variance, mean = np.zeros(len(groups)), np.zeros(len(score))
    posterior, left = np.zeros_like(information), list(range(len(groups)))
    while left:
        rest = score - information @ mean
        unexplained = information - information @ posterior @ information
        tests = {k: _score_test(unexplained, rest, groups[k]) for k in left}
        best = min(tests, key=lambda k: tests[k][0])
        chance, first = tests[best]
        if chance > np.log(SIGNIFICANT):
            break
        left.remove(best)
        variance[best] = first
        variance, mean, posterior = _likeliest(information, score, groups, variance)
    return np.outer(mean, mean) + posterior


def _likeliest(
    information: Array, score: Array, groups: list[npt.NDArray[np.intp]], variance: Array
) -> tuple[Array, Array, Array]:
    """
    Return the variances of groups (g,) of the largest restricted likelihood, and δ given them.

    Fixed-point iteration λ = |δ̂|²/γ with γ the number of a group's parameters that the data
    determine (Patterson and Thompson 1971; MacKay 1992).
    """
    size = np.array([np.diag(information)[own].max() for own in groups])
    known, squares = np.zeros((2, len(groups)))
    for _ in range(ITERATIONS):
        root = np.zeros(len(score))
        for own, each in zip(groups, np.sqrt(variance), strict=True):
            root[own] = each
        scaled = root[:, None] * information * root + np.eye(len(root))
        posterior = root[:, None] * np.linalg.inv(scaled) * root
        mean = posterior @ score
        for k in np.flatnonzero(variance):
            own = groups[k]
            known[k] = max(np.sum(1.0 - np.diag(posterior)[own] / variance[k]), 1e-12)
            squares[k] = mean[own] @ mean[own]
        found = np.divide(squares, known, out=np.zeros_like(variance), where=variance > 0.0)
        found[found * size < NOTHING] = 0.0
        if np.allclose(found, variance, rtol=TOLERANCE):
            break
        variance = found
    return variance, mean, posterior


def _score_test(
    information: Array, score: Array, group: npt.NDArray[np.intp]
) -> tuple[float, float]:
    """Return the logarithm of the p-value of a group's score test, and a first variance."""
    inner = information[np.ix_(group, group)]
    size = float(np.diag(inner).mean())
    if size <= 0.0:
        return 0.0, 0.0
    solved, _, rank, _ = np.linalg.lstsq(inner, score[group], rcond=1e-9)
    statistic = float(score[group] @ solved)
    return _log_survival(statistic, rank), statistic / size


def _log_survival(statistic: float, freedom: int) -> float:
    """Return the logarithm of a χ² variable's chance to exceed a value, however small it is."""
    chance = float(chdtrc(freedom, statistic))
    half, value = 0.5 * freedom, 0.5 * statistic
    # Far out the first term of the asymptotic series.
    far = (half - 1.0) * np.log(max(value, 1.0)) - value - gammaln(half)
    return float(np.log(chance)) if chance > 0.0 else float(far)
