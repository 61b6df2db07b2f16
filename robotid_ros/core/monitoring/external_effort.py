"""
External efforts by the generalised momentum, with what dry friction may hide.

De Luca, Albu-Schäffer, Haddadin and Hirzinger 2006; Haddadin, De Luca and Albu-Schäffer 2017.
"""

from collections.abc import Iterable, Sequence
import dataclasses
import itertools
from typing import NamedTuple

import numpy as np

from ...exceptions import RecordingError
from ..arrays import Array, expand_per_joint, ReadOnlyArrays
from ..identification_settings import ContactSettings
from ..model.dynamics import RobotDynamics
from ..model.pinocchio_model import tool_frame
from ..signals.recording import Recording
from .motion_rows import FilteredStates

# Share of a drive's standstill speed from which on its direction counts: above the noise of a
# velocity that is differentiated from an encoder, below the speed at which a push moves a joint.
TURNING_SPEED = 0.25
# Static friction may exceed the modelled friction of the slowest motion by this share of it.
STATIC_EXCESS = 0.2
# External efforts that friction bears are taken to change within this time [s]: a hand's.
FORGOTTEN = 5.0
# After it stopped, what is filtered settles within this time [s]: four time constants of 40/s.
SETTLING_TIME = 0.1
# A longer gap starts anew [s]: at 5 rad/s² a straight line over it is wrong by 0.05 rad/s, which
# times gain and inertia is what a push of the hand gives.
MAX_GAP = 0.02
# Periods of the corner until a filter that started in motion has settled to 1e-4: e^(−π·3).
SETTLING_PERIODS = 3.0
# The velocity of a filtered position turns round within 1/ω of the true one.
RESOLUTION = 1.0 / (2.0 * np.pi)
MAX_SAMPLES = 50_000  # samples of a recording that are enough to see how large residuals are


class MomentumObserver:
    """
    Observes external efforts; no acceleration and no inverse of M(q) is needed.

    p = M(q) dq obeys dp/dt = Cᵀ dq − g − f + τ + τ_ext, with friction f. From sample to sample,
    the mean of τ_ext over the step h is (p⁺ − p)/h − mean(Cᵀ dq − g − f + τ), the latter by
    the trapezoidal rule, and r⁺ = a r + (1 − a) mean(τ_ext) with a = e^(−K h) follows it. That is
    dr/dt = K (τ_ext − r) exactly where τ_ext is constant over a step of any length.

    A drive at standstill, slower than that speed, has any friction between those of the slowest
    motions either way. r takes that of its last direction, whose change is known within a
    resolution [s] by the filter of the signals; how much more or less it may be passes the same
    filter. ConfigurationError: neither one gain K [1/s] nor one a joint.
    """

    def __init__(
        self, model: RobotDynamics, gain: Sequence[float], standstill: float,
        resolution: float = 0.0,
    ):  # fmt: skip
        n = model.robot.n
        self._model = model
        self._gain = expand_per_joint(gain, n, 'identification.contact.gain')
        self._standstill, self._resolution = standstill, resolution
        self._direction = np.zeros(len(model.drives))
        self._positive, self._negative = (np.maximum(s * model.drives, 0.0) for s in (1.0, -1.0))
        # External efforts r, and how far the true ones may lie below and above them.
        self.observed = np.zeros((3, n))
        self.inertia = np.zeros((n, n))  # M(q) of the last sample

    def start(self, motion: Array, effort: Array) -> None:
        """Start anew, with positions and two derivatives (3, n), and efforts (n,)."""
        self._momentum, self._rate = self._momentum_and_rate(motion, effort)
        self.observed = -self._rate
        self.observed[0] = 0.0

    def step(self, motion: Array, effort: Array, h: float) -> None:
        """Go on to what is measured h [s] later."""
        momentum, rate = self._momentum_and_rate(motion, effort)
        mean = -0.5 * (self._rate + rate)
        mean[0] += (momentum - self._momentum) / h
        self.observed = self.observed + (1.0 - np.exp(-self._gain * h)) * (mean - self.observed)
        self._momentum, self._rate = momentum, rate

    def _momentum_and_rate(self, motion: Array, effort: Array) -> tuple[Array, Array]:
        """Return p (n,), and (3, n) what changes it: as expected, less what friction may hide."""
        q, dq, _ = motion
        self.inertia = self._model.mass_matrix(q)
        friction, below, above = self._friction(motion)
        expected = self._model.momentum_rate(q, dq) + effort - friction
        return self.inertia @ dq, np.stack([expected, -below, -above])

    def _friction(self, motion: Array) -> tuple[Array, Array, Array]:
        """Return the expected friction, and how far it may lie below and above, (n,) each."""
        drives, (q, dq, ddq) = self._model.drives, motion
        speed, acceleration = drives @ dq, drives @ ddq
        own, load = np.abs(speed), self._model.transmitted(q, dq)
        turned = own > TURNING_SPEED * self._standstill
        self._direction[turned] = np.sign(speed[turned])
        slow = own < self._standstill + self._resolution * np.abs(acceleration)
        if not slow.any():
            none = np.zeros(len(dq))
            return self._model.drive_friction(q, speed, load) @ drives, none, none
        # Some drives may turn either way.
        ends = np.minimum(speed, -self._standstill), np.maximum(speed, self._standstill)
        low, high = (
            self._model.drive_friction(q, np.where(slow, end, speed), load) for end in ends
        )
        friction = 0.5 * (low + high + self._direction * (high - low))
        excess = 0.5 * STATIC_EXCESS * (high - low)
        below, above = friction - low + excess, high - friction + excess
        return (
            friction @ drives,
            below @ self._positive + above @ self._negative,
            above @ self._positive + below @ self._negative,
        )


