"""When something touches the robot, at which joint it shows, and which wrench explains it."""

from collections.abc import Sequence
import dataclasses

import numpy as np

from ...exceptions import RecordingError
from ..arrays import Array, ReadOnlyArrays
from ..excitation.collision_bodies import tool_frame
from ..model.dynamics import RobotDynamics
from .external_effort import ExternalEffort, MAX_GAP

# Rows count for the size of the residual where friction is known to within this share of what it
# is not known by at rest.
KNOWN = 0.01
# Rounds of reweighting: the variances of squares are those of the fit before.
ROUNDS = 5
# Least standard deviation over the joint's largest residual: rounding, and no model is better.
LEAST = 0.02
# Fewest rows from which something can be learnt.
FEWEST = 100
# A contact ends when all efforts have stayed for so long [s] below so large a share of their
# thresholds: one that goes on is told once.
RELEASE_TIME, RELEASE_SHARE = 0.2, 0.5


@dataclasses.dataclass(frozen=True)
class ContactThresholds(ReadOnlyArrays):
    """
    External efforts beyond which something touches the robot.

    Attributes
    ----------
    variance : (3, n) of the residual: constant, per square of the joint's speed, and per square of
        its inertia ‖M_j(q)‖, which is the noise of the encoders
    factor : (n,) threshold over standard deviation
    lowest, highest : (n,) thresholds on the motion that they are from [N·m or N]
    false_alarms : per hour, of all joints together

    """

    variance: Array
    factor: Array
    lowest: Array
    highest: Array
    false_alarms: float

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
    alarms are per hour, of all joints together.

    Raises
    ------
    RecordingError : too few samples

    """
    if len(seen.stamp) < FEWEST:  # type: ignore[arg-type]
        raise RecordingError(
            'efforts were recorded for too short a time to learn what they are without a contact'
        )
    residual, hidden = seen.effort, seen.below + seen.above
    known = hidden <= KNOWN * hidden.max(axis=0)
    known[:, known.sum(axis=0) < FEWEST] = True
    columns = np.stack([np.ones_like(residual), seen.speed**2, seen.inertia**2], axis=-1)
    rows = zip(*(x.swapaxes(0, 1) for x in (columns, residual, known)), strict=True)
    variance = np.transpose([_variance(x[use], r[use] ** 2) for x, r, use in rows])
    sigma = np.sqrt(np.einsum('tjc,cj->tj', columns, variance))
    duration = 1e-9 * float(np.ptp(seen.stamp))
    positive = residual > residual.mean(axis=0)
    upcrossings = (positive[1:] & ~positive[:-1]).sum(axis=0)
    rate = np.maximum(upcrossings, 1.0) / duration
    n = residual.shape[1]
    wanted = np.sqrt(2.0 * np.log(np.maximum(7200.0 * n * rate / false_alarms, 2.0)))
    expected = np.sqrt(2.0 * np.log(np.maximum(2.0 * rate * duration, 2.0)))
    beyond = np.maximum(residual - seen.below, -(residual + seen.above))
    largest = (beyond / sigma).max(axis=0)
    factor = wanted * np.maximum(largest / expected, 1.0)
    limits = factor * sigma
    return ContactThresholds(
        variance, factor, limits.min(axis=0), limits.max(axis=0), false_alarms
    )


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


@dataclasses.dataclass(frozen=True)
class Contact:
    """
    The last contact.

    Attributes
    ----------
    joint : where the external effort was largest beside its threshold
    stamp : when it was beyond it first [ns]
    effort, threshold : of this joint then [N·m or N]
    number : how many there were until then
    present : whether it goes on

    """

    joint: str
    stamp: int
    effort: float
    threshold: float
    number: int
    present: bool


class ContactDetector:
    """
    Compares external efforts with thresholds, one sample after another.

    Parameters
    ----------
    thresholds : where friction is known; what it may hide is added to them

    Attributes
    ----------
    threshold : (n,) of the last sample, in the direction of its external effort [N·m or N]
    contact : the last one, or None

    """

    def __init__(self, joints: Sequence[str], thresholds: ContactThresholds):
        self._joints, self._thresholds = joints, thresholds
        self._quiet_since = self._last = 0
        self.threshold: Array = np.full(len(joints), np.inf)
        self.contact: Contact | None = None

    def take(self, seen: ExternalEffort) -> bool:
        """Take in one sample; return whether a contact began or ended."""
        hidden = np.where(seen.effort > 0.0, seen.below, seen.above)
        self.threshold = self._thresholds.at(seen.speed, seen.inertia) + hidden
        share = np.abs(seen.effort) / self.threshold
        joint = int(np.argmax(share))
        before = self.contact
        # After a gap the observer begins at zero: what was not seen was not quiet.
        if share[joint] > RELEASE_SHARE or abs(seen.stamp - self._last) > MAX_GAP * 1e9:
            self._quiet_since = seen.stamp
        self._last = seen.stamp
        if before is not None and before.present:
            if abs(seen.stamp - self._quiet_since) * 1e-9 > RELEASE_TIME:
                self.contact = dataclasses.replace(before, present=False)
        elif share[joint] > 1.0:
            effort, threshold = float(seen.effort[joint]), float(self.threshold[joint])
            number = 1 + (before.number if before is not None else 0)
            name = self._joints[joint]
            self.contact = Contact(name, seen.stamp, effort, threshold, number, True)
        return self.contact is not before


class ExternalWrench:
    """
    Estimates the wrench that acts on the robot at a frame.

    τ_ext = Jᵀ w, weighted by what is unknown of each joint's effort and regularised by the size
    that wrenches are expected to have: the mean of w for Gaussian τ_ext and w. What a posture or
    the number of joints leaves open stays near zero, with a σ near the expected size.

    Parameters
    ----------
    model : with the robot's kinematics
    frame : its name; empty: the last body
    force, torque : expected size of the wrench [N, N·m]

    Raises
    ------
    UnknownNameError : the robot has no such frame

    """

    def __init__(self, model: RobotDynamics, frame: str, force: float, torque: float):
        self._model, self._frame = model, tool_frame(model.robot.model, frame)
        self.frame = str(model.robot.model.frames[self._frame].name)
        self._information = np.diag(np.repeat([force**-2, torque**-2], 3))

    def estimate(self, q: Array, effort: Array, sigma: Array) -> tuple[Array, Array]:
        """
        Estimate the wrench, of external efforts and their standard deviation (n,) [N·m or N].

        Returns force and torque (6,) in the axes of the frame, at its origin, and their standard
        deviations (6,) [N, N·m].
        """
        J = self._model.jacobian(q, self._frame) / sigma
        covariance = np.linalg.inv(J @ J.T + self._information)
        return covariance @ (J @ (effort / sigma)), np.sqrt(np.diag(covariance))


def effort_sigma(seen: ExternalEffort, thresholds: ContactThresholds) -> Array:
    """Return the standard deviation of external efforts (n,), residual and friction."""
    return np.hypot(thresholds.sigma(seen.speed, seen.inertia), seen.hidden)
