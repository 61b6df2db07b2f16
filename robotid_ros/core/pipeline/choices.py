"""What the configuration leaves open, chosen from a recording of any length."""

from collections.abc import Sequence
import dataclasses
from itertools import chain

import numpy as np

from ...exceptions import RobotIdError
from ..identification_settings import IdentificationSettings
from ..mixed.columns import Part
from ..mixed.mixed_model import MixedModel, Problem
from ..mixed.shrinkage import gains_clearly
from ..model.base_parameters import base_parameters
from ..model.robot import ElasticRobot, Robot
from ..regression.estimators import MIXED
from ..regression.observation_system import observe
from ..signals.preparation import prepare
from ..signals.recording import Recording
from ..signals.resampling import MIN_TRAVEL
from ..signals.samples import Samples, SignalSettings
from ..timing.delays import prepare_without_delay, remove_delay
from .logs import LogSet, longest_log, RecordingOrChunks

# Samples that are looked at: enough to tell choices apart, whatever the recording's length.
LONGEST_LOOK = 60_000
# A model without gravity counts where it predicts the folds so much better.
GRAVITY_FREE = 0.9
# Bands of W and the torques [Hz]: the first, unless another or the motion's own is clearly better.
# Positions pass two and a half times as much (DIDIM section II: W would lose what the torques
# keep). A band needs room below the Nyquist frequency.
BANDS, POSITIONS, LARGEST_BAND, LARGEST_CUTOFF = (8.0, 5.0, 12.0), 2.5, 0.2, 0.4
# Band in which they are compared [Hz], and its positions' cut-off over it.
JUDGING, JUDGING_POSITIONS = 5.0, 2.0
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
    try:
        model, signals = _chosen([_part(r) for r in looked_at], robot, signals)
    except (RobotIdError, np.linalg.LinAlgError):
        return recording, robot, fixed, None  # `prepare` says what is wrong with the recording
    robot = dataclasses.replace(
        robot, model=model.robot.model, effort_kind=model.robot.effort_kind
    )
    if not any(robot.open_friction):
        return recording, robot, fixed, model
    settings = dataclasses.replace(settings, method=MIXED, signals=signals)
    return recording, model.robot, settings, dataclasses.replace(model, signals=signals)


def _chosen(
    recordings: Sequence[Recording], robot: Robot, signals: SignalSettings
) -> tuple[MixedModel, SignalSettings]:
    """
    Choose the mixed model and, where they are open, the filters, by the same folds.

    Raises
    ------
    RobotIdError : a recording cannot be used

    """
    rate, base = min(recording.rate for recording in recordings), base_parameters(robot)
    judging = min(JUDGING, LARGEST_BAND * rate)
    wanted = dataclasses.replace(signals, cutoff=JUDGING_POSITIONS * judging, band=judging)
    prompt = [
        remove_delay(r, prepare_without_delay(r, robot, base, wanted)[2], signals.stamps)
        for r in recordings
    ]
    bands = dict.fromkeys(min(band, LARGEST_BAND * rate) for band in BANDS)
    if signals.cutoff:
        tried = [signals]
    else:
        bands = {signals.band: None} if signals.band else bands
        tried = [
            dataclasses.replace(
                signals, cutoff=min(POSITIONS * band, LARGEST_CUTOFF * rate), band=band
            )
            for band in bands
        ]
    undelayed = dataclasses.replace(signals, time_offset=False)
    used = [_as_used(recording, robot, undelayed) for recording in prompt]
    best, model = tried[0], _with_or_without_gravity(prompt, robot, tried[0], used)
    robot = dataclasses.replace(
        robot, model=model.robot.model, effort_kind=model.robot.effort_kind
    )
    errors = {
        k: _problem(prompt, robot, each, used).errors(model.shrinkage)
        for k, each in enumerate(tried)
    }
    least = 0
    for k, own in errors.items():
        if len(own) == len(errors[0]) and gains_clearly(own, errors[least]):
            least = k
    if least:
        best = tried[least]
        model = dataclasses.replace(
            _problem(prompt, robot, best, used).solve(), weightless_gain=model.weightless_gain
        )
    return model, best


def _with_or_without_gravity(
    recordings: Sequence[Recording], robot: Robot, signals: SignalSettings, used: Sequence[Samples]
) -> MixedModel:
    """Choose the model, without gravity where the efforts hold none."""
    model = _problem(recordings, robot, signals, used).solve()
    if robot.effort_kind != 'auto' or not robot.gravity.any():
        return model
    pinocchio_model = robot.model.copy()
    pinocchio_model.gravity.linear = np.zeros(3)
    weightless = dataclasses.replace(robot, model=pinocchio_model, effort_kind='without_gravity')
    other = _problem(recordings, weightless, signals, used).solve()
    ratio = model.shrinkage.residual / max(other.shrinkage.residual, 1e-300)
    # With plain friction, too: springs may stand in for gravity.
    clear = all(
        gains_clearly(getattr(other.shrinkage, k), getattr(model.shrinkage, k))
        for k in ('errors', 'plain_errors')
    )
    # Of joints that are predicted worse than by zero nothing is known, gravity included.
    known = float(np.median(other.shrinkage.joint_residuals)) < 1.0
    if not (clear and known) or ratio * GRAVITY_FREE < 1.0:
        return model
    return dataclasses.replace(other, weightless_gain=ratio)


def _problem(
    recordings: Sequence[Recording], robot: Robot, signals: SignalSettings, used: Sequence[Samples]
) -> Problem:
    """Observe recordings without delays, and the same rows as a model is used."""
    base, fitted, judged = base_parameters(robot), [], []
    signals = dataclasses.replace(signals, time_offset=False)
    for recording, whole in zip(recordings, used, strict=True):
        part = Part(*prepare_without_delay(recording, robot, base, signals)[:2])
        fitted.append(part)
        step = part.samples.decimation
        fields = ('time', 'q', 'dq', 'ddq', 'tau', 'valid')
        rows = {name: getattr(whole, name)[::step] for name in fields}
        samples = dataclasses.replace(whole, **rows, rate=whole.rate / step)
        judged.append(Part(samples, observe(samples, robot, base)))
    return Problem(fitted, judged, robot, base)


def _as_used(recording: Recording, robot: Robot, signals: SignalSettings) -> Samples:
    """
    Return the samples on which a model is judged, as one is used: at an instant.

    From smooth positions and their derivatives it predicts a smooth torque, W passes no filter:
    what a sharp model is off where a joint turns round or rests counts.
    """
    signals = dataclasses.replace(signals, cutoff=0.0, band=0.0, decimation=1)
    whole = prepare(recording, robot, signals)
    return dataclasses.replace(whole, measured=None)


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
