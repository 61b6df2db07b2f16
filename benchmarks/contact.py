"""
Contacts of simulated robots: pushes in motion, an hour without any, the wrench at rest.

    python benchmarks/contact.py [--robots ur10 tx40] [--minutes 30] [--pushes 100] [--check]

Each robot (MuJoCo, the noise and friction of its configuration) runs the session of its stored
design, from which it is identified, with thresholds from the validation motion. Then pushes of 5
to 50 N on links from the elbow on, in any direction, along sums of sines; the same without
pushes; and pushes at rest. A push counts where it loads a joint with three times that joint's
threshold, and has to be told within 50 ms of the robot's clock; without one nothing may be told.
At rest, where friction may bear all of a push, the force at the tool counts where its own σ is
below 15 % of it, and has to be found to within 15 % for 9 of 10; where none counts, friction
bears them all, which is printed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
import sys

from common import command_line, configured, ROOT, verdict
from contact_plant import Log, Plant, Push
from disturbances import sines
import numpy as np

from robotid_ros.core.model.dynamics import RobotDynamics
from robotid_ros.core.monitoring.external_effort import (
    Contact,
    contact_thresholds,
    ContactDetector,
    ContactThresholds,
    effort_sigma,
    external_efforts,
    ExternalEffortEstimator,
    ExternalWrench,
)
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.files.configuration import Configuration
from robotid_ros.files.trajectory_file import read_design

FORCES = 5.0, 50.0
COUNTS, WITHIN, WRENCH, SHARE = 3.0, 0.05, 0.15, 0.9
# Length of a motion [s], of a push and from push to push, and of a rest before a push at rest.
MOTION, PUSH, PERIOD, REST = 30.0, 0.5, 3.0, 5.0
# Pushes at rest of each robot, and how far it goes from posture to posture [rad].
POSTURES, MOVE = 30, 0.6


@dataclass
class Watched:
    """What is told of a log: external efforts and limits by sample, and the contacts."""

    stamp: np.ndarray
    effort: np.ndarray
    limit: np.ndarray
    position: np.ndarray
    sigma: np.ndarray
    contacts: list[Contact]


@dataclass
class Watcher:
    """An identified robot that is watched."""

    plant: Plant
    configuration: Configuration
    model: RobotDynamics
    thresholds: ContactThresholds

    def estimator(self) -> ExternalEffortEstimator:
        """Return a new one."""
        return estimator(self.model, self.configuration)

    def watch(self, log: Log) -> Watched:
        """Go through a log sample by sample."""
        estimates = self.estimator()
        detector = ContactDetector(self.model.joints, self.thresholds)
        rows, contacts = [], []
        for stamp, q, tau in zip(log.stamp.tolist(), log.position, log.effort, strict=True):
            seen = estimates.take(stamp, q, tau)
            if seen is None:
                continue
            if detector.take(seen) and detector.contact.present:
                contacts.append(detector.contact)
            sigma = effort_sigma(seen, self.thresholds)
            rows.append((stamp, seen.effort, detector.threshold, seen.position, sigma))
        return Watched(*map(np.array, zip(*rows, strict=True)), contacts)


def estimator(model: RobotDynamics, configuration: Configuration) -> ExternalEffortEstimator:
    """Return one with a robot's settings."""
    settings = configuration.identification
    return ExternalEffortEstimator(model, settings.contact, settings.signals.standstill)


