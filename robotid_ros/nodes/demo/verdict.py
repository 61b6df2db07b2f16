"""Whether a session on a simulated robot found that robot again."""

from dataclasses import dataclass

from ...files.results import count_within_sigma, Results

# What a session has to reach: relative residual on the validation, true parameters within ±3σ.
MAX_RESIDUAL, MIN_SHARE_WITHIN = 0.03, 0.9


@dataclass(frozen=True)
class Verdict:
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


def verdict_of(results: Results) -> Verdict:
    """Judge results beside which the true parameters stand."""
    worst = max((row.moving for row in results.validation), default=float('inf'))
    return Verdict(*count_within_sigma(results.base), worst)
