"""Input of a payload: two recordings, or one of an arm that is identified already."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from string import digits
from typing import NamedTuple

import numpy as np

from ..core.excitation.collision_bodies import body_frame, BodyFrame
from ..core.identification_settings import IdentificationSettings
from ..core.model import Robot
from ..core.model.friction import SHRUNK
from ..core.payload import KnownArm
from .configuration import Configuration
from .formats.read_options import DEFAULTS, ReadOptions
from .identification_input import AnyRecording, open_input, split
from .results import URDF
from .results_file import PARAMETERS, read_results, results_folder

TOOL = 'tool0'


class PayloadInput(NamedTuple):
    """The model and how it is identified, the arm without and with a payload, and its frame."""

    robot: Robot
    settings: IdentificationSettings
    empty: AnyRecording | KnownArm
    loaded: AnyRecording
    frame: BodyFrame


def open_payload(
    empty: str,
    loaded: str,
    frame: str = '',
    config: str | Configuration | None = None,
    progress: Callable[[float], None] | None = None,
    urdf: str | None = None,
    options: ReadOptions = DEFAULTS,
    fallback: str = '',
) -> PayloadInput:
    """
    Read what a payload is identified from.

    Parameters
    ----------
    empty : recording without the payload, or the results of an identification: their folder or
        `parameters.yaml`
    loaded : recording with it
    frame : of the description; '': that of the configuration's workspace, else `tool0`, else of
        the last joint
    config, urdf, options, fallback, progress : of `open_input`

    Raises
    ------
    RobotIdError : something is missing or does not fit

    """
    reference: AnyRecording | KnownArm
    if is_results(empty):
        results, identified = read_results(empty), results_folder(empty) / URDF
        session = open_input(
            [loaded],
            # With the friction that was chosen, and the joints that moved.
            config or results.settings,
            urdf,
            options=replace(options, joints=results.joints),
            fallback=identified.read_text() if identified.exists() else fallback,
            progress=progress,
        )
        # Without base parameters that are shrunk: a payload is found without. Files keep no more
        # of their covariance than σ.
        plain = [entry for entry in results.base if entry.name.rstrip(digits) not in SHRUNK]
        value, sigma = np.array([(entry.value, entry.sigma) for entry in plain]).T
        names, covariance = tuple(entry.name for entry in plain), np.diag(sigma**2)
        reference = KnownArm(names, value, covariance, covariance)
        recording = session.recording
    else:
        session = open_input(
            [empty], config, urdf, options=options, fallback=fallback, progress=progress
        )
        reference, recording = split(session.recording)[0], session.read(loaded, progress)
    robot, configuration = session.robot, session.configuration
    tool = TOOL if robot.model.existFrame(TOOL) else ''
    frame = frame or configuration.excitation.workspace.frame or tool
    part, carrier = split(recording)[0], body_frame(robot, frame)
    return PayloadInput(robot, configuration.identification, reference, part, carrier)


def is_results(path: str) -> bool:
    """Whether a path leads to the results of an identification."""
    return path.endswith('.yaml') or (Path(path) / PARAMETERS).exists()
