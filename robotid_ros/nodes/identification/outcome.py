"""What comes of a bag: where it is, and what its identification leaves behind."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...core.model import RobotSettings
from ...core.monitoring.contact_detector import ContactThresholds
from ...core.verification.gains import GainProposal
from ...exceptions import RecordingError
from ...files.results import Results

MAX_SHOWN = 200  # characters of a path that somebody else wrote


class IdentificationOutcome(NamedTuple):
    """
    What an identification leaves behind.

    Parameters
    ----------
    results : parameters and residuals, as plain values
    folder : of the files
    source_urdf : the description that the robot was built from
    robot_settings : with the joints and the friction that were chosen
    urdf : the description with identified parameters
    standard : (p,) standard parameters that give the identified torques, others zero
    possible : (p,) standard parameters of bodies that can exist
    thresholds : of external efforts, or why there are none
    gains : proposed for those of the recording; or why there are none, '' for no such controller
    origin : the robot's clock at time 0 of the results [ns]

    """

    results: Results
    folder: Path
    source_urdf: str
    robot_settings: RobotSettings
    urdf: str
    standard: np.ndarray
    possible: np.ndarray
    thresholds: ContactThresholds | str
    gains: GainProposal | str
    origin: int


def find_bag(name: str, folders: Sequence[str]) -> Path:
    """
    Find a recording by its path, which anybody on the network may have named.

    It is a RecordingError where it is not there, or not below one of the folders, links followed.
    """
    allowed = [Path(folder).expanduser().resolve() for folder in folders]
    shown = ''.join(c if c.isprintable() else '?' for c in name[:MAX_SHOWN])
    try:
        path = Path(name).resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise RecordingError(f"there is no recording at '{shown}'") from error
    if not any(folder in path.parents for folder in allowed):
        known = ' or '.join(f"'{folder}'" for folder in allowed)
        raise RecordingError(
            f"'{shown}' is not below {known}, nothing was read or written: set recorder.folder "
            'alike in both nodes, or add its folder to identification.folders'
        )
    return path
