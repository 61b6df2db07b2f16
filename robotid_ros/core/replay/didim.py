"""
DIDIM: dynamic parameters from torque, reference and control law, without any measured position.

Each iteration simulates the closed loop with the newest parameters, builds the observation matrix
along the simulated motion, and fits the measured torque (Gautier, Janot, Vandanjon, section IV).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import dataclasses
from typing import NamedTuple

import numpy as np

from ...exceptions import DivergenceError
from ..arrays import Array
from ..regression.estimators import Estimate, fit
from ..regression.observation_system import System
from .anderson_mixing import ANDERSON_DEPTH, anderson_mixing
from .convergence_history import History, Iteration, relative_motion_error
from .initial_parameters import estimate_a_priori_inertia, fit_reduced_model
from .reference_and_torque import bandwidth
from .reliability import bandwidth_warnings, motion_warnings, residual_warnings
from .replay_problem import ReplayProblem
from .settings import ReplaySettings
from .simulated_observation import observe_simulation

Progress = Callable[[Iteration], None]
# A step whose torque error grows by more than this is refused: a smaller bound shortens steps that
# noise makes slightly worse, a larger one lets a diverging iteration run on.
MAX_ERROR_GROWTH = 1.2
# How often a refused step is halved before the iteration gives up.
MAX_HALVINGS = 4
# Changes of a parameter below this many standard deviations are noise: waiting for smaller ones
# costs iterations and gains no accuracy.
MAX_SIGMA_CHANGE = 1.0
# Change of the relative residual that rounding leaves where data are without noise.
NOISE_FREE_RESIDUAL = 1e-9


class DidimResult(NamedTuple):
    """
    The result of the iteration.

    Attributes
    ----------
    estimate : of the base parameters
    system : the observation matrix that it was fitted on, and the torque
    history : all iterations

    """

    estimate: Estimate
    system: System
    history: History


@dataclasses.dataclass(frozen=True)
class _Iterate:
    """One simulation and its fit; without the observation matrix, which is large."""

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
    report = progress or (lambda _: None)
    replay = dataclasses.replace(replay, a_priori_inertia=estimate_a_priori_inertia(replay))
    iterate, system = _first_iterate(replay, chi, method)
    iterates = [iterate]
    report(iterate.record)
    while len(iterates) < replay.settings.iterations:
        iterate, system = _next_iterate(replay, iterates, system, method)
        iterates.append(iterate)
        report(iterate.record)
        full_step = iterate.record.step_length == 1.0
        if full_step and _converged(iterates[-2].estimate, iterate.estimate, replay.settings):
            # A last simulation checks the result and gives its torque error.
            iterates.append(_next_iterate(replay, iterates, system, method, strict=True)[0])
            report(iterates[-1].record)
            return DidimResult(iterate.estimate, system, _history(replay, iterates))
    raise DivergenceError(
        f'DIDIM has not converged after {len(iterates)} iterations, its torque error is '
        f'{iterate.error:.3g}: use a slower motion or a stiffer control loop, check the gains, or '
        'start from an IDIM solution',
        len(iterates),
        iterate.estimate,
    )


def _converged(before: Estimate, after: Estimate, settings: ReplaySettings) -> bool:
    """Test DIDIM eq. 34; changes of a parameter within its noise count as none."""
    old, new = before.total_residual, after.total_residual
    residual = abs(new - old) <= settings.residual_tolerance * old + NOISE_FREE_RESIDUAL
    change = np.abs(after.value - before.value)
    allowed = np.maximum(
        settings.parameter_tolerance * np.abs(before.value),
        MAX_SIGMA_CHANGE * np.asarray(after.sigma),
    )
    return bool(residual and np.all(change <= allowed))


def _first_iterate(replay: ReplayProblem, chi: Array, method: str) -> tuple[_Iterate, System]:
    try:
        return _simulate_and_fit(replay, chi, method, 0, 1.0, replay.a_priori_inertia)
    except DivergenceError as error:
        raise DivergenceError(f'DIDIM cannot start: {error}', 0) from error


def _next_iterate(
    replay: ReplayProblem,
    iterates: list[_Iterate],
    system: System,
    method: str,
    strict: bool = False,
) -> tuple[_Iterate, System]:
    """
    Step to the newest fit; where its M(q) is not positive definite or its error larger, shorten.

    The inertia of the newest fit is the best a priori one, so that it is simulated with the gains
    of the robot itself. Where that fails, in the first iterations above all, the reduced model and
    shorter steps are tried; their loops keep the ω_n and ζ of the a priori inertias.
    """
    iterate, number = iterates[-1], len(iterates)
    failure: DivergenceError | None = None
    for step_length, chi in _step_candidates(replay, iterates, system, strict):
        try:
            tuned_inertia = None if step_length == 1.0 else replay.a_priori_inertia
            candidate, observed = _simulate_and_fit(
                replay, chi, method, number, step_length, tuned_inertia
            )
            if candidate.error <= MAX_ERROR_GROWTH * iterate.error:
                return candidate, observed
            error = DivergenceError(
                f'the torque error grows from {iterate.error:.3g} to {candidate.error:.3g}: the '
                "control law or its gains may not be the robot's, or its natural frequency is too "
                'low for this motion',
                number,
            )
        except DivergenceError as caught:
            error = caught
        failure = failure or error
    raise DivergenceError(
        f'iteration {number} of DIDIM: {failure}', number, iterate.estimate
    ) from failure


def _step_candidates(
    replay: ReplayProblem, iterates: list[_Iterate], system: System, strict: bool
) -> Iterator[tuple[float, Array]]:
    """Yield what to try in turn: length of the step (0: reduced model), standard parameters."""
    chi = iterates[-1].chi
    newest = replay.standard_parameters(iterates[-1].estimate.value)
    ahead = None if strict else _extrapolated(iterates)
    if ahead is not None:
        yield 1.0, replay.standard_parameters(ahead)
    # The initial parameters are no robot to go half way from: the reduced model comes first there.
    position = 1 if len(iterates) == 1 else 3 if ahead is None else 2
    for halvings in range(MAX_HALVINGS + 1):
        if halvings == position and not strict:
            yield 0.0, fit_reduced_model(replay, system)
        step_length = 0.5**halvings
        yield step_length, chi + step_length * (newest - chi)


def _extrapolated(iterates: list[_Iterate]) -> Array | None:
    """Return base parameters ahead of the newest fit, from the last full steps."""
    recent = iterates[-1 - ANDERSON_DEPTH :]
    if len(recent) < 2 or any(iterate.record.step_length != 1.0 for iterate in recent):
        return None
    values = np.array([iterate.record.value for iterate in recent])
    fits = np.array([iterate.estimate.value for iterate in recent])
    return anderson_mixing(values, fits, recent[-1].estimate.sigma)


def _simulate_and_fit(
    replay: ReplayProblem,
    chi: Array,
    method: str,
    number: int,
    step_length: float,
    tuned_inertia: Array | None = None,
) -> tuple[_Iterate, System]:
    """Simulate and fit; the gains were tuned for `tuned_inertia` (n,), None: that of `chi`."""
    inertia = replay.inertia(chi)
    gain_scale = np.ones_like(inertia) if tuned_inertia is None else inertia / tuned_inertia
    simulation = replay.simulate(chi, gain_scale)
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
        gain_scale,
        step_length,
    )
    error = float(np.sqrt(np.mean(errors**2)))
    return _Iterate(chi, record, fit(system, method), error), system


def _history(replay: ReplayProblem, iterates: list[_Iterate]) -> History:
    last = iterates[-1].record
    omega, zeta = replay.loop_dynamics(last.inertia / last.gain_scale)
    band = bandwidth(replay.desired.dq, replay.law.rate)
    warnings = [
        *bandwidth_warnings(replay, omega, band),
        *motion_warnings(replay, last),
        *residual_warnings(iterates[-1].estimate.total_residual),
    ]
    if any(0.0 < iterate.record.step_length < 1.0 for iterate in iterates):
        warnings.append('some steps of DIDIM were shortened: check its convergence in the report')
    return History(
        replay.base.names,
        replay.robot.joints,
        tuple(iterate.record for iterate in iterates),
        omega,
        zeta,
        band,
        tuple(warnings),
    )
