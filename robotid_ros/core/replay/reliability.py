"""Warnings that a closed-loop identification is biased or that its control law is wrong."""

from __future__ import annotations

import numpy as np

from ...exceptions import FEW, shortened
from ..arrays import Array
from ..regression.estimate import Estimate
from ..regression.observation_system import System
from .convergence_history import Iteration
from .replay_problem import ReplayProblem
from .simulated_observation import with_all_rows

# Share of the torque: with the right gains the SCARA study (benchmarks/scara.py) leaves 2 %, with
# half of the loop's bandwidth 11 to 28 %.
MAX_RESIDUAL = 0.2
# ω_n over the bandwidth of the motion. In that study, with 0.8 of the loop's bandwidth, Coulomb
# friction is 2 % off at a ratio of 5 and 30 % at 2.5.
MIN_BANDWIDTH_RATIO = 5.0
# Distance between simulated and measured motion, over the tracking error. A loop of two thirds of
# the bandwidth comes to 0.5 and biases friction; half of it comes to 1, a third to 2, and with
# these every parameter is biased.
DOUBTFUL_RATIO, WRONG_RATIO = 0.5, 1.5
DOUBTFUL = 'doubtful, its friction above all'


def bandwidth_warnings(replay: ReplayProblem, omega: Array, band: Array) -> list[str]:
    """Warn of joints whose ω_n (n,) is low for the bandwidth (n,) of their motion [rad/s]."""
    return [
        f'{joint}: ω_n of its loop is {w:.3g} rad/s, only {w / b:.2g} times the bandwidth of the '
        f'motion ({b:.3g} rad/s): DIDIM may be biased, use a slower motion or stiffer gains'
        for joint, w, b in zip(replay.robot.joints, omega, band, strict=True)
        if w < MIN_BANDWIDTH_RATIO * b
    ]


def motion_warnings(replay: ReplayProblem, record: Iteration) -> list[str]:
    """
    Warn of joints whose simulated loop does not lag as the measured one does.

    `‖q_ddm − q‖ / ‖q − q_r‖` is small where control law and gains are the robot's. A PD loop of s
    times the bandwidth lags 1/s times as much, so that it comes to `1/s − 1`. The measured
    position is only compared with the result, it does not enter it.
    """
    if replay.measured is None or record.to_measured is None:
        return []
    q = replay.measured[0]
    lag = np.linalg.norm(q - replay.desired.q, axis=0)
    ratios = record.to_measured.position * np.linalg.norm(q, axis=0) / np.maximum(lag, 1e-300)
    return [
        f'{joint}: {"not trustworthy" if ratio > WRONG_RATIO else DOUBTFUL}, '
        f'the simulated motion is {ratio:.2g} times as far from the measured one as that is from '
        "its reference: the control law or its gains are not the robot's"
        for joint, ratio in zip(replay.robot.joints, ratios, strict=True)
        if ratio > DOUBTFUL_RATIO
    ]


def unexplained(system: System, value: Array) -> float:
    """Return the relative residual of base parameters (b,) in all rows of a system."""
    return with_all_rows(system).total_residual(value)


def residual_warnings(residual: float) -> list[str]:
    """Warn of a relative torque error that the right control law would not leave."""
    if residual <= MAX_RESIDUAL:
        return []
    return [
        f'{100.0 * residual:.0f} % of the torque stays unexplained: the control law, its gains or '
        "the drive gains may not be the robot's"
    ]


def prior_warnings(estimate: Estimate) -> list[str]:
    """Name the parameters that stay near their prior."""
    names = [estimate.names[k] for k in estimate.from_prior]
    if not names:
        return []
    return [
        f'the motion tells too little of {shortened(names, FEW)}: they stay near the values of '
        'the robot description, dry friction of a joint that never slips at what holds it; excite '
        'these joints more to identify them'
    ]
