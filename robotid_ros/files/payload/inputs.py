"""What a payload is identified from: the arm without it and with it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from string import digits
from typing import Any, NamedTuple

import numpy as np

from ...core.identification_settings import IdentificationSettings
from ...core.model import Robot
from ...core.model.friction import SHRUNK
from ...core.model.pinocchio_model import body_frame, BodyFrame
from ...core.payload.payload import KnownArm
from ..configuration import Configuration
from ..formats.read_options import DEFAULTS, ReadOptions
from ..identification_input import AnyRecording, open_input, split
from ..results import PARAMETERS, read_results, results_folder, URDF

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
    Read what a payload is identified from, `empty` and `loaded`; raises as `open_input`.

    The first one is a recording without it, or the results of an identification: their folder or
    `parameters.yaml`. The frame is one of the description; '': that of the configuration's
    workspace, else `tool0`, else of the last joint.
    """
    reference: AnyRecording | KnownArm
    results = read_results(empty) if is_results(empty) else None
    settings: str | Configuration | Mapping[str, Any] | None = config
    if results is not None:
        # With the friction that was chosen, and the joints that moved.
        settings, options = config or results.settings, replace(options, joints=results.joints)
        identified = results_folder(empty) / URDF
        fallback = identified.read_text() if identified.exists() else fallback
    session = open_input(
        [empty if results is None else loaded], settings, urdf,
        options=options, fallback=fallback, progress=progress,
    )  # fmt: skip
    if results is None:
        reference, recording = split(session.recording)[0], session.read(loaded, progress)
    else:
        # Without base parameters that are shrunk: a payload is found without. Files keep no more
        # of their covariance than σ.
        plain = [entry for entry in results.base if entry.name.rstrip(digits) not in SHRUNK]
        value, sigma = np.array([(entry.value, entry.sigma) for entry in plain]).T
        names, covariance = tuple(entry.name for entry in plain), np.diag(sigma**2)
        reference, recording = KnownArm(names, value, covariance, covariance), session.recording
    robot, configuration = session.robot, session.configuration
    tool = TOOL if robot.model.existFrame(TOOL) else ''
    frame = frame or configuration.excitation.workspace.frame or tool
    part, carrier = split(recording)[0], body_frame(robot, frame)
    return PayloadInput(robot, configuration.identification, reference, part, carrier)


def is_results(path: str) -> bool:
    """Whether a path leads to the results of an identification."""
    return path.endswith('.yaml') or (Path(path) / PARAMETERS).exists()
