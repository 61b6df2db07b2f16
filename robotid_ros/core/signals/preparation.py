"""From a recording to samples: repaired, filtered, differentiated, with the rows to use."""

import numpy as np
import numpy.typing as npt

from ...exceptions import StandstillError
from ..arrays import all_within, Array
from ..model.robot import Robot
from .filters import central_differences, lowpass, motion_bandwidth
from .invalid_samples import position_steps
from .recording import Recording
from .resampling import resample, UniformRecording
from .samples import Samples, SignalSettings

EDGE_PERIODS = 3.0  # of the lowest cut-off that a filter's transient takes at the ends
# Those after which it is below 3 % (the slowest pole of the positions' filter falls by e^-2.4 a
# period): after one period it is 9 %, which turned the sign of a slow joint's speed and biased a
# parameter of arm3 by 0.3 σ of 1 % noise.
INNER_PERIODS = 1.5
MIN_MOVING_SHARE = 0.01  # a joint that moves for less of the time is at rest
# Standstill is a share of an axis' high speed where that is less (a linear axis never passes a
# tenth of a metre in a second), but not far below what encoders resolve.
FASTEST, SLOW_SHARE, SLOW_FACTOR = 0.99, 0.05, 0.1
# The samples of a kept row to either side that standstill must not lie in, this part of them all.
# Half of them cost real logs up to a per cent, none left simulated ones, whose friction is as
# sharp as its model, residuals twice as large (benchmarks/foreign.py, the demos).
CLEAR = 3
ROUNDING = 1e-6  # relative: a rate that stamps give is never exact

Mask = npt.NDArray[np.bool_]
# Automatic cut-off over the motion's bandwidth: lower distorts accelerations, higher lets noise of
# the encoders pass; and the least one [Hz], for recordings of a slow motion.
CUTOFF_FACTOR, MIN_CUTOFF = 10.0, 5.0
# A position is coarse where one of its steps within a period of the cut-off is so large a share of
# its mean speed.
COARSE = 0.1
MAX_CUTOFF_SHARE = 0.4  # of a rate: filters need room below Nyquist's half
MIN_MEASURED_SHARE = 0.5  # less away from gaps, and these are why no row is left


def valid_rows(
    even: UniformRecording,
    robot: Robot,
    dq: Array,
    band: float,
    decimation: int,
    settings: SignalSettings,
) -> Mask:
    """Return the rows (N, n) to use of a recording filtered to a band [Hz] and decimated."""
    turning = _is_turning(dq, settings.standstill)
    for coupling in robot.couplings:  # a joint moves where every motor does that it shares
        shared = _is_turning(dq @ coupling.ratios[:, None], settings.standstill)
        turning[:, coupling.ratios != 0.0] &= shared
    # All that were measured, of the joints that move: noise of one that never does has a sign too.
    every = measured_rows(even, band) & (turning.mean(axis=0) > MIN_MOVING_SHARE)
    if settings.rows == 'every':
        return every
    # Measured, moving, away from ends, gaps and clipping.
    edge = _edge_samples(even, band)
    moving = away_from_gaps(even, band)[:, None] & ~even.clipped & turning
    # Only a decimation mixes more than neighbours.
    moving = all_within(moving, int(np.ceil(settings.guard * decimation)) if decimation > 1 else 1)
    moving[:edge] = moving[len(moving) - edge :] = False
    if settings.rows == 'moving':
        return moving
    # Of friction that jumps when a joint turns round, those that no standstill lies in: the
    # samples that weigh most in a kept row, the middle two thirds of those that it stands for,
    # are to have the same sign.
    steps = np.array([any(term.has_step for term in terms) for terms in robot.friction])
    clear = np.where(steps, every & all_within(turning, decimation // CLEAR), every)
    if settings.rows == 'all':
        return clear
    # A friction's shape at low speed shows in the slow rows alone: without those beside standstill
    # the variance of its parameters is some twenty to two hundred times as large (arm3).
    shaped = np.array(
        [any(t.constants and not t.kind.of_position for t in terms) for terms in robot.friction]
    )
    # Hardly any transient of the recording's ends reaches the inner rows.
    short, row = int(INNER_PERIODS * even.rate / band), np.arange(even.measured.size)
    inner = (row >= short) & (row < row.size - short)
    return np.where(shaped, clear & inner[:, None], moving)


def away_from_gaps(even: UniformRecording, band: float) -> Mask:
    """Return the rows (N,) that no transient of a filter for this band [Hz] reaches."""
    return all_within(even.measured, _edge_samples(even, band))


def _edge_samples(even: UniformRecording, band: float) -> int:
    return int(np.ceil(EDGE_PERIODS * even.rate / band - ROUNDING))


def measured_rows(even: UniformRecording, band: float) -> Mask:
    """Return the rows (N, n) that hold what was measured, after a filter for this band [Hz]."""
    edge = int(even.rate / band)
    good = even.measured[:, None] & ~even.clipped
    good[:1] = good[-1:] = False
    return all_within(good, edge)


def _is_turning(dq: Array, standstill: float) -> Mask:
    """Return where joints are faster than standstill, which is less for a slow axis, (N, n)."""
    fastest = np.quantile(np.abs(dq), FASTEST, axis=0)
    least = np.clip(SLOW_SHARE * fastest, SLOW_FACTOR * standstill, standstill)
    return np.asarray(np.abs(dq) >= np.where(fastest > standstill, least, standstill))


def prepare(recording: Recording, robot: Robot, settings: SignalSettings) -> Samples:
    """
    Turn a recording into samples (DIDIM section II).

    The position is low-passed without phase, its derivatives are central differences. The torque
    stays as it is: it is filtered together with the columns of W (parallel decimation). Raises
    RecordingError where the recording cannot be used, UnknownNameError for a joint that it lacks.
    """
    recording = recording.select(robot.joints)
    even = resample(recording, robot, settings)
    position, steps = even.recording.position, position_steps(recording.position)
    # Noise larger than steps lets these average out, and counts as speed here.
    speed = even.rate * np.mean(np.abs(np.diff(position, axis=0)), axis=0)
    cutoff = settings.cutoff or max(
        MIN_CUTOFF, CUTOFF_FACTOR * motion_bandwidth(position, even.rate)
    )
    cutoff = min(cutoff, MAX_CUTOFF_SHARE * even.rate)
    hidden = np.where(steps * cutoff > COARSE * speed, steps * cutoff, 0.0)
    band = min(settings.band or cutoff, cutoff)
    # Whose filter passes what is below the band.
    decimation = settings.decimation or max(1, int(MAX_CUTOFF_SHARE * even.rate / band + ROUNDING))
    q = lowpass(position, cutoff, even.rate, settings.order)
    dq = central_differences(q, even.rate)
    ddq = central_differences(dq, even.rate)
    valid = valid_rows(even, robot, dq, band, decimation, settings)
    if not valid.any():
        where, share = even.recording.source or 'the recording', away_from_gaps(even, band).mean()
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
    return Samples(
        robot.joints,
        even.recording.time,
        q,
        dq,
        ddq,
        robot.torques(even.recording.effort),
        even.rate,
        valid,
        even.noise,
        decimation,
        notes=even.notes,
        cutoff=cutoff,
        measured=np.asarray(measured_rows(even, band).any(axis=1)),
        hidden=hidden,
    )
