"""Measured against predicted efforts, filtered alike."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ...exceptions import StandstillError
from ..arrays import Array
from ..identification_settings import IdentificationSettings
from ..model.base_parameters import BaseParameters
from ..model.dynamics import inverse_dynamics, spring_torque
from ..model.robot import ElasticRobot, Robot
from ..regression.goodness_of_fit import parts_of_samples, parts_of_system, Validation
from ..regression.observation_system import decimate, Rows
from ..signals.preparation import prepare
from ..signals.recording import Recording
from ..signals.samples import Samples
from .observation import BlockSampler, RecordingOrChunks


def validate(
    recording: RecordingOrChunks, robot: Robot, chi: Array, settings: IdentificationSettings
) -> Validation:
    """Predict the torques of a recording, or some of its chunks, with standard parameters (p,)."""
    if isinstance(recording, Recording):
        return validate_samples(prepare(recording, robot, settings.signals), robot, chi)
    sampler, signals = BlockSampler[Validation](), settings.signals
    for chunk in recording:
        if not sampler.takes_next():
            continue
        try:
            samples = prepare(chunk, robot, signals)
        except StandstillError:
            continue
        signals = dataclasses.replace(
            signals, cutoff=samples.cutoff, decimation=samples.decimation
        )
        part = validate_samples(samples, robot, chi)
        sampler.add(part, len(part.time))
    if not sampler.blocks:
        raise StandstillError('no joint moves in what is to validate on: choose another part')
    return Validation.concatenate(sampler.blocks)


def validate_samples(samples: Samples, robot: Robot, chi: Array) -> Validation:
    """Predict the torques of samples with standard parameters (p,)."""
    tau = inverse_dynamics(robot, chi, samples.q, samples.dq, samples.ddq, successive=True)
    pair, keep, measured = np.stack([samples.tau, tau]), samples.decimation, samples.measured
    if isinstance(robot, ElasticRobot):  # which counts as the measured one at a link
        pair += spring_torque(robot, chi, samples.q)
    parts, time = parts_of_samples(samples, robot, chi, tau), samples.time[::keep]
    tau, predicted = decimate(pair, keep)
    found = Validation(samples.joints, time, tau, predicted, samples.moving[::keep], parts)
    return _trim(found, None if measured is None else measured[::keep])


def validate_system(system: Rows, robot: Robot, base: BaseParameters, value: Array) -> Validation:
    """Compare the torques of a system's rows with those of its base parameters (b,)."""
    valid = (system.valid if system.moving is None else system.moving).T
    pair, parts = (
        (system.Y.T, system.predict(value).T),
        parts_of_system(system, robot, base, value),
    )
    found = Validation(system.joints, system.time, *pair, valid, parts)
    return _trim(found, system.measured)


def _trim(found: Validation, counted: npt.NDArray[np.bool_] | None) -> Validation:
    """Leave out what lies before the first and after the last row that is used, and in gaps."""
    rows = np.ones(len(found.time), dtype=bool) if counted is None else counted.copy()
    moving = np.flatnonzero(found.valid.any(axis=1))
    if moving.size:
        rows[: moving[0]] = rows[moving[-1] + 1 :] = False
    names = ('time', 'measured', 'predicted', 'valid')
    columns = {name: getattr(found, name)[rows] for name in names}
    parts = None if found.parts is None else found.parts.at(rows)
    return dataclasses.replace(found, parts=parts, **columns)
