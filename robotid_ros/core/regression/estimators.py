"""The fit of an observation system; methods differ in how rows are weighted, or solved."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses

import numpy as np

from ...exceptions import ConfigurationError, RankDeficientError, RecordingError, UnknownNameError
from ..arrays import Array, SINGULAR
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..signals.recording import Recording
from ..signals.samples import Samples
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
    q, dq, ddq = (
        np.column_stack([np.interp(samples.time, time, column) for column in values.T])
        for values in motion
    )
    other = observe(dataclasses.replace(samples, q=q, dq=dq, ddq=ddq), robot, base)
    inside = (system.time >= time[0]) & (system.time <= time[-1])
    return dataclasses.replace(system, Z=other.W, valid=system.valid & inside)


def add_reference_instruments(
    system: Rows, samples: Samples, recording: Recording, robot: Robot, base: BaseParameters
) -> Rows:
    """Add W of the recorded reference to a system; RecordingError where there is none."""
    reference = recording.select(robot.joints).reference
    if reference is None or reference.time.size < 2:
        raise RecordingError(
            "method 'iv' needs the reference as instrument: record controller_state, or use 'wls'"
        )
    motion = reference.q, reference.dq, reference.ddq
    return add_instruments(system, samples, reference.time, motion, robot, base)


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

JointRows = list[tuple[Array, Array]]
Weights = list[Array]


def _wls(joint_rows: JointRows, system: System, value: Array | None) -> Weights:
    """
    Divide each joint's equations by the σ of its own least squares (DIDIM eq. 20).

    Rows without any torque, those of a link behind a spring, have no scale of their own, and a
    joint with few rows fits itself too well: they take the σ that the least squares of all rows
    leaves there; beside a prior see `_sigmas_with_prior`. Iterated, every joint's σ is that of the
    common solution.
    """
    if value is not None:
        return [
            np.full(len(y), 1.0 / _rms(w, y, value, count))
            for (w, y), count in zip(joint_rows, system.equations, strict=True)
        ]
    counts = system.equations.tolist()
    sigmas = [_own_sigma(w, y, m) for (w, y), m in zip(joint_rows, counts, strict=True)]
    if any(np.isnan(sigmas)) and system.prior is not None:
        sigmas = _sigmas_with_prior(joint_rows, system.prior, sigmas, counts)
    elif any(np.isnan(sigmas)):
        W, Y = (np.concatenate(parts) for parts in zip(*joint_rows, strict=True))
        common = np.asarray(np.linalg.lstsq(W, Y, rcond=1e-12)[0])
        sigmas = [
            _rms(w, y, common, count) if np.isnan(sigma) else sigma
            for sigma, (w, y), count in zip(sigmas, joint_rows, counts, strict=True)
        ]
    return [np.full(len(y), 1.0 / s) for s, (_, y) in zip(sigmas, joint_rows, strict=True)]


def _own_sigma(w: Array, y: Array, count: int) -> float:
    """Return σ of a joint's own least squares, NaN where that says nothing about its noise."""
    if not len(y):
        return np.inf
    chi, _, rank, _ = np.linalg.lstsq(w, y, rcond=1e-10)
    if not y.any() or count < FEW_ROWS * rank:
        return np.nan
    floor = 1e-12 * max(float(np.linalg.norm(y)), 1e-300)
    norm = max(float(np.linalg.norm(y - w @ chi)), floor)
    return norm / float(np.sqrt(max(count - int(rank), 1)))


def _mle(joint_rows: JointRows, system: System, value: Array | None) -> Weights:
    """Divide each joint's equations by the σ of its torque noise (MFS eq. 20-25)."""
    if not isinstance(system, Rows) or system.noise is None:
        raise RecordingError(
            "method 'mle' needs the torque noise, which only several periods of one motion show: "
            "record two periods or more, or use 'wls'"
        )
    return [np.full(len(y), 1.0 / s) for (_, y), s in zip(joint_rows, system.noise, strict=True)]


def _irls(joint_rows: JointRows, system: System, value: Array | None) -> Weights:
    """Weight outlying rows less (Huber), by the median absolute deviation of their joint."""
    if value is None:
        return _wls(joint_rows, system, None)
    weights: Weights = []
    for w, y in joint_rows:
        residual = y - w @ value
        if not len(y):
            weights.append(residual)
            continue
        sigma = MAD_TO_SIGMA * float(np.median(np.abs(residual)))
        sigma = max(sigma, 1e-12 * float(np.linalg.norm(y)), 1e-300)
        size = np.abs(residual) / sigma
        weights.append(np.sqrt(HUBER / np.maximum(size, HUBER)) / sigma)
    return weights


