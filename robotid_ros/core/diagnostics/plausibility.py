"""Whether efforts, positions and gravity fit the robot: signs, units, what the model misses."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from ..model.dynamics import regressor
from ..model.parameters import INERTIAL
from ..model.robot import ElasticRobot, Robot
from ..regression.estimate import Estimate
from ..signals.samples import Samples

Rows = npt.NDArray[np.intp]

MOST = 1500  # samples that suffice for a rough look
# Work of the friction over that of the whole effort: below the negative of it, a sign is wrong.
LOSS = 0.01
# Singular values below this share are left out of a rough look: noise would rule them.
TELLS = 3e-3
# Share of the variance that the URDF's masses must explain before a factor between both counts,
# and the factors that a rough URDF may have.
TELLING, ROUGH = 0.5, 4.0
# Relative residual of a joint from which its efforts and the model disagree; gravity is looked at
# from the lower one, and another direction must leave so much less.
UNEXPLAINED, DOUBTFUL, BETTER = 0.3, 0.15, 0.6
OUTSIDE = 0.5  # beyond a limit [rad or m]
AXES = (('+x', 0, 1), ('-x', 0, -1), ('+y', 1, 1), ('-y', 1, -1), ('+z', 2, 1), ('-z', 2, -1))


def plausibility_warnings(robot: Robot, samples: Samples, estimate: Estimate) -> list[str]:
    """
    Say what looks wrong with a recording once a model is fitted to it.

    Parameters
    ----------
    robot : the model with its prior
    samples : what was fitted, or a part of it
    estimate : the fit

    Returns
    -------
    One sentence with the remedy for each finding

    """
    found = _outside(robot, samples)
    if isinstance(robot, ElasticRobot):
        return found
    moving = np.flatnonzero(samples.valid.any(axis=1))
    rows = moving[:: max(1, moving.size // MOST)]
    W = regressor(robot, samples.q[rows], samples.dq[rows], samples.ddq[rows])
    checks = [_check_joint(robot, samples, rows, W, j) for j in range(robot.n)]
    opposite = [j for j, check in enumerate(checks) if check.opposite]
    found += [
        f'the effort of {robot.joints[j]} seems to have the opposite sign: set its '
        'robot.drive_gain to -1'
        for j in opposite
    ]
    worst = float(np.max(estimate.residual, initial=0.0))
    upside = any(check.factor < -1.0 / ROUGH and not check.opposite for check in checks)
    if not opposite and (worst > DOUBTFUL or upside):
        found += _gravity(robot, samples, rows[::3])
    if not opposite:
        found += _scales(robot, checks)
    return found + [
        f'the model leaves {100 * residual:.0f} % of the effort of {joint} unexplained: check its '
        'sign, unit and delay, robot.gravity and the joint axes of the URDF before using these '
        'parameters'
        for joint, residual in zip(robot.joints, estimate.residual, strict=True)
        if residual > UNEXPLAINED
    ]


@dataclasses.dataclass(frozen=True)
class _JointCheck:
    """
    A joint by itself.

    Attributes
    ----------
    loss : work of the friction over that of the effort
    factor : measured effort over what the URDF's masses make, 0 where that does not show

    """

    loss: float
    factor: float

    @property
    def opposite(self) -> bool:
        against = self.factor < -1.0 / ROUGH
        return (self.loss < -LOSS and not self.factor > 0.0) or (self.loss < LOSS and against)


def _check_joint(robot: Robot, samples: Samples, rows: Rows, W: Array, joint: int) -> _JointCheck:
    used = samples.valid[rows, joint]
    if used.sum() < 50:
        return _JointCheck(LOSS, 0.0)
    w, y = W[joint][used], samples.tau[rows, joint][used]
    dq = samples.dq[rows, joint][used]
    kinds = [p.symbol for p in robot.parameters]
    own = [p.joint == robot.joints[joint] for p in robot.parameters]
    friction = [k for k, s in enumerate(kinds) if own[k] and s not in (*INERTIAL, 'Ia', 'off')]
    size = np.maximum(np.linalg.norm(w, axis=0), 1e-300)
    chi = np.linalg.lstsq(w / size, y, rcond=TELLS)[0] / size
    work = float(np.mean((w[:, friction] @ chi[friction]) * dq))
    loss = work / max(float(np.mean(np.abs(y * dq))), 1e-300)
    masses = [k for k, s in enumerate(kinds) if s in INERTIAL]
    prior = w[:, masses] @ robot.prior[masses]
    others = np.column_stack([samples.ddq[rows, joint][used], dq, np.sign(dq), np.ones(dq.size)])
    left, right = (x - others @ np.linalg.lstsq(others, x, rcond=None)[0] for x in (prior, y))
    power = float(left @ left) * float(right @ right)
    telling = power > 0.0 and float(left @ right) ** 2 > TELLING * power
    clear = float(left @ left) > 1e-4 * float(prior @ prior)
    factor = float(left @ right) / float(left @ left) if telling and clear else 0.0
    return _JointCheck(loss if friction else LOSS, factor)


def _gravity(robot: Robot, samples: Samples, rows: Rows) -> list[str]:
    """Look whether gravity along another axis of the base fits the efforts better."""
    size = float(np.linalg.norm(robot.gravity))
    if size == 0.0:
        return []
    model = robot.model.copy()
    turned = dataclasses.replace(robot, model=model)
    at = (samples.q[rows], samples.dq[rows], samples.ddq[rows])
    used = samples.valid[rows].T
    y = samples.tau[rows].T
    weight = used / np.maximum(np.sqrt(np.mean(y**2, axis=1, keepdims=True)), 1e-300)

    def unexplained(gravity: Array) -> float:
        model.gravity.linear = gravity
        W = (regressor(turned, *at) * weight[:, :, None]).reshape(-1, robot.p)
        target = (y * weight).ravel()
        scale = np.maximum(np.linalg.norm(W, axis=0), 1e-300)
        chi = np.linalg.lstsq(W / scale, target, rcond=1e-8)[0]
        return float(np.linalg.norm(target - W / scale @ chi))

    present = unexplained(robot.gravity)
    tried = {name: unexplained(sign * size * np.eye(3)[axis]) for name, axis, sign in AXES}
    best = min(tried, key=lambda name: tried[name])
    if tried[best] > BETTER * present:
        return []
    axis, sign = next((axis, sign) for name, axis, sign in AXES if name == best)
    vector = [round(float(x), 4) for x in sign * size * np.eye(3)[axis]]
    return [
        f'gravity along {best} of the base explains the efforts far better than robot.gravity '
        f'does: if the arm hangs or stands on a wall, set robot.gravity to {vector}'
    ]


def _scales(robot: Robot, checks: list[_JointCheck]) -> list[str]:
    odd = [
        f'{robot.joints[j]} {check.factor:.3g}'
        for j, check in enumerate(checks)
        if check.factor > ROUGH or 0.0 < check.factor < 1.0 / ROUGH
    ]
    if not odd:
        return []
    return [
        f"efforts over what the URDF's masses make: {', '.join(odd)}; if the efforts are currents "
        'or in another unit, set robot.drive_gain'
    ]


def _outside(robot: Robot, samples: Samples) -> list[str]:
    low, high = samples.q.min(axis=0), samples.q.max(axis=0)
    lower, upper = robot.limits.lower[: len(low)], robot.limits.upper[: len(low)]
    found = []
    for j in np.flatnonzero((low < lower - OUTSIDE) | (high > upper + OUTSIDE)):
        found.append(
            f'{robot.joints[j]} was recorded from {low[j]:.4g} to {high[j]:.4g}, outside of its '
            f'limits {lower[j]:.4g} to {upper[j]:.4g}: check unit (rad, not degrees), zero and '
            'URDF'
        )
    return found
