"""Whether a session on a simulated robot found that robot again."""

from dataclasses import dataclass

from ...core.verdict import THRESHOLDS
from ...files.results import count_within_sigma, Results

# What a session has to reach: relative residual on the validation, true parameters within ±3σ.
MAX_RESIDUAL, MIN_SHARE_WITHIN = (
    THRESHOLDS[name].value for name in ('recovered', 'recovered_share')
)


@dataclass(frozen=True)
class Recovery:
    """
    How well a simulated robot was found again.

    Parameters
    ----------
    inside, known : base parameters within ±3σ of the truth, and those whose truth is known
    residual : largest relative residual of a moving joint on the validation motion

    """

    inside: int
    known: int
    residual: float

    @property
    def passed(self) -> bool:
        """Whether enough true parameters lie within ±3σ and the residual is small."""
        enough = self.known and self.inside >= MIN_SHARE_WITHIN * self.known
        return bool(enough and self.residual <= MAX_RESIDUAL)

    def __str__(self) -> str:
        return (
            f'{self.inside} of {self.known} true base parameters lie within ±3σ; the largest '
            f'validation residual of a moving joint is {100 * self.residual:.2f} %'
        )


def recovery_of(results: Results) -> Recovery:
    """Return how well the truth, which stands beside results, was found again."""
    worst = max((row.moving for row in results.validation), default=float('inf'))
    return Recovery(*count_within_sigma(results.base), worst)
