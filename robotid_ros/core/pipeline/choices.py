"""What the configuration leaves open, chosen from a recording of any length."""

from collections.abc import Sequence
import dataclasses
from itertools import chain

import numpy as np

from ...exceptions import RobotIdError
from ..identification_settings import IdentificationSettings
from ..mixed.columns import Part
from ..mixed.mixed_model import choose, MixedModel, plain_errors
from ..mixed.shrinkage import gains_clearly
from ..model.base_parameters import base_parameters
from ..model.robot import ElasticRobot, Robot
from ..regression.estimators import MIXED
from ..regression.observation_system import observe
from ..signals.recording import Recording
from ..signals.samples import SignalSettings
from ..signals.uniform_recording import MIN_TRAVEL
from ..timing.delay_compensation import prepare_without_delay
from .chunked_estimation import RecordingOrChunks
from .several_logs import LogSet, longest_log

# Samples that are looked at: enough to tell choices apart, whatever the recording's length.
LONGEST_LOOK = 60_000
# A model without gravity counts where it predicts the folds so much better.
GRAVITY_FREE = 0.9
Choice = tuple[RecordingOrChunks, Robot, IdentificationSettings, MixedModel | None]


def choose_model(
    recording: RecordingOrChunks, robot: Robot, settings: IdentificationSettings
) -> Choice:
    """
    Choose what is open, of several logs by all of them, of chunks by the first one that moves.

    Parameters
    ----------
    recording : in memory, or its successive chunks
    robot, settings : what may be open

    Returns
    -------
    All of them with the choices made, and the mixed model, None where nothing was open

    """
    fixed = without_choice(settings)
    if not is_open(robot, settings):
        return recording, robot, fixed, None
    if isinstance(recording, LogSet) and recording.in_memory:
        looked_at = [log for log in recording.logs if isinstance(log, Recording)]
    else:
        log = longest_log(recording)
        if isinstance(log, Recording):
            looked_at = [log]
        else:
            chunks, read = iter(log), list[Recording]()
            for chunk in chunks:
                # What can be read again need not be kept.
                read = [*read, chunk] if chunks is recording else [chunk]
                if motion_start(chunk) is not None:
                    break
            # An iterator has given its first chunks away; what can be read again starts anew.
            recording = chain(read, chunks) if chunks is recording else recording
            looked_at = read[-1:]
    signals = settings.signals
    if signals.rows == 'auto':
        signals = dataclasses.replace(signals, rows='every')
    if signals.torques == 'auto':
        signals = dataclasses.replace(signals, torques='parallel')
    try:
        model = choose_from([_part(r) for r in looked_at], robot, signals)
    except (RobotIdError, np.linalg.LinAlgError):
        return recording, robot, fixed, None  # `prepare` says what is wrong with the recording
    robot = dataclasses.replace(
        robot, model=model.robot.model, effort_kind=model.robot.effort_kind
    )
    if not any(robot.open_friction):
        return recording, robot, fixed, model
    settings = dataclasses.replace(settings, method=MIXED, signals=model.signals or signals)
    return recording, model.robot, settings, model


def choose_from(
    recordings: Sequence[Recording], robot: Robot, signals: SignalSettings
) -> MixedModel:
    """
    Choose the mixed model of some recordings, without gravity where the efforts hold none.

    Raises
    ------
    RobotIdError : a recording cannot be used

    """
    base = base_parameters(robot)
    parts = [Part(*prepare_without_delay(r, robot, base, signals)[:2]) for r in recordings]
    cutoff = max(part.samples.cutoff for part in parts)
    model = dataclasses.replace(
        choose(parts, robot, base), signals=dataclasses.replace(signals, cutoff=cutoff)
    )
    if robot.effort_kind != 'auto' or not robot.gravity.any():
        return model
    pinocchio_model = robot.model.copy()
    pinocchio_model.gravity.linear = np.zeros(3)
    robot = dataclasses.replace(robot, model=pinocchio_model, effort_kind='without_gravity')
    base = base_parameters(robot)
    parts = [Part(samples, observe(samples, robot, base)) for samples, _ in parts]
    # With plain friction first: springs may stand in for gravity.
    if not gains_clearly(plain_errors(parts, base), model.shrinkage.plain_errors):
        return model
    other = choose(parts, robot, base)
    ratio = model.shrinkage.residual / max(other.shrinkage.residual, 1e-300)
    clear = gains_clearly(other.shrinkage.errors, model.shrinkage.errors)
    if not clear or ratio * GRAVITY_FREE < 1.0:
        return model
    return dataclasses.replace(other, weightless_gain=ratio, signals=model.signals)


def is_open(robot: Robot, settings: IdentificationSettings) -> bool:
    """Tell whether the configuration leaves anything to choose."""
    if isinstance(robot, ElasticRobot) or settings.model != MIXED:
        return False
    if settings.method != 'auto' or settings.signals.averaging:
        return False
    return any(robot.open_friction) or robot.effort_kind == 'auto'


def without_choice(settings: IdentificationSettings) -> IdentificationSettings:
    """Return the settings with what is open at its default."""
    method = 'wls' if settings.method == 'auto' else settings.method
    return dataclasses.replace(settings, method=method)


def motion_start(recording: Recording) -> int | None:
    """Return the first sample that is away from where the recording began, None without any."""
    away = np.abs(recording.position - recording.position[0]) > MIN_TRAVEL
    return int(np.argmax(away.any(axis=1))) if away.any() else None


def _part(recording: Recording) -> Recording:
    """Return what is looked at: from where something moves."""
    count, time = len(recording.time), recording.time
    if count <= LONGEST_LOOK:
        return recording
    first = min(motion_start(recording) or 0, count - LONGEST_LOOK - 1)
    return recording.between(float(time[first]), float(time[first + LONGEST_LOOK]))
