"""Variance of an estimate by the spectrum of each joint's noise, where residuals are not white."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.fft import dct
from scipy.optimize import nnls
from scipy.special import chdtrc

from ..arrays import Array
from .observation_system import System

# Share of the Nyquist frequency up to which a filter before decimation leaves noise as it is.
PASSED = 0.6
# Memories of noise that are told apart: from a row to the whole recording, by this factor.
FACTOR = 2.0
# A joint's noise is white unless the likelihood ratio has a p-value below this; of the memories,
# which lie on the edge of what is possible, about two parameters count.
SIGNIFICANT, FREE = 0.01, 2
# Least share of white noise that the fit leaves of a frequency for that to tell anything, and the
# least number of such frequencies.
LEFT, FEWEST = 0.1, 10
# Most iterations of a likelihood, the change that ends them, and how often all joints are gone
# through.
ITERATIONS, TOLERANCE, ROUNDS = 50, 1e-3, 2
FLOOR = 1e-12  # of an expected periodogram over the mean one


def coloured_variance(
    system: System, value: Array, instruments: list[Array], weights: list[Array], bread: Array
) -> Array:
    """
    Return the variances (b,) of an estimate by the spectra of noise; zero where that is white.

    The noise of a joint is white noise and a first-order autoregressive one, whose powers θ ≥ 0
    make the periodogram of the residual likeliest (Whittle 1953). Spectra of several memories
    count by their likelihoods: a short recording hardly tells them apart. Of the noise e the fit
    leaves ρ = e − W A e, least of all of what is slow: the periodogram is compared with the
    expectation of that, linear in θ, so that what the fit took is not missing from the noise, nor
    noise of other joints, which is in A e too, counted as this one's. The variance of χ̂ − χ = A
    e is A C Aᵀ. All spectra are by cosine transforms, whose rows correlate least for such noise
    and which take no motion for periodic.

    Parameters
    ----------
    system : rows of all joints
    value : (b,)
    instruments : per joint the rows that residuals are projected on, W where there are no others
    weights : per joint those of its rows
    bread : (b, b) B with χ̂ − χ = B Σ_k z_k ρ_k

    """
    if system.batches is not None:
        return np.zeros(len(value))
    shapes, joints = _noise_shapes(system.time), list[_Joint]()
    for j, (z, k) in enumerate(zip(instruments, weights, strict=True)):
        w, y = system.rows(j)
        if len(y):
            rows = np.column_stack([w, (z * (k**2)[:, None]) @ bread.T, y - w @ value])
            joints.append(_Joint.of(rows, system.valid[j], shapes))
    spectra = [joint.white for joint in joints]
    for _ in range(ROUNDS):
        parts = [joint.covariance(own) for joint, own in zip(joints, spectra, strict=True)]
        total = np.sum(parts, axis=0)
        spectra = [
            joint.spectrum(shapes, total - part) for joint, part in zip(joints, parts, strict=True)
        ]
        if all(np.ptp(spectrum) == 0.0 for spectrum in spectra):
            return np.zeros(len(value))
    parts = [joint.covariance(own) for joint, own in zip(joints, spectra, strict=True)]
    return np.diag(np.sum(parts, axis=0))


@dataclasses.dataclass(frozen=True)
class _Joint:
    """
    Cosine transforms of a joint's rows.

    Attributes
    ----------
    W : (N, b) columns of the model
    gain : (N, b) changes of the estimate by noise
    periodogram : (N,) squared transform of the residual
    expected : (N, m) periodograms that noise of each shape in this joint leaves of the residual

    """

    W: Array
    gain: Array
    periodogram: Array
    expected: Array

    @classmethod
    def of(cls, rows: Array, used: npt.NDArray[np.bool_], shapes: Array) -> _Joint:
        """Transform the rows [W gain residual] (N_j, 2 b + 1) at their places in time."""
        whole = np.zeros((len(used), rows.shape[1]))
        whole[used] = rows
        cosines = np.asarray(dct(whole, axis=0, norm='ortho'))
        b = cosines.shape[1] // 2
        W, gain = cosines[:, :b], cosines[:, b:-1]
        own = used.mean() - 2.0 * np.einsum('kb,kb->k', W, gain)
        # Most links do not hang on a joint: their columns are zero.
        depends = W.any(axis=0)
        w, a = W[:, depends], gain[:, depends]
        left = [np.einsum('kb,kb->k', w @ ((a * g[:, None]).T @ a), w) for g in shapes.T]
        return cls(W, gain, cosines[:, -1] ** 2, shapes * own[:, None] + np.column_stack(left))

    @property
    def white(self) -> Array:
        """Spectrum (N,) of white noise that leaves as much."""
        level = self.periodogram.sum() / max(self.expected[:, 0].sum(), 1e-300)
        return np.full(len(self.periodogram), level)

    def covariance(self, spectrum: Array) -> Array:
        """Return the covariance (b, b) of the estimate by noise of this joint."""
        return np.asarray((self.gain * spectrum[:, None]).T @ self.gain)

    def spectrum(self, shapes: Array, others: Array) -> Array:
        """
        Return the likeliest spectrum (N,), a white one unless another is clearly likelier.

        Parameters
        ----------
        shapes : (N, m) of noise
        others : (b, b) covariance of the estimate by noise of other joints

        """
        kept = self.expected[:, 0] > LEFT * self.expected[:, 0].max()
        kept[int(PASSED * len(kept)) :] = False
        level = float(self.periodogram[kept].mean()) if kept.sum() >= FEWEST else 0.0
        if level <= 0.0:
            return self.white
        p, E, W = self.periodogram[kept] / level, self.expected[kept], self.W[kept]
        E = np.maximum(E, 1e-9 * shapes[kept])
        known = np.einsum('kb,kb->k', W @ (others / level), W)
        white, first = _likeliest(p, E[:, :1], known)
        fits = [_likeliest(p, E[:, [0, m]], known) for m in range(1, E.shape[1])]
        likelihood = np.array([fit for _, fit in fits])
        if chdtrc(FREE, first - likelihood.min()) > SIGNIFICANT:
            return shapes[:, 0] * (level * white[0])
        weights = np.exp(-0.5 * (likelihood - likelihood.min()))
        spectra = [shapes[:, [0, m]] @ powers for m, (powers, _) in enumerate(fits, start=1)]
        return np.asarray(level * (weights / weights.sum()) @ np.array(spectra))


def _noise_shapes(time: Array) -> Array:
    """Return spectra (N, m) of noise of power one: white, and of each memory."""
    count = len(time)
    memories = count / FACTOR ** np.arange(int(np.log(count) / np.log(FACTOR)) + 1)
    keep = np.exp(-1.0 / memories)
    cosine = np.cos(np.pi * np.arange(count) / count)[:, None]
    return np.column_stack(
        [np.ones(count), (1.0 - keep**2) / (1.0 - 2.0 * keep * cosine + keep**2)]
    )


def _likeliest(p: Array, E: Array, known: Array) -> tuple[Array, float]:
    """
    Return powers θ ≥ 0 and minus twice the log-likelihood, Σ ln μ + p/μ with μ = Eθ + known.

    Of a periodogram of mean one, by least squares of (p − μ)/μ, iterated (scoring).
    """
    mean = np.maximum(E[:, 0] * (p.sum() / E[:, 0].sum()) + known, FLOOR)
    for _ in range(ITERATIONS):
        powers = nnls(E / mean[:, None], (p - known) / mean)[0]
        before, mean = mean, np.maximum(E @ powers + known, FLOOR)
        if np.all(np.abs(mean - before) <= TOLERANCE * mean):
            break
    return powers, float(np.sum(np.log(mean) + p / mean))
