"""Results side by side: parameters with the same meaning, and the difference with its σ."""

from collections.abc import Sequence
from dataclasses import dataclass
import math

from ..results import Entry


@dataclass(frozen=True)
class Difference:
    """
    One parameter in two results; second minus first.

    Attributes
    ----------
    name, unit : of the parameter
    first, first_sigma, second, second_sigma : values [unit]
    difference : [unit]
    normalised : over its σ, of independent estimates; None where there is no σ

    """

    name: str
    unit: str
    first: float
    first_sigma: float
    second: float
    second_sigma: float
    difference: float
    normalised: float | None


def differences(first: Sequence[Entry], second: Sequence[Entry]) -> list[Difference]:
    """
    Compare the parameters that both have.

    Base parameters count as the same where they are the same combination of standard parameters:
    other friction or other joints leave other ones.
    """
    others = {_meaning(entry): entry for entry in second}
    pairs = ((entry, others.get(_meaning(entry))) for entry in first)
    return [_difference(a, b) for a, b in pairs if b is not None]


def _meaning(entry: Entry) -> tuple[str, str]:
    return entry.name, entry.combination


def _difference(a: Entry, b: Entry) -> Difference:
    sigma, change = math.hypot(a.sigma, b.sigma), b.value - a.value
    normalised = change / sigma if sigma and math.isfinite(sigma) else None
    return Difference(a.name, a.unit, a.value, a.sigma, b.value, b.sigma, change, normalised)