def identified(name: str) -> Watcher:
    """Run a session and identify from it."""
    configuration, robot = configured(name)
    plant = Plant(robot, configuration.simulation)
    found = read_design(ROOT / f'config/trajectories/{name}.yaml')
    time = np.arange(0.0, 3.0 * found.trajectory.period, plant.period)
    excitation, validation = (
        plant.run(
            *(getattr(trajectory.sample(np.mod(t, trajectory.period)), x) for x in ('q', 'dq')),
            seed=seed,
        )
        for seed, (trajectory, t) in enumerate(
            ((found.trajectory, time), (found.validation, time[: len(time) // 3]))
        )
    )
    result = identify(
        excitation.recording, robot, configuration.identification, validation.recording
    )
    model = RobotDynamics(result.robot, result.standard.value)
    seen = external_efforts([validation.recording], estimator(model, configuration))
    wanted = configuration.identification.contact.false_alarms
    return Watcher(plant, configuration, model, contact_thresholds(seen, wanted))


def motions(watcher: Watcher, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield reference positions and velocities of one motion after another."""
    rng, plant = np.random.default_rng([seed, 5]), watcher.plant
    time = np.arange(0.0, MOTION, plant.period)
    while True:
        q, dq, _ = sines(plant.robot, plant.settings, time, rng, periodic=False)
        yield q, dq


def pushed(watcher: Watcher, count: int) -> tuple[int, int, list[float], int]:
    """Push along motions; return counted and told pushes, delays [s], and false alarms."""
    rng, plant = np.random.default_rng(17), watcher.plant
    counted, told, delays, false, done = 0, 0, [], 0, 0
    for seed, (q, dq) in enumerate(motions(watcher, seed=1)):
        starts = np.arange(PERIOD, MOTION - PUSH, PERIOD)[: count - done]
        done += len(starts)
        pushes = [Push.random(rng, start, PUSH, FORCES, plant.links) for start in starts]
        log = plant.run(q, dq, seed=100 + seed, pushes=pushes)
        seen = watcher.watch(log)
        begun = np.array([contact.stamp for contact in seen.contacts]) * 1e-9
        for push in pushes:
            window = (seen.stamp * 1e-9 >= push.start) & (seen.stamp * 1e-9 <= push.start + WITHIN)
            load = np.abs(log.external[np.isin(log.stamp, seen.stamp[window])]).min(axis=0)
            counts = bool((load >= COUNTS * seen.limit[window].max(axis=0)).any())
            after = begun[(begun >= push.start) & (begun <= push.start + WITHIN)]
            counted, told = counted + counts, told + (counts and after.size > 0)
            if counts and after.size:
                delays.append(float(after[0] - push.start))
            elif counts:
                print(f'  not told: {push.force} N at {push.link}, {seed}:{push.start:.0f} s')
        own = [(begun >= push.start) & (begun <= push.start + PERIOD / 2) for push in pushes]
        false += int((~np.any(own, axis=0)).sum()) if len(begun) else 0
        if done >= count:
            return counted, told, delays, false
    raise AssertionError


def alone(watcher: Watcher, minutes: float) -> int:
    """Run motions without a push; return how many contacts are told."""
    false = 0
    for seed, (q, dq) in enumerate(motions(watcher, seed=2)):
        if seed * MOTION >= 60.0 * minutes:
            return false
        for contact in watcher.watch(watcher.plant.run(q, dq, seed=1000 + seed)).contacts:
            print(f'  false alarm: {contact}')
            false += 1
    raise AssertionError


def at_rest(watcher: Watcher) -> np.ndarray:
    """Push at rest in several postures; return relative errors of the forces that count."""
    rng, plant, contact = (
        np.random.default_rng(23), watcher.plant, watcher.configuration.identification.contact,
    )  # fmt: skip
    frame = watcher.configuration.excitation.workspace.frame
    wrench = ExternalWrench(watcher.model, frame, contact.force, contact.torque)
    time = np.arange(0.0, 2.0, plant.period)
    s, ds = 0.5 - 0.5 * np.cos(0.5 * np.pi * time), 0.25 * np.pi * np.sin(0.5 * np.pi * time)
    errors, start = [], np.array(plant.settings.initial_positions)
    for number in range(POSTURES):
        end = start + rng.uniform(-MOVE, MOVE, start.size)
        rest = np.ones(round((REST + 2.0 * PUSH) / plant.period))
        q = start + np.outer(np.concatenate([s, rest]), end - start)
        dq = np.outer(np.concatenate([ds, 0.0 * rest]), end - start)
        push = Push.random(rng, 2.0 + REST, 2.0 * PUSH, FORCES, (frame,))
        log = plant.run(q, dq, seed=5000 + number, pushes=[push])
        seen = watcher.watch(log)
        found, sigma = wrench.estimate(seen.position[-1], seen.effort[-1], seen.sigma[-1])
        size = float(np.linalg.norm(push.force))
        if np.linalg.norm(sigma[:3]) <= WRENCH * size:
            errors.append(float(np.linalg.norm(found[:3] - np.array(push.force))) / size)
    return np.array(errors)


def main() -> int:
    """Print what is told."""
    parser = command_line(__doc__)
    parser.add_argument('--robots', nargs='+', default=['ur10', 'tx40'], help='of config/')
    parser.add_argument('--minutes', type=float, default=30.0, help='without pushes, a robot')
    parser.add_argument('--pushes', type=int, default=100, help='of each robot')
    args = parser.parse_args()
    missed, counted_at_rest = [], 0
    for name in args.robots:
        watcher = identified(name)
        values = ' '.join(f'{x:7.2f}' for x in watcher.thresholds.at(0.0, 0.0))
        print(f'{name}: threshold of a light joint at rest {values}  [N·m]', flush=True)
        counted, told, delays, false = pushed(watcher, args.pushes)
        late = 1e3 * np.array(delays or [np.nan])
        print(
            f'{name}: {args.pushes} pushes, {counted} count, {told} of them told, after '
            f'{np.median(late):.0f}, at most {late.max():.0f} ms; {false} false alarms between',
            flush=True,
        )
        quiet = alone(watcher, args.minutes)
        print(f'{name}: {quiet} false alarms in {args.minutes:g} minutes', flush=True)
        errors = at_rest(watcher)
        good = float((errors <= WRENCH).mean()) if errors.size else 1.0
        print(
            f'{name}: at rest {errors.size} of {POSTURES} pushes count, '
            + (
                f'force within {WRENCH:.0%} for {good:.0%}, median error {np.median(errors):.1%}'
                if errors.size
                else 'friction bears them all'
            ),
            flush=True,
        )
        if told < counted or not counted:
            missed.append(f'{name}: {counted - told} of {counted} pushes not told in time')
        if false + quiet:
            missed.append(f'{name}: {false + quiet} false alarms')
        if good < SHARE:
            missed.append(f'{name}: the wrench of {good:.0%} is within {WRENCH:.0%}')
        counted_at_rest += errors.size
    if not counted_at_rest:
        missed.append('at rest no push of any robot counts')
    return verdict(missed, args.check)


if __name__ == '__main__':
    sys.exit(main())
