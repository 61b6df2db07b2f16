"""One period of a noisy motion, linearised about its Fourier series; see `likelihood`."""

import dataclasses

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..arrays import Array
from ..model.base_parameters import BaseParameters
from ..model.dynamics import regressor
from ..model.robot import ElasticRobot
from ..signals.fourier_series import (
    AveragePeriod,
    count_harmonics,
    fourier_bases,
    lowest_harmonics,
)

# Samples per harmonic for derivatives of the torque, and the share of the harmonics in which
# torques are compared: those beyond feel that the series ends.
FINE, BAND = 4, 0.8
# Speed below which friction is free [rad/s or m/s], and its spread, over the largest torque.
STILL, SPREAD = 0.01, 1.0
# Steps of the derivatives by q, dq and ddq; that of dq smooths the sign of friction.
STEPS = (1e-5, 0.03, 1e-2)
EXACT = 1e-4  # no model of a torque is better than this, over its largest part


@dataclasses.dataclass(frozen=True)
class Step:
    """The change of χ and its covariance; c, s (n,), the change of the delay, χ² of ε."""

    change: Array
    covariance: Array
    motion: Array
    deviation: Array
    delay: float
    misfit: float


class LinearisedPeriod:
    """One period of a motion as Fourier series, and its linearisation."""

    def __init__(self, periods: AveragePeriod, robot: ElasticRobot, base: BaseParameters) -> None:
        self.robot, self.columns = robot, base.columns
        self.noise, self.period = periods.sigma, periods.period
        count = len(periods.position)
        harmonics = count_harmonics(periods)
        self.low = lowest_harmonics(harmonics, int(BAND * harmonics))
        self.times = np.arange(count) * periods.period / count
        self.fourier_bases = fourier_bases(self.times, periods.period, harmonics, count)
        coarse = np.arange(FINE * harmonics) * periods.period / (FINE * harmonics)
        self.coarse = fourier_bases(coarse, periods.period, harmonics, count)
        self.sample_ratio = count / len(coarse)
        self.measured = self.fourier_bases[0].T @ periods.position
        self.rows = self.fourier_bases[0][:, self.low]
        self.torque = np.where(robot.unactuated, 0.0, periods.torque)
        self.slope = self.fourier_bases[1][:, self.low]
        self.sharp = [j for j in range(robot.n) if _is_sharp(robot, j)]

    def standstill(self, c: Array) -> list[tuple[int, slice]]:
        """
        Return joint and samples of each time that a joint whose friction has a sign stands.

        Friction that holds a joint may change meanwhile: pieces are as short as rows can tell.
        """
        piece = max(1, len(self.times) // len(self.low))
        speed = self.fourier_bases[1] @ c
        result = []
        for j in self.sharp:
            slow = np.concatenate([[0], (np.abs(speed[:, j]) < STILL).astype(int), [0]])
            edges = np.flatnonzero(np.diff(slow))
            for start, stop in zip(edges[::2], edges[1::2], strict=True):
                starts = range(start, stop, piece)
                result += [(j, slice(k, min(k + piece, stop))) for k in starts]
        return result

    def step(
        self,
        value: Array,
        c: Array,
        deviation: Array | None,
        free: list[tuple[int, slice]],
        delay: float,
    ) -> Step:
        """Solve the linearised problem."""
        n, count = self.robot.n, len(self.low)
        W_t = self._regressor(tuple(basis @ c for basis in self.fourier_bases))
        W = np.einsum('kr,jkb->jrb', self.rows, W_t, optimize=True).reshape(n * count, -1)
        sizes = np.sqrt(np.mean((W_t * value) ** 2, axis=1))
        least = EXACT * sizes.max(axis=1)
        s = 10.0 * least if deviation is None else np.maximum(deviation, least)
        X, spread = self._free(free, sizes, delay)
        G = self._sensitivity(value, c).reshape(n * count, -1)
        noise = np.tile(self.noise**2, len(c))
        y = (self.rows.T @ self._at(delay)).T.ravel()
        away = (self.measured - c).ravel()
        rho = y - W @ value - G @ away
        squares = np.repeat(s**2, count)
        V = (G * noise) @ G.T + np.diag(squares) + (X[:, :-1] * spread**2) @ X[:, :-1].T
        found, covariance, P = generalised_least_squares(np.column_stack([W, X[:, -1]]), rho, V)
        Pr = P @ rho
        error = -noise * (G.T @ Pr)
        freedom = float(np.sum(noise * np.einsum('ri,ri->i', G, P @ G)))
        e = (squares * Pr).reshape(n, count)
        dof = np.maximum((squares * np.diag(P)).reshape(n, count).sum(axis=1), 1.0)
        return Step(
            change=found[:-1],
            covariance=covariance[:-1, :-1],
            motion=self.measured - error.reshape(c.shape),
            deviation=np.sqrt(np.sum(e**2, axis=1) / dof),
            delay=1e-3 * float(found[-1]),
            misfit=float(np.sum(error**2 / noise)) / max(freedom, 1.0),
        )

    def _regressor(self, motion: tuple[Array, ...]) -> Array:
        return regressor(self.robot, *motion)[:, :, self.columns]

    def _at(self, delay: float) -> Array:
        """Return the torques as they were, `delay` seconds before they were recorded."""
        frequency = np.fft.rfftfreq(len(self.times), self.period / len(self.times))
        turn = np.exp(2j * np.pi * frequency * delay)[:, None]
        return np.fft.irfft(np.fft.rfft(self.torque, axis=0) * turn, len(self.times), axis=0)

    def _free(
        self, free: list[tuple[int, slice]], sizes: Array, delay: float
    ) -> tuple[Array, Array]:
        """Return X, the delay [ms] last, and the spread of all but the delay."""
        n, count = self.robot.n, len(self.low)
        X = np.zeros((n, count, len(free) + 1))
        spread = np.zeros(len(free))
        for k, (j, samples) in enumerate(free):
            X[j, :, k] = self.rows[samples].sum(axis=0)
            spread[k] = SPREAD * sizes[j].max()
        # Links that are carried hand their friction on to the rows of their motors.
        self.robot.add_link_rows(X)
        X[:, :, -1] = 1e-3 * (self.slope.T @ self._at(delay)).T
        return X.reshape(n * count, -1), spread

    def _sensitivity(self, value: Array, c: Array) -> Array:
        """Return G (n, r, m, n), by central differences of the torque along the period."""
        n, motion = self.robot.n, [basis @ c for basis in self.coarse]
        rows = self.sample_ratio * self.coarse[0][:, self.low].T
        G = np.zeros((n, len(self.low), len(c), n))
        for i in range(n):
            for k, step in enumerate(STEPS):
                moved = [[x.copy() for x in motion] for _ in range(2)]
                moved[0][k][:, i] += step
                moved[1][k][:, i] -= step
                ahead, behind = (self._regressor((*x,)) @ value for x in moved)
                slopes = (ahead - behind) / (2.0 * step)
                for j in np.flatnonzero(slopes.any(axis=1)):
                    G[j, :, :, i] += rows @ (slopes[j][:, None] * self.coarse[k])
        return G


def generalised_least_squares(A: Array, rho: Array, V: Array) -> tuple[Array, Array, Array]:
    """
    Solve ρ = A x + r, r ~ N(0, V), by generalised least squares.

    Returns
    -------
    x (b,), its covariance (AᵀV⁻¹A)⁻¹, and P = V⁻¹ − V⁻¹A (AᵀV⁻¹A)⁻¹ AᵀV⁻¹, with r = V P ρ

    Raises
    ------
    LinAlgError : V is not positive definite, or A not of full rank

    """
    scale = 1.0 / np.sqrt(np.diag(V))
    inverse = cho_solve(cho_factor(V * np.outer(scale, scale)), np.diag(scale))
    inverse *= scale[:, None]
    length = np.linalg.norm(scale[:, None] * A, axis=0)
    left = inverse @ (A / length)
    unit = np.linalg.inv((A / length).T @ left)
    return (
        unit @ (left.T @ rho) / length,
        unit / np.outer(length, length),
        inverse - left @ unit @ left.T,
    )


def _is_sharp(robot: ElasticRobot, joint: int) -> bool:
    """Tell whether the friction of a joint jumps where its speed changes sign."""
    speed = np.array([-STILL, STILL])
    return any(
        float(np.ptp(values)) > 10.0 * STILL
        for term in robot.friction[joint]
        for values in term.columns(speed)
    )
