"""What the configuration leaves open, chosen from a recording of any length."""

from collections.abc import Sequence
import dataclasses
from itertools import chain
from typing import NamedTuple

import numpy as np

from ...exceptions import RobotIdError, StandstillError
from ..arrays import Array
from ..findings import Finding, finding
from ..identification_settings import IdentificationSettings
from ..mixed.mixed_model import choose, MixedModel, Part, plain_errors_on
from ..mixed.variances import gains_clearly
from ..model.base_parameters import base_parameters
from ..model.robot import BaseParameters, ElasticRobot, Robot
from ..regression.delays import prepare_without_delay, remove_delay
from ..regression.estimators import MIXED
from ..regression.observation_system import observe, Observed, with_rows
from ..signals.filters import lowpass, power_edge
from ..signals.preparation import CUTOFF_FACTOR, MIN_CUTOFF, MIN_TRAVEL, prepare
from ..signals.recording import Recording, SignalSettings
from .observation import LogSet, longest_log, RecordingOrChunks

# Samples that are looked at: enough to tell choices apart, whatever the recording's length.
LONGEST_LOOK = 60_000
# A model without gravity counts where it predicts the folds so much better.
GRAVITY_FREE = 0.9
# Relative residual of the median joint below which a model without gravity knows the efforts.
LEAST_KNOWN = 0.5
# Bands of W and the torques [Hz]: the first, unless another or the motion's own is clearly better.
# Positions pass two and a half times as much (DIDIM section II: W would lose what the torques
# keep). A band needs room below the Nyquist frequency.
BANDS, POSITIONS, LARGEST_BAND, LARGEST_CUTOFF = (8.0, 5.0, 12.0), 2.5, 0.2, 0.4
# Band in which they are compared [Hz], and its positions' cut-off over it.
JUDGING, JUDGING_POSITIONS = 5.0, 2.0

# Least rows at instants of a recording that has so many: a few hundred alias the torques' noise.
# Share of the positions' power below their bandwidth.
ROWS, POWER = 10_000, 0.99


class ModelChoice(NamedTuple):
    """
    A recording, a robot and settings that leave nothing open, and what was noted.

    What came as an iterator of chunks is read on from the first that moves. There is no mixed
    model where nothing was open or none could be chosen.
    """

    recording: RecordingOrChunks
    robot: Robot
    settings: IdentificationSettings
    mixed: MixedModel | None = None
    notes: tuple[Finding, ...] = ()


def choose_model(
    recording: RecordingOrChunks, robot: Robot, settings: IdentificationSettings
) -> ModelChoice:
    """Choose what is open, of several logs by all of them, of chunks by the first that moves."""
    fixed, signals = without_choice(settings), settings.signals
    decided = settings.model != MIXED or settings.method != 'auto' or signals.averaging
    is_open = any(robot.open_friction) or robot.effort_kind == 'auto'
    if decided or not is_open or isinstance(robot, ElasticRobot):
        return ModelChoice(recording, robot, fixed)
    longest = longest_log(recording)
    if isinstance(recording, LogSet) and recording.in_memory:
        looked_at = [log for log in recording.logs if isinstance(log, Recording)]
    elif isinstance(longest, Recording):
        looked_at = [longest]
    else:
        chunks = iter(longest)
        first = next((chunk for chunk in chunks if motion_start(chunk) is not None), None)
        if first is None:
            return ModelChoice(recording, robot, fixed)
        looked_at = [first]
        if chunks is recording:  # an iterator cannot give again what it has given away
            recording = chain(looked_at, chunks)
    try:
        base, seen = base_parameters(robot), [_from_its_motion(each) for each in looked_at]
        logs, parts, filters, notes = choose_filters(seen, robot, base, signals)
        signals = dataclasses.replace(filters, time_offset=signals.time_offset)
        instants = [at_instants(log, robot, base, filters) for log in logs]
        filters = dataclasses.replace(filters, rows='moving')
        rows_are_open = settings.signals.rows == 'auto'
        moving = moving_parts(logs, parts, robot, filters) if rows_are_open else []
        model, gravity = choose_gravity(parts, instants, robot, base, moving)
        if model.rest_misleads:
            signals = dataclasses.replace(signals, rows='moving')
            pairs = zip(logs, instants, strict=True)
            instants = [at_instants(log, robot, base, filters, own) for log, own in pairs]
            model, gravity = choose_gravity(moving, instants, robot, base)
    except (RobotIdError, np.linalg.LinAlgError) as error:
        # Where plain friction cannot be identified either, it says what is wrong.
        note = finding('model_not_chosen', reason=str(error))
        return ModelChoice(recording, robot, fixed, notes=(note,))
    if not any(robot.open_friction):
        chosen = {'model': model.robot.model, 'effort_kind': model.robot.effort_kind}
        return ModelChoice(recording, dataclasses.replace(robot, **chosen), fixed, model, gravity)
    if notes is not None:
        signals = dataclasses.replace(signals, time_offset=False)
    settings = dataclasses.replace(settings, method=MIXED, signals=signals)
    model = dataclasses.replace(model, signals=signals)
    return ModelChoice(recording, model.robot, settings, model, (*(notes or ()), *gravity))


