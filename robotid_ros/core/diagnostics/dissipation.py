"""Dissipation: friction that the fit found brakes, at every speed that the recording holds."""

import numpy as np

from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding
from ..model.friction import OF_POSITION, TERMS
from ..signals.samples import STANDSTILL
from .torque_parts import FittedModel, rms

# Bins of one direction by speed, and least rows of one: presliding stores energy and gives it
# back, so that only averages have to brake.
BINS, LEAST_ROWS = 20, 20
# A mean torque that pushes counts if it is so many σ below zero, and so large a share of the
# joint's effort: a joint without friction has either sign by chance.
SIGNIFICANT, LEAST_SHARE = 3.0, 1e-3
# Friction but for what position determines, and the offset: neither takes energy in the mean.
FRICTION = frozenset(s for kind in TERMS.values() for s in kind.symbols) - OF_POSITION - {'off'}


def dissipation_warnings(fitted: FittedModel, covariance: Array) -> list[Finding]:
    """
    Name the joints whose friction gives energy, and the speeds at which it does.

    Parameters
    ----------
    fitted : the model, what is shrunk included
    covariance : (b, b) of its base parameters

    """
    (robot, base, systems, value), found = fitted, list[Finding]()
    systems = [s for s in systems if s.dq is not None and s.W.shape[2] == len(base.columns)]
    for j, joint in enumerate(robot.joints):
        parameters = [robot.parameters[k] for k in base.columns]
        own = np.array([p.joint == joint and p.symbol in FRICTION for p in parameters])
        if not systems or not own.any() or len(value) != len(own):
            continue
        W = np.concatenate([s.W[j][s.valid[j]][:, own] for s in systems])
        dq = np.concatenate([np.asarray(s.dq)[s.valid[j], j] for s in systems])
        size = rms(np.concatenate([s.rows(j)[1] for s in systems]))
        ranges = _pushed(W, dq, value[own], covariance[np.ix_(own, own)], LEAST_SHARE * size)
        if ranges:
            unit, length = ('N', 'm') if robot.prismatic[j] else ('N·m', 'rad')
            start, stop, torque, sigma = max(ranges, key=lambda each: -each[2])
            low, high = min(r[0] for r in ranges), max(r[1] for r in ranges)
            found.append(
                finding(
                    'no_dissipation', [joint],
                    low=low, high=high, start=start, stop=stop, torque=-torque, sigma=sigma,
                    unit=unit, length=length,
                )
            )  # fmt: skip
    return found


def _pushed(
    W: Array, dq: Array, value: Array, covariance: Array, least: float
) -> list[tuple[float, float, float, float]]:
    """Return speeds from and to, mean torque against the motion and its σ where that pushes."""
    result = []
    for sign in (-1.0, 1.0):
        rows = np.flatnonzero(sign * dq >= STANDSTILL)
        order = rows[np.argsort(np.abs(dq[rows]))]
        count = min(BINS, len(order) // LEAST_ROWS)
        for part in np.array_split(order, count) if count else []:
            mean = sign * W[part].mean(axis=0)
            torque, sigma = float(mean @ value), float(np.sqrt(max(mean @ covariance @ mean, 0.0)))
            if torque < -max(SIGNIFICANT * sigma, least):
                speeds = sign * dq[part]
                bounds = sorted(sign * x for x in (speeds.min(), speeds.max()))
                result.append((float(bounds[0]), float(bounds[1]), torque, sigma))
    return result