def _rms(w: Array, y: Array, value: Array, count: int) -> float:
    """Return σ of what parameters leave of a joint's rows, above rounding."""
    if not len(y):
        return np.inf
    share, size = (1e-12, y) if y.any() else (BALANCED, w * value)
    floor = share * float(np.abs(size).max())
    return max(float(np.linalg.norm(y - w @ value)) / np.sqrt(count), floor, 1e-300)


def _sigmas_with_prior(
    joint_rows: JointRows, prior: GaussianPrior, sigmas: list[float], counts: list[int]
) -> list[float]:
    """
    Replace each σ that is NaN by what a fit with the prior leaves there.

    Without it, a joint with few rows and parameters of its own would be fitted exactly. It starts
    from what the prior leaves and its own errors may add; σ² = ‖ρ‖²/(m − γ), γ the parameters
    that the m rows determine (MacKay 1992, Bayesian interpolation).
    """
    rough = list(sigmas)
    for j in np.flatnonzero(np.isnan(sigmas)).tolist():
        (w, y), count = joint_rows[j], max(counts[j], 1)
        spread = float(np.sum((w @ prior.covariance) * w)) / count
        rough[j] = float(np.hypot(_rms(w, y, prior.mean, count), spread**0.5))
    weighted = [(w / s, y / s) for s, (w, y) in zip(rough, joint_rows, strict=True)]
    W, Y = (np.concatenate(parts) for parts in zip(*weighted, prior.rows, strict=True))
    solution = least_squares(W, Y)
    result = []
    for sigma, scale, (w, y), count in zip(sigmas, rough, weighted, counts, strict=True):
        determined = float(np.sum((w @ solution.bread) * w))
        left = _rms(w, y, solution.value, count)
        free = max(1.0 - determined / max(count, 1), 1e-12)
        result.append(scale * left / np.sqrt(free) if np.isnan(sigma) else sigma)
    return result


def _mixed(joint_rows: JointRows, system: System, value: Array | None) -> Weights:
    """Weight joints as the penalties were chosen for."""
    if system.penalty is None:
        raise ConfigurationError(
            f"method '{MIXED}' needs penalties that were chosen: use identification.model 'mixed'"
        )
    weights = system.penalty.weights
    return [np.full(len(y), w) for w, (_, y) in zip(weights, joint_rows, strict=True)]


