"""The drive gains from two sessions, one with a known payload at the last link."""

import dataclasses

import numpy as np
from scipy.linalg import block_diag

from ...exceptions import RecordingError
from ..arrays import Array, ReadOnlyArrays
from ..model.base_parameters import base_parameters
from ..model.dynamics import regressor
from ..model.robot import Robot
from ..rank import DEPENDENT
from ..regression.estimators import fit
from ..regression.least_squares import project_out
from ..regression.observation_system import decimate, observe, Rows
from ..signals.preparation import prepare
from ..signals.recording import Recording
from ..signals.samples import SignalSettings
from .payload import depends_on_links, SIGNIFICANT


@dataclasses.dataclass(frozen=True)
class DriveGains(ReadOnlyArrays):
    """Torque per unit of published effort, and its σ, (n,) of joints."""

    joints: tuple[str, ...]
    value: Array
    sigma: Array


def identify_drive_gains(
    robot: Robot,
    empty: Recording,
    loaded: Recording,
    payload: Array,
    settings: SignalSettings | None = None,
) -> DriveGains:
    """
    Find the drive gains with a payload that is known (Gautier and Briot 2012).

    Of each joint, v_j = (W_j χ_b + W_Lj χ_L)/g_j, the payload's torque W_L χ_L being zero in the
    session without it: its coefficient is 1/g_j. That of W_j is free, and friction may change
    between the sessions. Noise of the effort, on the left side, causes no bias.

    Parameters
    ----------
    robot : its own drive gains do not matter
    empty, loaded : motions without and with the payload
    payload : χ_L (10,), `XX XY XZ YY YZ ZZ MX MY MZ M` at the frame of the last joint

    Raises
    ------
    RecordingError : a recording cannot be used, or a joint does not feel the payload

    """
    settings = settings or SignalSettings()
    robot = dataclasses.replace(robot, drive_gain=np.ones(robot.n))
    base = base_parameters(robot)
    samples = [prepare(recording, robot, settings) for recording in (empty, loaded)]
    systems = [observe(s, robot, base) for s in samples]
    # W_L χ_L (n, N), through the decimation's filter.
    moved, last = samples[1], robot.body_columns[-1]
    W_L = regressor(robot, moved.q, moved.dq, moved.ddq, columns=last)
    tau = W_L @ np.asarray(payload, dtype=float)
    torque = decimate(tau, moved.decimation)
    bodies = depends_on_links(robot, base)
    value, sigma = np.zeros((2, robot.n))
    for j, joint in enumerate(robot.joints):
        (first, v1), (second, v2) = (system.rows(j) for system in systems)
        drives = block_diag(first[:, ~bodies], second[:, ~bodies])
        W = np.hstack([np.vstack([first, second])[:, bodies], drives])
        p = np.concatenate([np.zeros(len(v1)), torque[j][systems[1].valid[j]]])
        time = np.concatenate([each.time[each.valid[j]] for each in systems])
        inverse, sigma_inverse = _coefficient(
            W, np.concatenate([v1, v2]), p, time, systems[1].band
        )
        if not inverse > SIGNIFICANT * sigma_inverse:
            raise RecordingError(
                f'{joint} does not feel the payload well enough for its drive gain: '
                'take a heavier one, or a motion that moves it more'
            )
        value[j], sigma[j] = 1.0 / inverse, sigma_inverse / inverse**2
    return DriveGains(robot.joints, value, sigma)


def _coefficient(W: Array, v: Array, p: Array, time: Array, band: float) -> tuple[float, float]:
    """Return the coefficient of p in the least squares of v on [W p], and its σ."""
    own, target = map(project_out(W, DEPENDENT), (p, v))
    if float(own @ own) <= 1e-12 * max(float(p @ p), 1e-300):
        return 0.0, np.inf
    rows = np.ones((1, len(v)), dtype=bool)
    row = Rows(('1/g',), ('1',), ('',), own[None, :, None], target[None], rows, time, band=band)
    found = fit(row, 'ols')
    return float(found.value[0]), float(found.sigma[0])
