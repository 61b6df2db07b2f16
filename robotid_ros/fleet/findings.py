"""Which robot of a fleet is not like the others, and which one changes."""

from collections.abc import Iterable, Sequence
import dataclasses

import numpy as np
from scipy.stats import f as f_distribution, t as t_distribution

from ..core.arrays import Array
from ..core.finding_codes import finding
from ..core.findings import Finding
from ..core.regression.observation_system import Factors
from ..core.regression.random_effects import holm
from .fleet_table import Robots
from .friction_changes import find_changes, FrictionChange

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


def effort_gains(system: Factors, typical: Array) -> tuple[Array, Array]:
    """
    Compare the efforts of a robot with what typical parameters (b,) predict.

    Returns
    -------
    (n,) g of Y_j = g W_j χ + ρ by least squares, and the share of Y_j that g W_j χ leaves

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
    found = []
    for name, system in zip(robots.names, systems, strict=True):
        gains, rest = effort_gains(system, typical)
        for joint, gain, left in zip(system.joints, gains, rest, strict=True):
            if gain < 0.0 and left < 1.0 - EXPLAINED:
                whose = {'type': robots.type, 'robot': name}
                found.append(finding(SIGN, [joint], gain=gain, **whose))
    return found


@dataclasses.dataclass(frozen=True)
class RobotDeviation:
    """Difference of a robot from the mean of others (b,), its scale (b,), degrees of freedom."""

    difference: Array
    scale: Array
    freedom: int


def deviation(robots: Robots, robot: int, others: Sequence[int]) -> RobotDeviation:
    """Compare a robot with others, by their spread and the σ of both."""
    values = robots.values[list(others)]
    count = len(values)
    spread = values.std(axis=0, ddof=1)
    noise = np.median(robots.sigmas, axis=0)
    scale = np.sqrt(np.maximum(spread, noise) ** 2 * (1.0 + 1.0 / count))
    return RobotDeviation(robots.values[robot] - values.mean(axis=0), scale, count - 1)


def payload_columns(robots: Robots) -> Array:
    """Return what mass and first moments at the last link add to the base parameters (b, 4)."""
    last = robots.model.joints[-1]
    symbols = ('M', 'MX', 'MY', 'MZ')
    known = {(p.joint, p.symbol): k for k, p in enumerate(robots.model.parameters)}
    columns = [robots.base.matrix[:, known[last, s]] for s in symbols if (last, s) in known]
    return np.column_stack(columns) if columns else np.zeros((robots.base.rank, 0))


def payload_test(robots: Robots, found: RobotDeviation) -> tuple[float, float]:
    """
    Test whether a body at the last link explains a deviation.

    F of the squares that the body explains, over those of others' spread; parameters of links
    alone, in units of their scale.

    Returns
    -------
    p, and the mass [kg]; p is 1 where a body explains less than half of the squares

    """
    use = robots.inertial & (found.scale > 0.0)
    columns = payload_columns(robots)[use] / found.scale[use, None]
    z = found.difference[use] / found.scale[use]
    size = np.linalg.norm(columns, axis=0)
    if not size.any():
        return 1.0, 0.0
    scale = np.where(size > 0.0, size, 1.0)
    solution, _, rank, _ = np.linalg.lstsq(columns / scale, z, rcond=1e-9)
    explained = float(np.sum((columns @ (solution / scale)) ** 2))
    if explained < EXPLAINED * float(z @ z):
        return 1.0, 0.0
    count = max(int(rank), 1)
    p = float(f_distribution.sf(explained / count, count, found.freedom))
    return p, float(solution[0] / scale[0])


def unlike_the_others(robots: Robots, left_out: set[str], level: float) -> list[Finding]:
    """
    Find robots whose parameters are not those of the others.

    The robot that differs most is taken away first, so that it does not hide the next one.

    Parameters
    ----------
    robots : of one type
    left_out : names of robots of which it is known already that they differ
    level : chance of accusing any of them wrongly

    """
    rest = [k for k, name in enumerate(robots.names) if name not in left_out]
    found: list[Finding] = []
    while len(rest) >= FEWEST:
        tests = []
        for robot in rest:
            own = deviation(robots, robot, [k for k in rest if k != robot])
            payload, mass = payload_test(robots, own)
            single = 2.0 * t_distribution.sf(np.abs(own.difference / own.scale), own.freedom)
            tests.append((payload, mass, own, single))
        payloads = holm(np.array([test[0] for test in tests]))
        singles = holm(np.array([test[3] for test in tests]))
        worst = int(np.argmin(np.minimum(payloads, singles.min(axis=1))))
        name, own = robots.names[rest[worst]], tests[worst][2]
        if payloads[worst] <= level:
            found.append(_payload(robots, name, tests[worst][1], float(payloads[worst])))
        elif singles[worst].min() <= level:
            found.append(_outlier(robots, name, own, singles[worst]))
        else:
            break
        del rest[worst]
    return found


def _payload(robots: Robots, name: str, mass: float, p: float) -> Finding:
    joint = robots.model.joints[-1]
    whose = {'type': robots.type, 'robot': name}
    return finding(PAYLOAD, [joint], mass=mass, p=p, **whose)


def _outlier(robots: Robots, name: str, own: RobotDeviation, p: Array) -> Finding:
    place = int(np.argmin(p))
    difference = own.difference[place]
    return finding(
        OUTLIER,
        type=robots.type,
        robot=name,
        parameter=robots.base.names[place],
        unit=robots.base.units[place],
        difference=difference,
        times=abs(difference / own.scale[place]),
        p=p[place],
    )


def find_all(types: Sequence[tuple[Robots, Iterable[Factors]]]) -> list[Finding]:
    """
    Find all that is wrong in a fleet.

    Parameters
    ----------
    types : robots of each type, and the merged factors of each of them

    """
    found: list[Finding] = []
    steps = []
    for robots, systems in types:
        own = inverted_joints(robots, systems)
        left_out = {each.values['robot'] for each in own}
        own += unlike_the_others(robots, left_out, SIGNIFICANT / len(types))
        steps.append((robots, changes(robots, left_out)))
        found += own
    return [*found, *drifts(steps)]


def changes(robots: Robots, left_out: set[str]) -> list[FrictionChange]:
    """Return the candidates for changes of friction of the robots that are not left out."""
    kept = [k for k, name in enumerate(robots.names) if name not in left_out]
    return find_changes(robots, kept)


def drifts(types: Sequence[tuple[Robots, Sequence[FrictionChange]]]) -> list[Finding]:
    """
    Find robots whose friction changed: of each the clearest change, all of them counted.

    Parameters
    ----------
    types : robots of each type, and `changes` of them

    """
    every = [(robots, change) for robots, found in types for change in found]
    if not every:
        return []
    adjusted = holm(np.array([change.p for _, change in every]))
    best: dict[tuple[str, str], tuple[float, Robots, FrictionChange]] = {}
    for (robots, change), p in zip(every, adjusted.tolist(), strict=True):
        name = robots.type, robots.names[change.robot]
        if p <= SIGNIFICANT and (name not in best or abs(change.z) > abs(best[name][2].z)):
            best[name] = p, robots, change
    return [_drift(robots, name, change, p) for (_, name), (p, robots, change) in best.items()]


def _drift(robots: Robots, name: str, change: FrictionChange, p: float) -> Finding:
    parameter, unit = robots.base.names[change.parameter], robots.base.units[change.parameter]
    share = change.step / max(abs(change.before), 1e-300)
    date = change.since
    since = f'{date:%Y-%m-%d}' if date else f'its session {change.number + 1}'
    return finding(
        DRIFT,
        type=robots.type,
        robot=name,
        parameter=parameter,
        unit=unit,
        before=change.before,
        step=change.step,
        share=share,
        since=since,
        p=p,
    )
