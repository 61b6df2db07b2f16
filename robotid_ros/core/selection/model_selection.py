"""Choice by evidence: what the configuration leaves open is what predicts unseen data best."""

import dataclasses

import numpy as np

from ...exceptions import RobotIdError
from ..diagnostics.gravity_direction import other_gravity
from ..identification_settings import IdentificationSettings
from ..model.base_parameters import base_parameters
from ..model.robot import ElasticRobot, Robot
from ..model.robot_builder import with_friction
from ..signals.preparation import prepare
from ..signals.recording import Recording
from ..signals.samples import SignalSettings
from ..signals.uniform_recording import MIN_TRAVEL, resample, UniformRecording
from ..timing.delay_compensation import prepare_without_delay, remove_delay
from .block_grams import block_edges
from .candidate_grams import all_columns, JUDGING, judging_band, judging_grams
from .candidate_search import CandidateSearch
from .candidates import Candidate, COMMON, ESTIMATORS, SPRING
from .cross_validation import cross_validate
from .selection import Selection

# Samples that are looked at: enough to tell candidates apart, whatever the recording's length.
LONGEST_LOOK = 60_000
# Cut-off where a delay is looked for [Hz]: above the motion of any arm, below most noise.
TIMING_CUTOFF = 10.0
# A model without gravity counts where it predicts so much better, by so many standard errors.
GRAVITY_FREE, SIGNIFICANT = 0.9, 2.0
# Samples that tell the direction of gravity.
GRAVITY_ROWS = 500


def select_model(
    recording: Recording, robot: Robot, settings: IdentificationSettings, warm_up: bool = False
) -> tuple[Robot, IdentificationSettings, Selection | None]:
    """
    Choose cut-off, rows, estimator and friction terms where the configuration leaves them open.

    Candidates are compared by the torque that they predict on blocks that they were not fitted to,
    on rows and in a band that none of them chooses. Of those within one standard error of the best
    the one with the fewest friction parameters is taken (Breiman, Friedman, Olshen and Stone 1984,
    section 3.4.3). The plain baseline is always among them.

    Parameters
    ----------
    recording : the excitation, or a part of it
    robot : the model; friction is open where `robot.open_friction` says so
    settings : zero cut-off, rows 'auto' and the method 'auto' are open
    warm_up : whether friction may fall along the recording, which is identified as a whole

    Returns
    -------
    The robot and the settings with all choices made, and how; None where nothing was open or the
    recording is too short to be cut

    """
    fixed = without_choice(settings)
    if not is_open(robot, settings):
        return robot, fixed, None
    try:
        part = _part(recording.select(robot.joints))
        even = resample(part, robot, settings.signals)
        robot, notes = _with_gravity_of_efforts(even, robot, settings.signals)
        even = _without_delay(part, even, robot, settings.signals)
        search = CandidateSearch(even, robot, settings)
    except (RobotIdError, np.linalg.LinAlgError):
        return robot, fixed, None  # `prepare` says what is wrong with the recording
    if not search.is_telling:
        return robot, fixed, None
    found = search.run(warm_up=warm_up)
    if _holds_wrong_gravity(even, robot, settings.signals, found.candidate):
        found = CandidateSearch(even, robot, settings).run(False, warm_up)
    selection = dataclasses.replace(found, notes=notes)
    chosen = selection.candidate
    signals = dataclasses.replace(
        settings.signals, cutoff=chosen.cutoff, band=chosen.band, rows=chosen.rows
    )
    settings = dataclasses.replace(settings, signals=signals, method=chosen.estimator)
    return with_friction(robot, chosen.friction), settings, selection


def _without_delay(
    part: Recording, even: UniformRecording, robot: Robot, settings: SignalSettings
) -> UniformRecording:
    """Remove the delay of the efforts, which friction and filters would make up for."""
    known = dataclasses.replace(settings, cutoff=settings.cutoff or TIMING_CUTOFF, rows='moving')
    try:
        found = prepare_without_delay(part, robot, base_parameters(robot), known)
    except RobotIdError:
        return even
    delays = found[2]
    return resample(remove_delay(part, delays), robot, settings) if any(delays.values()) else even


def _with_gravity_of_efforts(
    even: UniformRecording, robot: Robot, signals: SignalSettings
) -> tuple[Robot, tuple[str, ...]]:
    """Leave gravity out of the model where the efforts hold none; drivers may compensate it."""
    if robot.effort_kind != 'auto' or not robot.gravity.any():
        return robot, ()
    model = robot.model.copy()
    model.gravity.linear = np.zeros(3)
    weightless = dataclasses.replace(robot, model=model)
    band, edges = judging_band(even), block_edges(even)
    scores = []
    for each in (robot, weightless):
        columns = all_columns(each)
        grams = judging_grams(even, columns, signals, edges)
        # Friction of another shape leaves enough to hide the difference.
        each_friction = [
            cross_validate(
                Candidate(JUDGING * band, band, 'all', 'wls', (terms,) * robot.n),
                columns,
                grams,
                grams,
            )
            for terms in COMMON
        ]
        scores.append(min(each_friction, key=lambda score: score.residual))
    gain, error = scores[1].gain_over(scores[0])
    if gain <= SIGNIFICANT * error or scores[1].residual > GRAVITY_FREE * scores[0].residual:
        return robot, ()
    text = (
        f'the efforts hold no gravity: without it the model predicts within '
        f'{100 * scores[1].residual:.1f} %, with it within {100 * scores[0].residual:.1f} %; set '
        "robot.effort_kind to 'without_gravity' if the driver compensates it, else to "
        "'joint_torque'"
    )
    return dataclasses.replace(weightless, effort_kind='without_gravity'), (text,)


def _holds_wrong_gravity(
    even: UniformRecording, robot: Robot, signals: SignalSettings, chosen: Candidate
) -> bool:
    """Tell whether springs stand in for gravity in another direction, which explains more."""
    if not any(SPRING in terms for terms in chosen.friction):
        return False
    signals = dataclasses.replace(
        signals, cutoff=chosen.cutoff, band=chosen.band, rows=chosen.rows
    )
    samples = prepare(even.recording, robot, signals)
    moving = np.flatnonzero(samples.moving.any(axis=1))
    rows = moving[:: max(1, len(moving) // GRAVITY_ROWS)]
    return other_gravity(robot, samples, rows) is not None


def is_open(robot: Robot, settings: IdentificationSettings) -> bool:
    """Tell whether the configuration leaves anything to choose by cross-validation."""
    if isinstance(robot, ElasticRobot) or not settings.selection:
        return False
    signals = settings.signals
    if settings.method not in ('auto', *ESTIMATORS) or signals.averaging:
        return False
    by_signals = signals.cutoff == 0.0 or signals.rows == 'auto'
    by_robot = any(robot.open_friction) or robot.effort_kind == 'auto'
    return settings.method == 'auto' or by_signals or by_robot


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
