"""
DIDIM: dynamic parameters from torque, reference and control law, without any measured position.

Each iteration simulates the closed loop with the newest parameters, builds the observation matrix
along the simulated motion, and fits the measured torque (Gautier, Janot, Vandanjon, section IV).
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from ...exceptions import DivergenceError
from ..arrays import Array
from ..regression.estimators import Estimate, fit
from ..regression.observation_system import System
from .convergence_history import History, Iteration, relative_motion_error
from .initial_parameters import estimate_a_priori_inertia, fit_reduced_model
from .reference_and_torque import bandwidth
from .reliability import bandwidth_warnings, motion_warnings, residual_warnings
from .replay_problem import ReplayProblem
from .settings import ReplaySettings
from .simulated_observation import observe_simulation

Progress = Callable[[Iteration], None]
StepCandidate = tuple[float, Callable[[], Array]]

# An iteration whose torque error is this much above the best one made things worse.
MAX_ERROR_GROWTH = 1.2
# A parameter that moves by less than this share of its standard deviation stands still.
MAX_SIGMA_CHANGE = 1.0
# Steps that are mixed to look ahead, and the most that these may weigh together.
ANDERSON_DEPTH, MAX_MIXING_WEIGHT = 2, 3.0
# Relative residual of data without noise.
NOISE_FREE_RESIDUAL = 1e-9


class DidimResult(NamedTuple):
    """
    What an iteration ends in.

    Attributes
    ----------
    estimate : of the base parameters
    system : the observation matrix that it was fitted on, and the torque
    history : how it came there

    """

    estimate: Estimate
    system: System
    history: History


@dataclasses.dataclass(frozen=True)
class _Iterate:
    """A simulation, as far as later steps need it; its observation matrix is large and is not."""

    chi: Array
    record: Iteration
    estimate: Estimate
    error: float


def didim(
    replay: ReplayProblem, chi: Array, method: str = 'wls', progress: Progress | None = None
) -> DidimResult:
    """
    Identify by closed-loop output error on the torque (DIDIM eq. 44-48).

    Parameters
    ----------
    replay : robot, control law, reference and measured torque
    chi : (p,) standard parameters to start from, see `initial_parameters`
    method : estimator of each iteration, 'ols' or 'wls'
    progress : called with every finished iteration

    Returns
    -------
    the last fit, its system, and the history

    Raises
    ------
    DivergenceError : the simulation or the iteration does not converge; it holds the last good
        estimate

    """
    replay = dataclasses.replace(replay, a_priori_inertia=estimate_a_priori_inertia(replay))
    trial, system = _first_iterate(replay, chi, method)
    trials = [trial]
    _report(progress, trial)
    while len(trials) < replay.settings.iterations:
        trial, system = _next_iterate(replay, trials, system, method)
        trials.append(trial)
        _report(progress, trial)
        regular = trial.record.step_length == 1.0
        if regular and _converged(trials[-2].estimate, trial.estimate, replay.settings):
            # A last simulation, to see that the result stands up and how close it comes.
            trials.append(_next_iterate(replay, trials, system, method, strict=True)[0])
            _report(progress, trials[-1])
            return DidimResult(trial.estimate, system, _history(replay, trials))
    raise DivergenceError(
        f'DIDIM has not converged after {len(trials)} iterations, its torque error is '
        f'{trials[-1].error:.3g}: use a slower motion or a stiffer control loop, check the gains, '
        'or start from an IDIM solution',
        len(trials),
        trials[-1].estimate,
    )


def _converged(before: Estimate, after: Estimate, settings: ReplaySettings) -> bool:
    """Test DIDIM eq. 34, with the noise's share in a parameter not taken for a change of it."""
    old, new = before.total_residual, after.total_residual
    residual = abs(new - old) <= settings.residual_tolerance * old + NOISE_FREE_RESIDUAL
    change = np.abs(after.value - before.value)
    allowed = np.maximum(
        settings.parameter_tolerance * np.abs(before.value),
        MAX_SIGMA_CHANGE * np.asarray(after.sigma),
    )
    return bool(residual and np.all(change <= allowed))


def _report(progress: Progress | None, trial: _Iterate) -> None:
    if progress is not None:
        progress(trial.record)


def _first_iterate(replay: ReplayProblem, chi: Array, method: str) -> tuple[_Iterate, System]:
    try:
        return _simulate_and_fit(replay, chi, method, 0, 1.0, replay.a_priori_inertia)
    except DivergenceError as error:
        raise DivergenceError(f'DIDIM cannot start: {error}', 0) from error


