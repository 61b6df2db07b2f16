"""Derivatives of a periodic motion from a fit of its trajectory's own basis (MFS section 4.1)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from ..model.parameters import Array

if TYPE_CHECKING:
    from ..excitation.trajectories import Trajectory

# Steps of the search for the time shift; a column counts when so much of it is new.
STEPS, NEW = 10, 1e-8
# Harmonics at the most; residual over the whole below which only rounding is left.
HARMONICS, ROUNDING = 100, 1e-12


def fitted(
    position: Array, rate: float, trajectory: Trajectory, cutoff: float
) -> tuple[Array, Array, Array]:
    """
    Fit one period and differentiate the fit: q, dq, ddq (K, n).

    A robot that follows its trajectory well moves in the span of the trajectory's basis, with a
    constant, a little later. What it does beyond that is periodic too: harmonics follow, as many
    for each joint as the Bayesian information criterion asks for.

    Parameters
    ----------
    position : (K, n) one period of uniform samples, joints as the trajectory's
    rate : [Hz]
    trajectory : what the robot was asked to do, any time shift
    cutoff : frequency of the highest harmonic at the most [Hz]

    """
    time = np.arange(len(position)) / rate
    time = time - _shift(position, time, rate, trajectory)
    highest = min(int(cutoff * trajectory.period), (len(position) - 1) // 4, HARMONICS)
    harmonics = _series(trajectory, max(highest, 1))
    parts = [
        np.column_stack([np.full(len(time), float(d == 0)), trajectory.matrix(time, d),
                         harmonics.matrix(time, d)])
        for d in range(3)
    ]  # fmt: skip
    Q, kept, R = _orthonormal(parts[0])
    own = int(np.sum(kept <= len(trajectory.coefficients)))
    loads = Q.T @ position
    rest = position - Q[:, :own] @ loads[:own]
    result = np.zeros((3, *position.shape))
    for j, load in enumerate(loads.T):
        least = ROUNDING * float(np.linalg.norm(position[:, j]))
        used = own + _count(Q[:, own:], rest[:, j], least)
        c = np.linalg.solve(R[:used, :used], load[:used])
        for derivative, part in enumerate(parts):
            result[derivative, :, j] = part[:, kept[:used]] @ c
    return result[0], result[1], result[2]


def _series(trajectory: Trajectory, order: int) -> Trajectory:
    """Return harmonics of the trajectory's period."""
    coefficients = np.zeros((2 * order, len(trajectory.joints)))
    return dataclasses.replace(trajectory, family='ffs', order=order, coefficients=coefficients)


def _shift(position: Array, time: Array, rate: float, trajectory: Trajectory) -> float:
    """Return how much later than the trajectory, from its start, the robot moved [s]."""
    wanted = trajectory.sample(time).q
    spectra = [np.fft.rfft(x - x.mean(axis=0), axis=0) for x in (position, wanted)]
    match = np.fft.irfft((spectra[0] * spectra[1].conj()).sum(axis=1), len(time))
    late = float(np.argmax(match)) / rate
    for _ in range(STEPS):
        motion = trajectory.sample(time - late)
        error = position - motion.q
        error = error - error.mean(axis=0)
        late -= float(np.sum(error * motion.dq) / max(float(np.sum(motion.dq**2)), 1e-300))
    return late


def _orthonormal(columns: Array) -> tuple[Array, Array, Array]:
    """
    Orthonormalise columns (K, m) in their order; dependent ones are left out.

    Returns
    -------
    Q (K, r), the columns kept (r,), and R (r, r) with columns[:, kept] = Q R

    """
    Q = np.zeros((len(columns), 0))
    kept = []
    for index, column in enumerate(columns.T):
        rest = column - Q @ (Q.T @ column)
        rest -= Q @ (Q.T @ rest)
        length = np.linalg.norm(rest)
        if length > NEW * np.linalg.norm(column):
            Q = np.column_stack([Q, rest / length])
            kept.append(index)
    return Q, np.array(kept, dtype=np.intp), Q.T @ columns[:, kept]


def _count(Q: Array, rest: Array, least: float) -> int:
    """Return how many of the columns that follow Q (K, m) are worth it, by what is left (K,)."""
    samples = len(rest)
    left = rest @ rest - np.concatenate([[0.0], np.cumsum((Q.T @ rest) ** 2)])
    criterion = samples * np.log(np.maximum(left, max(least, 1e-150) ** 2))
    return int(np.argmin(criterion + np.arange(len(left)) * np.log(samples)))
