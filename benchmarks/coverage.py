"""
Share of true base parameters within ±3 σ where the model is right, and where it leaves things out.

    python benchmarks/coverage.py [--runs 20] [--robots arm3 scara ur10 tx40]
                                  [--methods ols wls chunks mixed] [--check]

Robots of `config/` by MuJoCo's dynamics, 30 s each, every second motion periodic; motion, noise
and the sizes of viscous and Coulomb friction and offsets are drawn anew in each run. The friction
that is identified is viscous, Coulomb and offset, and nothing is chosen; but by `mixed`, which is
the default, everything is. The truth is the plant's, its plain friction included: with friction
that grows with the load, or a Stribeck effect, viscous and Coulomb friction as they were set
without that; of friction that changes, its mean. `chunks` is WLS of the recording in three chunks.
Stamps are late, exponentially, of a loop that runs evenly with a controller that goes by them:
efforts answer to them; 2 % of the messages are lost besides. An encoder of 12 bits rounds the
positions. 'noise alone' is σ without what counts errors of the model, and that blocks of time are
few. Below, the same of each class of parameters, all cases together: the share within 3 σ, and the
median of σ over the rms error of the runs.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import itertools
import sys
from typing import NamedTuple

from common import command_line, verdict
from disturbances import RATE, recording, Run, run, SECONDS
import numpy as np
from scipy.signal import lfilter

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import Robot
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.friction import make_terms
from robotid_ros.core.model.robot import BaseParameters
from robotid_ros.core.model.robot_builder import with_friction
from robotid_ros.core.pipeline.choices import choose_model
from robotid_ros.core.pipeline.estimation import estimate_base_parameters
from robotid_ros.core.regression.estimate import Estimate
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.signals.recording import Recording

ROBOTS, METHODS = ('arm3', 'scara', 'ur10', 'tx40'), ('ols', 'wls', 'chunks', 'mixed')
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
GAPS, ENCODER = f'{100 * LOST:g} % of messages lost', 'encoder of 12 bits'
COUNTS = 4096.0  # of a turn, or of a metre
CASES = (*NOISE, *LEFT_OUT, *STAMPS, GAPS, ENCODER)
# Least share of truths within 3 σ of all parameters, and of the worst one of any robot; largest
# median of σ over the classical one, decimation's band counted, where noise is white.
LEAST, LEAST_WORST, LARGEST = 0.97, 0.85, 1.3
# Classes of parameters by symbol, others are inertial; bounds of the median of σ over the rms
# error of the runs, of a class.
CLASSES, RATIO = {'Fv': 'Fv', 'Fc': 'Fc', 'off': 'offset'}, (0.7, 2.0)
INERTIAL = 'inertial'


class Outcome(NamedTuple):
    """Errors, σ, the same without model error, the classical one; each (b,), and the classes."""

    error: np.ndarray
    sigma: np.ndarray
    noise: np.ndarray
    classical: np.ndarray
    classes: np.ndarray


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
    whole = recording(run, run.clean + run.noise)
    kept = np.random.default_rng([seed, 3]).random(len(run.time)) >= LOST
    yield GAPS, rows(whole, kept)
    step = np.where(run.plant.robot.prismatic, 1.0, 2.0 * np.pi) / COUNTS
    yield ENCODER, dataclasses.replace(whole, position=step * np.round(whole.position / step))
    gains = np.array([run.plant.simulation.gains[j].p for j in run.plant.robot.joints])
    for case, jitter in zip(STAMPS, JITTER, strict=True):
        rng = np.random.default_rng([seed, 2])
        late = np.minimum(jitter * rng.exponential(size=len(run.time)), LATEST / RATE)
        # A joint state holds the command of the update before; the robot follows the mean.
        answer = gains * run.dq * np.roll(late - late.mean(), 1)[:, None]
        log, kept = recording(run, run.clean + answer + run.noise), rng.random(len(late)) >= LOST
        yield case, rows(dataclasses.replace(log, time=run.time + late), kept)


def rows(log: Recording, kept: np.ndarray) -> Recording:
    """Keep some rows (N,)."""
    return dataclasses.replace(
        log, time=log.time[kept], position=log.position[kept], effort=log.effort[kept]
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


def looks(
    run: Run, log: Recording, factors: dict[str, float], methods: Sequence[str]
) -> Iterator[tuple[str, Outcome]]:
    """Identify the base parameters by each method and compare them with the truth."""
    terms = make_terms(('viscous', 'coulomb', 'offset'), {})
    robot = with_friction(run.plant.robot, (terms,) * run.plant.robot.n)
    base = base_parameters(robot)
    settings = dataclasses.replace(run.plant.identification, method='wls', model='plain')
    true = base.of(truth(run, robot, factors))
    symbols = [robot.parameters[k].symbol for k in base.columns]
    classes = np.array([CLASSES.get(symbol, INERTIAL) for symbol in symbols])
    for method, estimate, band in estimates(log, robot, base, settings, methods):
        kept = [estimate.names.index(name) for name in base.names]
        estimate = estimate.select(np.array(kept))
        classical = np.sqrt(np.diag(estimate.classical) / band)
        noise = np.sqrt(np.diag(estimate.noise_covariance))
        yield method, Outcome(estimate.value - true, estimate.sigma, noise, classical, classes)


def estimates(
    log: Recording,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    methods: Sequence[str],
) -> Iterator[tuple[str, Estimate, float]]:
    """Yield each method's estimate, and the share of the band that its rows hold."""
    arguments = robot, base, settings, lambda _: None
    if 'wls' in methods or 'ols' in methods:
        whole = estimate_base_parameters(log, *arguments)
        for name, estimate in (('ols', fit(whole.system, 'ols')), ('wls', whole.estimate)):
            if name in methods:
                yield name, estimate, whole.system.band
    if 'chunks' in methods:
        chunks = [log.between(a, b) for a, b in itertools.pairwise(EDGES)]
        found = estimate_base_parameters(chunks, *arguments)
        yield 'chunks', found.estimate, found.system.band
    if 'mixed' in methods:
        free = dataclasses.replace(robot, open_friction=(True,) * robot.n)
        asked = dataclasses.replace(settings, method='auto', model='mixed')
        choice = choose_model(log, free, asked)
        own = choice.robot, base_parameters(choice.robot), choice.settings
        found = estimate_base_parameters(choice.recording, *own, arguments[-1], choice.mixed)
        yield 'mixed', found.estimate, found.system.band