def _next_iterate(
    replay: ReplayProblem,
    trials: list[_Iterate],
    system: System,
    method: str,
    strict: bool = False,
) -> tuple[_Iterate, System]:
    """
    Step to the newest fit; where it is no robot, or a worse one, to something between.

    The inertia of the newest fit is the best a priori one, so that it is simulated with the gains
    of the robot itself. Where that fails, early fits above all, the plain robot that fits best
    stands in, then ever shorter steps; their loops keep the ω_n and ζ of the a priori inertias.
    """
    trial, number = trials[-1], len(trials)
    failure: DivergenceError | None = None
    for step_length, make in _step_candidates(replay, trials, system, strict):
        try:
            tuned_inertia = None if step_length == 1.0 else replay.a_priori_inertia
            candidate, observed = _simulate_and_fit(
                replay, make(), method, number, step_length, tuned_inertia
            )
            if candidate.error <= MAX_ERROR_GROWTH * trial.error:
                return candidate, observed
            error = DivergenceError(
                f'the torque error grows from {trial.error:.3g} to {candidate.error:.3g}: the '
                "control law or its gains may not be the robot's, or its natural frequency is too "
                'low for this motion',
                number,
            )
        except DivergenceError as caught:
            error = caught
        failure = failure or error
    raise DivergenceError(
        f'iteration {number} of DIDIM: {failure}', number, trial.estimate
    ) from failure


def _step_candidates(
    replay: ReplayProblem, trials: list[_Iterate], system: System, strict: bool
) -> list[StepCandidate]:
    """Return what to try in turn: the share of a full step, and how to get the parameters."""
    trial = trials[-1]
    newest = replay.standard_parameters(trial.estimate.value)

    def part(step_length: float) -> Array:
        return trial.chi + step_length * (newest - trial.chi)

    shares = 0.5 ** np.arange(replay.settings.halvings + 1)
    candidates: list[StepCandidate] = [
        (float(step_length), functools.partial(part, step_length)) for step_length in shares
    ]
    if strict:
        return candidates
    ahead = _anderson_extrapolation(trials)
    if ahead is not None:
        candidates.insert(0, (1.0, functools.partial(replay.standard_parameters, ahead)))
    # From the start there is nothing to go half way from.
    reduced = functools.partial(fit_reduced_model, replay, system)
    candidates.insert(1 if len(trials) == 1 else 3, (0.0, reduced))
    return candidates


def _anderson_extrapolation(trials: list[_Iterate]) -> Array | None:
    """
    Look ahead of the newest fit g(χ_k), by Anderson's mixing of the last full steps.

    `χ_{k+1} = g_k − Σ γ_i (g_{i+1} − g_i)`, γ the least squares of `f_k − Σ γ_i (f_{i+1} − f_i)`,
    `f = g − χ` in units of σ. The point at which the iteration rests stays where it is.
    """
    recent = trials[-1 - ANDERSON_DEPTH :]
    if len(recent) < 2 or any(trial.record.step_length != 1.0 for trial in recent):
        return None
    fits = np.array([trial.estimate.value for trial in recent])
    sigma = np.maximum(recent[-1].estimate.sigma, 1e-9 * np.abs(fits[-1]).max())
    steps = (fits - np.array([trial.record.value for trial in recent])) / sigma
    mixing = np.linalg.lstsq(np.diff(steps, axis=0).T, steps[-1], rcond=1e-6)[0]
    if np.abs(mixing).sum() > MAX_MIXING_WEIGHT:
        return None
    return np.asarray(fits[-1] - mixing @ np.diff(fits, axis=0))


def _simulate_and_fit(
    replay: ReplayProblem,
    chi: Array,
    method: str,
    number: int,
    step_length: float,
    tuned_inertia: Array | None = None,
) -> tuple[_Iterate, System]:
    """Simulate and fit; the gains were tuned for the inertia (n,), `None`: for that of `chi`."""
    inertia = replay.inertia(chi)
    factor = np.ones_like(inertia) if tuned_inertia is None else inertia / tuned_inertia
    simulation = replay.simulate(chi, factor)
    system = observe_simulation(replay, simulation)
    value = replay.base.of(chi)
    errors = system.relative_residual(value)
    motion = simulation.q, simulation.dq, simulation.ddq
    record = Iteration(
        number,
        value,
        errors,
        relative_motion_error(motion, replay.desired[:3]),
        None if replay.measured is None else relative_motion_error(motion, replay.measured),
        inertia,
        factor,
        step_length,
    )
    error = float(np.sqrt(np.mean(errors**2)))
    return _Iterate(chi, record, fit(system, method), error), system


def _history(replay: ReplayProblem, trials: list[_Iterate]) -> History:
    last = trials[-1].record
    omega, zeta = replay.loop_dynamics(last.inertia / last.gain_scale)
    band = bandwidth(replay.desired.dq, replay.law.rate)
    warnings = [
        *bandwidth_warnings(replay, omega, band),
        *motion_warnings(replay, last),
        *residual_warnings(trials[-1].estimate.total_residual),
    ]
    if any(0.0 < trial.record.step_length < 1.0 for trial in trials):
        warnings.append('some steps of DIDIM had to be shortened: look at its convergence')
    return History(
        replay.base.names,
        replay.robot.joints,
        tuple(trial.record for trial in trials),
        omega,
        zeta,
        band,
        tuple(warnings),
    )
