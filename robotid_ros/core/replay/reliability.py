"""When a closed-loop identification is not to be trusted, in words a user can act on."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from .convergence_history import Iteration
from .replay_problem import ReplayProblem

# Share of the torque that a model of a real robot may leave unexplained before it is suspect.
MAX_RESIDUAL = 0.2
# A simulated motion that is so many times as far from the measured one as that is from its
# reference is not that of the robot's loop: half the bandwidth comes to 1, a third to 2. From
# DOUBT on (two thirds of the bandwidth) friction is biased, from STRAY on everything.
DOUBT, STRAY = 0.5, 1.5


def bandwidth_warnings(replay: ReplayProblem, omega: Array, band: Array) -> list[str]:
    """Tell joints whose ω_n (n,) is too low for the bandwidth (n,) of their motion [rad/s]."""
    return [
        f'{joint}: ω_n of its loop is {w:.3g} rad/s, only {w / b:.2g} times the bandwidth of the '
        f'motion ({b:.3g} rad/s): DIDIM may be biased, use a slower motion or stiffer gains'
        for joint, w, b in zip(replay.robot.joints, omega, band, strict=True)
        if w < replay.settings.bandwidth_ratio * b
    ]


def motion_warnings(replay: ReplayProblem, record: Iteration) -> list[str]:
    """
    Tell joints whose simulated loop does not lag as the measured one does.

    `‖q_ddm − q‖ / ‖q − q_r‖` is small where control law and gains are the robot's. A PD loop of s
    times the bandwidth lags 1/s times as much, so that it comes to `1/s − 1`. The measured
    position judges the result, it has no part in it.
    """
    if replay.measured is None or record.to_measured is None:
        return []
    q = replay.measured[0]
    lag = np.linalg.norm(q - replay.desired.q, axis=0)
    ratios = record.to_measured.position * np.linalg.norm(q, axis=0) / np.maximum(lag, 1e-300)
    return [
        f'{joint}: {"not trustworthy" if ratio > STRAY else "doubtful, its friction above all"}, '
        f'the simulated motion is {ratio:.2g} times as far from the measured one as that is from '
        "its reference: the control law or its gains are not the robot's"
        for joint, ratio in zip(replay.robot.joints, ratios, strict=True)
        if ratio > DOUBT
    ]


def residual_warnings(residual: float) -> list[str]:
    """Tell a relative residual that no model of the right loop leaves."""
    if residual <= MAX_RESIDUAL:
        return []
    return [
        f'{100.0 * residual:.0f} % of the torque stays unexplained: the control law, its gains or '
        "the drive gains may not be the robot's"
    ]
