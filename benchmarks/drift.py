"""
Drift: what is told of friction and payload that change at work, how soon, and false alarms.

Robots of `config/` by MuJoCo's dynamics, identified from sums of sines, then at work: trapezoids
between poses, joint states at 125 Hz with jitter and losses.
"""

import dataclasses
import itertools
import sys
import time
from typing import NamedTuple

from common import command_line, configured, verdict
from disturbances import sines
from drift_plant import Batch, RATE, Work
import numpy as np

from robotid_ros.core.identification_settings import DriftSettings
from robotid_ros.core.model import Robot
from robotid_ros.core.monitoring.drift_monitor import DriftChange, DriftMonitor, FRICTION, PAYLOAD
from robotid_ros.core.monitoring.motion_rows import LIVE_CUTOFF
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.recording import Recording

ROBOTS = ('ur10', 'tx40')
# What is asked for: friction that grew, told in time with the right joint, of so many a robot; a
# body, told in time; hours without a false alarm, and minutes of pushes.
FACTOR, FRICTION_TIME, LEAST_SHARE = 1.2, 60.0, 0.95
MASS, PAYLOAD_TIME = 1.0, 5.0
# Work before a change, and recorded to identify and to validate [s].
BEFORE, EXCITATION, VALIDATION = 40.0, 30.0, 30.0
# Pushes on the last link [N], how long, and from one to the next [s].
FORCE, PUSH, PAUSE = (5.0, 50.0), (0.1, 1.0), (2.0, 8.0)


class Model(NamedTuple):
    """A robot as identified."""

    robot: Robot
    standard: np.ndarray
    sigma: np.ndarray
    residual: np.ndarray
    cutoff: float
    standstill: float

    def monitor(self) -> DriftMonitor:
        """Return a monitor that knows nothing else yet."""
        return DriftMonitor(
            self.robot, self.standard, self.sigma, self.residual, DriftSettings(),
            self.cutoff, self.standstill,
        )  # fmt: skip


class Told(NamedTuple):
    """What was told after a change, and how late; None: nothing in time."""

    change: DriftChange | None
    late: float


def identified(name: str, work: Work, working) -> Model:
    """Identify a robot from motion of its own."""
    configuration, robot = configured(name)
    settings = dataclasses.replace(configuration.identification, model='plain', method='wls')
    times = np.arange(round(EXCITATION * RATE)) / RATE
    rng = np.random.default_rng(0)
    q, dq, _ = sines(robot, configuration.simulation, times, rng, periodic=True)
    ramp = np.linspace(0.0, 1.0, 2 * RATE)
    start = np.array(configuration.simulation.initial_positions)
    way = q[0] - start
    list(work.follow(start + np.outer(ramp, way), np.tile(0.5 * way, (len(ramp), 1))))
    exciting = recorded(robot, work.follow(q, dq))
    back = q[-1] - start
    list(work.follow(start + np.outer(ramp[::-1], back), np.tile(-0.5 * back, (len(ramp), 1))))
    end = work.time + VALIDATION
    batches = itertools.takewhile(lambda _: work.time < end, working)
    found = identify(exciting, robot, settings, recorded(robot, batches))
    standard, sigma = np.zeros((2, robot.p))
    standard[found.base.columns] = found.estimate.value
    sigma[found.base.columns] = found.estimate.sigma
    assert found.validation is not None
    measured = found.validation.measured
    residual = found.validation.moving_residual * np.sqrt(np.mean(measured**2, axis=0))
    shown = ', '.join(f'{100.0 * x:.2f}' for x in found.validation.moving_residual)
    print(f'{name}: left of the validation {shown} %', flush=True)
    standstill = configuration.identification.signals.standstill
    return Model(robot, standard, sigma, residual, LIVE_CUTOFF, standstill)


def recorded(robot: Robot, batches) -> Recording:
    """Return joint states as a recording."""
    stamp, q, tau = (np.concatenate(x) for x in zip(*batches, strict=True))
    return Recording(robot.joints, (stamp - stamp[0]) * 1e-9, q, tau)


def run(monitor: DriftMonitor, batches, work: Work, duration: float) -> list[DriftChange]:
    """Work for some time, or until something is told."""
    end = work.time + duration
    while work.time < end:
        batch: Batch = next(batches)
        if told := monitor.update(*batch):
            return told
    return []


def change_told(model: Model, work: Work, batches, duration: float, change) -> Told:
    """Work with a new monitor, change something, and see what is told."""
    monitor = model.monitor()
    early = run(monitor, batches, work, BEFORE)
    change(True)
    start = work.time
    told = early or run(monitor, batches, work, duration)
    late = work.time - start
    change(False)
    return Told(told[0] if told else None, late)


