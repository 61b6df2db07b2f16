"""Two sessions, one with a payload at the last link: the payload from them, or the drive gains."""

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from ...exceptions import ConfigurationError, RecordingError
from ..model.dynamics import regressor
from ..model.parameters import Array, frozen, INERTIAL, INERTIAL_UNITS
from ..model.robot import Robot
from ..signals.prepare import prepare
from ..signals.recording import Recording
from ..signals.samples import Samples, SignalSettings
from .base import base_parameters
from .estimators import newey_west
from .results import BaseParameters, Estimate
from .standard import possible_links
from .system import observe, observed_torque

# Smallest singular value over the largest, columns in units of their σ, of what data determine.
RANK = 1e-6


@dataclasses.dataclass(frozen=True)
class Payload:
    """
    A body that the last link carries, at the frame of the last joint.

    Attributes
    ----------
    names, units : `XX XY XZ YY YZ ZZ MX MY MZ M`
    value, sigma : (10,); the shortest that explains the data where they do not tell all, σ is then
        infinite
    possible : whether a body can have these parameters

    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    value: Array
    sigma: Array
    possible: bool

    def __post_init__(self) -> None:
        for name in ('value', 'sigma'):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def mass(self) -> float:
        """M [kg]."""
        return float(self.value[9])

    @property
    def centre(self) -> Array:
        """Centre of mass in the frame of the last joint, (3,) [m]."""
        return np.asarray(self.value[6:9] / self.value[9])


@dataclasses.dataclass(frozen=True)
class DriveGains:
    """
    Torque per unit of published effort.

    Attributes
    ----------
    joints : names
    value, sigma : (n,)

    """

    joints: tuple[str, ...]
    value: Array
    sigma: Array

    def __post_init__(self) -> None:
        for name in ('value', 'sigma'):
            object.__setattr__(self, name, frozen(getattr(self, name)))


def identify_payload(
    robot: Robot, base: BaseParameters, empty: Estimate, loaded: Estimate
) -> Payload:
    """
    Find a payload from the base parameters without and with it.

    A payload adds its π to the standard parameters of the last link: χ_b' − χ_b = A_last π,
    weighted by the covariance of both. Friction and offsets may change between the sessions: base
    parameters that hold nothing else are left out.

    Parameters
    ----------
    robot, base : what both were identified with
    empty, loaded : their estimates

    Raises
    ------
    ConfigurationError : the estimates are of other parameters

    """
    if not empty.names == loaded.names == base.names:
        raise ConfigurationError(
            'the two sessions were not identified with the same model: use one configuration'
        )
    start = int(robot.starts[-1])
    rows = np.flatnonzero(_of_links(robot, base))
    change = (loaded.value - empty.value)[rows]
    covariance = (loaded.covariance + empty.covariance)[np.ix_(rows, rows)]
    root = np.linalg.cholesky(covariance + 1e-12 * np.diag(np.diag(covariance)))
    A = np.linalg.solve(root, base.matrix[rows, start : start + 10])
    scale = 1.0 / np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    U, s, Vt = np.linalg.svd(A * scale, full_matrices=False)
    kept = s > RANK * s[0]
    value = scale * (Vt[kept].T @ ((U[:, kept].T @ np.linalg.solve(root, change)) / s[kept]))
    sigma = scale * np.linalg.norm(Vt[kept].T / s[kept], axis=1)
    unknown = np.linalg.norm(Vt[kept], axis=0) < 1.0 - 1e-6
    sigma[unknown] = np.inf
    return Payload(INERTIAL, INERTIAL_UNITS, value, sigma, bool(possible_links(value, [0])[0]))


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
    session without it: its coefficient is 1/g_j, that of W_j whatever it may be, friction of
    either session on its own. Noise of the effort, on the left side, leaves this without bias.

    Parameters
    ----------
    robot : its own drive gains do not matter
    empty, loaded : motions without and with the payload
    payload : χ_L (10,), `XX XY XZ YY YZ ZZ MX MY MZ M` at the frame of the last joint
    settings : of the signals

    Raises
    ------
    RecordingError : a recording cannot be used, or a joint does not feel the payload

    """
    settings = settings or SignalSettings()
    robot = dataclasses.replace(robot, drive_gain=np.ones(robot.n))
    base = base_parameters(robot)
    samples = [prepare(recording, robot, settings) for recording in (empty, loaded)]
    systems = [observe(s, robot, base) for s in samples]
    torques = [np.zeros_like(systems[0].Y), _payload_torque(robot, samples[1], payload)]
    bodies = _of_links(robot, base)
    value, sigma = np.zeros((2, robot.n))
    for j, joint in enumerate(robot.joints):
        (first, v1), (second, v2) = (system.rows(j) for system in systems)
        drives = block_diag(first[:, ~bodies], second[:, ~bodies])
        W = np.hstack([np.vstack([first, second])[:, bodies], drives])
        p = np.concatenate([t[j][s.valid[j]] for t, s in zip(torques, systems, strict=True)])
        inverse, spread = _coefficient(W, np.concatenate([v1, v2]), p)
        if not inverse > 3.0 * spread:
            raise RecordingError(
                f'{joint} does not feel the payload well enough for its drive gain: '
                'take a heavier one, or a motion that moves it more'
            )
        value[j], sigma[j] = 1.0 / inverse, spread / inverse**2
    return DriveGains(robot.joints, value, sigma)


def _of_links(robot: Robot, base: BaseParameters) -> npt.NDArray[np.bool_]:
    """Tell which base parameters hold something of a link, not friction alone, (b,)."""
    links = (robot.starts[:, None] + np.arange(10)).ravel()
    return np.asarray(base.matrix[:, links].any(axis=1))


def _payload_torque(robot: Robot, samples: Samples, payload: Array) -> Array:
    """Return W_L χ_L (n, N) through the decimation's filter."""
    start = int(robot.starts[-1])
    full = regressor(robot, samples.q, samples.dq, samples.ddq)
    tau = full[:, :, start : start + 10] @ np.asarray(payload, dtype=float)
    return observed_torque(dataclasses.replace(samples, tau=tau.T))


def _coefficient(W: Array, v: Array, p: Array) -> tuple[float, float]:
    """Return the coefficient of p in the least squares of v on [W p], and its σ."""
    norms = np.linalg.norm(W, axis=0)
    U, s, _ = np.linalg.svd(W[:, norms > 0] / norms[norms > 0], full_matrices=False)
    U = U[:, s > RANK * s[0]]
    own, left = (x - U @ (U.T @ x) for x in (p, v))
    square = float(own @ own)
    if square <= 1e-12 * max(float(p @ p), 1e-300):
        return 0.0, np.inf
    coefficient = float(own @ left) / square
    residual = left - coefficient * own
    return coefficient, float(np.sqrt(newey_west((own * residual)[:, None])[0, 0])) / square
