"""
Share of true base parameters within ±3 σ where the model is right, and where it leaves things out.

    python benchmarks/coverage.py [--runs 20] [--robots arm3 scara ur10 tx40] [--check]

Robots of `config/` by MuJoCo's dynamics, 30 s each, every second motion periodic; motion, noise
and the sizes of viscous and Coulomb friction and offsets are drawn anew in each run. The friction
that is identified is viscous, Coulomb and offset: nothing is chosen. The truth is the plant's, its
plain friction included: with friction that grows with the load, or a Stribeck effect, viscous and
Coulomb friction as they were set without that; of friction that changes, its mean. `chunks` is WLS
of the recording in three chunks. Stamps are late, exponentially, of a loop that runs evenly with
a controller that goes by them: efforts answer to them; 2 % of the messages are lost besides.
'noise alone' is σ without what counts errors of the model, and
that blocks of time are few.
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
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.signals.recording import Recording

ROBOTS, METHODS = ('arm3', 'scara', 'ur10', 'tx40'), ('ols', 'wls', 'chunks')
# Where a recording is cut into chunks [s].
EDGES = (0.0, SECONDS / 3.0, 2.0 * SECONDS / 3.0, SECONDS)
# What is left out: shares of load and Coulomb friction, and the speed [rad/s] at which the latter
# fades; share of viscous friction that is gone in the end, and the time constants to get there;
# rms of a ripple over the torque's, and its periods per radian or metre, drawn for each joint.
LOAD, STRIBECK, FADES, WARMING, CONSTANTS = 0.05, 0.25, 0.1, 0.2, 3.0
COGGING, ORDERS = 0.03, (20.0, 60.0)
# Factors of viscous and Coulomb friction and offsets that are drawn.
DRAWN = (0.5, 2.0)
# Correlated noise over the configured white noise, and its time constants [s].
LOUDER, MEMORIES = 2.0, (0.05, 0.5, 3.0)
LEFT_OUT = ('load friction 5 %', 'Stribeck 25 %', 'viscous -20 %', 'cogging 3 %')
# Standard deviations of late stamps [s], latest over the period, and share of messages lost.
JITTER, LATEST, LOST = (0.05e-3, 0.2e-3, 0.5e-3), 0.9, 0.02
STAMPS = tuple(f'stamps {1e3 * jitter:g} ms' for jitter in JITTER)
WHITE, SAME = 'white noise', 'same noise 0.5 s'
NOISE = (WHITE, *(f'AR noise {memory:g} s' for memory in MEMORIES), SAME)
CASES = (*NOISE, *LEFT_OUT, *STAMPS)
# Least share of truths within 3 σ of all parameters, and of the worst one of any robot; largest
# median of σ over the classical one, decimation's band counted, where noise is white.
LEAST, LEAST_WORST, LARGEST = 0.97, 0.85, 1.3


class Outcome(NamedTuple):
    """Errors over σ, the same without model error, and σ over the classical one; each (b,)."""

    error: np.ndarray
    of_noise: np.ndarray
    ratio: np.ndarray


def drawn(run: Run, seed: int) -> tuple[Run, dict[str, float]]:
    """Return a run without Stribeck effect and friction of other sizes, and factors by symbol."""
    _, static, fades = dry_friction(run)
    coulomb = run.dry - static * np.exp(-((run.dq / fades) ** 2)) * np.sign(run.dq)
    rng = np.random.default_rng([seed, 1])
    viscous, dry, offset = np.exp(rng.uniform(*np.log(DRAWN), 3))
    parts = {'viscous': viscous * run.viscous, 'dry': dry * coulomb, 'offset': offset * run.offset}
    return dataclasses.replace(run, **parts), {'Fv': viscous, 'Fc': dry, 'off': offset}


def dry_friction(run: Run) -> tuple[np.ndarray, ...]:
    """Return Coulomb friction, what static friction is more, and where that fades, (n,) each."""
    drives = run.plant.physics.drives
    names = [body.joint.name for body in run.plant.physics.bodies]
    order = [names.index(joint) for joint in run.plant.robot.joints]
    found = (drives.coulomb, drives.static, drives.stribeck_velocity)
    return tuple(np.array(x)[order] for x in found)


def recordings(run: Run, factors: dict[str, float], seed: int) -> Iterator[tuple[str, Recording]]:
    """Yield the recording of each case."""
    for case, effort in efforts(run, factors, seed):
        yield case, recording(run, effort)
    gains = np.array([run.plant.simulation.gains[j].p for j in run.plant.robot.joints])
    for case, jitter in zip(STAMPS, JITTER, strict=True):
        rng = np.random.default_rng([seed, 2])
        late = np.minimum(jitter * rng.exponential(size=len(run.time)), LATEST / RATE)
        # A joint state holds the command of the update before; the robot follows the mean.
        answer = gains * run.dq * np.roll(late - late.mean(), 1)[:, None]
        log, kept = recording(run, run.clean + answer + run.noise), rng.random(len(late)) >= LOST
        yield (
            case,
            dataclasses.replace(
                log,
                time=(run.time + late)[kept],
                position=log.position[kept],
                effort=log.effort[kept],
            ),
        )


def efforts(run: Run, factors: dict[str, float], seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what a recording holds in each case of even stamps."""
    sign, rng, n = np.sign(run.dq), np.random.default_rng(seed), run.q.shape[1]
    clean, level, coulomb = run.clean, run.noise.std(axis=0), factors['Fc'] * dry_friction(run)[0]
    orders, phases = rng.uniform(*ORDERS, n), rng.uniform(0.0, 2.0 * np.pi, n)
    left_out = (
        LOAD * np.abs(run.rigid) * sign,
        STRIBECK * coulomb * np.exp(-((run.dq / FADES) ** 2)) * sign,
        (warming(run)[:, None] - 1.0) * run.viscous,
        COGGING * np.sqrt(2.0 * np.mean(clean**2, axis=0)) * np.cos(orders * run.q + phases),
    )
    yield WHITE, clean + run.noise
    for memory in MEMORIES:
        noise = autoregressive(rng, run.dq.shape, memory)
        yield f'AR noise {memory:g} s', clean + LOUDER * level * noise
    noise = autoregressive(rng, (len(run.dq), 1), MEMORIES[1])
    yield SAME, clean + LOUDER * level * noise
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


