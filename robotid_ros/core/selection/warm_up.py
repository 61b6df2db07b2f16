"""Friction that changes with a joint's temperature: where to look for it, and by which shapes."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from ..model.friction import BY_TEMPERATURE, FrictionTerm, make_terms, TERMS, WARM_UPS
from ..signals.recording import Recording

# Ways over which friction falls, over the way of a joint in the recording: early in it, and all
# through it. They are refined in between.
SHARES = (0.2, 1.0)
# Mean temperatures of two blocks have to differ by so much [K]: drives round to a degree, and
# other columns of a recording that is about as warm throughout would stand in for friction.
LEAST_RANGE = 3.0
# Share of the recording, at its end, whose temperature is the reference.
LAST = 0.1
# Of the squared error a friction that changes from block to block has to save so much before its
# columns are computed: half of what they have to earn.
SUSPICIOUS = 0.025
# And that it falls at once is believed where that explains most of the error, and more than any
# other way: there are more places to fall at than ways to warm up, and errors that are neither.
MOST = 0.5
# Blocks at either end in which a jump of friction would look like one that falls all the way.
AWAY = 2


@dataclasses.dataclass(frozen=True)
class Change:
    """
    How friction of a joint may change along a recording.

    Attributes
    ----------
    what : 'temperature', or 'warm-up' where none is known
    of_blocks : (F, K) factors of what changes in each block, of any unit and zero; the first tells
        whether it changes at all
    falls : whether friction can only fall by them
    terms : viscous and Coulomb friction that changes so, by each shape that is tried

    """

    what: str
    of_blocks: Array
    falls: bool
    terms: list[tuple[FrictionTerm, ...]]


def possible_change(recording: Recording, edges: Array, joint: int) -> Change | None:
    """Return the change by the temperature of a joint (number), else by its way; None at rest."""
    if recording.temperature is not None:
        own = recording.temperature[:, joint]
        block = np.searchsorted(edges, recording.time, side='right') - 1
        means = np.bincount(block, own) / np.bincount(block)
        if np.ptp(means) >= LEAST_RANGE:
            reference = round(float(np.median(own[-int(LAST * len(own)) :])), 1)
            constants = {'reference_temperature': reference}
            return Change(
                'temperature', means[None], False, [make_terms(BY_TEMPERATURE, constants)]
            )
    position, time = recording.position[:, joint], recording.time
    way = np.cumsum(np.abs(np.diff(position, prepend=position[0])))
    if not way[-1] > 0.0:
        return None
    limits = np.clip(edges, time[0], time[-1])
    middle = np.interp(0.5 * (limits[1:] + limits[:-1]), time, way / way[-1])
    cold = np.vstack([1.0 - middle, np.exp(-middle / np.array(SHARES)[:, None])])
    return Change('warm-up', cold, True, warm_up_terms(float(way[-1])))


def saved_by_change(
    products: Array,
    places: npt.NDArray[np.intp],
    friction: int,
    value: Array,
    factors: Array,
    falls: bool,
) -> float:
    """
    Return which share of a joint's squared error it saves that a friction changes by blocks.

    The largest, of several ways to change.

    Parameters
    ----------
    products : (K, c, c) [W F Y]ᵀ [W F Y] of the joint's rows in each block
    places : columns of the model
    friction : column of the friction that is to change
    value : (c - 1,) parameters of all columns
    factors : (F, K) of the friction, block by block
    falls : whether it only counts where the friction is larger by the factors

    """
    model = np.append(-value, 1.0)
    errors = products @ model
    error = float(model @ errors.sum(axis=0))
    normal = products.sum(axis=0)[np.ix_(places, places)]
    largest = 0.0
    for factor in factors:
        crossed = factor @ products[:, friction, places]
        along = np.linalg.lstsq(normal, crossed, rcond=1e-12)[0]
        own = float(factor**2 @ products[:, friction, friction] - crossed @ along)
        # Other columns of the joint make up for a part of it.
        score = float(factor @ errors[:, friction] - along @ errors.sum(axis=0)[places])
        if own > 0.0 and error > 0.0 and not (falls and score < 0.0):
            largest = max(largest, score**2 / (own * error))
    return largest


def jumps(blocks: int) -> Array:
    """Return factors of a friction that falls at once, away from the ends, (J, K)."""
    return np.tri(blocks)[AWAY - 1 : blocks - AWAY]


def warm_up_terms(way: float) -> list[tuple[FrictionTerm, ...]]:
    """Return terms, viscous and Coulomb friction that falls, for each way that is tried [rad]."""
    constants = [constant for name in WARM_UPS for constant in TERMS[name].constants]
    return [make_terms(WARM_UPS, dict.fromkeys(constants, share * way)) for share in SHARES]
