"""Estimates that take a simulation of the robot: closed-loop methods, simulated instruments."""

from collections.abc import Callable
import dataclasses
from typing import NamedTuple

import numpy as np

from ...exceptions import ConfigurationError, ControllerError, DivergenceError, UnknownNameError
from ..finding_codes import finding
from ..findings import Finding
from ..identification_settings import IdentificationSettings
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.instrumental_variables import add_reference_instruments
from ..regression.observation_system import System
from ..replay.convergence_history import History
from ..replay.didim import describe_iteration, fit_with_simulated_instruments, identify_closed_loop
from ..signals.recording import Recording
from ..signals.samples import Samples

# System, estimate, warnings, and the iterations where there are any.
Fitted = tuple[System, Estimate, list[Finding], History | None]


class Observed(NamedTuple):
    """A recording in memory, and the rows of its measured motion."""

    recording: Recording
    samples: Samples
    system: System
    robot: Robot
    base: BaseParameters


def fit_by_instruments(
    observed: Observed, settings: IdentificationSettings
) -> tuple[System, Estimate, list[Finding]]:
    """Fit by instruments of the simulated motion; of the reference where none is simulated."""
    recording, samples, system, robot, base = observed
    try:
        if robot.load_dependent:
            raise ConfigurationError("friction 'load_coulomb' is not simulated")
        system, estimate = fit_with_simulated_instruments(
            recording, samples, system, robot, base, settings.replay, settings.iterations
        )
    except (ConfigurationError, ControllerError, DivergenceError, UnknownNameError) as error:
        system = add_reference_instruments(system, samples, recording, robot, base)
        note = finding('reference_instruments', reason=str(error))
        return system, fit(system, 'iv', settings.iterations), [note]
    return system, estimate, []


def fit_by_simulation(
    observed: Observed, settings: IdentificationSettings, progress: Callable[[str], None]
) -> Fitted:
    """Fit along a simulated motion; the replay knows its delays and takes efforts as recorded."""
    recording, samples, system, robot, base = observed
    method = settings.method
    result = identify_closed_loop(
        recording,
        robot,
        base,
        settings.replay,
        samples,
        lambda iteration: progress(describe_iteration(iteration, method)),
        method,
    )
    estimate, history = result.estimate, result.history
    if method == 'didim':
        return result.system, estimate, list(history.findings), history
    # Sensitivities predict no torque: the rows of the measured motion judge the parameters.
    errors = [y - w @ estimate.value for w, y in map(system.rows, range(robot.n))]
    estimate = dataclasses.replace(
        estimate,
        method='ml',
        residual=system.relative_residual(estimate.value),
        total_residual=system.total_residual(estimate.value),
        sigma_torque=np.array([np.linalg.norm(e) / max(len(e), 1) ** 0.5 for e in errors]),
    )
    return system, estimate, list(history.findings), history