class FrictionAtRest:
    """
    The standard deviation of what friction hides of external efforts.

    A joint that has just come to rest has the friction of its last direction. Later, friction may
    have taken what its effort has changed by, or cancel an external effort completely: nothing
    measured shows that. After a while all that it may be is evenly likely, with the variance
    width²/12. A joint slides with all of its `drives` (d, n), faster than a speed [rad/s or m/s].
    """

    def __init__(self, drives: Array, speed: float):
        self._drives, self._speed = drives, speed
        self._turned = (drives != 0.0).astype(float)
        self._rest = np.full(drives.shape[1], np.inf)
        self._effort = np.zeros(drives.shape[1])

    def sigma(self, dq: Array, effort: Array, width: Array, h: float) -> Array:
        """Take a step of h [s], of speeds, external efforts and widths of friction, (n,) each."""
        stuck = np.abs(self._drives @ dq) <= self._speed
        self._rest = np.where(stuck @ self._turned > 0.0, self._rest + h, 0.0)
        self._effort = np.where(self._rest < SETTLING_TIME, effort, self._effort)
        largest = width / np.sqrt(12.0)
        forgotten = 1.0 - np.exp(-self._rest / FORGOTTEN)
        return np.minimum(np.hypot(largest * forgotten, effort - self._effort), largest)


class ExternalEffort(NamedTuple):
    """External efforts at one time, (n,) each."""

    stamp: int  # of the joint states [ns]
    position: Array  # filtered [rad or m]
    speed: Array  # filtered [rad/s or m/s]
    inertia: Array  # ‖M_j(q)‖ of rows of the mass matrix, by which noise of the momentum grows
    effort: Array  # [N·m or N], positive in the direction of the joint
    below: Array  # how much less it may be by what is unknown of friction
    above: Array  # how much more
    hidden: Array  # standard deviation of that, by when and how the joint came to rest


class ExternalEffortEstimator:
    """
    Follows joint states by identified parameters; the same live and on recordings.

    Joints slower than `standstill` are at rest. ConfigurationError: the wrong number of gains.
    """

    def __init__(self, model: RobotDynamics, settings: ContactSettings, standstill: float):
        self._states = FilteredStates(model.robot.drive_gain, settings.cutoff, MAX_GAP)
        resolution = RESOLUTION / settings.cutoff
        self._observer = MomentumObserver(model, settings.gain, standstill, resolution)
        self._friction = FrictionAtRest(model.drives, TURNING_SPEED * standstill)
        self._settling_time = SETTLING_PERIODS / settings.cutoff
        self._running = False

    def take(self, stamp: int, position: Array, effort: Array) -> ExternalEffort | None:
        """
        Take in one sample as published: its stamp [ns], positions and efforts (n,).

        Returns None while the filter settles, without efforts, and for samples passed over.
        """
        states, observer = self._states, self._observer
        step = states.take(stamp, position, effort)
        if step is None:
            return None
        if not states.effort_reported or states.age < self._settling_time:
            self._running = False
            return None
        if self._running:
            observer.step(states.motion, states.effort, step)
        else:
            observer.start(states.motion, states.effort)
        self._running = bool(np.isfinite(observer.observed).all())
        if not self._running:
            return None
        (q, dq, _), inertia = states.motion, np.sqrt((observer.inertia**2).sum(axis=1))
        external, below, above = observer.observed
        hidden = self._friction.sigma(dq, external, below + above, step)
        return ExternalEffort(stamp, q, dq, inertia, external, below, above, hidden)


