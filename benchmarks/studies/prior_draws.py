"""
Are consistent parameters nearer to the truth than the prior? 100 draws of the prior.

    python benchmarks/studies/prior_draws.py [--robots ur10 tx40 arm3] [--levels 1 5] [--check]

Robots of `config/` by MuJoCo's dynamics, ten motions of 10 s each with torque noise of a share of
its root mean square. Of each draw of the prior masses, centres of mass, inertias about these,
rotors and friction are 20 % more or less than the truth. Counted: in how many draws the physically
consistent standard parameters are nearer to the truth than their prior was; by links, in units of
the true link, see `distance`, which is asked for, and by all parameters as a vector, which mixes
kg with kg·m².
"""

from collections.abc import Iterator
from dataclasses import replace
import sys

import _benchmarks  # noqa: F401
from common import command_line, verdict
from didim_tx40 import truth
from disturbances import plant, run_along, sines, TIME
import numpy as np

from robotid_ros.core.model import Robot
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.friction import make_terms
from robotid_ros.core.model.robot import BaseParameters
from robotid_ros.core.model.robot_builder import with_friction
from robotid_ros.core.parameters.physical_consistency import inertial_parameters, pseudo_inertia
from robotid_ros.core.parameters.standard import standard_parameters
from robotid_ros.core.regression.estimate import Estimate
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe, Rows
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording, SignalSettings
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import StribeckSettings

# Priors drawn and how far they are off; recordings, of which each serves for as many priors.
PRIORS, OFF, RECORDINGS = 100, 0.2, 10
# In how many draws consistent parameters have to be nearer, by links.
NEARER = 90
SHORT = TIME[TIME < 10.0]
WHAT = 'links, in their own units', '‖χ − χ_true‖/‖χ_true‖'


def plain(robot: Robot) -> Robot:
    """Return a robot with the friction that the plants have: viscous, Coulomb, an offset."""
    return with_friction(robot, (make_terms(('viscous', 'coulomb', 'offset'), {}),) * robot.n)


def identified(
    name: str, level: float
) -> tuple[Robot, BaseParameters, np.ndarray, list[tuple[Rows, Estimate]]]:
    """Return a robot, its true parameters (p,), and estimates with their rows."""
    chosen = plant(name)
    robot = plain(chosen.robot)
    settings = replace(chosen.simulation, stribeck=StribeckSettings())
    chosen = replace(chosen, physics=Physics(robot.urdf, settings, robot.joints))
    base, found = base_parameters(robot), []
    for seed in range(RECORDINGS):
        rng = np.random.default_rng(seed)
        run = run_along(chosen, SHORT, sines(robot, settings, SHORT, rng, periodic=False), rng)
        size = level * np.sqrt(np.mean(run.clean**2, axis=0))
        tau = run.clean + size * rng.normal(size=run.clean.shape)
        samples = prepare(Recording(robot.joints, SHORT, run.q, tau), robot, SignalSettings())
        system = observe(samples, robot, base)
        found.append((system, fit(system, 'wls')))
    return robot, base, truth(robot, settings), found


def wrong(robot: Robot, chi: np.ndarray, seed: int) -> np.ndarray:
    """Draw a prior that is off: masses, centres, inertias at the centre, and friction."""
    rng = np.random.default_rng(seed)
    prior = chi * (1.0 + OFF * rng.choice([-1.0, 1.0], robot.p))
    for start in robot.first_columns:
        P = pseudo_inertia(chi[start : start + 10])
        mass, centre = P[3, 3], P[:3, 3] / P[3, 3]
        scatter = P[:3, :3] - mass * np.outer(centre, centre)
        mass, scatter = (x * (1.0 + OFF * rng.choice([-1.0, 1.0])) for x in (mass, scatter))
        centre = centre * (1.0 + OFF * rng.choice([-1.0, 1.0], 3))
        P[:3, :3] = scatter + mass * np.outer(centre, centre)
        P[:3, 3] = P[3, :3] = mass * centre
        P[3, 3] = mass
        prior[start : start + 10] = inertial_parameters(P)
    return prior


def distance(robot: Robot, chi: np.ndarray, true: np.ndarray) -> float:
    """Measure how far links are from the true ones: ‖S − I‖, S in units of the true link."""
    squares = 0.0
    for start in robot.first_columns:
        P, Q = (pseudo_inertia(x[start : start + 10]) for x in (chi, true))
        inverse = np.linalg.inv(np.linalg.cholesky(Q))
        squares += float(np.sum((inverse @ P @ inverse.T - np.eye(4)) ** 2))
    return float(np.sqrt(squares))


def distances(robot: Robot, chi: np.ndarray, true: np.ndarray) -> tuple[float, float]:
    """Return how far standard parameters are from the truth, by each measure of WHAT."""
    return distance(robot, chi, true), float(np.linalg.norm(chi - true) / np.linalg.norm(true))


def ends(name: str, level: float) -> Iterator[tuple[float, ...]]:
    """Yield the distances of each prior and of the consistent parameters found with it."""
    robot, base, true, found = identified(name, level)
    for seed in range(PRIORS):
        guess = replace(robot, prior=wrong(robot, true, seed))
        system, estimate = found[seed % RECORDINGS]
        value = standard_parameters(guess, base, estimate, system).value
        yield *distances(robot, guess.prior, true), *distances(robot, value, true)


def report(name: str, level: float) -> list[str]:
    """Print a robot at one level of noise; return where too few are nearer."""
    short, label = [], f'{name}, noise {100 * level:g} %'
    before, after = np.split(np.array(list(ends(name, level))).T, 2)
    for what, prior, posterior in zip(WHAT, before, after, strict=True):
        nearer = int(np.sum(posterior < prior))
        print(
            f'{label:16s} {what:26s} {nearer:3d} of {PRIORS} nearer; median of the prior '
            f'{np.median(prior):.3f}, found {np.median(posterior):.3f}',
            flush=True,
        )
        if what == WHAT[0] and nearer < NEARER:
            short.append(f'{label}: by {what} nearer in {nearer} draws of {PRIORS} only')
    return short


def main() -> int:
    """Draw and count."""
    parser = command_line(__doc__)
    parser.add_argument('--robots', nargs='+', default=('ur10', 'tx40', 'arm3'), help='of config/')
    parser.add_argument(
        '--levels', nargs='+', type=float, default=[1.0, 5.0], help='of noise [%%]'
    )
    given = parser.parse_args()
    short: list[str] = []
    for name in given.robots:
        for level in given.levels:
            short += report(name, level / 100.0)
    return verdict(short, given.check)


if __name__ == '__main__':
    sys.exit(main())
