"""Plausibility of a recording: efforts beside the URDF's masses, positions within limits."""

import numpy as np

from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding
from ..model.dynamics import regressor
from ..model.parameters import INERTIAL
from ..model.robot import Robot
from ..signals.samples import Samples

MAX_SAMPLES = 750  # that a check takes: enough for factors, in a fraction of a second
MIN_SAMPLES = 50  # of a joint; with fewer it is not checked
# Share of the variance that the URDF's masses must explain before a factor between them and the
# efforts counts.
MIN_EXPLAINED = 0.5
MIN_GRAVITY_PART = 1e-4  # of the masses' power that no motor inertia or friction explains
LIMIT_MARGIN = 0.5  # beyond a limit [rad or m]: more than calibration, less than degrees for rad


def efforts_over_prior(robot: Robot, samples: Samples) -> list[float]:
    """Return measured efforts over what the URDF's masses make, 0 where that does not show."""
    if robot.assumed_inertials:
        return [0.0] * robot.n
    moving = np.flatnonzero(samples.moving.any(axis=1))
    rows = moving[:: max(1, moving.size // MAX_SAMPLES)]
    W = regressor(robot, samples.q[rows], samples.dq[rows], samples.ddq[rows])
    factors = []
    for j in range(robot.n):
        used = samples.moving[rows, j]
        columns = (x[rows, j][used] for x in (samples.tau, samples.dq, samples.ddq))
        enough = used.sum() >= MIN_SAMPLES
        factors.append(_effort_over_prior(robot, W[j][used], *columns) if enough else 0.0)
    return factors


def _effort_over_prior(robot: Robot, w: Array, y: Array, dq: Array, ddq: Array) -> float:
    """Return the effort over the torque of the URDF's masses, 0 where that does not show."""
    masses = [k for k, p in enumerate(robot.parameters) if p.symbol in INERTIAL]
    prior = w[:, masses] @ robot.prior[masses]
    others = np.column_stack([ddq, dq, np.sign(dq), np.ones(dq.size)])
    predicted, measured = (
        x - others @ np.linalg.lstsq(others, x, rcond=None)[0] for x in (prior, y)
    )
    power, common = float(predicted @ predicted), float(predicted @ measured)
    total = power * float(measured @ measured)
    explained = total > 0.0 and common**2 > MIN_EXPLAINED * total
    shows = power > MIN_GRAVITY_PART * float(prior @ prior)
    return common / power if explained and shows else 0.0


def limit_warnings(robot: Robot, samples: Samples) -> list[Finding]:
    """Name the joints that were recorded far outside of their limits."""
    low, high = samples.q.min(axis=0), samples.q.max(axis=0)
    lower, upper = robot.limits.lower[: len(low)], robot.limits.upper[: len(low)]
    outside = (low < lower - LIMIT_MARGIN) | (high > upper + LIMIT_MARGIN)
    return [
        finding(
            'beyond_limits', [robot.joints[j]],
            low=low[j], high=high[j], lower=lower[j], upper=upper[j],
        )
        for j in np.flatnonzero(outside)
    ]  # fmt: skip
