"""Which robot of a fleet is not like the others, and which one changes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.stats import f, t

from ..core.arrays import Array
from ..core.finding_codes import finding
from ..core.findings import Finding
from ..core.regression.estimate import holm
from ..core.regression.observation_system import Factors
from .pooling import Robots

# Chance that any robot of a fleet in which nothing is wrong is accused, of each kind.
SIGNIFICANT = 0.01
# Robots of a type below which none can differ from the others.
FEWEST = 4
# A joint's efforts are inverted where so large a share of them is explained once they are turned.
EXPLAINED = 0.5
# Names of findings. Their values have type and robot, and p of as much by chance, all robots and
# parameters counted.
SIGN, PAYLOAD = 'inverted_effort', 'undeclared_payload'
OUTLIER, DRIFT = 'outlier', 'friction_drift'
# Sessions of a robot below which nothing is said of its changes.
FEWEST_SESSIONS = 3
# Median of the variance of two values over its mean, for Gaussian noise: χ² with one degree.
MEDIAN_OF_SQUARES = 0.4549
# Degrees of freedom that a median of squares keeps, as a share of those of their mean.
EFFICIENCY = 0.37


def find_changes(
    robots: Robots, kept: Sequence[int]
) -> Iterator[tuple[float, float, dict[str, Any]]]:
    """
    Yield the likeliest change of each friction parameter of each robot that is kept.

    Its step over the error of that, p of so large a step by chance, all places in time counted,
    and the values of its finding.

    Sessions are compared with how much those of one robot differ anyway: σ of successive
    differences, by their median over the robots of the type, which few that change do not move.
    """
    places = [robots.of(robot) for robot in kept]
    places = [own for own in places if len(own) >= FEWEST_SESSIONS]
    if not places:
        return
    for parameter in np.flatnonzero(robots.friction):
        values = robots.sessions[:, parameter]
        squares = np.concatenate([np.diff(values[own]) ** 2 / 2.0 for own in places])
        freedom = max(EFFICIENCY * len(squares), 1.0)
        floor = float(np.median(robots.session_sigmas[np.concatenate(places), parameter])) / 2.0
        sigma = max(float(np.sqrt(np.median(squares) / MEDIAN_OF_SQUARES)), floor)
        for own in places:
            number, before, step, z, p = _largest_step(values[own], sigma, freedom)
            time = robots.times[own[number]]
            yield (
                z,
                p,
                {
                    'type': robots.type,
                    'robot': robots.names[robots.owner[own[0]]],
                    'parameter': robots.base.names[parameter],
                    'unit': robots.base.units[parameter],
                    'before': before,
                    'step': step,
                    'share': step / max(abs(before), 1e-300),
                    'since': f'{time:%Y-%m-%d}' if time else f'its session {number + 1}',
                },
            )


def _largest_step(
    values: Array, sigma: float, freedom: float
) -> tuple[int, float, float, float, float]:
    """Return place, mean before, step, step over its error, and p of the largest step."""
    count = len(values)
    steps = []
    for k in range(1, count):
        before, after = float(values[:k].mean()), float(values[k:].mean())
        error = sigma * np.sqrt(1.0 / k + 1.0 / (count - k))
        steps.append((k, before, after - before, (after - before) / max(error, 1e-300)))
    number, mean, step, z = max(steps, key=lambda each: abs(each[3]))
    p = 2.0 * (count - 1) * float(t.sf(abs(z), freedom))
    return number, mean, step, float(z), min(p, 1.0)


def effort_gains(system: Factors, typical: Array) -> tuple[Array, Array]:
    """
    Compare the efforts of a robot with what typical parameters (b,) predict.

    Returns (n,) g of Y_j = g W_j χ + ρ by least squares, and the share of Y_j that g W_j χ leaves.
    """
    predicted = np.asarray(system.W @ typical)
    power = np.maximum((predicted**2).sum(axis=1), 1e-300)
    gain = (predicted * system.Y).sum(axis=1) / power
    rest = np.linalg.norm(system.Y - gain[:, None] * predicted, axis=1)
    return gain, rest / np.maximum(np.linalg.norm(system.Y, axis=1), 1e-300)


def inverted_joints(robots: Robots, systems: Iterable[Factors]) -> list[Finding]:
    """Find joints whose efforts have the opposite sign of the other robots'."""
    if len(robots.names) < FEWEST:
        return []
    typical = np.median(robots.values, axis=0)
    return [
        finding(SIGN, [joint], type=robots.type, robot=name, gain=gain)
        for name, system in zip(robots.names, systems, strict=True)
        for joint, gain, left in zip(system.joints, *effort_gains(system, typical), strict=True)
        if gain < 0.0 and left < 1.0 - EXPLAINED
    ]


