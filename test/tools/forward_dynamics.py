"""The direct dynamic model, from the inverse one and the mass matrix."""

import numpy as np

from robotid_ros.core.model import inverse_dynamics, mass_matrix

# Iterations of acceleration and load-dependent friction, a bound against endless loops only.
MAX_LOAD_ITERATIONS = 100


def forward_dynamics(robot, chi, q, dq, tau):
    """Acceleration (n,), M(q) ddq = τ − h(q, dq) − friction (DIDIM eq. 2)."""
    state = np.atleast_2d(q), np.atleast_2d(dq)
    M, ddq = mass_matrix(robot, chi, q), np.zeros(robot.n)
    # Friction that grows with the load depends on the acceleration in turn.
    for _ in range(MAX_LOAD_ITERATIONS if robot.load_dependent else 1):
        rest = np.asarray(tau) - inverse_dynamics(robot, chi, *state, ddq[None])[0]
        step = np.linalg.solve(M, rest)
        ddq = ddq + step
        if np.linalg.norm(step) <= 1e-12 * np.linalg.norm(ddq):
            break
    return np.asarray(ddq)
