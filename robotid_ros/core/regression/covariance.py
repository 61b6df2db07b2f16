"""Covariances of estimates whose residuals are correlated."""

from functools import reduce

import numpy as np
from scipy.special import ndtr, stdtrit

from ..arrays import Array, diagonal_scale
from .observation_system import Factors, Rows, System

# A motion repeats where positions come back within this share of their variance (4 % of their
# standard deviation in each), having been apart by the other one.
REPEATED, MOVED = 1e-3, 0.5
# Least share of the largest standard deviation that counts as a motion of a joint.
STILL = 0.01


def find_repetition(q: Array) -> float | None:
    """
    Return after how many rows a motion repeats, a fraction between rows, or None: it does not.

    The first minimum below `REPEATED` of Σ |q(k + L) − q(k)|² over the sum of squares of both,
    after it has been above `MOVED`, of positions (N, n), uniform in time; at most half of them.
    """
    spread = q.std(axis=0)
    if len(q) < 4 or not spread.any():
        return None
    x = (q - q.mean(axis=0)) / np.maximum(spread, STILL * spread.max())
    length, lags = len(x), np.arange(len(x) // 2 + 2)
    power = (np.abs(np.fft.rfft(x, 2 * length, axis=0)) ** 2).sum(axis=1)
    squares = np.concatenate([[0.0], np.cumsum(np.sum(x**2, axis=1))])
    both = squares[length - lags] + squares[-1] - squares[lags]
    apart = 1.0 - 2.0 * np.fft.irfft(power)[lags] / np.maximum(both, 1e-300)
    left, here, right = apart[:-2], apart[1:-1], apart[2:]
    # A parabola through three of them: the period lies between rows.
    bend = np.maximum(left + right - 2.0 * here, 1e-300)
    shift = 0.5 * (left - right) / bend
    lowest = here - 0.25 * (left - right) * shift
    moved = np.maximum.accumulate(here) > MOVED
    found = np.flatnonzero(moved & (here <= left) & (here <= right) & (lowest <= REPEATED))
    return float(1 + found[0] + shift[found[0]]) if len(found) else None


# Length of blocks of the rows in memory [s], how many times longer they are at least than rows
# correlate, and their least number. Calibrated with benchmarks/coverage.py: σ are right for noise
# with a memory of 0.5 s; of 10 blocks a σ has 22 % of noise, 1/√(2·10), of 30 it has 13 %.
SECONDS, MEMORIES, FEWEST = 1.0, 1.5, 10
# Share of a block's information that is taken away with it: with h the block's leverage,
# 1/(1 − h/2) ≈ 1/√(1 − h), which is right for white noise. All of it would enlarge σ once more,
# and leave a parameter that one block alone determines without an estimate.
TAKEN = 0.5
# Least eigenvalue over the largest of a covariance, scaled, of what the rows tell.
UNTOLD = 1e-13
# What ± so many σ hold of a normal variable, they shall hold of an estimate with few blocks.
INTERVAL = 3.0


def with_minimum_variance(covariance: Array, variance: Array) -> Array:
    """Enlarge a covariance (b, b) where its variances are below what white noise leaves (b,)."""
    # A fit makes residuals smaller than errors, most along its columns: it hides correlation.
    own = np.diag(covariance)
    known = own > 0.0
    ratio = np.divide(variance, own, out=np.ones_like(variance), where=known)
    scale = np.sqrt(np.maximum(1.0, ratio))
    # One block alone says nothing of the spread.
    white = np.diag(np.where(known, 0.0, variance))
    return np.asarray(covariance * np.outer(scale, scale) + white)


def largest(covariances: list[Array], least: Array) -> Array:
    """Scale the first (b, b) so that its variances are those of all, or `least` (b,), at least."""
    return reduce(with_minimum_variance, [least, *map(np.diag, covariances[1:])], covariances[0])


def propagated(bread: Array, covariance: Array) -> Array:
    """Return B C Bᵀ (b, b), which rounding does not make indefinite."""
    scale = diagonal_scale(covariance)
    variances, directions = np.linalg.eigh(covariance / np.outer(scale, scale))
    half = bread * scale @ (directions * np.sqrt(np.maximum(variances, 0.0)))
    return np.asarray(half @ half.T)


def inflation(classical: Array, covariance: Array) -> float:
    """Return the mean ratio of a covariance (b, b) to the classical one, where that has noise."""
    scale = diagonal_scale(classical)
    white, correlated = (c / np.outer(scale, scale) for c in (classical, covariance))
    inverse = np.linalg.pinv(white, rcond=UNTOLD, hermitian=True)
    return float(np.trace(inverse @ correlated) / max(np.trace(inverse @ white), 1.0))


def jackknife(normals: Array, scores: Array, bread: Array) -> Array:
    """
    Return the covariance (b, b) of an estimate by deleting one block after the other.

    (K − 1)/K Σ_k d_k d_kᵀ with d_k = (I − B N_k/2)⁻¹ B s_k. With all of N_k, d_k would be the
    change of the estimate without block k (the jackknife of Quenouille 1956 and Tukey 1958); half
    of it corrects to first order for the pull of each block on the fit, as CR2, the sandwich by
    clusters of Bell and McCaffrey (2002), does. Within blocks, residuals may correlate in time and
    across joints as they like.

    Takes N_k = Z_kᵀ W_k (K, b, b) and s_k = Z_kᵀ ρ_k (K, b) of the weighted rows of each block,
    and B (b, b) with χ̂ − χ = B Σ_k s_k.
    """
    # The diagonal is negative where instruments hardly correlate with W.
    scale = diagonal_scale(bread)
    B = bread / np.outer(scale, scale)
    left = np.eye(len(scale)) - TAKEN * B @ (normals * np.outer(scale, scale))
    right = (scores * scale) @ B.T
    changes = np.linalg.solve(left, right[:, :, None])[:, :, 0] * scale
    count = len(changes)
    return np.asarray(changes.T @ changes * ((count - 1) / count))


def widened(covariance: Array, blocks: int) -> Array:
    """Return the covariance (b, b) of K blocks, enlarged by Student's t over the normal at 3 σ."""
    quantile = float(stdtrit(max(blocks - 1, 1), ndtr(INTERVAL)))
    return covariance * (quantile / INTERVAL) ** 2


def cluster_products(
    system: System, value: Array, instruments: list[Array], weights: list[Array]
) -> list[tuple[Array, Array]]:
    """
    Return normals (K, b, b) and scores (K, b) of contiguous blocks, for `jackknife`.

    Where the motion repeats, a second pair follows: of blocks of its period, each with all its
    repetitions. What the model leaves out comes back with the motion, noise does not: of blocks of
    time alone, errors of the model would seem to average out the more the longer it repeats.

    `instruments` are the rows of each joint that residuals are projected on, W without others.
    """
    found, b = [], len(value)
    if isinstance(system, Factors):
        k = np.array([w[0] if len(w) else 0.0 for w in weights]) ** 2
        W = system.batches[..., :-1]
        error = system.batches[..., -1] - W @ value
        normals = np.einsum('j,jkra,jkrb->kab', k, W, W, optimize=True)
        scores = np.einsum('j,jkra,jkr->ka', k, W, error, optimize=True)
        # Merged where neighbours correlate: as all scores together do, and as the one that does so
        # longest. An offset remembers slow noise that the others hardly see.
        for memory in (_memory(scores.T), max(_memory(each[None]) for each in scores.T)):
            count = _count(len(scores), 1.0 + MEMORIES * (memory - 1.0))
            starts = np.unique(np.arange(len(scores)) * count // len(scores), return_index=True)[1]
            found.append((np.add.reduceat(normals, starts), np.add.reduceat(scores, starts)))
        return found
    assert isinstance(system, Rows)
    length, shortest = system.W.shape[1], _shortest(system, value)
    count = _count(length, shortest)
    edges = np.linspace(0, length, count + 1).astype(int)
    labels = [np.repeat(np.arange(count), np.diff(edges))]
    if system.q is not None and (period := find_repetition(system.q)) is not None:
        phase = np.arange(length) % period / period
        labels.append((phase * _count(int(period), shortest)).astype(int))
    for each in labels:
        blocks = np.arange(int(each.max()) + 1)
        normals, scores = np.zeros((len(blocks), b, b)), np.zeros((len(blocks), b))
        for j, (z, k) in enumerate(zip(instruments, weights, strict=True)):
            w, y = system.rows(j)
            own, error = each[system.valid[j]], y - w @ value
            order = np.argsort(own, kind='stable')
            limits = np.searchsorted(own[order], np.arange(len(blocks) + 1))
            for block in blocks:
                rows = order[limits[block] : limits[block + 1]]
                projected = z[rows] * (k[rows] ** 2)[:, None]
                normals[block] += projected.T @ w[rows]
                scores[block] += projected.T @ error[rows]
        found.append((normals, scores))
    return found


def count_blocks(system: Rows, value: Array) -> int:
    """Return into how many blocks to cut rows: a block outlasts what residuals remember."""
    return _count(system.W.shape[1], _shortest(system, value))


def _count(length: int, shortest: float) -> int:
    return int(np.clip(round(length / shortest), min(FEWEST, length), length))


def _shortest(system: Rows, value: Array) -> float:
    """Return of how many rows a block is at least."""
    error = np.where(system.valid, system.Y - system.predict(value), 0.0)
    time = system.time
    step = float(np.median(np.diff(time))) if len(time) > 1 else SECONDS
    return max(MEMORIES * _memory(error), SECONDS / step if step > 0.0 else 1.0)


def _memory(series: Array) -> float:
    """Return 1 + 2 Σ ρ_k of series (…, N) together, to the first ρ_k ≤ 0 (Geyer 1992)."""
    series = series / np.maximum(np.linalg.norm(series, axis=1, keepdims=True), 1e-300)
    length = series.shape[1]
    power = np.abs(np.fft.rfft(series, 2 * length, axis=1)) ** 2
    correlation = np.fft.irfft(power.sum(axis=0))[:length]
    positive = np.logical_and.accumulate(correlation > 0.0)
    return float(2.0 * correlation[positive].sum() / max(correlation[0], 1e-300) - 1.0)
