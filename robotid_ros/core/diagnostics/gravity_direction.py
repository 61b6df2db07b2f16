"""Whether gravity in another direction explains the efforts: how the robot is mounted."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from ..model.dynamics import regressor
from ..model.robot import Robot
from ..signals.samples import Samples

# Another direction must leave so much less than the configured one does, and than springs do:
# where all axes are upright, a tilt of a thousandth and huge masses look like a spring.
GAIN, GAIN_OVER_SPRINGS = 0.6, 0.9
# Directions that leave at most so many times what the best one leaves may be right as well: an
# axis of the base, as few robots stand on a slope, and the opposite one, with masses below zero.
AS_GOOD = 1.1
# Correlation of the efforts with the weight of the URDF's masses that is against gravity.
REVERSED = -0.7
AXES = np.kron(np.eye(3), [[1.0], [-1.0]])
WEIGHTS = ('MX', 'MY', 'MZ', 'M')  # what gravity acts on
ACCURACY = 1e-3  # of the direction [rad]
STARTS = 3  # axes from which the direction is searched: there is more than one minimum


class _Fit:
    """
    The efforts as a function of gravity g, τ = (W_0 + Σ g_k G_k) χ.

    Rows are weighted by joint and compressed to the triangular factor of [W_0 G_1 G_2 G_3 S τ]
    with a spring's columns S of each joint, which weight along a horizontal axis resembles.
    """

    def __init__(self, robot: Robot, samples: Samples, rows: npt.NDArray[np.intp]):
        q, dq, ddq = samples.q[rows], samples.dq[rows], samples.ddq[rows]
        tau, used = samples.tau[rows].T, samples.moving[rows].T
        weight = used / np.maximum(np.sqrt(np.mean(tau**2, axis=1, keepdims=True)), 1e-300)
        model = robot.model.copy()
        turned = dataclasses.replace(robot, model=model)

        def weighted(gravity: Array) -> Array:
            model.gravity.linear = gravity
            return np.asarray(
                (regressor(turned, q, dq, ddq) * weight[:, :, None]).reshape(-1, robot.p)
            )

        # A spring's columns, position and its square, for the rows of each joint.
        away = (q - q.mean(axis=0)).T
        springs = np.zeros((robot.n, len(q), robot.n, 2))
        joints = np.arange(robot.n)
        springs[joints, :, joints] = np.stack([weight * away, weight * away**2], axis=2)
        pull = [k for k, p in enumerate(robot.parameters) if p.symbol in WEIGHTS]
        none = weighted(np.zeros(3))[:, pull]
        each = [weighted(axis)[:, pull] - none for axis in np.eye(3)]
        still = weighted(robot.gravity)
        still[:, pull] = none
        columns = springs.reshape(-1, 2 * robot.n)
        table = np.hstack([still, *each, columns, (weight * tau).reshape(-1, 1)])
        R = np.linalg.qr(table, mode='r')
        edges = robot.p + len(pull) * np.arange(4)
        self._still, *self._pulls, self._springs, target = np.split(R, [*edges, -1], axis=1)
        self._target, self._places = target[:, 0], pull
        self._masses = robot.prior[pull]

    def unexplained(self, gravity: Array, springs: bool = False) -> float:
        """Return what the best parameters leave with this gravity [m/s²]."""
        W = self._still.copy()
        W[:, self._places] += self._pull(gravity)
        return self._left(np.hstack([W, self._springs]) if springs else W)

    @property
    def least(self) -> float:
        """Return what is left at least, in whatever direction: each has parameters of its own."""
        return self._left(np.hstack([self._still, *self._pulls]))

    def agreement(self, gravity: Array) -> float:
        """Return the correlation of the efforts with the weight of the URDF's masses."""
        others = np.delete(self._still, self._places, axis=1)
        weight = self._pull(gravity) @ self._masses
        pair = np.column_stack([weight, self._target])
        pair -= others @ np.linalg.lstsq(others, pair, rcond=1e-8)[0]
        size = float(np.prod(np.linalg.norm(pair, axis=0)))
        return float(pair[:, 0] @ pair[:, 1]) / max(size, 1e-300)

    def _pull(self, gravity: Array) -> Array:
        return np.sum([g * G for g, G in zip(gravity, self._pulls, strict=True)], axis=0)

    def _left(self, W: Array) -> float:
        W = W / np.maximum(np.linalg.norm(W, axis=0), 1e-300)
        found = np.linalg.lstsq(W, self._target, rcond=1e-8)[0]
        return float(np.linalg.norm(self._target - W @ found))


def other_gravity(
    robot: Robot, samples: Samples, rows: npt.NDArray[np.intp], may_hang: bool = True
) -> Array | None:
    """
    Return gravity (3,) in another direction that explains the efforts of these rows better.

    Upside down, masses below zero explain them as well: that counts where the robot `may_hang`.
    """
    size = float(np.linalg.norm(robot.gravity))
    if size == 0.0:
        return None
    fit = _Fit(robot, samples, rows)
    known = fit.unexplained(robot.gravity)
    springs = GAIN_OVER_SPRINGS * fit.unexplained(robot.gravity, springs=True)
    limit = min(GAIN * known, springs)
    if may_hang and fit.agreement(robot.gravity) < REVERSED and springs > limit:
        limit = AS_GOOD * known
    if fit.least > limit:
        return None
    # By masses above zero.
    axes = sorted(size * AXES, key=fit.unexplained)
    best = min((_refine(fit, start) for start in axes[:STARTS]), key=fit.unexplained)
    least = fit.unexplained(best)
    if fit.unexplained(axes[0]) <= AS_GOOD * least:
        best = axes[0]
    if fit.agreement(best) < 0.0 and fit.unexplained(-best) <= AS_GOOD * least:
        best = -best
    return None if fit.unexplained(best) > limit or np.allclose(best, robot.gravity) else best


def _refine(fit: _Fit, start: Array) -> Array:
    """Search the direction of gravity near one."""
    from scipy.optimize import minimize

    size = float(np.linalg.norm(start))
    sides = size * np.asarray(np.linalg.svd(start[None])[2])[1:]

    def turned(tilt: Array) -> Array:
        vector = start + tilt @ sides
        return np.asarray(size * vector / np.linalg.norm(vector))

    corners = [[0.0, 0.0], [0.3, 0.0], [0.0, 0.3]]
    found = minimize(
        lambda tilt: fit.unexplained(turned(tilt)),
        np.zeros(2),
        method='Nelder-Mead',
        options={'xatol': ACCURACY, 'fatol': np.inf, 'initial_simplex': corners},
    )
    return turned(found.x)
