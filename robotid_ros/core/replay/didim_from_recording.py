"""Closed-loop methods from a recording: what `identify` calls for them."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses

from ...exceptions import DivergenceError
from ..arrays import Array
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..parameters.cone_program import SolverError
from ..regression.estimators import fit
from ..regression.observation_system import observe
from ..signals.recording import Recording
from ..signals.samples import Samples
from .convergence_history import Iteration
from .didim import didim, ReplayResult
from .initial_parameters import estimate_a_priori_inertia, initial_parameters
from .prior_distribution import consistent_fit, prior_distribution
from .replay_from_recording import make_open_loop_problem, make_replay_problem
from .replay_problem import ReplayProblem
from .settings import ReplaySettings


def identify_closed_loop(
    recording: Recording,
    robot: Robot,
    base: BaseParameters,
    settings: ReplaySettings,
    samples: Samples | None = None,
    progress: Callable[[Iteration], None] | None = None,
    method: str = 'didim',
) -> ReplayResult:
    """
    Identify from torque, reference and control law; by 'oe' from torque and positions.

    Parameters
    ----------
    recording : with efforts, the reference (or its trajectory) and the controller
    robot, base : the model and its base parameters
    settings : of the replay
    samples : measured motion; for comparison, for the initial parameters 'idim', and for methods
        that fit positions
    progress : called with every finished iteration
    method : 'didim', 'clie', 'cloe' or 'oe', see `output_error`

    Raises
    ------
    ControllerError, RecordingError : the recording does not hold what is needed
    DivergenceError : no convergence; it holds the last good estimate

    """
    if method == 'oe' and samples is not None:
        replay = make_open_loop_problem(samples, robot, base, settings)
    else:
        replay = make_replay_problem(recording, robot, base, settings, samples)
    replay = dataclasses.replace(
        replay, method=method, a_priori_inertia=estimate_a_priori_inertia(replay)
    )
    usual = 'regular' if method == 'didim' or samples is None else 'idim'
    start = usual if settings.start == 'auto' else settings.start
    if start == 'idim' and samples is not None:
        chi = from_measured_motion(replay, samples)
    else:
        chi = initial_parameters(replay, 'regular' if start == 'idim' else start)
    return didim(replay, chi, progress)


def from_measured_motion(replay: ReplayProblem, samples: Samples) -> Array:
    """Return standard parameters (p,) of an IDIM solution; bodies where it cannot be simulated."""
    system = observe(samples, replay.robot, replay.base)
    system = dataclasses.replace(system, prior=prior_distribution(replay))
    estimate = fit(system, 'wls')
    chi = replay.standard_parameters(estimate.value)
    try:
        replay.inertia(chi)
    except DivergenceError as error:
        try:
            return consistent_fit(replay, system, estimate)
        except SolverError:
            raise error from None
    return chi


def describe_iteration(record: Iteration, method: str = 'didim') -> str:
    """Return one line on an iteration, for a progress display."""
    what, values = 'torque', record.torque_error
    if method == 'oe' and record.to_measured is not None:
        what, values = 'position', record.to_measured.position
    errors = ', '.join(f'{100.0 * error:.1f}' for error in values)
    return f'{method.upper()} iteration {record.number}: {what} error {errors} %'
