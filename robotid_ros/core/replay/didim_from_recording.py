"""DIDIM from a recording: what `identify` calls where the method is 'didim'."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses

from ...exceptions import DivergenceError
from ..arrays import Array
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..regression.estimators import fit
from ..regression.observation_system import observe
from ..signals.recording import Recording
from ..signals.samples import Samples
from .convergence_history import Iteration
from .didim import didim, DidimResult
from .initial_parameters import estimate_a_priori_inertia, initial_parameters
from .prior_distribution import consistent_fit, prior_distribution
from .replay_from_recording import make_replay_problem
from .replay_problem import ReplayProblem
from .settings import ReplaySettings


def identify_closed_loop(
    recording: Recording,
    robot: Robot,
    base: BaseParameters,
    settings: ReplaySettings,
    samples: Samples | None = None,
    progress: Callable[[Iteration], None] | None = None,
) -> DidimResult:
    """
    Identify from torque, reference and control law.

    Parameters
    ----------
    recording : with efforts, the reference (or its trajectory) and the controller
    robot, base : the model and its base parameters
    settings : of the replay
    samples : measured motion; for comparison, and for the initial parameters 'idim'
    progress : called with every finished iteration

    Raises
    ------
    ControllerError, RecordingError : the recording does not hold what is needed
    DivergenceError : no convergence; it holds the last good estimate

    """
    replay = make_replay_problem(recording, robot, base, settings, samples)
    replay = dataclasses.replace(replay, a_priori_inertia=estimate_a_priori_inertia(replay))
    if settings.start == 'idim' and samples is not None:
        chi = _from_measured_motion(replay, samples)
    else:
        chi = initial_parameters(replay, 'regular' if settings.start == 'idim' else settings.start)
    return didim(replay, chi, progress)


def _from_measured_motion(replay: ReplayProblem, samples: Samples) -> Array:
    """Return standard parameters (p,) of an IDIM solution; bodies where it cannot be simulated."""
    system = observe(samples, replay.robot, replay.base)
    system = dataclasses.replace(system, prior=prior_distribution(replay))
    estimate = fit(system, 'wls')
    chi = replay.standard_parameters(estimate.value)
    try:
        replay.inertia(chi)
    except DivergenceError:
        return consistent_fit(replay, system, estimate)
    return chi


def describe_iteration(record: Iteration) -> str:
    """Return one line on an iteration, for a progress display."""
    errors = ', '.join(f'{100.0 * error:.1f}' for error in record.torque_error)
    return f'DIDIM iteration {record.number}: torque error {errors} %'
