"""The fit of an observation system; methods differ in how rows are weighted, or solved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import dataclasses
from typing import NamedTuple

import numpy as np

from ...exceptions import RankDeficientError, RecordingError, UnknownNameError
from ..arrays import Array, interpolated, SINGULAR
from ..model.robot import BaseParameters, Robot
from ..signals.recording import Samples
from .covariance import cluster_products, inflation, jackknife, largest, propagated, widened
from .estimate import Estimate
from .least_squares import instrumental_variables, least_squares, Solution, total_least_squares
from .model_error import model_error_covariance
from .observation_system import Factors, GaussianPrior, observe, Rows, System


def add_instruments(
    system: Rows,
    samples: Samples,
    time: Array,
    motion: tuple[Array, Array, Array],
    robot: Robot,
    base: BaseParameters,
) -> Rows:
    """
    Add W of another motion to a system, for instrumental variables (IDIM-IV).

    Of its times (K,) [s], outside of which rows are not used, and q, dq, ddq (K, n); W gets the
    filter and decimation of the samples.
    """
    q, dq, ddq = (interpolated(samples.time, time, values) for values in motion)
    moved = dataclasses.replace(samples, q=q, dq=dq, ddq=ddq, band_limit=np.inf)
    other = observe(moved, robot, base)
    inside = (system.time >= time[0]) & (system.time <= time[-1])
    return dataclasses.replace(system, Z=other.W, valid=system.valid & inside)


HUBER = 1.345  # residual over σ from which a row counts less: 95 % efficient on Gaussian noise
MAD_TO_SIGMA = 1.4826  # σ over the median absolute deviation of Gaussian noise
# Least σ of rows without torque (a link behind a spring), over the largest of their terms: rows
# that hold nearly exactly would otherwise outweigh those that set the scale.
BALANCED = 1e-6
# Equations per parameter below which a joint's own least squares says little about its noise.
FEW_ROWS = 3.0
MIXED = 'mixed'  # rows with the penalties of a mixed model
TOLERANCE = 1e-6  # relative change of the weights that ends an iteration
WEAK = 0.3  # share in the weakest singular vector from which a column is named as dependent

Blocks = list[tuple[Array, Array]]


def _wls(blocks: Blocks, system: System, value: Array | None) -> Sequence[float]:
    """
    Divide each joint's equations by the σ of its own least squares (DIDIM eq. 20).

    Rows without any torque, those of a link behind a spring, have no scale of their own, and a
    joint with few rows fits itself too well: they take the σ that the least squares of all rows
    leaves there; beside a prior see `_sigmas_with_prior`. Iterated, every joint's σ is that of the
    common solution.
    """
    counts = system.equations.tolist()
    if value is not None:
        return [1.0 / _rms(*own, value, m) for own, m in zip(blocks, counts, strict=True)]
    sigmas = [_own_sigma(*own, m) for own, m in zip(blocks, counts, strict=True)]
    if any(np.isnan(sigmas)) and system.prior is not None:
        sigmas = _sigmas_with_prior(blocks, system.prior, sigmas, counts)
    elif any(np.isnan(sigmas)):
        W, Y = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        common = np.asarray(np.linalg.lstsq(W, Y, rcond=1e-12)[0])
        for j in np.flatnonzero(np.isnan(sigmas)):
            sigmas[j] = _rms(*blocks[j], common, counts[j])
    return [1.0 / sigma for sigma in sigmas]


def _own_sigma(w: Array, y: Array, count: int) -> float:
    """Return σ of a joint's own least squares, NaN where that says nothing about its noise."""
    if not len(y):
        return np.inf
    w = w[:, w.any(axis=0)]  # few links hang on a joint
    chi, _, rank, _ = np.linalg.lstsq(w, y, rcond=1e-10)
    if not y.any() or count < FEW_ROWS * rank:
        return np.nan
    floor = 1e-12 * max(float(np.linalg.norm(y)), 1e-300)
    norm = max(float(np.linalg.norm(y - w @ chi)), floor)
    return norm / float(np.sqrt(max(count - int(rank), 1)))


def _rms(w: Array, y: Array, value: Array, count: int) -> float:
    """Return σ of what parameters leave of a joint's rows, above rounding."""
    if not len(y):
        return np.inf
    share, size = (1e-12, y) if y.any() else (BALANCED, w * value)
    floor = share * float(np.abs(size).max())
    return max(float(np.linalg.norm(y - w @ value)) / np.sqrt(count), floor, 1e-300)