def external_efforts(
    recordings: Iterable[Recording], estimator: ExternalEffortEstimator
) -> ExternalEffort:
    """
    Observe external efforts along recordings, as they would have been live.

    Recordings have the robot's joints in its order; of long ones the beginning is used. The arrays
    are of N samples: stamps (N,), others (N, n); N may be 0.
    """
    samples = (zip(each.time, each.position, each.effort, strict=True) for each in recordings)
    first = itertools.islice(itertools.chain.from_iterable(samples), MAX_SAMPLES)
    found = (estimator.take(round(1e9 * t), *state) for t, *state in first)
    rows = [row for row in found if row is not None]
    columns = zip(*rows, strict=True) if rows else ([] for _ in ExternalEffort._fields)
    return ExternalEffort(*map(np.array, columns))  # type: ignore[arg-type]


# Rows count for the residual's size where friction is known to this share of what it is at rest.
KNOWN = 0.01
ROUNDS = 5  # rounds of reweighting: the variances of squares are those of the fit before
# Least standard deviation over the joint's largest residual: rounding, and no model is better.
LEAST = 0.02
FEWEST = 100  # fewest rows from which something can be learnt
# A contact ends when all efforts stay for so long [s] below such a share of their thresholds.
RELEASE_TIME, RELEASE_SHARE = 0.2, 0.5


@dataclasses.dataclass(frozen=True)
class ContactThresholds(ReadOnlyArrays):
    """External efforts beyond which something touches the robot."""

    # (3, n) of the residual: constant, per square of the joint's speed, and per square of its
    # inertia ‖M_j(q)‖, which is the noise of the encoders.
    variance: Array
    factor: Array  # (n,) threshold over standard deviation

    def sigma(self, speed: Array, inertia: Array) -> Array:
        """Return the standard deviation of the residual at speeds and inertias (…, n)."""
        a, b, c = self.variance
        return np.asarray(np.sqrt(a + b * speed**2 + c * inertia**2))

    def at(self, speed: Array, inertia: Array) -> Array:
        """Return the thresholds there, where friction is known [N·m or N]."""
        return self.factor * self.sigma(speed, inertia)


def contact_thresholds(seen: ExternalEffort, false_alarms: float) -> ContactThresholds:
    """
    Choose thresholds by what the observer saw of a motion without contact.

    σ² = a + b dq² + c ‖M_j(q)‖² of each joint's residual. A Gaussian residual that crosses zero
    upwards ν times a second leaves ±k σ at the rate 2 ν exp(−k²/2) (Rice 1945); from that k. Where
    the residual came further than a Gaussian one does once in the same time, k grows alike. False
    alarms are per hour, of all joints together. RecordingError: too few samples.
    """
    if len(seen.stamp) < FEWEST:  # type: ignore[arg-type]
        raise RecordingError('the recording is too short for thresholds of contacts')
    residual, hidden = seen.effort, seen.below + seen.above
    known = hidden <= KNOWN * hidden.max(axis=0)
    known[:, known.sum(axis=0) < FEWEST] = True
    columns = np.stack([np.ones_like(residual), seen.speed**2, seen.inertia**2], axis=-1)
    n = residual.shape[1]
    rows = ((columns[known[:, j], j], residual[known[:, j], j] ** 2) for j in range(n))
    thresholds = ContactThresholds(np.transpose([_variance(*own) for own in rows]), np.ones(n))
    duration = 1e-9 * float(np.ptp(seen.stamp))
    positive = residual > residual.mean(axis=0)
    rate = np.maximum((positive[1:] & ~positive[:-1]).sum(axis=0), 1.0) / duration
    wanted, expected = (
        np.sqrt(2.0 * np.log(np.maximum(crossings, 2.0)))
        for crossings in (7200.0 * n * rate / false_alarms, 2.0 * rate * duration)
    )
    beyond = np.maximum(residual - seen.below, -(residual + seen.above))
    largest = (beyond / thresholds.sigma(seen.speed, seen.inertia)).max(axis=0)
    return dataclasses.replace(thresholds, factor=wanted * np.maximum(largest / expected, 1.0))


