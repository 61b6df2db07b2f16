"""
Does the verdict say what a short recording is worth? The simulated robots know the answer.

    .venv/bin/python benchmarks/verdict.py [--check] [arm3 scara ur10]

Random moves of a few to many seconds are run on the simulated robots (MuJoCo, trajectory
controller, noise) and identified as the configuration says. The error that the verdict expects of
other motions by the parameters' covariance is set beside the actual one: what the identified
parameters predict of fresh random moves, less what the true ones predict. `--check` fails where
their ratio, over joints and recordings of one length, is beyond a factor of 2 in the median, where
a long recording is called unusable, or where the first 6 s of the UR10's log are called usable.
"""

import argparse
import dataclasses
from pathlib import Path
import sys

import numpy as np
from plant_session import follow

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, Robot
from robotid_ros.core.parameters.standard import basic_solution
from robotid_ros.core.pipeline.identification import Identification, identify
from robotid_ros.core.pipeline.observation import validate
from robotid_ros.core.signals.recording import Recording
from robotid_ros.core.verdict import judge, UNUSABLE, Verdict
from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.identification_input import LogPart, open_input, split
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import NoiseSettings, SimulationSettings

ROOT = Path(__file__).parents[1]
UR10 = ROOT.parent / 'shared' / 'datasets' / 'ur10'
ROBOTS = ('arm3', 'scara', 'ur10')
# Lengths of the recordings [s], and motions of each.
DURATIONS, SEEDS = (4.0, 8.0, 25.0), (1, 2)
STEP, REST = 0.02, 1.0  # of the points of a goal, and before a motion [s]
FRESH = 40.0  # length of the motion that is predicted [s]
FACTOR = 2.0


def random_moves(
    robot: Robot, seconds: float, seed: int, share: float
) -> list[tuple[np.ndarray, ...]]:
    """Return points of moves between random positions in the middle share of each range."""
    rng, limits, n = np.random.default_rng(seed), robot.limits, robot.n
    lower = np.where(np.isfinite(limits.lower), limits.lower, -np.pi)
    upper = np.where(np.isfinite(limits.upper), limits.upper, np.pi)
    middle, half = (lower + upper) / 2, np.minimum((upper - lower) / 2, np.pi) * share
    rows, time, start = [], 0.0, middle
    while time < seconds:
        way = middle + half * rng.uniform(-1, 1, n) - start
        peak = rng.uniform(0.2, 0.6)
        needed = (
            np.max(1.875 * np.abs(way) / limits.velocity) / peak,
            np.sqrt(np.max(5.7735 * np.abs(way) / (2.0 * limits.velocity)) / peak),
        )
        count = int(np.ceil(max(needed) / STEP))
        for k in range(bool(rows), count + 1):
            u, duration = k / count, count * STEP
            rows.append(
                (
                    time + u * duration,
                    start + way * (10 * u**3 - 15 * u**4 + 6 * u**5),
                    way * 30 * u**2 * (1 - u) ** 2 / duration,
                    way * 60 * u * (1 - u) * (1 - 2 * u) / duration**2,
                )
            )
        time, start = time + count * STEP, start + way
    return rows


def record(
    robot: Robot, settings: SimulationSettings, seconds: float, seed: int, share: float
) -> Recording:
    """Run random moves on the simulated robot, and cut its recording to a length."""
    rows = random_moves(robot, seconds, seed, share)
    q, dq, effort = follow(robot, settings, rows, rows[-1][0], seed)[:3]
    time = np.arange(len(q)) / settings.update_rate
    kept = (time >= REST) & (time < REST + seconds)
    log = Recording(robot.joints, time[kept], q[kept], effort[kept], dq[kept], source='simulation')
    return log


def truth(robot: Robot, settings: SimulationSettings) -> np.ndarray:
    """Return the true standard parameters (p,)."""
    known = Physics(robot.urdf, settings, robot.joints).true_parameters()
    owners = [*robot.joints, *(coupling.name for coupling in robot.couplings)]
    values = {
        (owner, symbol): value
        for owner, true in zip(owners, known, strict=True)
        for symbol, value in true.values.items()
    }
    return np.array([values.get((p.joint, p.symbol), 0.0) for p in robot.parameters])