WHITEN: dict[str, Callable[[JointRows, System, Array | None], Weights]] = {
    'ols': lambda joint_rows, *_: [np.ones(len(y)) for _, y in joint_rows],
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
    Estimate χ̂ = (ΩW)⁺ ΩY (DIDIM eq. 15-21).

    Parameters
    ----------
    method : 'ols', 'wls', 'mle' (noise of the torque known), 'irls' (Huber), 'tls' (errors in W
        too) or 'iv' (instruments, correlated with the motion but not with its noise)
    iterations : most computations of the weights

    Raises
    ------
    UnknownNameError : no such method
    RankDeficientError : the motion leaves columns of W linearly dependent
    RecordingError : the method needs what was not recorded

    """
    if method not in (*WHITEN, MIXED):
        raise UnknownNameError('method', method, tuple(WHITEN))
    if isinstance(system, Factors) and method in ('irls', 'iv'):
        raise RecordingError(
            f"method '{method}' needs every row of a recording, which so long a one does not "
            "leave in memory: use 'wls', or a part of it"
        )
    joint_rows = [system.rows(joint) for joint in range(len(system.joints))]
    weigh = _mixed if method == MIXED else WHITEN[method]
    weights = weigh(joint_rows, system, None)
    solution, bias, moved = _solve(system, joint_rows, weights, method)
    for _ in range(max(iterations, ITERATIONS.get(method, 1)) - 1):
        previous, weights = weights, weigh(joint_rows, system, solution.value)
        solution, bias, moved = _solve(system, joint_rows, weights, method)
        if all(np.allclose(a, b, rtol=TOLERANCE) for a, b in zip(previous, weights, strict=True)):
            break
    value, bread, rows = solution.value, solution.bread, system.equations
    from_prior = np.zeros(len(value), dtype=bool)
    if system.prior is not None and method in WHITENED:
        # What the prior adds to the normal equations has an error of its own.
        V = system.prior.whitening
        bias = bread @ V.T @ V @ bread.T
        from_prior = np.diag(bread) > LEFT_BY_DATA * np.diag(system.prior.covariance)
    covariance, classical, model_error, of_noise = _covariances(system, weights, solution, method)
    scales = _by_scales(system, joint_rows, weights, bread)
    norms = [np.linalg.norm(y - w @ value) for w, y in joint_rows]
    return Estimate(
        names=system.names,
        units=system.units,
        value=value,
        # Rows at instants are not of the weights by which consistent parameters may be off.
        covariance=covariance + bias + np.outer(moved, moved) + scales @ scales.T,
        classical=classical + bias,
        model_error=model_error,
        of_noise=None if of_noise is None else of_noise + bias,
        residual=system.relative_residual(value),
        total_residual=system.total_residual(value),
        sigma_torque=norms / np.sqrt(np.maximum(rows, 1)),
        rows=rows,
        condition_number=float(solution.singular[0] / solution.singular[-1]),
        method=method,
        from_prior=tuple(np.flatnonzero(from_prior).tolist()),
    )


def _by_scales(system: System, joint_rows: JointRows, weights: Weights, bread: Array) -> Array:
    """Return how far a standard deviation of each torque's scale moves the estimate, (b, n)."""
    if system.gain_spread is None or not system.gain_spread.any():
        return np.zeros((len(bread), 1))
    pulls = [(w * (k**2)[:, None]).T @ y for (w, y), k in zip(joint_rows, weights, strict=True)]
    return np.asarray(bread @ np.column_stack(pulls) * system.gain_spread)


def _solve(
    system: System, joint_rows: JointRows, weights: Weights, method: str
) -> tuple[Solution, Array, Array]:
    """Return the solution, the covariance of what penalties leave, and how far instants move."""
    W = np.vstack([w * k[:, None] for (w, _), k in zip(joint_rows, weights, strict=True)])
    Y = np.concatenate([y * k for (_, y), k in zip(joint_rows, weights, strict=True)])
    bias, moved = np.zeros((W.shape[1],) * 2), np.zeros(W.shape[1])
    if system.prior is not None and method in WHITENED:
        W, Y = np.vstack([W, system.prior.rows[0]]), np.concatenate([Y, system.prior.rows[1]])
    if method == 'iv' and isinstance(system, Rows):
        Z = [system.instruments(j) * k[:, None] for j, k in enumerate(weights)]
        solution = instrumental_variables(W, Y, np.vstack(Z))
    elif method == MIXED and system.penalty is not None:
        solution, bias, moved = system.penalty.solve(W, Y)
    else:
        solution = (total_least_squares if method == 'tls' else least_squares)(W, Y)
    s = solution.singular
    if len(Y) < W.shape[1] or not s[-1] >= SINGULAR * s[0]:
        weak = np.abs(solution.weakest)
        names = tuple(n for n, v in zip(system.names, weak, strict=True) if v > WEAK * weak.max())
        raise RankDeficientError(names, tuple(s))
    return solution, bias, moved


def _covariances(
    system: System, weights: Weights, solution: Solution, method: str
) -> tuple[Array, Array, Array | None, Array | None]:
    """Return the covariance, that of white residuals, what model errors add, and the rest."""
    value, bread, rows = solution.value, solution.bread, system.equations
    if method == 'iv' and isinstance(system, Rows):
        Z = [system.instruments(j) for j in range(len(weights))]
    else:
        Z = [system.rows(j)[0] for j in range(len(weights))]
    white, squares = np.zeros_like(bread), 0.0
    for j, (z, k) in enumerate(zip(Z, weights, strict=True)):
        w, y = system.rows(j)
        own = float(np.sum((k * (y - w @ value)) ** 2))
        squares += own
        # Weights between those of OLS and WLS leave each joint's rows a variance of its own.
        share = own / max(int(rows[j]), 1) if method == MIXED else 1.0
        white += share * (z * k[:, None]).T @ (z * k[:, None])
    if method == MIXED:
        squares = float(rows.sum())
    classical = propagated(bread, white) * squares / max(int(rows.sum()) - len(value), 1)
    products = cluster_products(system, value, Z, weights)
    blocks = [jackknife(*each, bread) for each in products]
    least = np.diag(classical) / system.band
    if system.D is None:
        return largest(blocks, least), classical, None, None
    gain = [
        bread @ (z * (k**2)[:, None]).T @ system.discrepancies(j)
        for j, (z, k) in enumerate(zip(Z, weights, strict=True))
    ]
    # Without what comes back with the motion, as errors of the model do.
    correlation = inflation(classical, largest(blocks[:1], least))
    model_error = model_error_covariance(system, value, np.hstack(gain), correlation)
    if system.timing is not None:
        model_error = model_error + system.timing.covariance(len(value))
    wider = [widened(c, len(scores)) for c, (_, scores) in zip(blocks, products, strict=True)]
    return largest(wider, least) + model_error, classical, model_error, largest(blocks, least)
