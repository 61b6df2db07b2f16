"""What the names of columns say: quantity, unit, measured or commanded."""

from collections.abc import Sequence
from dataclasses import dataclass
import re

from .column_words import IDIOMS, MEASURED, NEUTRAL, OTHER, REFERENCE, UNIT_WORDS, WORDS, words_of
from .units import canonical, CURRENTS, FACTORS, quantity_of, unit_in_name

Key = int | str | None

# A derivative where it is in front, d_theta, and what is desired behind, theta_d.
_DERIVATIVES = re.compile(r'\b(dd?) (?:q|theta|th)\b')
# A unit between brackets: no index, but per mille.
BRACKETS = re.compile(r'[\[(]\s*([^\[\](){}\d][^\[\](){}]*|[\d.]+ ?%|100 ?ns|1/[a-z]+)[\])]\s*$')


@dataclass(frozen=True)
class Meaning:
    """
    What a name says.

    Attributes
    ----------
    quantity : a key of `WORDS` but 'current', which is an 'effort'
    reference : it is commanded, not measured
    current : it is a current
    unit : canonical, '' where the name has none; one for each column between commas
    score : higher where more of its words are known

    """

    quantity: str
    reference: bool
    current: bool
    unit: str
    score: int


def understand(pattern: str) -> Meaning | None:
    """Return what a pattern says, None where that is nothing or something else."""
    bracketed = BRACKETS.search(pattern)
    text = pattern[: bracketed.start()] if bracketed else pattern
    text = re.sub(r'\{\w+\}', ' ', text)
    raw = words_of(text)
    raw = tuple(_DERIVATIVES.sub(r'\1q', ' '.join(raw)).split())
    words = set(raw)
    found = [quantity for quantity, known in WORDS.items() if words & known]
    if 'current' in found and len(found) > 1:
        found.remove('current')  # the present one
    if words & OTHER:
        return None
    if not found:
        return _by_idiom_or_unit(words, bracketed.group(1) if bracketed else '')
    quantity = _one_quantity(found, words)
    if quantity is None:
        return None
    current = quantity == 'current'
    quantity = 'effort' if current else quantity
    unit = (
        unit_in_name(raw, bracketed.group(1) if bracketed else '', quantity)
        if (quantity in FACTORS)
        else ''
    )
    return Meaning(quantity, bool(words & REFERENCE), current, unit, _score(quantity, words))


def _score(quantity: str, words: set[str]) -> int:
    known = WORDS[quantity] | REFERENCE | MEASURED | NEUTRAL | WORDS['current']
    return len(words & MEASURED) - 2 * len(words - known - UNIT_WORDS)


def _by_idiom_or_unit(words: set[str], bracketed: str) -> Meaning | None:
    """Return what names without a word for a quantity say: `action`, `J1 (Nm)`."""
    if found := IDIOMS.get(frozenset(words)):
        return Meaning(*found, False, '', 0)
    quantity = quantity_of(bracketed)
    if not quantity:
        return None
    unit = canonical(bracketed)
    score = _score(quantity, words) - 1
    return Meaning(quantity, bool(words & REFERENCE), unit in CURRENTS, unit, score)


def _one_quantity(found: Sequence[str], words: set[str]) -> str | None:
    """Choose between several: `q_dot` is a velocity, `header.stamp` a time."""
    if 'time' in found and len(found) > 1 and words & WORDS['time'] <= {'t', 'sec', 's'}:
        found = [quantity for quantity in found if quantity != 'time']
    if found in (['position', 'velocity'], ['position', 'acceleration']):
        found = found[words & WORDS['position'] <= {'ang', 'angle'} :]  # ang_vel
    if len(found) > 1:
        return None
    if found == ['position'] and words & {'dot', 'ddot'}:
        return 'acceleration' if words & {'ddot', 'd'} else 'velocity'
    return found[0]
