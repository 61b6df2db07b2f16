"""What an identification is held against: a loop tuned for its robot, the least variance."""

import numpy as np

from robotid_ros.core.elastic_joints.elastic_estimation import LinearisedPeriod
from robotid_ros.core.replay.control_laws import CascadeControl


def tuned_pd(rate, natural_frequency, damping, inertia, gain=1.0):
    """
    Tune the law of DIDIM eq. 53, v_τ = k_p k_v (q_r − q) − k_v q̇, by eq. 58.

    With drive gains g_τ: k_p = ω_n/(2ζ), k_v = 2 ζ ω_n J/g_τ.
    """
    omega, zeta, gain = np.asarray(natural_frequency), np.asarray(damping), np.asarray(gain)
    kv = 2.0 * zeta * omega * np.asarray(inertia) / gain
    kp = np.broadcast_to(omega / (2.0 * zeta), kv.shape)
    return CascadeControl(rate, kp, kv, gain=np.broadcast_to(gain, kv.shape))


def cramer_rao_bound(periods, robot, base, value):
    """
    Return the covariance (b, b) that no unbiased estimate falls below (Cramér and Rao).

    Torques are right to 1e-4 but for an unknown delay, and friction is as modelled at all times.
    `periods` are of a motion free of noise, with the noise that encoders would add; `value` (b,)
    are the true base parameters.
    """
    problem = LinearisedPeriod(periods, robot, base, np.inf)
    return problem.step(value, problem.measured, np.zeros(robot.n), [], 0.0).covariance
