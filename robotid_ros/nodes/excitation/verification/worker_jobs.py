"""What takes seconds or much memory: in a process of its own, see `run_in_process`."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ....core.arrays import Array
from ....core.excitation import Waypoints
from ....core.identification_settings import IdentificationSettings
from ....core.verification.feed_forward import with_feed_forward
from ....core.verification.tracking import Tracking
from .identified_model import IdentifiedModel
from .motion_log import MotionMessages, RawMotion


class PresentRun(NamedTuple):
    """
    The robot as it is.

    Parameters
    ----------
    tracking : its errors
    relative, rms : (n,) residual of the predicted efforts, relative while a joint moves (0 where
        it does not), and root mean square
    points : the motion with feed-forward

    """

    tracking: Tracking
    relative: Array
    rms: Array
    points: Waypoints


def read_tracking(raw: RawMotion) -> Tracking:
    """Read the tracking errors of a motion."""
    return MotionMessages(raw).tracking()


def read_present_run(
    raw: RawMotion,
    rate: float,
    points: Waypoints,
    model: IdentifiedModel,
    settings: IdentificationSettings,
) -> PresentRun:
    """
    Read a motion without feed-forward, predict its efforts, and add the feed-forward.

    Parameters
    ----------
    raw : messages
    rate : of the controller by its parameter, 0 where that does not say [Hz]
    points : the motion
    model : that predicts
    settings : of the signals

    Raises
    ------
    RobotIdError : the motion was recorded too poorly

    """
    from ....core.pipeline.validation import validate

    messages = MotionMessages(raw)
    found = validate(messages.recording(), model.robot, model.chi, settings)
    period = 1.0 / messages.update_rate(rate)
    return PresentRun(
        messages.tracking(),
        np.nan_to_num(found.moving_residual),
        found.rms,
        with_feed_forward(points, model.robot, model.chi, period),
    )


def renew_report(folder: Path) -> None:
    """Write the report of a folder's results again."""
    from ....files.report.page import write_report
    from ....files.results_file import read_results, REPORT

    write_report(read_results(folder), folder / REPORT)