def choose_filters(
    recordings: Sequence[Recording], robot: Robot, base: BaseParameters, signals: SignalSettings
) -> tuple[list[Recording], list[Part], SignalSettings, tuple[Finding, ...] | None]:
    """
    Choose the filters, where they are open, with which plain friction predicts folds best.

    Returns the recordings without the delays of their efforts, their rows, the settings of these,
    and, where there was no delay to remove, what was noted of delays; else None.
    """
    rate = min(recording.rate for recording in recordings)
    if signals.rows == 'auto':
        signals = dataclasses.replace(signals, rows='every')

    def observed(logs: Sequence[Recording], cutoff: float, band: float) -> list[Part]:
        chosen = dataclasses.replace(signals, cutoff=cutoff, band=band)
        return [prepare_without_delay(log, robot, base, chosen) for log in logs]

    judging = min(JUDGING, LARGEST_BAND * rate)
    judged = observed(recordings, JUDGING_POSITIONS * judging, judging)
    pairs = zip(recordings, judged, strict=True)
    prompt = [remove_delay(log, each.delays, signals.stamps) for log, each in pairs]
    notes = None
    if not any(each.delays for each in judged):
        # What looks like a delay with other filters only is an error of the model.
        notes = tuple(dict.fromkeys(chain.from_iterable(each.notes for each in judged)))
    signals = dataclasses.replace(signals, time_offset=False)
    wider = [signals.band] if signals.band else BANDS
    bands = dict.fromkeys(min(band, LARGEST_BAND * rate) for band in wider)
    tried = [(min(POSITIONS * band, LARGEST_CUTOFF * rate), band) for band in bands]
    tried.append((0.0, signals.band))  # from the motion
    if signals.cutoff:
        tried = [(signals.cutoff, signals.band)]
    best, parts = tried[0], observed(prompt, *tried[0])
    errors_of = plain_errors_on(judged)
    least = errors_of(parts)
    for pair in tried[1:]:
        others = observed(prompt, *pair)
        errors = errors_of(others)
        if len(errors) and (not len(least) or gains_clearly(errors, least)):
            best, parts, least = pair, others, errors
    return prompt, parts, dataclasses.replace(signals, cutoff=best[0], band=best[1]), notes


def moving_parts(
    recordings: Sequence[Recording], parts: Sequence[Part], robot: Robot, signals: SignalSettings
) -> list[Part]:
    """Return parts with the rows of signals that leave out rest; none where a log is at rest."""
    pairs = zip(recordings, parts, strict=True)
    try:
        return [with_rows(part, prepare(each, robot, signals)) for each, part in pairs]
    except StandstillError:  # of a joint that never moves
        return []


