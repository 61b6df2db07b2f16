"""Efforts that crowd near an extreme without being equal: a limit, blurred by noise or filters."""

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding
from ..model.robot import Robot
from ..rank import PREDICTED
from ..regression.least_squares import scaled_least_squares
from ..regression.observation_system import System
from ..signals.samples import Samples
from .torque_parts import rms

Mask = npt.NDArray[np.bool_]

# Width of the crowd in standard deviations of the noise, and at least over the extreme.
NOISE_WIDTH, LEAST_WIDTH = 6.0, 0.02
# Share of the samples in the crowd, and how many times more than in the band below it.
MIN_SHARE, MIN_RATIO = 0.02, 1.5
# Where efforts are cut off, what the model expects goes beyond them and varies, unlike at a
# plateau of friction: by so much of the joint's effort on average, by so many times what it errs
# elsewhere, and by so much more than measured efforts there do.
MIN_EXCESS, MIN_OVER_USUAL, MIN_SPREAD_RATIO = 0.03, 2.0, 4.0
# Rows of the crowd, after decimation, and others over the number of columns.
MIN_ROWS, MIN_OTHERS = 5, 2


def saturation_warnings(robot: Robot, samples: Samples, system: System) -> list[Finding]:
    """Name the joints whose efforts are cut off near an extreme."""
    found: list[Finding] = []
    keep = max(1, samples.decimation)
    if len(samples.time[::keep]) != system.Y.shape[1]:
        return found
    moving = samples.moving[::keep] & system.valid.T
    for j, joint in enumerate(robot.joints):
        shares = [
            share
            for sign in (1.0, -1.0)
            if (share := _cut_share(sign * samples.tau[:, j], sign * system.Y[j],
                                    system.W[j], moving[:, j], keep))
        ]  # fmt: skip
        if shares:
            limit = float(np.percentile(np.abs(samples.tau[:, j]), 99.0))
            share = sum(shares)
            found.append(finding('effort_saturation', [joint], limit=limit, share=share))
    return found


def _cut_share(effort: Array, measured: Array, W: Array, valid: Mask, keep: int) -> float:
    """Return the share of efforts (N,) that is cut off at the upper end, 0 if none is."""
    step = np.abs(np.diff(effort, n=2))
    noise = float(np.median(step)) / (0.6745 * np.sqrt(6.0))
    top = float(np.percentile(effort, 99.5))
    width = max(NOISE_WIDTH * noise, LEAST_WIDTH * top)
    if top <= 2.0 * width:
        return 0.0
    crowd = effort > top - width
    below = (effort > top - 2.0 * width) & ~crowd
    share = float(crowd.mean())
    if share < MIN_SHARE or share < MIN_RATIO * float(below.mean()):
        return 0.0
    rows = crowd[::keep] & valid
    others = valid & ~rows
    if rows.sum() < MIN_ROWS or others.sum() < MIN_OTHERS * len(W[0]):
        return 0.0
    # The joint alone, without these rows: what is wrong with others does not count here.
    expected = W @ scaled_least_squares(W[others], measured[others], PREDICTED)
    excess = float(np.mean(expected[rows] - measured[rows]))
    spread = float(np.std(expected[rows]))
    usual = rms(expected[others] - measured[others])
    if excess < max(MIN_EXCESS * rms(measured), MIN_OVER_USUAL * usual):
        return 0.0
    return share if spread > MIN_SPREAD_RATIO * float(np.std(measured[rows])) else 0.0
