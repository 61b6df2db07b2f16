"""From joint states, one after another, to external efforts."""

from collections.abc import Iterable, Iterator
import itertools
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..model.robot_dynamics import InverseDynamics
from ..signals.recording import Recording
from .contact_settings import ContactSettings
from .filtered_states import FilteredStates
from .friction_at_rest import FrictionAtRest
from .momentum_observer import MomentumObserver, Motion, TURNING_SPEED

# A longer gap starts anew [s]: at 5 rad/s² a straight line over it is wrong by 0.05 rad/s, which
# times gain and inertia is what a push of the hand gives.
MAX_GAP = 0.02
# Periods of the corner until a filter that started in motion has settled to 1e-4: e^(−π·3).
SETTLING_PERIODS = 3.0
# The velocity of a filtered position turns round within 1/ω of the true one.
RESOLUTION = 1.0 / (2.0 * np.pi)
# Samples of a recording that are enough to see how large residuals are.
MAX_SAMPLES = 50_000


class ExternalEffort(NamedTuple):
    """
    External efforts at one time.

    Attributes
    ----------
    stamp : of the joint states [ns]
    position, speed : (n,) filtered [rad or m, rad/s or m/s]
    inertia : (n,) ‖M_j(q)‖ of each row of the mass matrix, by which noise of the momentum grows
    effort : (n,) [N·m or N], positive in the direction of the joint
    below, above : (n,) how much less and more it may be by what is unknown of friction
    hidden : (n,) standard deviation of that, by when and how the joint came to rest

    """

    stamp: int
    position: Array
    speed: Array
    inertia: Array
    effort: Array
    below: Array
    above: Array
    hidden: Array


class ExternalEffortEstimator:
    """
    Follows joint states; the same live and on recordings.

    Parameters
    ----------
    model : with the identified parameters
    settings : gain and cut-off
    standstill : speed below which a joint is at standstill [rad/s or m/s]

    Raises
    ------
    ConfigurationError : the wrong number of gains

    """

    def __init__(self, model: InverseDynamics, settings: ContactSettings, standstill: float):
        self._states = FilteredStates(model.robot.drive_gain, settings.cutoff, MAX_GAP)
        self._observer = MomentumObserver(
            model, settings.gain, standstill, RESOLUTION / settings.cutoff
        )
        self._friction = FrictionAtRest(model.drives, TURNING_SPEED * standstill)
        self._settling_time = SETTLING_PERIODS / settings.cutoff
        self._running = False

    def take(self, stamp: int, position: Array, effort: Array) -> ExternalEffort | None:
        """
        Take in one sample as published.

        Parameters
        ----------
        stamp : [ns]
        position, effort : (n,)

        Returns
        -------
        External efforts; None while the filter settles, where no efforts are reported, and for
        samples that are passed over.

        """
        step = self._states.take(stamp, position, effort)
        if step is None:
            return None
        if not self._states.effort_reported or self._states.age < self._settling_time:
            self._running = False
            return None
        q, dq, ddq = self._states.motion
        motion = Motion(q, dq, ddq, self._states.effort)
        if self._running:
            self._observer.step(motion, step)
        else:
            self._observer.start(motion)
        observed = self._observer.observed
        self._running = bool(np.isfinite(observed).all())
        if not self._running:
            return None
        inertia = np.sqrt((self._observer.inertia**2).sum(axis=1))
        effort, below, above = observed
        hidden = self._friction.sigma(dq, effort, below + above, step)
        return ExternalEffort(stamp, q, dq, inertia, effort, below, above, hidden)


def external_efforts(
    recordings: Iterable[Recording], estimator: ExternalEffortEstimator
) -> ExternalEffort:
    """
    Observe external efforts along recordings, as they would have been live.

    Parameters
    ----------
    recordings : with the robot's joints, in its order; of long ones the beginning is used
    estimator : new

    Returns
    -------
    Arrays of N samples: stamps (N,), others (N, n); N may be 0

    """
    found = (estimator.take(*sample) for sample in _samples(recordings))
    rows = [row for row in itertools.islice(found, MAX_SAMPLES) if row is not None]
    columns = zip(*rows, strict=True) if rows else ([] for _ in ExternalEffort._fields)
    return ExternalEffort(*map(np.array, columns))  # type: ignore[arg-type]


def _samples(recordings: Iterable[Recording]) -> Iterator[tuple[int, Array, Array]]:
    for recording in recordings:
        stamps = np.round(recording.time * 1e9).astype(np.int64).tolist()
        yield from zip(stamps, recording.position, recording.effort, strict=True)
