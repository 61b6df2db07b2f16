"""
Instruments of the simulated motion: IDIM-IV (Janot, Vandanjon and Gautier 2014).

Noise of the measured positions is in W and in its own products, which biases least squares. The
observation matrix along the motion that the closed loop simulates with the newest parameters is as
correlated with W as can be, and knows nothing of that noise.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ...exceptions import DivergenceError
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.instrumental_variables import add_instruments
from ..regression.observation_system import System
from ..signals.recording import Recording
from ..signals.samples import Samples
from .didim import from_measured_motion
from .prior_distribution import estimate_a_priori_inertia
from .replay_problem import make_replay_problem
from .settings import ReplaySettings

# Change of a parameter over its σ that ends the iteration: instruments need not be exact.
CONVERGED, MAX_ROUNDS = 0.1, 10


def fit_with_simulated_instruments(
    recording: Recording,
    samples: Samples,
    system: System,
    robot: Robot,
    base: BaseParameters,
    settings: ReplaySettings,
    iterations: int = 1,
) -> tuple[System, Estimate]:
    """
    Fit a system by instrumental variables, the loop simulated with each estimate in turn.

    Parameters
    ----------
    recording : with the reference and the controller
    samples, system : of the measured motion
    robot, base : the model
    settings : of the replay
    iterations : of the weights

    Returns
    -------
    The system with its instruments, and the estimate

    Raises
    ------
    ControllerError, UnknownNameError, ConfigurationError : the loop cannot be simulated
    RecordingError : there is no reference
    DivergenceError : the first estimate cannot be simulated

    """
    replay = make_replay_problem(recording, robot, base, settings, samples)
    replay = dataclasses.replace(replay, a_priori_inertia=estimate_a_priori_inertia(replay))
    chi, gains = from_measured_motion(replay, samples), np.ones(robot.n)
    found: Estimate | None = None
    for _ in range(MAX_ROUNDS):
        try:
            replay.inertia(chi)
            run = replay.simulate(chi, gains)
        except DivergenceError:
            if found is None:
                raise
            break
        motion = run.q, run.dq, run.ddq
        system = add_instruments(system, samples, replay.time, motion, robot, base)
        previous, found = found, fit(system, 'iv', iterations)
        if previous is not None:
            change = np.abs(found.value - previous.value)
            if np.all(change <= CONVERGED * found.sigma):
                break
        chi = replay.standard_parameters(found.value)
    assert found is not None
    return system, found