def choose_gravity(
    parts: Sequence[Part], instants: Sequence[Part], robot: Robot, base: BaseParameters,
    moving: Sequence[Part] = (),
) -> tuple[MixedModel, tuple[Finding, ...]]:  # fmt: skip
    """
    Choose the mixed model, and note it where the efforts hold no gravity.

    Of parts, the same at instants, and, where rows at rest may be left out, without these.
    """
    rows = [part.system.valid for part in moving] or None
    model = choose(parts, instants, robot, base, rows)
    if robot.effort_kind != 'auto' or not robot.gravity.any():
        return model, ()
    weightless = robot.model.copy()
    weightless.gravity.linear = np.zeros(3)
    lighter = dataclasses.replace(robot, model=weightless, effort_kind='without_gravity')
    other_base = base_parameters(lighter)

    def observed(parts: Sequence[Part]) -> list[Part]:
        systems = [observe(part.samples, lighter, other_base) for part in parts]
        pairs = zip(parts, systems, strict=True)
        return [dataclasses.replace(part, system=system) for part, system in pairs]

    # With plain friction, too, which is quick to tell: springs may stand in for gravity.
    others = observed(parts)
    if not gains_clearly(plain_errors_on(others)(others), plain_errors_on(parts)(parts)):
        return model, ()
    other = choose(others, observed(instants), lighter, other_base, rows)
    with_gravity, without = model.shrinkage.residual, other.shrinkage.residual
    clear = gains_clearly(other.shrinkage.errors, model.shrinkage.errors)
    # Of efforts that no model predicts nothing is known, gravity included.
    known = float(np.median(other.shrinkage.joint_residuals)) < LEAST_KNOWN
    if not (clear and known) or without > GRAVITY_FREE * with_gravity:
        return model, ()
    return other, (finding('no_gravity', without=without, with_gravity=with_gravity),)


def without_choice(settings: IdentificationSettings) -> IdentificationSettings:
    """Return the settings with what is open at its default."""
    method = 'wls' if settings.method == 'auto' else settings.method
    return dataclasses.replace(settings, method=method)


def motion_start(recording: Recording) -> int | None:
    """Return the first sample that is away from where the recording began, None without any."""
    away = np.abs(recording.position - recording.position[0]) > MIN_TRAVEL
    return int(np.argmax(away.any(axis=1))) if away.any() else None


def _from_its_motion(recording: Recording) -> Recording:
    """Return what is looked at: from where something moves."""
    count, time = len(recording.time), recording.time
    if count <= LONGEST_LOOK:
        return recording
    first = min(motion_start(recording) or 0, count - LONGEST_LOOK - 1)
    return recording.between(float(time[first]), float(time[first + LONGEST_LOOK]))


def at_instants(
    recording: Recording,
    robot: Robot,
    base: BaseParameters,
    signals: SignalSettings,
    known: Part | None = None,
) -> Part:
    """
    Return the rows of a recording at instants: W is not filtered, as where a model is evaluated.

    Rows of W and torques that pass one filter together are without bias where the model is exact
    (DIDIM section II), but smooth what a model is off where a joint turns round or rests. The
    filter follows the positions' spectrum, whatever is set: that of the speeds is wider, and of
    positions that repeat it is mostly noise. Rows near an end or a gap count where those at rest
    do: of a short motion they are a fifth. Efforts are not behind positions, friction is plain;
    what is `known` are the same rows, of which others count.
    """
    bandwidth = position_bandwidth(recording.select(robot.joints).position, recording.rate)
    cutoff = max(MIN_CUTOFF, CUTOFF_FACTOR * bandwidth)
    follow = dataclasses.replace(signals, cutoff=cutoff, band=cutoff, decimation=1)
    samples = prepare(recording, robot, follow, ends=signals.rows == 'every')
    keep = max(1, len(samples.time) // ROWS)
    tau = lowpass(samples.tau, samples.cutoff, samples.rate, signals.order)
    thinned = samples.thinned(keep, tau[::keep])
    if known is not None:
        return with_rows(known, thinned)
    system = observe(thinned, robot, base)
    return Observed(system, thinned, (system,))


def position_bandwidth(q: Array, rate: float) -> float:
    """Return the frequency below which 99 % of the power of every position (N, n) lies [Hz]."""
    windowed = np.hanning(len(q))[:, None] * (q - q.mean(axis=0))
    power = np.abs(np.fft.rfft(windowed, axis=0)) ** 2
    return float(power_edge(power, POWER).max()) * rate / len(q)
