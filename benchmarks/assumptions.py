"""
Warnings of data that break the assumptions: false alarms on clean logs, and what is detected.

The logs are of the robots of `config/` by MuJoCo's dynamics, with configured friction and noise.
"""

from collections import Counter
import sys
import time
from typing import NamedTuple

from common import command_line, verdict
from disturbances import clean, DISTURBANCES, OF_RESIDUAL, OF_SEVERAL, Plant, Run, run

from robotid_ros.core.diagnostics.data_warnings import data_warnings, NOTEWORTHY
from robotid_ros.core.diagnostics.plausibility import FittedModel
from robotid_ros.core.findings import Finding, render, select
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.pipeline.choices import choose_model
from robotid_ros.core.pipeline.estimation import estimate_base_parameters
from robotid_ros.core.signals.recording import Recording

ROBOTS = ('tx40', 'ur10', 'arm3', 'scara', 'emps')
# Clean logs, false alarms that are allowed on them, and share of each disturbance to be told with
# the right joint; the share of the time of the fit that looking may take.
COUNT, MOST_FALSE, LEAST_DETECTED, MOST_TIME = 200, 2, 0.8, 0.1
LEAST_REASONS = 0.6  # told rightly: another reason, like gravity for a spring, may explain as much
DISTURBED = 2  # logs of each robot and disturbance


class Outcome(NamedTuple):
    """Findings of a log, its largest residual, and CPU seconds."""

    findings: list[Finding]
    residual: float
    fit: float
    look: float


def look(plant: Plant, recording: Recording) -> Outcome:
    """Identify as `identify` does up to its warnings."""
    start = time.process_time()
    choice = choose_model(recording, plant.robot, plant.identification)
    robot, mixed = choice.robot, choice.mixed
    base = base_parameters(robot)
    given = choice.recording, robot, base, choice.settings
    found = estimate_base_parameters(*given, lambda _: None, mixed)
    middle = time.process_time()
    plain, judged = found.without_shrunk(), (robot, base)
    if mixed is not None and robot is mixed.robot:
        judged = mixed.plain, mixed.base
    whole = FittedModel(robot, base, found.sampled_systems, found.estimate.value)
    warnings = data_warnings(*judged, plain.samples, plain.sampled_systems, plain.estimate, whole)
    worst = float(found.estimate.residual.max())
    return Outcome(warnings, worst, middle - start, time.process_time() - middle)


def is_told(run: Run, what: str, names: tuple[str, ...], outcome: Outcome) -> bool:
    """Tell whether a finding names the disturbance, with the joint unless all are concerned."""
    joint = run.plant.robot.joints[run.joint]
    found = select(outcome.findings, *names)
    return any(what.startswith('payload') or joint in each.joints for each in found)


def false_alarms(count: int, show: bool) -> tuple[int, float]:
    """Count warnings on clean logs; return also the share of CPU time that looking takes."""
    total, spent, fit = 0, 0.0, 0.0
    for k in range(count):
        name = ROBOTS[k % len(ROBOTS)]
        here = run(name, seed=k // len(ROBOTS))
        found = look(here.plant, clean(here))
        total, spent, fit = total + len(found.findings), spent + found.look, fit + found.fit
        for text in map(render, found.findings if show else ()):
            print(f'  {name} {k // len(ROBOTS)}: {text}', flush=True)
    return total, spent / max(fit, 1e-9)


def detections(count: int, show: bool) -> dict[str, tuple[int, int]]:
    """Count, for each disturbance, the logs of which it is told, and all."""
    told, tried = Counter[str](), Counter[str]()
    for name in ROBOTS:
        for seed in range(count):
            here = run(name, 1000 + seed)
            for what, (disturb, names) in DISTURBANCES.items():
                if not applies(here, what):
                    continue
                found = look(here.plant, disturb(here))
                if what in OF_RESIDUAL and found.residual < NOTEWORTHY:
                    continue  # other parameters make up for it
                tried[what] += 1
                good = is_told(here, what, names, found)
                told[what] += good
                if show and not good:
                    print(f'  {name} {seed} {here.plant.robot.joints[here.joint]}, {what}:')
                    print('   ', *map(render, found.findings), sep='\n    ', flush=True)
    return {what: (told[what], tried[what]) for what in DISTURBANCES}


def applies(run: Run, what: str) -> bool:
    """Tell whether a disturbance makes a difference to the robot."""
    return run.plant.robot.n > 1 or what not in OF_SEVERAL


def main() -> int:
    """Print the table."""
    parser = command_line(__doc__)
    parser.add_argument('--count', type=int, default=COUNT, help='clean logs')
    parser.add_argument('--disturbed', type=int, default=DISTURBED, help='of each robot')
    parser.add_argument('--show', action='store_true', help='print false alarms and misses')
    arguments = parser.parse_args()
    missed = []
    if arguments.count:
        alarms, share = false_alarms(arguments.count, arguments.show)
        print(f'{"clean":36s} {alarms} warnings in {arguments.count} logs', end='')
        print(f'; CPU {100.0 * share:.1f} % of the fit', flush=True)
        if alarms > MOST_FALSE:
            missed.append(f'{alarms} false alarms')
        if share > MOST_TIME:
            missed.append(f'looking takes {100.0 * share:.0f} % of the time')
    if arguments.disturbed:
        for what, (told, tried) in detections(arguments.disturbed, arguments.show).items():
            print(f'{what:36s} told in {told} of {tried}')
            if told < (LEAST_REASONS if what in OF_RESIDUAL else LEAST_DETECTED) * tried:
                missed.append(f'{what}: {told} of {tried}')
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
