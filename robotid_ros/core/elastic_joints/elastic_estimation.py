"""
Estimates of elastic robots without bias from encoder noise.

Where it is small by instruments, see `fit_with_instruments`; where it is large, by maximum
likelihood of parameters and motion together, from the periods. The motion's Fourier coefficients c
are estimated with χ, from those of the averaged positions ĉ and torques y,

    ĉ = c + ε,    y = F W(c) χ + X x + e,    ε ~ N(0, σ²),  e ~ N(0, s²)

(Olsen, Swevers and Verdonck 2002). F takes the Fourier coefficients of a time series, which are
orthonormal: σ and s are those of one averaged sample. X are free parameters: friction around
standstill, where it has no sign, and a delay of the torques. s follows by restricted maximum
likelihood. Linearised about c, this is a generalised least squares problem in χ and x alone,

    y − F W(c) χ − G (ĉ − c) = F W dχ + X x + e − G ε,    V = G σ² Gᵀ + s²,    G = ∂(F W χ)/∂c.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, cho_factor, cho_solve, LinAlgError

from ...exceptions import RecordingError
from ..arrays import Array
from ..diagnostics.joint_elasticity import (
    elasticity_warnings,
    MIN_DEFLECTION,
    second_encoder_warnings,
    spring_warnings,
)
from ..finding_codes import finding
from ..findings import Finding
from ..model.base_parameters import BaseParameters
from ..model.dynamics import regressor
from ..model.robot import ElasticRobot, Robot
from ..parameters.standard import basic_solution
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.observation_system import Rows
from ..signals.invalid_samples import clipped_samples
from ..signals.periodic import (
    AveragePeriod,
    count_harmonics,
    find_period,
    fourier_bases,
    lowest_harmonics,
    noise_between_periods,
    settled_periods,
)
from ..signals.recording import Recording
from ..signals.resampling import resample_uniformly
from ..signals.samples import Samples, SignalSettings

# Most rounds of instruments, computations of the weights in each, and the change over σ that ends
# them: a hundredth of the uncertainty matters to nobody.
ROUNDS, REWEIGHTINGS, CONVERGED = 8, 3, 0.01
# Relative residual of links, of encoder noise. Its square is the bias of least squares, up to the
# first one in a million; up to the second instruments remove it, see docs/guide/elastic.md.
HARMLESS, NOISY = 1e-3, 0.05
# Scatter of the periods over the motion that is rounding: the recording is one period, repeated.
EXACT = 1e-9
# Samples per harmonic for derivatives of the torque, twice those of Nyquist, and the share of the
# harmonics in which torques are compared: the series is cut off, which the highest ones show.
SAMPLES_PER_HARMONIC, BAND = 4, 0.8
# Speed below which friction is a free parameter [rad/s or m/s], and the prior σ of that, over the
# joint's largest torque: wide enough to be no prior.
STANDSTILL, FREE_FRICTION_SIGMA = 0.01, 1.0
# Steps of the central differences by q, dq and ddq; that of dq smooths the sign of friction.
STEPS = (1e-5, 0.03, 1e-2)
MIN_SIGMA = 1e-4  # of a torque, over its largest term: no model is better than this
INITIAL_SIGMA = 10.0  # of torques in the first step, over MIN_SIGMA
# Prior σ of a spring's compliance, over what the description says: no prior where encoders show
# the spring; where they do not, it keeps the spring and its link from being nothing at all, which
# explains the rows of a link, without a torque, as well.
COMPLIANCE_SIGMA = 1.0
# Most iterations; those after which free friction keeps its intervals and steps get shorter; and
# the change over σ that ends them.
ITERATIONS, FULL_STEPS, SETTLED = 30, 6, 0.1
MAX_STIFFNESS_FACTOR = 2.0  # by which a stiffness changes in an iteration: keeps it positive
MAX_MISFIT = 3.0  # χ² of positions per degree of freedom; above, the model is wrong


def account_for_springs(
    recording: Recording,
    samples: Samples,
    system: Rows,
    robot: Robot,
    base: BaseParameters,
    estimate: Estimate,
) -> tuple[Rows, Estimate, list[Finding]]:
    """
    Remove the bias of an elastic robot's estimate, or check a rigid one's for springs.

    Returns
    -------
    The system and the estimate, without bias if the robot is elastic, and findings

    """
    twins, notes = second_encoder_warnings(recording, robot), list[Finding]()
    if not isinstance(robot, ElasticRobot):
        chi = basic_solution(base, estimate.value)
        signs = elasticity_warnings(samples, system, robot, estimate, chi)
        return system, estimate, [*twins, *signs]
    if estimate.method == 'wls':
        system, estimate = fit_with_instruments(system, robot, estimate)
        estimate, notes = fit_with_motion(recording, system, robot, base, estimate)
    return system, estimate, [*notes, *twins, *spring_warnings(system, robot, estimate)]


def fit_with_instruments(
    system: Rows, robot: ElasticRobot, estimate: Estimate
) -> tuple[Rows, Estimate]:
    """
    Estimate again by instrumental variables, without the bias of springs from encoder noise.

    A deflection is a small difference of two encoders, and in least squares its noise correlates
    with itself: every spring is estimated softer than it is. In Z the deflection that the link's
    torque predicts, −(W χ − W_K K)/K, replaces the measured one, until it converges.

    Parameters
    ----------
    estimate : by least squares, the initial one

    Returns
    -------
    The system with its instruments, and the estimate; both as given where noise is too small to
    matter, or where a stiffness is not found positive

    """
    if estimate.residual[robot.elastic_joints].max() < HARMLESS:
        return system, estimate
    springs = [(int(j), system.names.index(f'K{j + 1}')) for j in robot.elastic_joints]
    instrumented, found = system, estimate
    for _ in range(ROUNDS):
        Z = np.array(system.W)
        for row, column in springs:
            if not found.value[column] > 0.0:
                return system, estimate
            spring = system.W[row][:, column] * found.value[column]
            Z[row][:, column] = (spring - system.W[row] @ found.value) / found.value[column]
        instrumented, previous = dataclasses.replace(system, Z=Z), found.value
        found = fit(instrumented, 'iv', REWEIGHTINGS)
        if np.all(np.abs(found.value - previous) <= CONVERGED * found.sigma):
            break
    softest = min(found.value[column] for _, column in springs)
    return (instrumented, found) if softest > 0.0 else (system, estimate)


def fit_with_motion(
    recording: Recording, system: Rows, robot: ElasticRobot, base: BaseParameters, start: Estimate
) -> tuple[Estimate, list[Finding]]:
    """
    Estimate again with the motion where encoders are noisy and periods known, and note it.

    It starts from the estimate, or else from the description: rows of a link have no torque, and
    where noise is all that they hold, instruments may end near the trivial solution, parameters of
    a link and its spring that are next to zero. The estimate stands where it knows each spring
    better: a series hardly follows joints that stick for long.
    """
    periods = None
    if start.residual[robot.elastic_joints].max() >= NOISY:
        periods = averaged_motion(recording, robot)
    if periods is None:
        return start, []
    springs = [base.names.index(f'K{j + 1}') for j in robot.elastic_joints]

    def worst(value: Array, covariance: Array) -> float:
        sigma = np.sqrt(np.diag(covariance))[springs]
        return float(np.max(sigma / np.maximum(np.abs(value[springs]), 1e-300)))

    known = worst(start.value, start.covariance)
    for first in (start.value, base.of(robot.prior)):
        possible = np.all(first[springs] > 0.0)
        found = maximum_likelihood(periods, robot, base, first) if possible else None
        if found is not None and worst(found.value, found.covariance) < known:
            estimate = dataclasses.replace(
                start,
                value=found.value,
                covariance=found.covariance,
                classical=found.covariance,
                residual=system.relative_residual(found.value),
                method='ml',
            )
            return estimate, [finding('encoder_noise')]
    return start, []


def averaged_motion(recording: Recording, robot: ElasticRobot) -> AveragePeriod | None:
    """Average the periods of a motion, or return None where that is not possible."""
    period = find_period(recording)
    if period is None:
        return None
    recording = recording.select(robot.joints)
    effort = robot.motor_efforts(recording.effort)
    resampled, rate, covered, _ = resample_uniformly(
        dataclasses.replace(recording, effort=effort), SignalSettings()
    )
    if not covered.all() or clipped_samples(resampled.effort, robot.largest_efforts).any():
        return None
    sigma = noise_between_periods(resampled.position, rate, period)
    if sigma is None or np.any(sigma <= EXACT * np.ptp(resampled.position, axis=0)):
        return None
    signals = resampled.position, resampled.effort
    position, effort = (settled_periods(values, rate, period) for values in signals)
    torque = robot.torques(effort.mean(axis=0))
    sigma = sigma / np.sqrt(len(position))
    return AveragePeriod(position.mean(axis=0), torque, sigma, period)


def check_deflections(samples: Samples, robot: Robot) -> None:
    """Raise a `RecordingError` where the two positions of an elastic joint never differ."""
    if not isinstance(robot, ElasticRobot):
        return
    for j in robot.elastic_joints:
        deflection = np.ptp(samples.q[:, j] - samples.q[:, robot.motors[j]])
        if deflection < MIN_DEFLECTION:
            raise RecordingError(
                f'{robot.joints[j]} and {robot.joints[robot.motors[j]]} never differ by more than '
                f'{deflection:.1g}: take the joint out of robot.elastic.joints, or record the '
                "link's and the motor's own encoder"
            )


class Step(NamedTuple):
    """The change of χ and its covariance; c, s (n,), the change of the delay, χ² of ε."""

    change: Array
    covariance: Array
    motion: Array
    deviation: Array
    delay: float
    misfit: float


class LinearisedPeriod:
    """One period of a motion as Fourier series, and its linearisation."""

    def __init__(
        self,
        periods: AveragePeriod,
        robot: ElasticRobot,
        base: BaseParameters,
        compliance_sigma: float = COMPLIANCE_SIGMA,
    ) -> None:
        self.robot, self.columns = robot, base.columns
        self.springs = np.array([base.names.index(f'K{j + 1}') for j in robot.elastic_joints])
        self.prior, self.compliance_sigma = base.of(robot.prior), compliance_sigma
        self.noise, self.period = periods.sigma, periods.period
        count = len(periods.position)
        harmonics = count_harmonics(periods)
        self.in_band = lowest_harmonics(harmonics, int(BAND * harmonics))
        self.times = np.arange(count) * periods.period / count
        self.fourier_bases = fourier_bases(self.times, periods.period, harmonics, count)
        samples = SAMPLES_PER_HARMONIC * harmonics
        coarse = np.arange(samples) * periods.period / samples
        self.coarse = fourier_bases(coarse, periods.period, harmonics, count)
        self.sample_ratio = count / len(coarse)
        self.measured = self.fourier_bases[0].T @ periods.position
        self.rows = self.fourier_bases[0][:, self.in_band]
        self.torque = np.where(robot.unactuated, 0.0, periods.torque)
        self.slope = self.fourier_bases[1][:, self.in_band]
        self.with_dry_friction = [j for j in range(robot.n) if _has_dry_friction(robot, j)]

    def standstill(self, c: Array) -> list[tuple[int, slice]]:
        """
        Return joint and samples of each standstill of a joint with dry friction.

        Static friction may change meanwhile: intervals are as short as the rows can resolve.
        """
        length = max(1, len(self.times) // len(self.in_band))
        speed = self.fourier_bases[1] @ c
        result = []
        for j in self.with_dry_friction:
            slow = np.concatenate([[0], (np.abs(speed[:, j]) < STANDSTILL).astype(int), [0]])
            edges = np.flatnonzero(np.diff(slow))
            for start, stop in zip(edges[::2], edges[1::2], strict=True):
                starts = range(start, stop, length)
                result += [(j, slice(k, min(k + length, stop))) for k in starts]
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
        n, count = self.robot.n, len(self.in_band)
        W_t = self._regressor(tuple(basis @ c for basis in self.fourier_bases))
        W = np.einsum('kr,jkb->jrb', self.rows, W_t, optimize=True).reshape(n * count, -1)
        sizes = np.sqrt(np.mean((W_t * value) ** 2, axis=1))
        least = MIN_SIGMA * sizes.max(axis=1)
        s = INITIAL_SIGMA * least if deviation is None else np.maximum(deviation, least)
        X, prior_sigma = self._free_columns(free, sizes, delay)
        G = self._sensitivity(value, c).reshape(n * count, -1)
        noise = np.tile(self.noise**2, len(c))
        y = (self.rows.T @ self._advanced_torque(delay)).T.ravel()
        distance = (self.measured - c).ravel()
        rho = y - W @ value - G @ distance
        squares = np.repeat(s**2, count)
        V = (G * noise) @ G.T + np.diag(squares) + (X[:, :-1] * prior_sigma**2) @ X[:, :-1].T
        A, whole, V = self._with_prior(np.column_stack([W, X[:, -1]]), rho, V, value)
        found, covariance, P = generalised_least_squares(A, whole, V)
        Pr, P = P[: len(rho)] @ whole, P[: len(rho), : len(rho)]
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

    def _with_prior(
        self, A: Array, rho: Array, V: Array, value: Array
    ) -> tuple[Array, Array, Array]:
        """
        Add the prior of each spring, 1/K ~ N(1/K₀, (σ/K₀)²), linearised in K.

        K − K²/K₀ = dK + r, r ~ N(0, (σ K²/K₀)²); none where the description has no K₀.
        """
        known = (self.prior[self.springs] > 0.0) & np.isfinite(self.compliance_sigma)
        springs = self.springs[known]
        prior = self.prior[springs]
        rows, K = np.zeros((len(springs), A.shape[1])), value[springs]
        rows[np.arange(len(springs)), springs] = 1.0
        return (
            np.vstack([A, rows]),
            np.concatenate([rho, K - K**2 / prior]),
            block_diag(V, np.diag((self.compliance_sigma * K**2 / prior) ** 2)),
        )

    def _regressor(self, motion: tuple[Array, ...]) -> Array:
        return regressor(self.robot, *motion)[:, :, self.columns]

    def _advanced_torque(self, delay: float) -> Array:
        """Return the torques as they were, `delay` seconds before they were recorded."""
        frequency = np.fft.rfftfreq(len(self.times), self.period / len(self.times))
        phase = np.exp(2j * np.pi * frequency * delay)[:, None]
        return np.fft.irfft(np.fft.rfft(self.torque, axis=0) * phase, len(self.times), axis=0)

    def _free_columns(
        self, free: list[tuple[int, slice]], sizes: Array, delay: float
    ) -> tuple[Array, Array]:
        """Return X, the delay [ms] last, and the prior σ of all but the delay."""
        n, count = self.robot.n, len(self.in_band)
        X = np.zeros((n, count, len(free) + 1))
        prior_sigma = np.zeros(len(free))
        for k, (j, samples) in enumerate(free):
            X[j, :, k] = self.rows[samples].sum(axis=0)
            prior_sigma[k] = FREE_FRICTION_SIGMA * sizes[j].max()
        # The rows of a motor hold those of the link that it carries, friction included.
        self.robot.add_link_rows(X)
        X[:, :, -1] = 1e-3 * (self.slope.T @ self._advanced_torque(delay)).T
        return X.reshape(n * count, -1), prior_sigma

    def _sensitivity(self, value: Array, c: Array) -> Array:
        """Return G (n, r, m, n), by central differences of the torque along the period."""
        n, motion = self.robot.n, [basis @ c for basis in self.coarse]
        rows = self.sample_ratio * self.coarse[0][:, self.in_band].T
        G = np.zeros((n, len(self.in_band), len(c), n))
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


def _has_dry_friction(robot: ElasticRobot, joint: int) -> bool:
    """Return whether the friction of a joint jumps where its speed changes sign."""
    speed = np.array([-STANDSTILL, STANDSTILL])
    return any(
        float(np.ptp(values)) > 10.0 * STANDSTILL
        for term in robot.friction[joint]
        for values in term.columns(np.zeros(2), speed)
    )


class MotionSolution(NamedTuple):
    """The maximum: χ (b,) and its covariance, the delay [s], χ² of the positions."""

    value: Array
    covariance: Array
    delay: float
    misfit: float


def maximum_likelihood(
    periods: AveragePeriod, robot: ElasticRobot, base: BaseParameters, start: Array
) -> MotionSolution | None:
    """
    Estimate base parameters and motion together.

    Parameters
    ----------
    start : (b,) rough base parameters

    Returns
    -------
    The outcome, or None where there is none: it diverges, or positions do not fit the model

    """
    problem = LinearisedPeriod(periods, robot, base)
    springs = problem.springs
    value, c = np.array(start), problem.measured
    s, free, delay = None, None, 0.0
    for number in range(ITERATIONS):
        if number < FULL_STEPS or free is None:
            free = problem.standstill(c)
        try:
            step = problem.step(value, c, s, free, delay)
        except LinAlgError:
            return None
        # Signs of noisy speeds alternate between iterations: shorter steps converge between them.
        share = min(1.0, FULL_STEPS / (number + 1.0))
        change = share * step.change
        factor = 1.0 - change[springs] / value[springs]
        factor = np.clip(factor, 1.0 / MAX_STIFFNESS_FACTOR, MAX_STIFFNESS_FACTOR)
        stiffness = value[springs] / factor
        value = value + change
        value[springs] = stiffness
        c, s, delay = c + share * (step.motion - c), step.deviation, delay + share * step.delay
        if not np.all(np.isfinite(value)) or np.any(stiffness <= 0.0):
            return None
        if number <= FULL_STEPS:
            continue
        if step.misfit > MAX_MISFIT:
            return None
        relative_change = np.abs(change) / np.sqrt(np.diag(step.covariance))
        if relative_change.max() < SETTLED:
            return MotionSolution(value, step.covariance, delay, step.misfit)
    return None
