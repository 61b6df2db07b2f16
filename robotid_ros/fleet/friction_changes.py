"""Changes of friction from one session of a robot to the next, temperature taken out."""

from collections.abc import Sequence
import dataclasses
from datetime import datetime

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from ..core.arrays import Array
from .fleet_table import Robots

# Places of the sessions of a robot, in the order of time.
Places = npt.NDArray[np.intp]
# Sessions of a robot below which nothing is said of its changes.
FEWEST_SESSIONS = 3
# Median of the variance of two values over its mean, for Gaussian noise: χ² with one degree.
MEDIAN_OF_SQUARES = 0.4549
# Degrees of freedom that a median of squares keeps, as a share of those of their mean.
EFFICIENCY = 0.37
# Temperatures of two sessions whose difference says something [K].
LEAST_KELVIN = 0.5


@dataclasses.dataclass(frozen=True)
class FrictionChange:
    """A step of a parameter of a robot, the likeliest one."""

    robot: int
    parameter: int  # both by their places
    since: datetime | None
    number: int  # place of the first session with the new value
    before: float  # mean of the sessions before
    step: float
    z: float  # step over its standard error
    p: float  # of so large a step by chance, all places in time counted


def find_changes(robots: Robots, kept: Sequence[int]) -> list[FrictionChange]:
    """
    Return the likeliest change of each friction parameter of each robot that is kept.

    Sessions are compared with how much those of one robot differ anyway: σ of successive
    differences, by their median over the robots of the type, which few that change do not move.
    """
    places = [robots.of(robot) for robot in kept]
    places = [own for own in places if len(own) >= FEWEST_SESSIONS]
    found: list[FrictionChange] = []
    if not places:
        return found
    kelvin = _from_typical(robots.temperatures)
    # σ of the slope over that of a session.
    spread = sum(float(np.sum((kelvin[own] - kelvin[own].mean()) ** 2)) for own in places)
    slope_error = float(np.sqrt(np.pi / 2.0 / spread)) if spread > 0.0 else 0.0
    for parameter in np.flatnonzero(robots.friction):
        values = robots.sessions[:, parameter]
        values = values - temperature_slope(values, kelvin, places) * kelvin
        squares = np.concatenate([np.diff(values[own]) ** 2 / 2.0 for own in places])
        freedom = max(EFFICIENCY * len(squares), 1.0)
        floor = float(np.median(robots.session_sigmas[np.concatenate(places), parameter])) / 2.0
        sigma = max(float(np.sqrt(np.median(squares) / MEDIAN_OF_SQUARES)), floor)
        for own in places:
            number, *step = _largest_step(values[own], kelvin[own], sigma, slope_error, freedom)
            since, robot = robots.times[own[number]], int(robots.owner[own[0]])
            found.append(FrictionChange(robot, int(parameter), since, number, *step))
    return found


def _largest_step(
    values: Array, kelvin: Array, sigma: float, slope_error: float, freedom: float
) -> tuple[int, float, float, float, float]:
    """
    Return place, mean before, step, step over its error, and p of the largest step.

    The error counts that of the slope, which a step of the temperatures multiplies.
    """
    count = len(values)
    steps = []
    for k in range(1, count):
        before, after = float(values[:k].mean()), float(values[k:].mean())
        warmer = float(kelvin[k:].mean() - kelvin[:k].mean())
        error = sigma * np.hypot(np.sqrt(1.0 / k + 1.0 / (count - k)), slope_error * warmer)
        steps.append((k, before, after - before, (after - before) / max(error, 1e-300)))
    number, mean, step, z = max(steps, key=lambda each: abs(each[3]))
    p = 2.0 * (count - 1) * float(t.sf(abs(z), freedom))
    return number, mean, step, float(z), min(p, 1.0)


def _from_typical(temperatures: Array) -> Array:
    """Return temperatures less their median [K], zero where one is not known."""
    known = np.isfinite(temperatures)
    typical = np.median(temperatures[known]) if known.any() else 0.0
    return np.where(known, temperatures - typical, 0.0)


def temperature_slope(values: Array, kelvin: Array, places: Sequence[Places]) -> float:
    """
    Return what a kelvin adds to values (S,), of all robots of a type.

    It is the weighted median of the slopes between two sessions of one robot (Theil 1950, Sen
    1968; weights by their distance), which changes of a few robots do not move.
    """
    slopes, weights = list[float](), list[float]()
    for own in places:
        first, second = np.triu_indices(len(own), 1)
        warmer = kelvin[own][second] - kelvin[own][first]
        use = np.abs(warmer) > LEAST_KELVIN
        rise = values[own][second] - values[own][first]
        slopes += (rise[use] / warmer[use]).tolist()
        weights += np.abs(warmer[use]).tolist()
    if not slopes:
        return 0.0
    order = np.argsort(slopes)
    share = np.cumsum(np.array(weights)[order])
    return slopes[int(order[np.searchsorted(share, share[-1] / 2.0)])]


def temperature_slopes(robots: Robots) -> Array:
    """Return what a kelvin adds to each friction parameter (b,), NaN where nothing says it."""
    kelvin = _from_typical(robots.temperatures)
    places = [robots.of(robot) for robot in range(len(robots.names))]
    slopes = np.full(robots.base.rank, np.nan)
    if np.ptp(kelvin) > LEAST_KELVIN:
        for parameter in np.flatnonzero(robots.friction):
            slopes[parameter] = temperature_slope(robots.sessions[:, parameter], kelvin, places)
    return slopes