def _sigmas_with_prior(
    blocks: Blocks, prior: GaussianPrior, sigmas: list[float], counts: list[int]
) -> list[float]:
    """
    Replace each σ that is NaN by what a fit with the prior leaves there.

    Without it, a joint with few rows and parameters of its own would be fitted exactly. It starts
    from what the prior leaves and its own errors may add; σ² = ‖ρ‖²/(m − γ), γ the parameters
    that the m rows determine (MacKay 1992, Bayesian interpolation).
    """
    rough, open_ = list(sigmas), np.flatnonzero(np.isnan(sigmas)).tolist()
    for j in open_:
        (w, y), count = blocks[j], max(counts[j], 1)
        spread = float(np.sum((w @ prior.covariance) * w)) / count
        rough[j] = float(np.hypot(_rms(w, y, prior.mean, count), spread**0.5))
    weighted = [(w / s, y / s) for s, (w, y) in zip(rough, blocks, strict=True)]
    W, Y = (np.concatenate(parts) for parts in zip(*weighted, prior.rows, strict=True))
    solution = least_squares(W, Y)
    for j in open_:
        w, y = weighted[j]
        determined = float(np.sum((w @ solution.bread) * w))
        free = max(1.0 - determined / max(counts[j], 1), 1e-12)
        rough[j] *= _rms(w, y, solution.value, counts[j]) / np.sqrt(free)
    return rough


def _mle(blocks: Blocks, system: System, value: Array | None) -> Array:
    """Divide each joint's equations by the σ of its torque noise (MFS eq. 20-25)."""
    if not isinstance(system, Rows) or system.noise is None:
        raise RecordingError(
            "method 'mle' needs the torque noise, which only several periods of one motion show: "
            "record two periods or more, or use 'wls'"
        )
    return np.asarray(1.0 / system.noise)


def _irls(blocks: Blocks, system: System, value: Array | None) -> Sequence[float | Array]:
    """Weight outlying rows less (Huber), by the median absolute deviation of their joint."""
    if value is None:
        return _wls(blocks, system, None)
    weights = list[Array]()
    for w, y in blocks:
        residual = np.abs(y - w @ value)
        sigma = MAD_TO_SIGMA * float(np.median(residual)) if len(y) else 1.0
        sigma = max(sigma, 1e-12 * float(np.linalg.norm(y)), 1e-300)
        size = residual / sigma
        weights.append(np.sqrt(HUBER / np.maximum(size, HUBER)) / sigma)
    return weights


# What the rows of each joint are multiplied by: a number, or one for each row.
WHITEN: dict[str, Callable[[Blocks, System, Array | None], Sequence[float | Array] | Array]] = {
    'ols': lambda blocks, *_: [1.0] * len(blocks),
    'wls': _wls,
    'mle': _mle,
    'irls': _irls,
    'tls': _wls,
    'iv': _wls,
}
# Methods whose weights make every row's variance 1, as a prior's rows have it.
WHITENED = ('wls', 'mle', 'irls')
# Share of a prior's variance; where data leave more, they tell less than the prior.
LEFT_BY_DATA = 0.5
# Most computations of the weights where the settings ask for fewer.
ITERATIONS = {'irls': 30}


def fit(system: System, method: str = 'wls', iterations: int = 1) -> Estimate:
    """
    Estimate χ̂ = (ΩW)⁺ ΩY (DIDIM eq. 15-21), with at most so many computations of the weights.

    Methods are 'ols', 'wls', 'mle' (noise of the torque known), 'irls' (Huber), 'tls' (errors in W
    too) and 'iv' (instruments, correlated with the motion but not with its noise).
    UnknownNameError: no such method; RankDeficientError: the motion leaves columns of W linearly
    dependent; RecordingError: the method needs what was not recorded.
    """
    if method not in (*WHITEN, MIXED):
        raise UnknownNameError('method', method, tuple(WHITEN))
    if isinstance(system, Factors) and method in ('irls', 'iv'):
        raise RecordingError(
            f"method '{method}' needs every row of a recording, which so long a one does not "
            "leave in memory: use 'wls', or a part of it"
        )
    joints, solution = _weighted_solution(system, method, iterations)
    value, bread, rows = solution.value, solution.bread, system.equations
    bias = solution.bias
    from_prior = np.zeros(len(value), dtype=bool)
    if system.prior is not None and method in WHITENED:
        # What the prior adds to the normal equations has an error of its own.
        V = system.prior.whitening
        bias = bread @ V.T @ V @ bread.T
        from_prior = np.diag(bread) > LEFT_BY_DATA * np.diag(system.prior.covariance)
    covariance, classical, model_error, of_noise = _covariances(system, joints, solution, method)
    moved = np.outer(solution.moved, solution.moved)
    if system.gain_spread is not None:
        # How far a standard deviation of each torque's scale moves the estimate.
        pulls = np.column_stack([j.w.T @ (j.k**2 * j.y) for j in joints])
        by_gain = bread @ pulls * system.gain_spread
        moved = moved + by_gain @ by_gain.T
    norms = [np.linalg.norm(j.y - j.w @ value) for j in joints]
    return Estimate(
        names=system.names,
        units=system.units,
        value=value,
        # Rows at instants are not of the weights by which consistent parameters may be off.
        covariance=covariance + bias + moved,
        classical=classical + bias,
        model_error=model_error,
        of_noise=None if of_noise is None else of_noise + bias,
        residual=system.relative_residual(value),
        total_residual=system.total_residual(value),
        sigma_torque=norms / np.sqrt(np.maximum(rows, 1)),
        rows=rows,
        singular=solution.singular,
        method=method,
        from_prior=tuple(np.flatnonzero(from_prior).tolist()),
    )


