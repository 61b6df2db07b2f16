"""
The SCARA of DIDIM's section V and its PD loops, integrated without anything of the package.

Its equations (eq. 65) are written out by hand and integrated by scipy's odeint with
sign(q̇) = tanh(q̇/1e-5); loops and measurement run at 200 Hz.
"""

import dataclasses
from math import cos, sin, tanh

import numpy as np
from scipy.integrate import odeint
from scipy.signal import butter, sosfiltfilt

RATE = 200.0
LENGTH = 0.5
NAMES = ('ZZ1R', 'Fv1', 'Fc1', 'ZZ2R', 'LMX2', 'LMY2', 'Fv2', 'Fc2')
NOMINAL = np.array([3.44, 0.03, 0.82, 0.062, 0.121, 0.007, 0.013, 0.137])
ZETA = np.ones(2)
INERTIA = np.array([3.44 + 0.062 + 2.0 * 0.121, 0.062])
POSITION_NOISE, TORQUE_NOISE = 2e-5, 0.08
# The clock of the reference starts from rest within so long [s].
RAMP = 4.0
# Amplitude [rad], angular frequency [rad/s], phase [rad] of each joint's sines.
COMPONENTS = (
    ((4.8, 0.105, 0.0), (1.8, 0.215, 1.3), (0.6, 0.445, 2.0)),
    ((2.0, 0.285, 0.4), (1.0, 0.655, 2.1), (0.44, 0.985, 4.0)),
)


@dataclasses.dataclass(frozen=True)
class Motion:
    """Loops of ω_n (2,) [rad/s], and how fast and how wide the sines are run under them."""

    omega: np.ndarray
    speed: float = 1.0
    size: float = 1.0


# The paper's loops; the motion is as slow as they ask for, so that friction is most of the torque.
SLOW = Motion(2.0 * np.pi * np.array([1.0, 10.0]))
# Loops as fast as the paper's torques, some 11 and 1 N·m, ask for.
QUICK = Motion(2.0 * np.pi * np.array([5.0, 10.0]), 5.0, 0.4)


@dataclasses.dataclass(frozen=True)
class Data:
    """One experiment: reference, true state (K, 4), measured position and torque (K, 2)."""

    motion: Motion
    reference: tuple[np.ndarray, np.ndarray, np.ndarray]
    state: np.ndarray
    q: np.ndarray
    tau: np.ndarray


def acceleration(state: tuple[float, ...], _: float, tau1: float, tau2: float) -> tuple:
    """Return the state's derivative: eq. 65 solved for the accelerations, by hand."""
    _, q2, v1, v2 = state
    zz1, fv1, fc1, zz2, lmx, lmy, fv2, fc2 = NOMINAL
    even, odd = lmx * cos(q2) - lmy * sin(q2), lmx * sin(q2) + lmy * cos(q2)
    m11, m12, m22 = zz1 + zz2 + 2.0 * even, zz2 + even, zz2
    b1 = tau1 + odd * v2 * (2.0 * v1 + v2) - fv1 * v1 - fc1 * tanh(v1 / 1e-5)
    b2 = tau2 - odd * v1 * v1 - fv2 * v2 - fc2 * tanh(v2 / 1e-5)
    determinant = m11 * m22 - m12 * m12
    return v1, v2, (m22 * b1 - m12 * b2) / determinant, (m11 * b2 - m12 * b1) / determinant


def reference(t: np.ndarray, motion: Motion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q_r and its derivatives, (K, 2): the sines, on a clock that starts from rest."""
    speed = motion.speed
    u = np.clip(t / RAMP, 0.0, 1.0)
    clock = speed * np.where(t < RAMP, RAMP * (u**3 - u**4 / 2.0), t - RAMP / 2.0)
    rate, change = speed * (3.0 * u**2 - 2.0 * u**3), speed * 6.0 * u * (1.0 - u) / RAMP
    q, dq, ddq = (np.zeros((t.size, 2)) for _ in range(3))
    for j, sines in enumerate(COMPONENTS):
        for a, w, phase in sines:
            wave, slope = np.sin(w * clock + phase), w * np.cos(w * clock + phase)
            q[:, j] += a * wave
            dq[:, j] += a * slope * rate
            ddq[:, j] += a * (slope * change - w * w * wave * rate**2)
    return motion.size * q, motion.size * dq, motion.size * ddq


def experiment(
    duration: float,
    seed: int,
    motion: Motion = SLOW,
    loop: tuple[float, float] = (1.0, 1.0),
) -> Data:
    """Run the robot under its PD loops (eq. 53), at these shares of ω_n and ζ; measure it."""
    t = np.arange(round(duration * RATE)) / RATE
    wanted = reference(t, motion)
    omega, zeta = loop[0] * motion.omega, loop[1] * ZETA
    kp, kv = omega / (2.0 * zeta), 2.0 * zeta * omega * INERTIA
    state = np.concatenate([wanted[0][0], np.zeros(2)])
    states, tau = np.empty((t.size, 4)), np.empty((t.size, 2))
    for k, q in enumerate(wanted[0]):
        states[k] = state
        tau[k] = kv * (kp * (q - state[:2]) - state[2:])
        state = odeint(acceleration, state, (0.0, 1.0 / RATE), (*tau[k],), rtol=1e-9, atol=1e-11)
        state = state[-1]
    rng = np.random.default_rng(seed)
    noise = TORQUE_NOISE * tau.std(axis=0) * rng.normal(size=tau.shape)
    position = states[:, :2] + POSITION_NOISE * rng.normal(size=tau.shape)
    return Data(motion, wanted, states, position, tau + noise)


def differentiated(q: np.ndarray, rate: float, cutoff: float) -> tuple[np.ndarray, ...]:
    """Return q, q̇, q̈ (K, 2) as IDIM sees them: low-passed (0: not), central differences."""
    if cutoff > 0.0:
        q = sosfiltfilt(butter(4, cutoff / (rate / 2.0), output='sos'), q, axis=0)
    dq = np.gradient(q, 1.0 / rate, axis=0)
    return q, dq, np.gradient(dq, 1.0 / rate, axis=0)