def truth(run: Run, robot: Robot, factors: dict[str, float]) -> np.ndarray:
    """Return the plant's standard parameters (p,), friction times factors by symbol."""
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
    return np.array([values[p.name] * factors.get(p.symbol, 1.0) for p in robot.parameters])


def looks(run: Run, log: Recording, factors: dict[str, float]) -> Iterator[tuple[str, Outcome]]:
    """Identify the base parameters by each method and compare them with the truth."""
    terms = make_terms(('viscous', 'coulomb', 'offset'), {})
    robot = with_friction(run.plant.robot, (terms,) * run.plant.robot.n)
    base = base_parameters(robot)
    settings = dataclasses.replace(run.plant.identification, method='wls', model='plain')
    true = base.of(truth(run, robot, factors))
    whole, chunks = (
        estimate_base_parameters(data, robot, base, settings, lambda _: None)
        for data in (log, [log.between(a, b) for a, b in itertools.pairwise(EDGES)])
    )
    estimates = fit(whole.system, 'ols'), whole.estimate, chunks.estimate
    bands = whole.system.band, whole.system.band, chunks.system.band
    for method, estimate, band in zip(METHODS, estimates, bands, strict=True):
        error = estimate.value - true
        classical = np.sqrt(np.diag(estimate.classical) / band)
        noise = np.sqrt(np.diag(estimate.noise_covariance))
        yield method, Outcome(error / estimate.sigma, error / noise, estimate.sigma / classical)


def outcomes(
    names: list[str], runs: range, cases: list[str]
) -> dict[tuple[str, str, str], list[Outcome]]:
    """Return what was found, by method, case and robot."""
    found: dict[tuple[str, str, str], list[Outcome]] = {}
    for name, seed in itertools.product(names, runs):
        here, factors = drawn(run(name, seed), seed)
        for case, log in recordings(here, factors, seed):
            if case not in cases:
                continue
            mean = warming(here).mean() if case == LEFT_OUT[2] else 1.0
            own = {**factors, 'Fv': mean * factors['Fv']}
            for method, outcome in looks(here, log, own):
                found.setdefault((method, case, name), []).append(outcome)
    return found


def share(errors: list[np.ndarray]) -> np.ndarray:
    """Return the share of runs in which each parameter is within 3 σ (b,)."""
    return np.mean(np.abs(errors) <= 3.0, axis=0)


def judge(
    found: dict[tuple[str, str, str], list[Outcome]], method: str, case: str, names: list[str]
) -> list[str]:
    """Print a line of the table; return what misses its bound."""
    each, noise, ratios = [], [], []
    for name in names:
        results = found[method, case, name]
        each.append(share([r.error for r in results]))
        noise.append(share([r.of_noise for r in results]))
        ratios.append(np.array([r.ratio for r in results]).ravel())
    total, worst = np.concatenate(each), min(own.min() for own in each)
    ratio = float(np.median(np.concatenate(ratios)))
    print(
        f'{method:7s} {case:18s} {100 * np.concatenate(noise).mean():11.1f} '
        f'{100 * total.mean():9.1f} {100 * worst:6.0f} {ratio:9.2f}   '
        + ' '.join(f'{100 * own.mean():5.1f}' for own in each),
        flush=True,
    )
    here = f'{method}, {case}: '
    return [
        here + text
        for text, failed in (
            (f'{100 * total.mean():.1f} % within 3 σ', total.mean() < LEAST),
            (f'a parameter in {100 * worst:.0f} % of the runs', worst < LEAST_WORST),
            (f'σ {ratio:.2f} times the classical one', case == WHITE and ratio > LARGEST),
        )
        if failed
    ]


def main() -> int:
    """Print the table."""
    parser = command_line(__doc__)
    parser.add_argument('--runs', type=int, default=20, help='of each robot')
    parser.add_argument('--robots', nargs='+', default=ROBOTS, help='of config/')
    parser.add_argument('--cases', nargs='+', default=CASES, choices=CASES, metavar='CASE')
    arguments = parser.parse_args()
    names, cases = list(arguments.robots), list(arguments.cases)
    found = outcomes(names, range(arguments.runs), cases)
    print(
        'share of truths within 3 σ [%]; the worst parameter; median of σ over the classical one'
    )
    print(
        f'{"":26s} noise alone  all of it  worst     σ/σ   ' + ' '.join(f'{n:>5s}' for n in names)
    )
    missed = []
    for method in METHODS:
        for case in cases:
            missed += judge(found, method, case, names)
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
