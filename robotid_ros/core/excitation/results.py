"""What a design gives: the trajectory, its figures, and how it was found."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ...exceptions import TrajectoryError
from .trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class Progress:
    """State of a running design; `criterion` is the best feasible one so far, or None."""

    elapsed: float
    evaluations: int
    criterion: float | None
    phase: str
    fraction: float = 0.0


# Called as the design goes on; what is true stops it, and the best so far is kept.
ProgressCallback = Callable[[Progress], bool | None]


@dataclass(frozen=True)
class Usage:
    """
    Largest share of each limit that a motion uses, (n,) per quantity; 1 is the limit itself.

    `position` is measured from the middle of the range; `distance` is the smallest between bodies
    [m], None when there is nothing to collide with.
    """

    position: tuple[float, ...]
    velocity: tuple[float, ...]
    acceleration: tuple[float, ...]
    jerk: tuple[float, ...]
    effort: tuple[float, ...]
    distance: float | None = None


@dataclass(frozen=True)
class Design:
    """
    A designed trajectory with the evidence for it.

    Parameters
    ----------
    trajectory : what identifies
    validation : what validates, or None
    criterion : name of what was minimised
    value : its value
    columns : names of the columns that the figures are about
    condition_numbers : 'raw', 'normalised' and 'frobenius' of these columns
    singular_values : of the weighted observation matrix / √N, descending
    usage : shares of the limits used by the trajectory
    limits : the limits, by quantity
    history : (evaluations, best feasible criterion) as the design went on
    seed, solver, evaluations : how it was found
    notes : sentences that a user should read
    unchecked : what is not checked in the workspace, a sentence each
    shortcomings : why the design is poor, a sentence each; such a motion is not run
    elapsed : how long it took [s]; not kept in files, which the seed alone decides

    """

    trajectory: Trajectory
    validation: Trajectory | None
    criterion: str
    value: float
    columns: tuple[str, ...]
    condition_numbers: dict[str, float]
    singular_values: tuple[float, ...]
    usage: Usage
    limits: dict[str, tuple[float, ...]]
    history: tuple[tuple[int, float], ...]
    seed: int
    solver: str
    evaluations: int
    notes: tuple[str, ...] = field(default=())
    unchecked: tuple[str, ...] = field(default=())
    shortcomings: tuple[str, ...] = field(default=())
    elapsed: float = field(default=0.0, compare=False)

    def __repr__(self) -> str:
        t = self.trajectory
        return (
            f'<{t.family} of {t.period:g} s for {", ".join(t.joints)}: {self.criterion} '
            f'{self.value:.4g}, {self.verdict}>'
        )

    @property
    def verdict(self) -> str:
        """'good', or 'poor' where there are shortcomings."""
        return 'poor' if self.shortcomings else 'good'

    def to_dict(self) -> dict[str, Any]:
        """Describe the design by plain values; `from_dict` gives exactly the same one back."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.compare}
        values['trajectory'] = self.trajectory.to_dict()
        values['validation'] = self.validation and self.validation.to_dict()
        return {**values, 'usage': asdict(self.usage), 'verdict': self.verdict}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> 'Design':
        """
        Build a design from what `to_dict` gave.

        Raises
        ------
        TrajectoryError : a key is missing, unknown or cannot be read

        """
        try:
            known = {f.name: _frozen(values[f.name]) for f in fields(cls) if f.name in values}
            known['trajectory'] = Trajectory.from_dict(values['trajectory'])
            validation = values['validation']
            known['validation'] = validation and Trajectory.from_dict(validation)
            usage = {key: _frozen(value) for key, value in values['usage'].items()}
            return cls(**{**known, 'usage': Usage(**usage)})
        except (KeyError, TypeError, AttributeError) as error:
            raise TrajectoryError(
                f'a trajectory file cannot be read ({type(error).__name__}: {error}): design again'
            ) from error


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
