"""One step of the iteration: simulate the newest fit, or what can be simulated in its place."""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses

import numpy as np

from ...exceptions import DivergenceError
from ..arrays import Array
from ..model.friction import DRY
from ..parameters.physical_consistency import SolverError
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.observation_system import GaussianPrior, Rows
from .convergence_history import Iteration, relative_motion_error
from .prior_distribution import consistent_fit
from .replay_problem import ReplayProblem
from .simulated_observation import linearise

# Full steps that are combined, and the largest sum of |γ|: beyond it the steps are nearly
# parallel, and the extrapolation leaves the region that they describe.
ANDERSON_DEPTH, MAX_MIXING_WEIGHT = 2, 3.0
# A step whose torque error grows by more than this is refused: a smaller bound shortens steps that
# noise makes slightly worse, a larger one lets a diverging iteration run on.
MAX_ERROR_GROWTH = 1.2
# How often a refused step is halved before the iteration gives up.
MAX_HALVINGS = 4


def anderson_mixing(values: Array, fits: Array, sigma: Array) -> Array | None:
    """
    Extrapolate the newest fit g(χ_k) by Anderson's mixing of the last full steps.

    `χ_{k+1} = g_k − Σ γ_i (g_{i+1} − g_i)`, γ the least squares of `f_k − Σ γ_i (f_{i+1} − f_i)`,
    `f = g − χ` in units of σ (b,), of χ and g(χ) (m, b) of the last steps, the newest last. The
    fixed point of the iteration does not change. None where the steps are too parallel.
    """
    sigma = np.maximum(sigma, 1e-9 * np.abs(fits).max())
    steps = (fits - values) / sigma
    mixing = np.linalg.lstsq(np.diff(steps, axis=0).T, steps[-1], rcond=1e-6)[0]
    if np.abs(mixing).sum() > MAX_MIXING_WEIGHT:
        return None
    return np.asarray(fits[-1] - mixing @ np.diff(fits, axis=0))


@dataclasses.dataclass(frozen=True)
class Iterate:
    """One simulation, its positions (K, n) and its fit, without the large observation matrix."""

    chi: Array
    record: Iteration
    estimate: Estimate
    error: float
    simulated: Array


def first_iterate(replay: ReplayProblem, chi: Array) -> tuple[Iterate, Rows]:
    """Simulate and fit the initial parameters (p,); raises a `DivergenceError` if they cannot."""
    failure: DivergenceError | None = None
    # A priori inertias that are far off may scale the gains beyond what a sampled loop can bear.
    # Sensitivities are those of the robot's loop only with its own gains.
    for own_gains in (False, True) if replay.method == 'didim' else (True, False):
        try:
            return _simulate_and_fit(replay, chi, 0, 1.0, own_gains)
        except DivergenceError as error:
            failure = failure or error
    raise DivergenceError(f'{replay.method.upper()} cannot start: {failure}', 0) from failure


def next_iterate(
    replay: ReplayProblem, iterates: list[Iterate], system: Rows, strict: bool = False
) -> tuple[Iterate, Rows]:
    """
    Step to the newest fit; where its M(q) is not positive definite or its error larger, shorten.

    Where the newest fit cannot be simulated, in the first iterations above all, the nearest bodies
    that can exist and shorter steps to them are tried, unless `strict`.

    Raises
    ------
    DivergenceError : nothing that was tried can be simulated with about the same torque error

    """
    iterate, number = iterates[-1], len(iterates)
    failure: DivergenceError | None = None
    for step_length, chi in _step_candidates(replay, iterates, system, strict):
        try:
            own_gains = step_length == 1.0 or replay.method != 'didim'
            candidate, observed = _simulate_and_fit(replay, chi, number, step_length, own_gains)
            if candidate.error <= MAX_ERROR_GROWTH * iterate.error:
                return candidate, observed
            error = DivergenceError(
                f'the error grows from {iterate.error:.3g} to {candidate.error:.3g}: the '
                "control law or its gains may not be the robot's, or its natural frequency is too "
                'low for this motion',
                number,
            )
        except DivergenceError as caught:
            error = caught
        failure = failure or error
    raise DivergenceError(
        f'iteration {number} of {replay.method.upper()}: {failure}', number, iterate.estimate
    ) from failure