def deviation(robots: Robots, robot: int, others: Sequence[int]) -> tuple[Array, Array]:
    """Return the difference of a robot from the mean of others (b,), and its scale (b,)."""
    values = robots.values[list(others)]
    noise = np.median(robots.sigmas, axis=0)
    scale = np.maximum(values.std(axis=0, ddof=1), noise) * np.sqrt(1.0 + 1.0 / len(values))
    return robots.values[robot] - values.mean(axis=0), scale


def payload_columns(robots: Robots) -> Array:
    """Return what mass and first moments at the last link add to the base parameters (b, 4)."""
    last = robots.model.joints[-1]
    symbols = ('M', 'MX', 'MY', 'MZ')
    known = {(p.joint, p.symbol): k for k, p in enumerate(robots.model.parameters)}
    columns = [robots.base.matrix[:, known[last, s]] for s in symbols if (last, s) in known]
    return np.column_stack(columns) if columns else np.zeros((robots.base.rank, 0))


def payload_test(
    robots: Robots, difference: Array, scale: Array, freedom: int
) -> tuple[float, float]:
    """
    Return p that a body at the last link explains a `deviation` by chance, and its mass [kg].

    F of the squares that the body explains, over those of others' spread; parameters of links
    alone, in units of their scale. p is 1 where a body explains less than half of the squares.
    """
    use = robots.inertial & (scale > 0.0)
    columns = payload_columns(robots)[use] / scale[use, None]
    z = difference[use] / scale[use]
    size = np.linalg.norm(columns, axis=0)
    if not size.any():
        return 1.0, 0.0
    size[size == 0.0] = 1.0
    solution, _, rank, _ = np.linalg.lstsq(columns / size, z, rcond=1e-9)
    explained = float(np.sum((columns @ (solution / size)) ** 2))
    if explained < EXPLAINED * float(z @ z):
        return 1.0, 0.0
    count = max(int(rank), 1)
    return float(f.sf(explained / count, count, freedom)), float(solution[0] / size[0])


def unlike_the_others(robots: Robots, left_out: set[str], level: float) -> list[Finding]:
    """
    Find robots whose parameters are not those of the others, but those that are left out.

    The robot that differs most is taken away first, so that it does not hide the next one. `level`
    is the chance of accusing any of them wrongly.
    """
    rest = [k for k, name in enumerate(robots.names) if name not in left_out]
    found: list[Finding] = []
    while len(rest) >= FEWEST:
        freedom = len(rest) - 2
        own = [deviation(robots, robot, [k for k in rest if k != robot]) for robot in rest]
        bodies = [payload_test(robots, *each, freedom) for each in own]
        payloads = holm(np.array([p for p, _ in bodies]))
        times = np.abs([difference / scale for difference, scale in own])
        singles = holm(2.0 * t.sf(times, freedom))
        worst = int(np.argmin(np.minimum(payloads, singles.min(axis=1))))
        whose = {'type': robots.type, 'robot': robots.names[rest[worst]]}
        k = int(np.argmin(singles[worst]))
        if payloads[worst] <= level:
            last, mass = robots.model.joints[-1], bodies[worst][1]
            found.append(finding(PAYLOAD, [last], mass=mass, p=payloads[worst], **whose))
        elif singles[worst, k] <= level:
            parameter = {'parameter': robots.base.names[k], 'unit': robots.base.units[k]}
            size = {'difference': own[worst][0][k], 'times': times[worst, k]}
            found.append(finding(OUTLIER, p=singles[worst, k], **whose, **parameter, **size))
        else:
            break
        del rest[worst]
    return found


def find_all(types: Sequence[tuple[Robots, Iterable[Factors]]]) -> list[Finding]:
    """Find all that is wrong in a fleet: robots of each type, and the merged factors of each."""
    found: list[Finding] = []
    kept = []
    for robots, systems in types:
        own = inverted_joints(robots, systems)
        left_out = {each.values['robot'] for each in own}
        own += unlike_the_others(robots, left_out, SIGNIFICANT / len(types))
        kept.append((robots, left_out))
        found += own
    return [*found, *drifts(kept)]


def drifts(types: Sequence[tuple[Robots, set[str]]]) -> list[Finding]:
    """
    Find robots whose friction changed: of each the clearest change, all of them counted.

    Robots of each type, and the names of those that are left out.
    """
    every = [
        change
        for robots, left_out in types
        for change in find_changes(
            robots, [k for k, name in enumerate(robots.names) if name not in left_out]
        )
    ]
    adjusted = holm(np.array([p for _, p, _ in every]))
    best: dict[tuple[str, str], tuple[float, Finding]] = {}
    for (z, _, values), p in zip(every, adjusted.tolist(), strict=True):
        whose = values['type'], values['robot']
        if p <= SIGNIFICANT and (whose not in best or best[whose][0] < abs(z)):
            best[whose] = abs(z), finding(DRIFT, p=p, **values)
    return [drift for _, drift in best.values()]
