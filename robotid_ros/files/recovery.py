"""How well a simulated robot was found again."""

from typing import NamedTuple

from ..core.verdict import THRESHOLDS
from .results import count_within_sigma, Results

# What a session has to reach: relative residual on the validation, true parameters within ±3σ.
MAX_RESIDUAL, MIN_SHARE_WITHIN = (THRESHOLDS[name] for name in ('recovered', 'recovered_share'))


class Recovery(NamedTuple):
    """How well a simulated robot was found again."""

    inside: int  # ±3σ of the truth, of so many base parameters of which that is known
    known: int
    residual: float  # the largest of a moving joint on the validation motion

    @property
    def passed(self) -> bool:
        """Whether enough true parameters lie within ±3σ and the residual is small."""
        enough = self.known and self.inside >= MIN_SHARE_WITHIN * self.known
        return bool(enough and self.residual <= MAX_RESIDUAL)

    def __str__(self) -> str:
        return (
            f'{self.inside} of {self.known} true base parameters lie within ±3σ; the largest '
            f'validation residual in motion is {100 * self.residual:.2f} %'
        )


def recovery_of(results: Results) -> Recovery:
    """Return how well the truth, which stands beside results, was found again."""
    worst = max((row.moving for row in results.validation), default=float('inf'))
    return Recovery(*count_within_sigma(results.base), worst)
