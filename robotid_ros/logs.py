"""Logs of the library: from any file, or from arrays."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .core.model import Robot
from .core.model.robot import ElasticRobot
from .core.signals.recording import Recording
from .exceptions import RecordingError, UnknownNameError
from .files.bags import ChunkedRecording, open_recording
from .files.formats.read_options import QUANTITIES, ReadOptions
from .files.robot_description import read_description

PathLike: TypeAlias = str | Path
Log: TypeAlias = Recording | ChunkedRecording


def load(
    path: PathLike,
    joints: Sequence[str] = (),
    *,
    urdf: PathLike | None = None,
    columns: dict[str, str] | None = None,
    units: dict[str, str] | None = None,
    rate: float = 0.0,
    effort_topic: str = '',
) -> Log:
    """
    Read a log: a bag of ROS 2 or ROS 1, CSV, npz, MAT, HDF5, Parquet.

    Parameters
    ----------
    path : file or folder
    joints : to read, in this order; empty: all that were measured
    urdf : description whose joints a table's columns are of
    columns : patterns of columns by quantity, `{'position': 'q_*', 'effort': 'tau_*'}`
    units : by quantity, `{'position': 'deg', 'effort': 'A*0.12'}`
    rate : of a table without stamps [Hz]
    effort_topic : topic, or 'topic:field', of a bag that holds the efforts

    Returns
    -------
    The recording; one in chunks where it is too long for memory. Both can be cut: `.between(start,
    stop)` [s], `.phase('exciting')`.

    Raises
    ------
    RecordingError : it cannot be read, or holds no positions and efforts of joints
    UnknownNameError : a quantity that is none

    """
    for quantity in (*(columns or {}), *(units or {})):
        if quantity not in QUANTITIES:
            raise UnknownNameError('quantity', quantity, QUANTITIES)
    options = ReadOptions(
        urdf='' if urdf is None else read_description(urdf),
        joints=tuple(joints),
        columns=tuple((columns or {}).items()),
        units=tuple((units or {}).items()),
        rate=rate,
        effort_topic=effort_topic,
    )
    return open_recording(path, tuple(joints) or None, options=options)


def from_arrays(
    time: ArrayLike,
    position: ArrayLike,
    effort: ArrayLike,
    *,
    joints: Sequence[str],
    velocity: ArrayLike | None = None,
    temperature: ArrayLike | None = None,
    source: str = 'arrays',
) -> Recording:
    """
    Make a recording of arrays.

    Parameters
    ----------
    time : (N,) stamps [s], ascending; steps may differ
    position : (N, n) [rad or m]; of one joint (N,) will do
    effort : (N, n) torques or forces [N·m or N]; NaN where a value is missing
    joints : names of the columns, those of the description
    velocity : (N, n) [rad/s or m/s], where it was measured
    temperature : (N, n) of the joints [°C], where it was measured; NaN where a value is missing
    source : where they come from, for messages

    Raises
    ------
    RecordingError : shapes that do not fit each other

    """
    stamps = np.array(time, dtype=float).ravel()

    def columns(name: str, values: ArrayLike) -> np.ndarray:
        array = np.array(values, dtype=float)
        array = array[:, None] if array.ndim == 1 else array
        if array.shape != (stamps.size, len(joints)):
            raise RecordingError(
                f'{name} has the shape {array.shape}: give a row for each of {stamps.size} '
                f'stamps and a column for each of {len(joints)} joints'
            )
        return array

    return Recording(
        tuple(joints),
        stamps,
        columns('position', position),
        columns('effort', effort),
        None if velocity is None else columns('velocity', velocity),
        source=source,
        temperature=None if temperature is None else columns('temperature', temperature),
    )


def opened(log: Log | PathLike) -> Log:
    """Return a log, which may be a file to `load`."""
    return load(log) if isinstance(log, str | Path) else log


def of_robot(log: Log, robot: Robot | ElasticRobot) -> Log:
    """Return the log of a robot's joints, in its order."""
    names = tuple(robot.recorded_joints)
    if isinstance(log, Recording):
        return log.select(names)
    if log.joints != names:
        raise RecordingError(
            f"'{log.source}' is too long for memory and has other joints than the robot: load it "
            f'with joints={list(names)}'
        )
    return log