def _variance(columns: Array, square: Array) -> Array:
    """Return coefficients ≥ 0 (c,) of columns (N, c) that explain squares (N,) of a residual."""
    from scipy.optimize import nnls

    scale = np.maximum(columns.max(axis=0), 1e-300)
    unit, least = columns / scale, max(LEAST**2 * float(square.max()), 1e-24)
    weights = np.ones_like(square)
    for _ in range(ROUNDS):
        found = nnls(unit * weights[:, None], square * weights)[0]
        weights = 1.0 / np.maximum(unit @ found, least)
    found[0] = max(found[0], least)
    return np.asarray(found / scale)


class Contact(NamedTuple):
    """The last contact."""

    joint: str  # where the external effort was largest beside its threshold
    stamp: int  # when it was beyond it first [ns]
    effort: float  # of this joint then [N·m or N]
    threshold: float
    number: int  # how many there were until then
    present: bool  # whether it goes on


class ContactDetector:
    """
    Compares external efforts with thresholds, one sample after another.

    Thresholds are those where friction is known; what it may hide is added to them.
    """

    def __init__(self, joints: Sequence[str], thresholds: ContactThresholds):
        self._joints, self._thresholds = joints, thresholds
        self._quiet_since = self._last = 0
        # Of the last sample, in the direction of its external effort [N·m or N].
        self.threshold: Array = np.full(len(joints), np.inf)
        self.contact: Contact | None = None

    def take(self, seen: ExternalEffort) -> bool:
        """Take in one sample; return whether a contact began or ended."""
        hidden = np.where(seen.effort > 0.0, seen.below, seen.above)
        self.threshold = self._thresholds.at(seen.speed, seen.inertia) + hidden
        share = np.abs(seen.effort) / self.threshold
        j, before = int(np.argmax(share)), self.contact
        # After a gap the observer begins at zero: what was not seen was not quiet.
        if share[j] > RELEASE_SHARE or abs(seen.stamp - self._last) > MAX_GAP * 1e9:
            self._quiet_since = seen.stamp
        self._last = seen.stamp
        if before is not None and before.present:
            if abs(seen.stamp - self._quiet_since) * 1e-9 > RELEASE_TIME:
                self.contact = before._replace(present=False)
        elif share[j] > 1.0:
            figures = float(seen.effort[j]), float(self.threshold[j])
            number = 1 if before is None else before.number + 1
            self.contact = Contact(self._joints[j], seen.stamp, *figures, number, True)
        return self.contact is not before


class ExternalWrench:
    """
    Estimates the wrench that acts on the robot at a frame.

    τ_ext = Jᵀ w, weighted by what is unknown of each joint's effort and regularised by the
    expected size of wrenches, force [N] and torque [N·m]: the mean of w for Gaussian τ_ext and w.
    What a posture or the number of joints leaves open stays near zero, with a σ near the expected
    size. Without a name the frame is the last body. UnknownNameError: there is no such.
    """

    def __init__(self, model: RobotDynamics, frame: str, force: float, torque: float):
        self._model, self._frame = model, tool_frame(model.robot.model, frame)
        self.frame = str(model.robot.model.frames[self._frame].name)
        self._information = np.diag(np.repeat([force**-2, torque**-2], 3))

    def estimate(self, q: Array, effort: Array, sigma: Array) -> tuple[Array, Array]:
        """
        Estimate the wrench, of external efforts and their standard deviation (n,) [N·m or N].

        Returns force and torque at the origin, in axes of the frame, and their σ, (6,) [N, N·m].
        """
        J = self._model.jacobian(q, self._frame) / sigma
        covariance = np.linalg.inv(J @ J.T + self._information)
        return covariance @ (J @ (effort / sigma)), np.sqrt(np.diag(covariance))


def effort_sigma(seen: ExternalEffort, thresholds: ContactThresholds) -> Array:
    """Return the standard deviation of external efforts (n,), residual and friction."""
    return np.hypot(thresholds.sigma(seen.speed, seen.inertia), seen.hidden)
