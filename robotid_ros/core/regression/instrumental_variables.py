"""Instruments: the observation matrix of the reference motion, free of noise."""

import dataclasses

import numpy as np

from ...exceptions import RecordingError
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..signals.recording import Recording
from ..signals.samples import Samples
from .observation_system import observe, System


def add_instruments(
    system: System,
    samples: Samples,
    recording: Recording,
    robot: Robot,
    base: BaseParameters,
) -> System:
    """
    Add W of the reference to a system, for instrumental variables (IDIM-IV).

    Raises
    ------
    RecordingError : the recording has no reference

    """
    reference = recording.select(robot.joints).reference
    if reference is None or reference.time.size < 2:
        raise RecordingError(
            "method 'iv' needs the reference as instrument: record controller_state, or use 'wls'"
        )
    q, dq, ddq = (
        np.column_stack([np.interp(samples.time, reference.time, c) for c in values.T])
        for values in (reference.q, reference.dq, reference.ddq)
    )
    commanded = observe(dataclasses.replace(samples, q=q, dq=dq, ddq=ddq), robot, base)
    return dataclasses.replace(system, Z=commanded.W)