def _step_candidates(
    replay: ReplayProblem, iterates: list[Iterate], system: Rows, strict: bool
) -> Iterator[tuple[float, Array]]:
    """Yield what to try in turn: length of the step (0: full, scaled gains), parameters (p,)."""
    chi = iterates[-1].chi
    # Sensitivities converge quadratically by themselves.
    ahead = None if strict or replay.method != 'didim' else _extrapolated(iterates)
    if ahead is not None:
        yield 1.0, replay.standard_parameters(ahead)
    newest = replay.standard_parameters(iterates[-1].estimate.value)
    yield 1.0, newest
    if strict:
        return
    if replay.method == 'didim':
        try:
            newest = consistent_fit(replay, system, iterates[-1].estimate)
        except SolverError:
            pass
        else:
            yield 1.0, newest
            yield 0.0, newest
    for halvings in range(1, MAX_HALVINGS + 1):
        step_length = 0.5**halvings
        yield step_length, chi + step_length * (newest - chi)


def _extrapolated(iterates: list[Iterate]) -> Array | None:
    """Return base parameters ahead of the newest fit, from the last full steps."""
    recent = iterates[-1 - ANDERSON_DEPTH :]
    if len(recent) < 2 or any(iterate.record.step_length != 1.0 for iterate in recent):
        return None
    values, fits = zip(*((x.record.value, x.estimate.value) for x in recent), strict=True)
    return anderson_mixing(np.array(values), np.array(fits), recent[-1].estimate.sigma)


def gain_scale_of(replay: ReplayProblem, inertia: Array, own_gains: bool) -> Array:
    """
    Return the scale (n,) of the simulated gains: `Ĵ/J_ap` (DIDIM eq. 59), or 1, the robot's own.

    With eq. 59 the simulated loop has the actual ω_n times √(J_a/J_ap), whatever the parameters
    are (eq. 60); with the robot's gains it has √(J_a/Ĵ) times it, which tends to 1. So the first
    is for parameters that are far off, the second for a fit: no error of J_ap biases it. So
    `own_gains`: whether what has the inertias Ĵ (n,) is a fit.
    """
    update, tuned = replay.settings.gain_update, replay.a_priori_inertia
    if tuned is None or update == 'never' or (update == 'initial' and own_gains):
        return np.ones_like(inertia)
    return inertia / tuned


def _simulate_and_fit(
    replay: ReplayProblem, chi: Array, number: int, step_length: float, own_gains: bool
) -> tuple[Iterate, Rows]:
    """Simulate standard parameters (p,) and fit along their motion."""
    inertia = replay.inertia(chi)
    gain_scale = gain_scale_of(replay, inertia, own_gains)
    simulation = replay.simulate(chi, gain_scale)
    value = replay.base.of(chi)
    linear = linearise(replay, simulation, chi, gain_scale)
    system = _with_friction_that_holds(replay, linear.system, value)
    motion = simulation.q, simulation.dq, simulation.ddq
    record = Iteration(
        number,
        value,
        linear.torque_error,
        relative_motion_error(motion, replay.desired),
        None if replay.measured is None else relative_motion_error(motion, replay.measured),
        inertia,
        gain_scale,
        step_length,
    )
    error = float(np.sqrt(np.mean(linear.error**2)))
    return Iterate(chi, record, fit(system, 'wls'), error, simulation.q), system


def _with_friction_that_holds(replay: ReplayProblem, system: Rows, value: Array) -> Rows:
    """
    Expect the dry friction of base parameters (b,) for joints that it holds all the time.

    No row tells of it but that it is enough; the prior's would let the joint slip again. How far
    it is from that of the prior is no knowledge: the variance grows by the square of it.
    """
    seen = system.equations > 0
    if system.prior is None or seen.all():
        return system
    joints = {replay.robot.joints[j] for j in np.flatnonzero(~seen)}
    owners = [replay.robot.parameters[column] for column in replay.base.columns]
    held = [k for k, owner in enumerate(owners)
            if owner.joint in joints and owner.symbol in DRY]  # fmt: skip
    moved = np.zeros(len(value))
    moved[held] = value[held] - system.prior.mean[held]
    prior = GaussianPrior(system.prior.mean + moved, system.prior.covariance + np.diag(moved**2))
    return dataclasses.replace(system, prior=prior)