def outcomes(
    names: list[str], runs: range, cases: list[str], methods: list[str]
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
            for method, outcome in looks(here, log, own, methods):
                found.setdefault((method, case, name), []).append(outcome)
    return found


def share(results: list[Outcome], of: str = 'sigma') -> np.ndarray:
    """Return the share of runs in which each parameter is within 3 σ (b,)."""
    return np.mean([np.abs(r.error) <= 3.0 * getattr(r, of) for r in results], axis=0)


def judge_classes(
    found: dict[tuple[str, str, str], list[Outcome]],
    method: str,
    cases: list[str],
    names: list[str],
) -> list[str]:
    """Print a line for each class of parameters, all cases together; return what misses."""
    inside: dict[str, list[np.ndarray]] = {}
    ratios: dict[str, list[np.ndarray]] = {}
    by_case: dict[str, list[float]] = {}
    for case in cases:
        own: dict[str, list[np.ndarray]] = {}
        for name in names:
            results = found[method, case, name]
            spread = np.sqrt(np.mean([r.error**2 for r in results], axis=0))
            ratio = np.median([r.sigma for r in results], axis=0) / np.maximum(spread, 1e-300)
            shares = share(results)
            for each in np.unique(results[0].classes):
                of = results[0].classes == each
                inside.setdefault(each, []).append(shares[of])
                own.setdefault(each, []).append(ratio[of])
        for each, parts in own.items():
            ratios.setdefault(each, []).extend(parts)
            by_case.setdefault(each, []).append(float(np.median(np.concatenate(parts))))
    missed = []
    for each in ratios:
        kept, ratio = (np.concatenate(x[each]) for x in (inside, ratios))
        middle = float(np.median(ratio))
        print(
            f'{method:7s} {each:18s} {100 * kept.mean():9.1f} {middle:9.2f}   '
            + ' '.join(f'{x:5.2f}' for x in by_case[each]),
            flush=True,
        )
        here = f'{method}, {each}: '
        if kept.mean() < LEAST:
            missed.append(f'{here}{100 * kept.mean():.1f} % within 3 σ')
        if not RATIO[0] <= middle <= RATIO[1]:
            missed.append(f'{here}σ {middle:.2f} times the rms error')
    return missed


def judge(
    found: dict[tuple[str, str, str], list[Outcome]], method: str, case: str, names: list[str]
) -> list[str]:
    """Print a line of the table; return what misses its bound."""
    each, noise, ratios = [], [], []
    for name in names:
        results = found[method, case, name]
        each.append(share(results))
        noise.append(share(results, 'noise'))
        ratios.append(np.array([r.sigma / r.classical for r in results]).ravel())
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
    parser.add_argument('--methods', nargs='+', default=METHODS, choices=METHODS, metavar='METHOD')
    parser.add_argument('--cases', nargs='+', default=CASES, choices=CASES, metavar='CASE')
    arguments = parser.parse_args()
    names, cases = list(arguments.robots), [c for c in CASES if c in arguments.cases]
    methods = [method for method in METHODS if method in arguments.methods]
    found = outcomes(names, range(arguments.runs), cases, methods)
    print(
        'share of truths within 3 σ [%]; the worst parameter; median of σ over the classical one'
    )
    print(
        f'{"":26s} noise alone  all of it  worst     σ/σ   ' + ' '.join(f'{n:>5s}' for n in names)
    )
    missed = []
    for method, case in itertools.product(methods, cases):
        missed += judge(found, method, case, names)
    print('\neach class: share within 3 σ [%]; σ over the rms error, all cases, and case by case')
    for method in methods:
        missed += judge_classes(found, method, cases, names)
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
