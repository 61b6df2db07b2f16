"""Folds that extrapolate: parts of a motion that differ from what is left of it."""

import numpy as np
import numpy.typing as npt

from ..arrays import Array

# Blocks of time. Of the motion's speeds and positions, the outer quarters.
BLOCKS, OUTER = 8, 0.25


def folds(q: Array, dq: Array, used: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """
    Return which rows each fold holds (F, N): blocks of time, extreme speeds, extreme positions.

    A block of time is like its neighbours, and a term that only interpolates predicts it well;
    another motion is faster, slower, or elsewhere (Roberts et al. 2017). The positions' directions
    are the first two principal ones.

    Parameters
    ----------
    q, dq : (N, n) of the rows
    used : (N,) rows to be divided

    """
    place = np.flatnonzero(used)
    time = np.zeros(len(q), dtype=int)
    time[place] = np.arange(len(place)) * BLOCKS // max(len(place), 1)
    found = [used & (time == k) for k in range(BLOCKS)]
    scale = np.maximum(np.quantile(np.abs(dq[place]), 0.95, axis=0), 1e-9)
    speed = np.linalg.norm(dq / scale, axis=1)
    spread = q - q[place].mean(axis=0)
    directions = np.linalg.svd(spread[place], full_matrices=False)[2][:2]
    for values in (speed, *(spread @ direction for direction in directions)):
        low, high = np.quantile(values[place], (OUTER, 1.0 - OUTER))
        found += [used & (values <= low), used & (values >= high)]
    return np.array([fold for fold in found if fold.any() and not fold[place].all()])
