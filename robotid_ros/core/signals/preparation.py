"""From a recording to samples: repaired, filtered, differentiated, with the rows to use."""

import numpy as np

from ...exceptions import StandstillError
from ..arrays import Array
from ..model.friction import FrictionTerm
from ..model.robot import Robot
from .analytic_derivatives import fit_and_differentiate
from .filters import lowpass, motion_bandwidth, with_derivatives
from .periodic import extend_periodically
from .recording import Recording
from .samples import Samples, SignalSettings
from .uniform_recording import resample, UniformRecording
from .usable_rows import (
    away_from_ends,
    away_from_gaps,
    EDGE_PERIODS,
    measured_rows,
    Rows,
    usable_rows,
    UsableRows,
)

# Automatic cut-off over the motion's bandwidth: lower distorts accelerations, higher lets noise of
# the encoders pass; and the least one [Hz], for recordings of a slow motion.
CUTOFF_FACTOR, MIN_CUTOFF = 10.0, 5.0
# Highest share of a rate that a cut-off may be: filters need room below Nyquist's half.
MAX_CUTOFF_SHARE = 0.4
# Where less of a recording lies away from gaps, these are why no row is left.
MIN_MEASURED_SHARE = 0.5
# Relative: a rate that stamps give is never exact.
ROUNDING = 1e-6


def prepare(recording: Recording, robot: Robot, settings: SignalSettings) -> Samples:
    """
    Turn a recording into samples (DIDIM section II).

    The position is low-passed without phase, its derivatives are central differences. The torque
    stays as it is: it is filtered together with the columns of W (parallel decimation).

    Parameters
    ----------
    recording : with the robot's joints, in any order
    robot : gives joints and drive gains
    settings : zero means: chosen from the data

    Raises
    ------
    RecordingError : the recording cannot be used
    UnknownNameError : a joint that was not recorded

    """
    even = resample(recording.select(robot.joints), robot, settings)
    cutoff, band = _cutoff_and_band(even, settings)
    decimation = settings.decimation or decimation_of(even.rate, band)
    q, dq, ddq = _differentiate(even, cutoff, settings)
    usable = usable_rows(even, robot, dq, band, decimation, settings)
    valid = _chosen_rows(usable, away_from_ends(even, band), robot, settings)
    if not valid.any():
        _refuse(even, band, settings)
    return Samples(
        robot.joints,
        even.recording.time,
        q,
        dq,
        ddq,
        even.recording.effort * robot.drive_gain,
        even.rate,
        valid,
        even.noise,
        decimation,
        notes=even.notes,
        cutoff=cutoff,
        measured=np.asarray(measured_rows(even, band).any(axis=1)),
        temperature=even.recording.temperature,
    )


def _cutoff_and_band(even: UniformRecording, settings: SignalSettings) -> tuple[float, float]:
    cutoff = settings.cutoff or max(
        MIN_CUTOFF, CUTOFF_FACTOR * motion_bandwidth(even.recording.position, even.rate)
    )
    cutoff = min(cutoff, MAX_CUTOFF_SHARE * even.rate)
    return cutoff, min(settings.band or cutoff, cutoff)


def decimation_of(rate: float, band: float) -> int:
    """Return the decimation whose filter passes what is below `band` [Hz]."""
    return max(1, int(MAX_CUTOFF_SHARE * rate / band + ROUNDING))


def _differentiate(
    even: UniformRecording, cutoff: float, settings: SignalSettings
) -> tuple[Array, Array, Array]:
    """Return positions, velocities, accelerations (N, n)."""
    position = even.recording.position
    if even.trajectory is not None:
        one = fit_and_differentiate(position[even.measured], even.rate, even.trajectory, cutoff)
        q, dq, ddq = map(extend_periodically, one)
        return q, dq, ddq
    return with_derivatives(lowpass(position, cutoff, even.rate, settings.order), even.rate)


def _chosen_rows(usable: UsableRows, inner: Rows, robot: Robot, settings: SignalSettings) -> Rows:
    if settings.rows == 'moving':
        return usable.moving
    if settings.rows == 'every':
        return usable.every
    steps = np.array([any(term.has_step for term in terms) for terms in robot.friction])
    every = np.where(steps, usable.clear, usable.every)
    if settings.rows == 'all':
        return every
    # A friction's shape at low speed shows in the slow rows alone: without those beside standstill
    # the variance of its parameters is some twenty to two hundred times as large (arm3).
    shaped = np.array([any(_has_shape(term) for term in terms) for terms in robot.friction])
    return np.where(shaped, every & inner[:, None], usable.moving)


def _has_shape(term: FrictionTerm) -> bool:
    """Tell whether shape constants say how a term changes with the speed."""
    return bool(term.constants) and not (term.kind.of_position or term.kind.by_temperature)


def _refuse(even: UniformRecording, band: float, settings: SignalSettings) -> None:
    """Raise an error that says why no row is left."""
    where = even.recording.source or 'the recording'
    share = away_from_gaps(even, band).mean()
    if share < MIN_MEASURED_SHARE:
        raise StandstillError(
            f'messages of {where} are missing: only {100 * share:.0f} % of it lie '
            f'{EDGE_PERIODS / band:.2g} s or more away from a gap; record without losses, or '
            'raise signals.max_gap'
        )
    raise StandstillError(
        f'no joint of {where} moves faster than '
        f'{settings.standstill:g} rad/s: record a motion, or lower signals.standstill'
    )
