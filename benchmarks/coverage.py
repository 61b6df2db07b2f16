"""
Share of true base parameters within ±3 σ where the model is right, and where it leaves things out.

    python benchmarks/coverage.py [--runs 10] [--robots arm3 scara ur10 tx40] [--check]

Robots of `config/` by MuJoCo's dynamics, 30 s each, every second motion periodic. The friction is
viscous, Coulomb and offset, and stays so: nothing is chosen. The truth is the plant's, its plain
friction included: with friction that grows with the load, or a Stribeck effect, viscous and
Coulomb friction as they were set without that; of friction that changes, its mean. `chunks` is WLS
of the recording in three chunks. 'noise alone' is σ without what counts errors of the model.
"""

from collections.abc import Iterator
import dataclasses
import itertools
import sys
from typing import NamedTuple

from common import command_line, verdict
from disturbances import RATE, recording, Run, run, SECONDS
import numpy as np
from scipy.signal import lfilter

from robotid_ros.core.model import Robot
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.friction import make_terms
from robotid_ros.core.model.robot_builder import with_friction
from robotid_ros.core.pipeline.estimation import estimate_base_parameters

ROBOTS, METHODS = ('arm3', 'scara', 'ur10', 'tx40'), ('ols', 'wls', 'chunks')
# Where a recording is cut into chunks [s].
EDGES = (0.0, SECONDS / 3.0, 2.0 * SECONDS / 3.0, SECONDS)
# What is left out: shares of load and Coulomb friction, and the speed [rad/s] at which the latter
# fades; share of viscous friction that is gone in the end, and the time constants to get there.
LOAD, STRIBECK, FADES, WARMING, CONSTANTS = 0.05, 0.25, 0.1, 0.2, 3.0
# Correlated noise over the configured white noise, and its time constants [s].
LOUDER, MEMORIES = 2.0, (0.05, 0.5, 3.0)
LEFT_OUT = ('load friction 5 %', 'Stribeck 25 %', 'viscous -20 %')
WHITE = 'white noise'
NOISE = (WHITE, *(f'AR noise {memory:g} s' for memory in MEMORIES))
# Least share of truths within 3 σ with something left out and without, of all and of each robot;
# largest median of σ over the classical one, decimation's band counted, where the model is right.
LEAST, LEAST_RIGHT, LARGEST = 0.95, 0.97, 1.3


class Outcome(NamedTuple):
    """Errors over σ, the same without model error, and σ over the classical one; each (b,)."""

    error: np.ndarray
    of_noise: np.ndarray
    ratio: np.ndarray