def actual(
    found: Identification,
    plain: Robot,
    chi: np.ndarray,
    fresh: Recording,
    settings: IdentificationSettings,
) -> np.ndarray:
    """Return the relative error (n,) of what is predicted of a motion, while joints move."""
    own = validate(fresh, found.robot, basic_solution(found.base, found.estimate.value), settings)
    true = validate(fresh, plain, chi, settings)
    # A model with presliding may keep other rows.
    found_there = [np.interp(true.time, own.time, column) for column in own.predicted.T]
    error = np.where(true.valid, np.column_stack(found_there) - true.predicted, 0.0)
    effort = np.where(true.valid, true.predicted, 0.0)
    return np.asarray(np.linalg.norm(error, axis=0) / np.linalg.norm(effort, axis=0))


def trials(name: str) -> dict[float, list[tuple[Verdict, np.ndarray]]]:
    """Return verdicts and actual errors of a robot's recordings by their length."""
    configuration = load(str(ROOT / 'config' / f'{name}.yaml'))
    urdf, settings = read_urdf(configuration), configuration.identification
    robot, simulated = build_robot(urdf, configuration.robot), configuration.simulation
    all_terms = ('viscous', 'coulomb', 'stribeck', 'offset')
    terms = tuple(t for t in all_terms if t != 'stribeck' or simulated.stribeck.extra)
    as_is = dataclasses.replace(configuration.robot, friction={'default': terms})
    plain = build_robot(urdf, as_is)
    gravity = simulated.gravity or configuration.robot.gravity
    middle = random_moves(robot, 0.1, 0, 1.0)[0][1]
    plant = dataclasses.replace(
        simulated, initial_positions=tuple(middle.tolist()), gravity=gravity
    )
    quiet = dataclasses.replace(plant, noise=NoiseSettings((0.0,), (0.0,)))
    fresh, chi = record(robot, quiet, FRESH, 99, 0.95), truth(plain, plant)
    found = dict[float, list[tuple[Verdict, np.ndarray]]]()
    for seconds in DURATIONS:
        for seed in SEEDS:
            try:
                result = identify(record(robot, plant, seconds, seed, 0.5), robot, settings)
            except RobotIdError as refusal:
                print(f'{name:8} {seconds:5.0f} s  refused: {str(refusal)[:90]}')
                continue
            verdict, error = judge(result), actual(result, plain, chi, fresh, settings)
            found.setdefault(seconds, []).append((verdict, error))
            each = ', '.join(
                f'{100 * joint.from_parameters:.2g} ({100 * true:.2g})'
                for joint, true in zip(verdict.joints, error, strict=True)
            )
            print(f'{name:8} {seconds:5.0f} s  {verdict.level:8} {each}', flush=True)
    return found


def first_seconds(seconds: float) -> Verdict | None:
    """Return the verdict on the first seconds of the UR10's log, None where it is absent."""
    log = UR10 / 'ur10_exciting_trajectory.db3'
    if not log.exists():
        return None
    session = open_input([str(log)], urdf=(UR10 / 'robot.urdf').read_text())
    fitted, _ = split(session.recording, LogPart(0.0, seconds))
    return judge(identify(fitted, session.robot, session.configuration.identification))


def main() -> int:
    """Print the table; return how many checks fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('robots', nargs='*', default=list(ROBOTS))
    parser.add_argument('--check', action='store_true')
    args = parser.parse_args()
    print('expected error of other motions by the covariance (actual error) of each joint [%]')
    ratios, failures = {seconds: list[float]() for seconds in DURATIONS}, list[str]()
    for name in args.robots:
        for seconds, results in trials(name).items():
            for verdict, error in results:
                expected = np.array([joint.from_parameters for joint in verdict.joints])
                ratios[seconds] += list(expected / error)
                if seconds == max(DURATIONS) and verdict.level == UNUSABLE:
                    failures.append(f'{name}, {seconds:g} s: {verdict.reason}')
    for seconds, values in ratios.items():
        if not values:
            continue
        low, median, high = np.quantile(values, (0.1, 0.5, 0.9))
        print(f'{seconds:4.0f} s: expected over actual {median:.2f} ({low:.2f} to {high:.2f})')
        if not 1.0 / FACTOR <= median <= FACTOR:
            failures.append(f'{seconds:g} s: {median:.2f} times the actual error')
    verdict = first_seconds(6.0)
    if verdict is not None:
        print(f'first 6 s of the UR10: {verdict.level}, {verdict.worst}')
        if verdict.usable:
            failures.append("the UR10's first 6 s count as usable")
    for text in failures:
        print(f'failed: {text}')
    return len(failures) if args.check else 0


if __name__ == '__main__':
    sys.exit(main())
