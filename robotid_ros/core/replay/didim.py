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
from .convergence_history import closeness, History, Iteration
from .initial_parameters import a_priori_inertia, plain_robot
from .reference_and_torque import bandwidth
from .reliability import slow_loops, strays, unexplained
from .replay_problem import Replay
from .settings import ReplaySettings
from .simulated_observation import observe

Progress = Callable[[Iteration], None]
Way = tuple[float, Callable[[], Array]]

# An iteration whose torque error is this much above the best one made things worse.
WORSE = 1.2
# A parameter that moves by less than this share of its standard deviation stands still.
NOISE = 1.0
# Steps that are mixed to look ahead, and the most that these may weigh together.
DEPTH, BOLD = 2, 3.0
# Relative residual of data without noise.
EXACT = 1e-9


class Outcome(NamedTuple):
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
class _Trial:
    """A simulation, as far as later steps need it; its observation matrix is large and is not."""

    chi: Array
    record: Iteration
    estimate: Estimate
    error: float


def didim(
    replay: Replay, chi: Array, method: str = 'wls', progress: Progress | None = None
) -> Outcome:
    """
    Identify by closed-loop output error on the torque (DIDIM eq. 44-48).

    Parameters
    ----------
    replay : robot, control law, reference and measured torque
    chi : (p,) standard parameters to start from, see `start_from`
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
    replay = dataclasses.replace(replay, a_priori=a_priori_inertia(replay))
    trial, system = _first(replay, chi, method)
    trials = [trial]
    _tell(progress, trial)
    while len(trials) < replay.settings.iterations:
        trial, system = _next(replay, trials, system, method)
        trials.append(trial)
        _tell(progress, trial)
        regular = trial.record.share == 1.0
        if regular and _converged(trials[-2].estimate, trial.estimate, replay.settings):
            # A last simulation, to see that the result stands up and how close it comes.
            trials.append(_next(replay, trials, system, method, strict=True)[0])
            _tell(progress, trials[-1])
            return Outcome(trial.estimate, system, _history(replay, trials))
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
    residual = abs(new - old) <= settings.residual_tolerance * old + EXACT
    change = np.abs(after.value - before.value)
    allowed = np.maximum(
        settings.parameter_tolerance * np.abs(before.value), NOISE * np.asarray(after.sigma)
    )
    return bool(residual and np.all(change <= allowed))


def _tell(progress: Progress | None, trial: _Trial) -> None:
    if progress is not None:
        progress(trial.record)


def _first(replay: Replay, chi: Array, method: str) -> tuple[_Trial, System]:
    try:
        return _try(replay, chi, method, 0, 1.0, replay.a_priori)
    except DivergenceError as error:
        raise DivergenceError(f'DIDIM cannot start: {error}', 0) from error


def _next(
    replay: Replay, trials: list[_Trial], system: System, method: str, strict: bool = False
) -> tuple[_Trial, System]:
    """
    Step to the newest fit; where it is no robot, or a worse one, to something between.

    The inertia of the newest fit is the best a priori one, so that it is simulated with the gains
    of the robot itself. Where that fails, early fits above all, the plain robot that fits best
    stands in, then ever shorter steps; their loops keep the ω_n and ζ of the a priori inertias.
    """
    trial, number = trials[-1], len(trials)
    failure: DivergenceError | None = None
    for share, make in _ways(replay, trials, system, strict):
        try:
            tuned_for = None if share == 1.0 else replay.a_priori
            candidate, observed = _try(replay, make(), method, number, share, tuned_for)
            if candidate.error <= WORSE * trial.error:
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


def _ways(replay: Replay, trials: list[_Trial], system: System, strict: bool) -> list[Way]:
    """Return what to try in turn: the share of a full step, and how to get the parameters."""
    trial = trials[-1]
    newest = replay.lift(trial.estimate.value)

    def part(share: float) -> Array:
        return trial.chi + share * (newest - trial.chi)

    shares = 0.5 ** np.arange(replay.settings.halvings + 1)
    ways: list[Way] = [(float(share), functools.partial(part, share)) for share in shares]
    if strict:
        return ways
    ahead = _ahead(trials)
    if ahead is not None:
        ways.insert(0, (1.0, functools.partial(replay.lift, ahead)))
    # From the start there is nothing to go half way from.
    plain = functools.partial(plain_robot, replay, system)
    ways.insert(1 if len(trials) == 1 else 3, (0.0, plain))
    return ways


def _ahead(trials: list[_Trial]) -> Array | None:
    """
    Look ahead of the newest fit g(χ_k), by Anderson's mixing of the last full steps.

    `χ_{k+1} = g_k − Σ γ_i (g_{i+1} − g_i)`, γ the least squares of `f_k − Σ γ_i (f_{i+1} − f_i)`,
    `f = g − χ` in units of σ. The point at which the iteration rests stays where it is.
    """
    recent = trials[-1 - DEPTH :]
    if len(recent) < 2 or any(trial.record.share != 1.0 for trial in recent):
        return None
    fits = np.array([trial.estimate.value for trial in recent])
    sigma = np.maximum(recent[-1].estimate.sigma, 1e-9 * np.abs(fits[-1]).max())
    steps = (fits - np.array([trial.record.value for trial in recent])) / sigma
    mixing = np.linalg.lstsq(np.diff(steps, axis=0).T, steps[-1], rcond=1e-6)[0]
    if np.abs(mixing).sum() > BOLD:
        return None
    return np.asarray(fits[-1] - mixing @ np.diff(fits, axis=0))


def _try(
    replay: Replay,
    chi: Array,
    method: str,
    number: int,
    share: float,
    tuned_for: Array | None = None,
) -> tuple[_Trial, System]:
    """Simulate and fit; the gains were tuned for the inertia (n,), `None`: for that of `chi`."""
    inertia = replay.inertia(chi)
    factor = np.ones_like(inertia) if tuned_for is None else inertia / tuned_for
    simulation = replay.simulate(chi, factor)
    system = observe(replay, simulation)
    value = replay.base.of(chi)
    errors = system.relative_residual(value)
    motion = simulation.q, simulation.dq, simulation.ddq
    record = Iteration(
        number,
        value,
        errors,
        closeness(motion, replay.desired[:3]),
        None if replay.measured is None else closeness(motion, replay.measured),
        inertia,
        factor,
        share,
    )
    error = float(np.sqrt(np.mean(errors**2)))
    return _Trial(chi, record, fit(system, method), error), system


def _history(replay: Replay, trials: list[_Trial]) -> History:
    last = trials[-1].record
    omega, zeta = replay.frequency(last.inertia / last.factor)
    band = bandwidth(replay.desired.dq, replay.law.rate)
    warnings = [
        *slow_loops(replay, omega, band),
        *strays(replay, last),
        *unexplained(trials[-1].estimate.total_residual),
    ]
    if any(0.0 < trial.record.share < 1.0 for trial in trials):
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