def friction_trials(model: Model, work: Work, batches, count: int) -> list[Told | None]:
    """Return what was told of friction, joint by joint; None where it is another one's."""
    result: list[Told | None] = []
    for k in range(count):
        joint = k % model.robot.n

        def grow(on: bool, joint: int = joint) -> None:
            work.scale_friction(joint, FACTOR if on else 1.0)

        told = change_told(model, work, batches, FRICTION_TIME, grow)
        name, group = model.robot.joints[joint], told.change and told.change.group
        right = group is not None and (group.kind, group.name) == (FRICTION, name)
        if not right:
            print(f'  {name}: {group and (group.kind, group.name)} after {told.late:.1f} s')
        result.append(told if right else None)
    return result


def payload_trials(model: Model, work: Work, batches, count: int) -> list[Told | None]:
    """Return what was told of a body; None where it is something else, or late."""
    result: list[Told | None] = []
    for _ in range(count):
        told = change_told(model, work, batches, PAYLOAD_TIME, work.carry)
        right = told.change is not None and told.change.group.kind == PAYLOAD
        if not right:
            print(f'  payload: {told.change and told.change.group} after {told.late:.1f} s')
        result.append(told if right else None)
    return result


def alarms(model: Model, work: Work, batches, seconds: float) -> tuple[int, float]:
    """Return the changes told while nothing changes, and CPU per second."""
    monitor, told, spent, end = model.monitor(), 0, 0.0, work.time + seconds
    while work.time < end:
        batch = next(batches)
        start = time.process_time()
        changes = monitor.update(*batch)
        spent += time.process_time() - start
        for change in changes:
            print(f'  false: {change}')
        told += len(changes)
    return told, spent / max(seconds, 1e-9)


def pushes(model: Model, work: Work, batches, seconds: float) -> tuple[int, int]:
    """Return the number of pushes, and of changes told of them."""
    monitor, rng = model.monitor(), np.random.default_rng(1)
    count, told, end = 0, 0, work.time + seconds
    while work.time < end:
        direction = rng.normal(size=3)
        work.push(rng.uniform(*FORCE) * direction / np.linalg.norm(direction))
        count += 1
        told += len(run(monitor, batches, work, rng.uniform(*PUSH)))
        work.push(np.zeros(3))
        told += len(run(monitor, batches, work, rng.uniform(*PAUSE)))
    return count, told


def times(trials: list[Told | None]) -> str:
    """Say how late changes were told."""
    late = [each.late for each in trials if each is not None]
    if not late:
        return 'none'
    return f'{len(late)} of {len(trials)}, median {np.median(late):.1f} s, last {max(late):.1f} s'


def main() -> int:
    """Print the table."""
    parser = command_line(__doc__)
    parser.add_argument('--robots', nargs='+', default=ROBOTS)
    parser.add_argument('--trials', type=int, default=50, help='of friction, each robot')
    parser.add_argument('--payloads', type=int, default=10, help='each robot')
    parser.add_argument('--minutes', type=float, default=30.0, help='without a change, each')
    parser.add_argument('--pushed', type=float, default=5.0, help='minutes with pushes, each')
    arguments = parser.parse_args()
    missed, right, all_trials = [], 0, 0
    for seed, name in enumerate(arguments.robots):
        configuration, robot = configured(name)
        work = Work(robot, configuration.simulation, MASS, seed)
        model = identified(name, work, batches := work.move())
        friction = friction_trials(model, work, batches, arguments.trials)
        right, all_trials = right + sum(map(bool, friction)), all_trials + len(friction)
        print(f'{name}: friction +20 % told {times(friction)}', flush=True)
        payload = payload_trials(model, work, batches, arguments.payloads)
        found = [each.change for each in payload if each is not None and each.change]
        masses = ', '.join(f'{c.value[0]:.3f}±{c.sigma[0]:.3f}' for c in found[:3])
        print(f'{name}: {MASS:g} kg told {times(payload)}; {masses} kg', flush=True)
        told, cpu = alarms(model, work, batches, 60.0 * arguments.minutes)
        print(f'{name}: {told} false alarms in {arguments.minutes:g} min; '
              f'{100.0 * cpu:.1f} % of a processor', flush=True)  # fmt: skip
        count, pushed = pushes(model, work, batches, 60.0 * arguments.pushed)
        print(f'{name}: {pushed} changes told of {count} pushes', flush=True)
        missed += [f'{name}: payload not told'] * (None in payload)
        missed += [f'{name}: {told} false alarms'] * bool(told)
        missed += [f'{name}: {pushed} pushes told as changes'] * bool(pushed)
    if right < LEAST_SHARE * all_trials:
        missed.append(f'friction told right in {right} of {all_trials}')
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
