"""Instruments: the observation matrix of a motion that is free of the measured one's noise."""

import dataclasses

import numpy as np

from ...exceptions import RecordingError
from ..arrays import Array
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..signals.recording import Recording
from ..signals.samples import Samples
from .observation_system import observe, System


def add_instruments(
    system: System,
    samples: Samples,
    time: Array,
    motion: tuple[Array, Array, Array],
    robot: Robot,
    base: BaseParameters,
) -> System:
    """
    Add W of another motion to a system, for instrumental variables (IDIM-IV).

    Parameters
    ----------
    samples : the measured motion, whose filter and decimation W gets too
    time : (K,) of the other motion [s]; rows outside it are not used
    motion : its q, dq, ddq (K, n), such as the simulated one's or the reference's

    """
    q, dq, ddq = (
        np.column_stack([np.interp(samples.time, time, column) for column in values.T])
        for values in motion
    )
    other = observe(dataclasses.replace(samples, q=q, dq=dq, ddq=ddq), robot, base)
    inside = (system.time >= time[0]) & (system.time <= time[-1])
    return dataclasses.replace(system, Z=other.W, valid=system.valid & inside)


def add_reference_instruments(
    system: System, samples: Samples, recording: Recording, robot: Robot, base: BaseParameters
) -> System:
    """
    Add W of the recorded reference to a system.

    Raises
    ------
    RecordingError : the recording has no reference

    """
    reference = recording.select(robot.joints).reference
    if reference is None or reference.time.size < 2:
        raise RecordingError(
            "method 'iv' needs the reference as instrument: record controller_state, or use 'wls'"
        )
    motion = reference.q, reference.dq, reference.ddq
    return add_instruments(system, samples, reference.time, motion, robot, base)
