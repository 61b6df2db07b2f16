"""Results beside others: of other sessions and methods, and on other recordings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import math

from .results import Entry, Residual, Results

# The sets of parameters that predict the same recording.
BASE, STANDARD, PRIOR = 'base', 'standard', 'prior'
# Residuals that differ by less are the same [share of the effort].
SAME = 2e-4


@dataclass(frozen=True)
class CheckedParameters:
    """
    What identified parameters predict of a recording.

    Attributes
    ----------
    identified : the result they are of
    checked : the same with residuals, torques, data and findings of this recording alone
    sets : residuals by set of parameters: `BASE`, `STANDARD`, `PRIOR`

    """

    identified: Results
    checked: Results
    sets: Mapping[str, tuple[Residual, ...]]

    def explanation(self) -> list[str]:
        """Say why these residuals differ from those of the validation in the identification."""
        before = {row.joint: row for row in self.identified.validation}
        if not before:
            return ['The identification had no validation to compare with.']
        pairs = [
            (row, before[row.joint]) for row in self.checked.validation if row.joint in before
        ]
        apart = [f'{row.joint} {100 * old.relative:.2f} → {100 * row.relative:.2f} %'
                 for row, old in pairs if abs(row.relative - old.relative) > SAME]  # fmt: skip
        if not apart:
            return ['The residuals are those of the validation in the identification.']
        return [f'Different from the validation in the identification: {", ".join(apart)}.']


# Difference of two results over its σ from which it is none of noise.
LARGE = 3.0


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

    @property
    def large(self) -> bool:
        """Whether it is more than noise explains."""
        return self.normalised is not None and abs(self.normalised) > LARGE


def differences(first: Sequence[Entry], second: Sequence[Entry]) -> list[Difference]:
    """
    Compare the parameters that both have.

    Base parameters count as the same where they are the same combination of standard parameters:
    other friction or other joints leave other ones.
    """
    others, found = {(entry.name, entry.combination): entry for entry in second}, []
    for a in first:
        if b := others.get((a.name, a.combination)):
            sigma, change = math.hypot(a.sigma, b.sigma), b.value - a.value
            normalised = change / sigma if sigma and math.isfinite(sigma) else None
            values = (a.value, a.sigma, b.value, b.sigma, change, normalised)
            found.append(Difference(a.name, a.unit, *values))
    return found
