"""Friction that falls while a joint warms up: where to look for it, and over which ways."""

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from ..model.friction import FrictionTerm, make_terms, TERMS, WARM_UPS

# Ways over which friction falls, over the way of a joint in the recording: early in it, and all
# through it. They are refined in between.
SHARES = (0.2, 1.0)
# Of the squared error a friction that falls from block to block has to save so much before its
# columns are computed: half of what they have to earn.
SUSPICIOUS = 0.025


def saved_by_falling(
    products: Array, places: npt.NDArray[np.intp], friction: int, value: Array
) -> float:
    """
    Return which share of a joint's squared error it saves that a friction falls block by block.

    Parameters
    ----------
    products : (K, c, c) [W F Y]ᵀ [W F Y] of the joint's rows in each block
    places : columns of the model
    friction : column of the friction that is to fall
    value : (c - 1,) parameters of all columns

    """
    blocks = np.arange(len(products))
    cold = (blocks.mean() - blocks) / len(blocks)
    model = np.append(-value, 1.0)
    errors = products @ model
    error = float(model @ errors.sum(axis=0))
    normal = products.sum(axis=0)[np.ix_(places, places)]
    crossed = cold @ products[:, friction, places]
    along = np.linalg.lstsq(normal, crossed, rcond=1e-12)[0]
    own = float(cold**2 @ products[:, friction, friction] - crossed @ along)
    # Other columns of the joint make up for a part of it.
    score = float(cold @ errors[:, friction] - along @ errors.sum(axis=0)[places])
    if own <= 0.0 or error <= 0.0:
        return 0.0
    return float(np.sign(score)) * score**2 / (own * error)


def warm_up_terms(way: float) -> list[tuple[FrictionTerm, ...]]:
    """Return terms, viscous and Coulomb friction that falls, for each way that is tried [rad]."""
    constants = [constant for name in WARM_UPS for constant in TERMS[name].constants]
    return [make_terms(WARM_UPS, dict.fromkeys(constants, share * way)) for share in SHARES]