class _Weighted(NamedTuple):
    """Usable rows of a joint, those that residuals are projected on, and weights (N_j,)."""

    w: Array
    y: Array
    z: Array
    k: Array


def weighted_values(system: System) -> Array:
    """Return χ̂ (b,) as `fit` does by 'wls', without all that says how far it may be off."""
    return _weighted_solution(system, 'wls', 1)[1].value


def _weighted_solution(
    system: System, method: str, iterations: int
) -> tuple[list[_Weighted], Solution]:
    """Return the weighted rows of all joints, and their solution."""
    blocks, penalty = system.blocks, system.penalty if method == MIXED else None
    projected = [w for w, _ in blocks]
    if method == 'iv' and isinstance(system, Rows):
        if system.Z is None:
            raise RecordingError(
                "method 'iv' needs the reference as instrument: record controller_state, or use "
                "'wls'"
            )
        projected = [Z[valid] for Z, valid in zip(system.Z, system.valid, strict=True)]
    joints, value = list[_Weighted](), None
    for _ in range(max(iterations, ITERATIONS.get(method, 1))):
        # Penalties were chosen for these weights of joints.
        scales = penalty.weights if penalty else WHITEN[method](blocks, system, value)
        previous = joints
        parts = zip(blocks, projected, scales, strict=True)
        joints = [_Weighted(w, y, z, k * np.ones(len(y))) for (w, y), z, k in parts]
        solution = _solve(system, joints, method)
        value = solution.value
        pairs = zip(previous, joints, strict=False)
        if previous and all(np.allclose(a.k, b.k, rtol=TOLERANCE) for a, b in pairs):
            break
    return joints, solution


def _solve(system: System, joints: list[_Weighted], method: str) -> Solution:
    W = np.vstack([j.w * j.k[:, None] for j in joints])
    Y = np.concatenate([j.y * j.k for j in joints])
    if system.prior is not None and method in WHITENED:
        W, Y = np.vstack([W, system.prior.rows[0]]), np.concatenate([Y, system.prior.rows[1]])
    if method == 'iv':
        solution = instrumental_variables(W, Y, np.vstack([j.z * j.k[:, None] for j in joints]))
    elif method == MIXED and system.penalty is not None:
        solution = system.penalty.solve(W, Y)
    else:
        solution = (total_least_squares if method == 'tls' else least_squares)(W, Y)
    s = solution.singular
    if len(Y) < W.shape[1] or not s[-1] >= SINGULAR * s[0]:
        weak = np.abs(solution.weakest)
        names = tuple(n for n, v in zip(system.names, weak, strict=True) if v > WEAK * weak.max())
        raise RankDeficientError(names, tuple(s))
    return solution


def _covariances(
    system: System, joints: list[_Weighted], solution: Solution, method: str
) -> tuple[Array, Array, Array | None, Array | None]:
    """Return the covariance, that of white residuals, what model errors add, and the rest."""
    value, bread, rows = solution.value, solution.bread, system.equations
    squares = np.array([np.sum((j.k * (j.y - j.w @ value)) ** 2) for j in joints])
    # Weights between those of OLS and WLS leave each joint's rows a variance of its own.
    shares = squares / np.maximum(rows, 1) if method == MIXED else np.ones(len(joints))
    total = float(rows.sum() if method == MIXED else squares.sum())
    weighted = [j.z * j.k[:, None] for j in joints]
    white = np.sum([share * z.T @ z for share, z in zip(shares, weighted, strict=True)], axis=0)
    classical = propagated(bread, white) * total / max(int(rows.sum()) - len(value), 1)
    products = cluster_products(system, value, [j.z for j in joints], [j.k for j in joints])
    by_block = [jackknife(*each, bread) for each in products]
    least = np.diag(classical) / system.band
    if system.D is None:
        return largest(by_block, least), classical, None, None
    gain = [
        bread @ (own.z * (own.k**2)[:, None]).T @ system.discrepancies(joint)
        for joint, own in enumerate(joints)
    ]
    # Without what comes back with the motion, as errors of the model do.
    correlation = inflation(classical, largest(by_block[:1], least))
    model_error = model_error_covariance(system, value, np.hstack(gain), correlation)
    if system.timing is not None:
        model_error = model_error + np.outer(system.timing, system.timing)
    wider = [widened(c, len(scores)) for c, (_, scores) in zip(by_block, products, strict=True)]
    return largest(wider, least) + model_error, classical, model_error, largest(by_block, least)
