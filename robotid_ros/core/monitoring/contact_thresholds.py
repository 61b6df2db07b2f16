"""How large external efforts are without a contact: thresholds from a validation motion."""

import dataclasses

import numpy as np

from ...exceptions import RecordingError
from ..arrays import Array, ReadOnlyArrays
from .external_effort import ExternalEffort

# Rows count for the size of the residual where friction is known to within this share of what it
# is not known by at rest.
KNOWN = 0.01
# Rounds of reweighting: the variances of squares are those of the fit before.
ROUNDS = 5
# Least standard deviation over the joint's largest residual: rounding, and no model is better.
LEAST = 0.02
# Fewest rows from which something can be learnt.
FEWEST = 100


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
    the residual came further than a Gaussian one does once in the same time, k grows alike.

    Parameters
    ----------
    seen : along the motion, N samples
    false_alarms : per hour, of all joints together

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
    rate = np.maximum(_upcrossings(residual), 1.0) / duration
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


def _upcrossings(residual: Array) -> Array:
    """Return how often each column (N, n) crosses its mean upwards, (n,)."""
    positive = residual > residual.mean(axis=0)
    return np.asarray((positive[1:] & ~positive[:-1]).sum(axis=0))


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
