"""
DIDIM: dynamic parameters from torque, reference and control law, without any measured position.

Each iteration simulates the closed loop with the newest parameters, builds the observation matrix
along the simulated motion, and fits the measured torque (Gautier, Janot, Vandanjon, section IV).
Output-error methods do the same with sensitivities in place of the observation matrix, see
`output_error`.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from typing import NamedTuple

import numpy as np

from ...exceptions import DivergenceError, FEW, shortened
from ..arrays import Array
from ..regression.estimate import Estimate
from ..regression.observation_system import System
from .convergence_history import History, Iteration, SimulatedMotion
from .initial_parameters import estimate_a_priori_inertia
from .iteration_step import first_iterate, Iterate, next_iterate
from .prior_distribution import prior_distribution
from .reference_and_torque import bandwidth
from .reliability import (
    bandwidth_warnings,
    MAX_RESIDUAL,
    motion_warnings,
    prior_warnings,
    residual_warnings,
    unexplained,
)
from .replay_problem import ReplayProblem
from .settings import ReplaySettings

Progress = Callable[[Iteration], None]
# Changes of a parameter below this many standard deviations are noise: waiting for smaller ones
# costs iterations and gains no accuracy.
MAX_SIGMA_CHANGE = 1.0
# Change of the relative residual that rounding leaves where data are without noise.
NOISE_FREE_RESIDUAL = 1e-9


class ReplayResult(NamedTuple):
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


def didim(replay: ReplayProblem, chi: Array, progress: Progress | None = None) -> ReplayResult:
    """
    Identify by closed-loop output error on the torque (DIDIM eq. 44-48), or by `replay.method`.

    Every fit has the prior of `prior_distribution`: what the motion does not excite stays there.

    Parameters
    ----------
    replay : robot, control law, reference and measured torque
    chi : (p,) standard parameters to start from, see `initial_parameters`
    progress : called with every finished iteration

    Returns
    -------
    the last fit, its system, and the history

    Raises
    ------
    DivergenceError : the simulation or the iteration does not converge, and what could be
        simulated does not explain the torque; it holds the last good estimate

    """
    report = progress or (lambda _: None)
    replay = dataclasses.replace(replay, a_priori_inertia=estimate_a_priori_inertia(replay))
    replay = dataclasses.replace(replay, prior=prior_distribution(replay))
    iterate, system = first_iterate(replay, chi)
    iterates = [iterate]
    report(iterate.record)
    try:
        while len(iterates) < replay.settings.iterations:
            iterate, system = next_iterate(replay, iterates, system)
            iterates.append(iterate)
            report(iterate.record)
            full_step = iterate.record.step_length == 1.0
            if full_step and _converged(iterates[-2].estimate, iterate.estimate, replay.settings):
                # A last simulation checks the result and gives its torque error.
                last = next_iterate(replay, iterates, system, strict=True)[0]
                report(last.record)
                history = _history(replay, [*iterates, last], system)
                return ReplayResult(iterate.estimate, system, history)
        raise DivergenceError(
            f'{replay.method.upper()} has not converged after {len(iterates)} iterations, its '
            f'relative error is {iterate.error:.3g}: use a slower motion or a stiffer control '
            'loop, check the gains, or start from an IDIM solution',
            len(iterates),
            iterate.estimate,
        )
    except DivergenceError as error:
        return _without_convergence(replay, iterates, system, error)


def _without_convergence(
    replay: ReplayProblem, iterates: list[Iterate], system: System, error: DivergenceError
) -> ReplayResult:
    """
    Return the last parameters that were simulated, where they explain the torque.

    They are as uncertain as the fit along their motion, and by how far they are from it; further
    than its noise, they have not converged, of which a warning tells.

    Raises
    ------
    DivergenceError : they do not, or not better than those of the start

    """
    first, last = iterates[0], iterates[-1]
    value = last.record.value
    left = system.total_residual(value) if replay.method == 'didim' else last.error
    if last.error > first.error or left > MAX_RESIDUAL:
        raise error
    change = last.estimate.value - value
    estimate = dataclasses.replace(
        last.estimate,
        value=value,
        covariance=last.estimate.covariance + np.outer(change, change),
        residual=system.relative_residual(value),
        total_residual=system.total_residual(value),
    )
    # What friction hardly lets move may have a fit that no robot has, within its σ.
    if _converged(estimate, last.estimate, replay.settings):
        return ReplayResult(estimate, system, _history(replay, iterates, system))
    moved = np.abs(change) > MAX_SIGMA_CHANGE * last.estimate.sigma
    names = [system.names[k] for k in np.flatnonzero(moved)]
    warning = (
        f'{replay.method.upper()} has not converged, its result is that of the last simulation: '
        f'do not trust {shortened(names, FEW) if names else "its parameters"} ({error})'
    )
    return ReplayResult(estimate, system, _history(replay, iterates, system, warning))


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


def _history(
    replay: ReplayProblem, iterates: list[Iterate], system: System, *notes: str
) -> History:
    last = iterates[-1].record
    omega, zeta = replay.loop_dynamics(last.inertia / last.gain_scale)
    band = bandwidth(replay.desired.dq, replay.law.rate)
    warnings = [*notes, *prior_warnings(iterates[-1].estimate)]
    if replay.method == 'didim':
        warnings += bandwidth_warnings(replay, omega, band)
        warnings += residual_warnings(unexplained(system, iterates[-1].estimate.value))
    elif not replay.restart:
        warnings += residual_warnings(float(np.sqrt(np.mean(last.torque_error**2))))
    if not replay.restart:
        warnings += motion_warnings(replay, last)
    if any(0.0 < iterate.record.step_length < 1.0 for iterate in iterates):
        warnings.append(
            f'some steps of {replay.method.upper()} were shortened: check its convergence in the '
            'report'
        )
    return History(
        replay.base.names,
        replay.robot.joints,
        tuple(iterate.record for iterate in iterates),
        omega,
        zeta,
        band,
        tuple(warnings),
        SimulatedMotion(
            replay.time,
            iterates[-1].simulated,
            replay.desired.q,
            None if replay.measured is None else replay.measured[0],
        ),
    )
