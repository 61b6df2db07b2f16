"""Plausibility of a recording: signs and units of efforts, gravity, positions within limits."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ...exceptions import shortened
from ..arrays import Array
from ..model.dynamics import regressor
from ..model.friction import OF_POSITION
from ..model.parameters import INERTIAL
from ..model.robot import ElasticRobot, Robot
from ..regression.estimate import Estimate
from ..regression.least_squares import scaled_least_squares
from ..signals.samples import Samples
from .gravity_direction import gravity_warnings
from .remark import EFFORT_UNIT, Remark, SERIOUS

Rows = npt.NDArray[np.intp]

MAX_SAMPLES = 1500  # that a check takes: enough for signs and factors, in a fraction of a second
MIN_SAMPLES = 50  # of a joint; with fewer it is not checked
# Work of the friction over that of the whole effort: below its negative, friction would drive the
# joint and a sign is wrong. Zero would take noise for it.
MIN_LOSS = 0.01
# Singular values below this share are masses_part out of a check: noise would determine them.
RANK_TOLERANCE = 3e-3
# Share of the variance that the URDF's masses must explain before a factor between them and the
# efforts counts, and the factor by which masses of a URDF may be off: units are off by more.
MIN_EXPLAINED, MAX_SCALE = 0.5, 4.0
MIN_GRAVITY_PART = 1e-4  # of the masses' power that no motor inertia or friction explains
GRAVITY_RESIDUAL = 0.05  # of a joint, relative, from which gravity is checked
LIMIT_MARGIN = 0.5  # beyond a limit [rad or m]: more than calibration, less than degrees for rad


def plausibility_warnings(robot: Robot, samples: Samples, estimate: Estimate) -> list[str]:
    """
    Check a recording against the model that was fitted to it.

    Parameters
    ----------
    robot : the model with its prior
    samples : what was fitted, or a part of it
    estimate : the fit

    Returns
    -------
    One sentence with the remedy for each finding

    """
    warnings = _limit_warnings(robot, samples)
    if isinstance(robot, ElasticRobot):
        return warnings
    moving = np.flatnonzero(samples.moving.any(axis=1))
    rows = moving[:: max(1, moving.size // MAX_SAMPLES)]
    W = regressor(robot, samples.q[rows], samples.dq[rows], samples.ddq[rows])
    checks = [_check_joint(robot, samples, rows, W, j) for j in range(robot.n)]
    wrong_sign = [j for j, check in enumerate(checks) if check.wrong_sign]
    worst = float(np.max(estimate.residual, initial=0.0))
    reversed_masses = any(
        check.factor < -1.0 / MAX_SCALE and not check.wrong_sign for check in checks
    )
    gravity: list[str] = []
    known = not robot.assumed_inertials
    if known and len(wrong_sign) < robot.n and (worst > GRAVITY_RESIDUAL or reversed_masses):
        # Gravity that is wrong turns efforts round too; a wrong sign makes masses look reversed.
        gravity = gravity_warnings(robot, samples, rows[::3], may_hang=not wrong_sign)
    if gravity:
        return warnings + gravity
    if wrong_sign:
        those = shortened([robot.joints[j] for j in wrong_sign])
        warnings.append(
            f'the effort of {those} seems to have the opposite sign: set robot.drive_gain to -1 '
            "there, or of a table --units 'effort=Nm*-1', one for each joint between commas"
        )
    return warnings if wrong_sign else warnings + _scale_warnings(robot, checks)


@dataclasses.dataclass(frozen=True)
class _JointCheck:
    """
    Figures of one joint that show sign and unit of its effort.

    Attributes
    ----------
    loss : work of the friction over that of the effort
    factor : measured effort over what the URDF's masses make, 0 where that does not show

    """

    loss: float
    factor: float

    @property
    def wrong_sign(self) -> bool:
        against = self.factor < -1.0 / MAX_SCALE
        return (self.loss < -MIN_LOSS and not self.factor > 0.0) or (
            self.loss < MIN_LOSS and against
        )


def _check_joint(robot: Robot, samples: Samples, rows: Rows, W: Array, joint: int) -> _JointCheck:
    used = samples.moving[rows, joint]
    if used.sum() < MIN_SAMPLES:
        return _JointCheck(MIN_LOSS, 0.0)
    w, y = W[joint][used], samples.tau[rows, joint][used]
    dq, ddq = samples.dq[rows, joint][used], samples.ddq[rows, joint][used]
    return _JointCheck(
        _friction_loss(robot, joint, w, y, dq), _effort_over_prior(robot, w, y, dq, ddq)
    )


def _friction_loss(robot: Robot, joint: int, w: Array, y: Array, dq: Array) -> float:
    """Return the work of the fitted friction over that of the effort."""
    without_loss = (*INERTIAL, 'Ia', 'off', *OF_POSITION)
    friction = [
        k
        for k, p in enumerate(robot.parameters)
        if p.joint == robot.joints[joint] and p.symbol not in without_loss
    ]
    if not friction:
        return MIN_LOSS
    chi = scaled_least_squares(w, y, RANK_TOLERANCE)
    work = float(np.mean((w[:, friction] @ chi[friction]) * dq))
    return work / max(float(np.mean(np.abs(y * dq))), 1e-300)


def _effort_over_prior(robot: Robot, w: Array, y: Array, dq: Array, ddq: Array) -> float:
    """Return the effort over the torque of the URDF's masses, 0 where that does not show."""
    if robot.assumed_inertials:
        return 0.0
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


def _scale_warnings(robot: Robot, checks: list[_JointCheck]) -> list[str]:
    """Name joints whose efforts are of another scale; usually less, they are no torques."""
    known = {robot.joints[j]: check.factor for j, check in enumerate(checks) if check.factor > 0.0}
    usual = float(np.median(list(known.values()))) if known else 1.0
    if usual < 1.0 / MAX_SCALE and not robot.drive_gain_given:
        each = shortened([f'{joint} {factor:.2g}' for joint, factor in known.items()])
        return [
            Remark(
                f'the efforts are no torques: they are {usual:.2g} times what the masses of the '
                f'URDF need ({each}), as currents are; masses, inertias and friction are wrong by '
                'such factors; set robot.drive_gain to the torque per unit of effort of each '
                "joint, or of a table --units 'effort=A*12'; if they are torques, correct the "
                'masses of the URDF or set every robot.drive_gain to 1',
                SERIOUS,
                EFFORT_UNIT,
                unit='?',
                factor=usual,
            )
        ]
    scaled = [
        f'{robot.joints[j]} {check.factor:.3g}'
        for j, check in enumerate(checks)
        if check.factor > MAX_SCALE or 0.0 < check.factor < 1.0 / MAX_SCALE
    ]
    if not scaled:
        return []
    return [
        f"efforts over what the URDF's masses make: {', '.join(scaled)}; if the efforts are "
        'currents or in another unit, set robot.drive_gain'
    ]


def _limit_warnings(robot: Robot, samples: Samples) -> list[str]:
    low, high = samples.q.min(axis=0), samples.q.max(axis=0)
    lower, upper = robot.limits.lower[: len(low)], robot.limits.upper[: len(low)]
    warnings = []
    for j in np.flatnonzero((low < lower - LIMIT_MARGIN) | (high > upper + LIMIT_MARGIN)):
        warnings.append(
            f'{robot.joints[j]} was recorded from {low[j]:.4g} to {high[j]:.4g}, outside of its '
            f'limits {lower[j]:.4g} to {upper[j]:.4g}: check unit (rad, not degrees), zero and '
            'URDF'
        )
    return warnings