def efforts(run: Run, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what a recording holds in each case."""
    drives = run.plant.physics.drives
    names = [body.joint.name for body in run.plant.physics.bodies]
    order = [names.index(joint) for joint in run.plant.robot.joints]
    coulomb, static, fades = (
        np.array(x)[order] for x in (drives.coulomb, drives.static, drives.stribeck_velocity)
    )
    sign, rng = np.sign(run.dq), np.random.default_rng(seed)
    clean = run.clean - static * np.exp(-((run.dq / fades) ** 2)) * sign
    level = run.noise.std(axis=0)
    left_out = (
        LOAD * np.abs(run.rigid) * sign,
        STRIBECK * coulomb * np.exp(-((run.dq / FADES) ** 2)) * sign,
        (warming(run)[:, None] - 1.0) * run.viscous,
    )
    yield WHITE, clean + run.noise
    for name, memory in zip(NOISE[1:], MEMORIES, strict=True):
        yield name, clean + LOUDER * level * autoregressive(rng, run.dq.shape, memory)
    for name, torque in zip(LEFT_OUT, left_out, strict=True):
        yield name, clean + torque + run.noise


def warming(run: Run) -> np.ndarray:
    """Return the factor of viscous friction (N,)."""
    return 1.0 - WARMING * (1.0 - np.exp(-CONSTANTS * run.time / run.time[-1]))


def autoregressive(rng: np.random.Generator, shape: tuple[int, int], memory: float) -> np.ndarray:
    """Return noise of variance one whose correlation falls by 1/e in `memory` seconds."""
    keep = np.exp(-1.0 / (RATE * memory))
    white = rng.normal(size=(shape[0] + int(10 * memory * RATE), shape[1]))
    return lfilter([np.sqrt(1.0 - keep**2)], [1.0, -keep], white, axis=0)[-shape[0] :]


def truth(run: Run, robot: Robot, case: str) -> np.ndarray:
    """Return the plant's standard parameters (p,)."""
    listed = run.plant.physics.true_parameters()
    joints = {entry.name: entry.values for entry in listed}
    values = {
        f'{symbol}{number}': value
        for number, joint in enumerate(robot.joints, start=1)
        for symbol, value in joints[joint].items()
    }
    for coupling in robot.couplings:
        for entry in listed:
            if entry.ratios and np.allclose(entry.ratios, coupling.ratios):
                values |= {f'{s}{coupling.number}': value for s, value in entry.values.items()}
    factor = warming(run).mean() if case == LEFT_OUT[2] else 1.0
    return np.array(
        [values[p.name] * (factor if p.symbol == 'Fv' else 1.0) for p in robot.parameters]
    )


def look(run: Run, effort: np.ndarray, method: str, case: str) -> Outcome:
    """Identify the base parameters and compare them."""
    terms = make_terms(('viscous', 'coulomb', 'offset'), {})
    robot = with_friction(run.plant.robot, (terms,) * run.plant.robot.n)
    base = base_parameters(robot)
    settings = dataclasses.replace(
        run.plant.identification, method='wls' if method == 'chunks' else method, selection=False
    )
    log = recording(run, effort)
    chunks = [log.between(a, b) for a, b in itertools.pairwise(EDGES)]
    data = chunks if method == 'chunks' else log
    found = estimate_base_parameters(data, robot, base, settings, lambda _: None)
    estimate, error = found.estimate, found.estimate.value - base.of(truth(run, robot, case))
    classical = np.sqrt(np.diag(estimate.classical) / found.system.band)
    noise = np.sqrt(np.diag(estimate.noise_covariance))
    return Outcome(error / estimate.sigma, error / noise, estimate.sigma / classical)


def outcomes(names: list[str], runs: int) -> dict[tuple[str, str, str], list[Outcome]]:
    """Return what was found, by method, case and robot."""
    found: dict[tuple[str, str, str], list[Outcome]] = {}
    for name in names:
        for seed in range(runs):
            here = run(name, seed)
            for case, effort in efforts(here, seed):
                for method in METHODS:
                    outcome = look(here, effort, method, case)
                    found.setdefault((method, case, name), []).append(outcome)
    return found


def share(errors: list[np.ndarray]) -> np.ndarray:
    """Return the share of runs in which each parameter is within 3 σ (b,)."""
    return np.mean(np.abs(errors) <= 3.0, axis=0)


def judge(
    found: dict[tuple[str, str, str], list[Outcome]], method: str, case: str, names: list[str]
) -> list[str]:
    """Print a line of the table; return what misses its bound."""
    missed, each, noise, ratios = [], [], [], []
    least = LEAST if case in LEFT_OUT else LEAST_RIGHT
    for name in names:
        results = found[method, case, name]
        each.append(share([r.error for r in results]))
        noise.append(share([r.of_noise for r in results]))
        ratios.append(np.array([r.ratio for r in results]).ravel())
        if each[-1].mean() < least and case not in NOISE[1:]:
            missed.append(f'{method}, {case}, {name}: {100 * each[-1].mean():.1f} % within 3 σ')
    total, worst = np.concatenate(each), min(own.min() for own in each)
    ratio = float(np.median(np.concatenate(ratios)))
    print(
        f'{method:7s} {case:18s} {100 * np.concatenate(noise).mean():11.1f} '
        f'{100 * total.mean():9.1f} {100 * worst:6.0f} {ratio:9.2f}   '
        + ' '.join(f'{100 * own.mean():5.1f}' for own in each),
        flush=True,
    )
    if case == WHITE and ratio > LARGEST:
        missed.append(f'{method}: σ {ratio:.2f} times the classical one where the model is right')
    return missed


def main() -> int:
    """Print the table."""
    parser = command_line(__doc__)
    parser.add_argument('--runs', type=int, default=10, help='of each robot')
    parser.add_argument('--robots', nargs='+', default=ROBOTS, help='of config/')
    arguments = parser.parse_args()
    names = list(arguments.robots)
    found = outcomes(names, arguments.runs)
    print(
        'share of truths within 3 σ [%]; the worst parameter; median of σ over the classical one'
    )
    print(
        f'{"":26s} noise alone  all of it  worst     σ/σ   ' + ' '.join(f'{n:>5s}' for n in names)
    )
    missed = []
    for method in METHODS:
        for case in (*NOISE, *LEFT_OUT):
            missed += judge(found, method, case, names)
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
