"""When a motion began, from the controller's own reference; no ROS in here."""

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Array
from ...core.excitation import Waypoints


def estimate_start(points: Waypoints, stamp: NDArray[np.int64], reference: Array) -> int | None:
    """
    Find the start of a motion that was sent with stamp 0 = 'at the next update'.

    The controller's reference at stamp t is the interpolation of the points at t − t0. Starting
    from the last sample at rest, Gauss-Newton finds the t0 that explains all samples.

    Parameters
    ----------
    points : what was sent
    stamp : (K,) stamps of the controller's states since the goal was sent [ns]
    reference : (K, n) their reference positions

    Returns
    -------
    The start [ns], None while the samples do not tell it yet.

    """
    moved = np.abs(reference - points.q[0]).max(axis=1) > 1e-9
    scale = np.abs(points.q - points.q[0]).max()
    if np.abs(reference - points.q[0]).max(initial=0.0) < 1e-3 * scale or not moved.any():
        return None
    first = int(np.argmax(moved))
    rows = slice(first, None)
    t = (stamp[rows] - stamp[first]) * 1e-9
    start = -1e-3 if first == 0 else (stamp[first - 1] - stamp[first]) * 1e-9
    for _ in range(20):
        motion = points.sample(np.clip(t - start, 0.0, points.duration))
        residual = motion.q - reference[rows]
        step = float(np.sum(motion.dq * residual) / max(np.sum(motion.dq**2), 1e-300))
        start += np.clip(step, -0.05, 0.05)
        if abs(step) < 1e-9:
            return int(stamp[first]) + round(start * 1e9)
    return int(stamp[first])
