"""
Motion that a session needs when it stops as soon as it knows enough, and σ where it stops.

    python benchmarks/sequential.py [--sessions 200] [--robots arm3 scara ur10 tx40] [--check]

Robots of `config/` by MuJoCo's dynamics along their shipped trajectories, without a clock: what is
known at the end of each period decides, as in a session, which data until a second before, and,
where a third period is needed, a motion for what was unknown after the first one. Noise
and friction are drawn anew in each session; every second one has something that the model leaves
out, or noise that remembers. A motion of sums of sines, drawn anew, is asked each 2.5 s in one of
ten sessions. 'expected' and 'actual' are errors of prediction on working motions when the session
stops, of the worst joint; the actual one is that of the parameters against the true ones. σ are
those of weighted least squares with the errors of the model, of all that was recorded. Last, the
node `identification` follows seven joints at 500 Hz, whose friction is open, for three periods.
"""

from collections.abc import Iterator
import dataclasses
import os
from pathlib import Path
import sys
import tempfile
import time as clock
from typing import NamedTuple

from common import command_line, ROOT, verdict
from coverage import drawn, efforts, LEFT_OUT, NOISE, truth, WHITE
from disturbances import plant, RATE, recording, Run, run_along, sines
import numpy as np

from robotid_ros.core.excitation.design import next_motion
from robotid_ros.core.excitation.settings import Until
from robotid_ros.core.excitation.trajectory import Trajectory
from robotid_ros.core.excitation.working_motion import SLOWEST, working_motion
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, inverse_dynamics, regressor, Robot, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.friction import make_terms
from robotid_ros.core.model.robot_builder import with_friction
from robotid_ros.core.monitoring.progress import follow, Knowledge
from robotid_ros.core.pipeline.estimation import estimate_base_parameters
from robotid_ros.core.regression.estimate import Estimate
from robotid_ros.core.signals.recording import Recording
from robotid_ros.files.configuration import load
from robotid_ros.files.trajectory_file import read_design

ROBOTS = ('arm3', 'scara', 'ur10', 'tx40')
# White noise alone has half of the sessions.
CASES = (WHITE, NOISE[2], WHITE, LEFT_OUT[0], WHITE, LEFT_OUT[1])
# Periods of a session at the most; the node knows what came so long before a period's end [s].
PERIODS, LATE = 3, 1.0
# Of a period, in which the next motion is sought.
SEARCH = 0.5
# A motion of sines is asked so often, and for so long [s], in one session of so many.
ASKED, LONGEST, OF = 2.5, 60.0, 10
# Largest median share of the fixed session's time, least share of truths within 3 σ.
SHARE, LEAST = 0.5, 0.97
UNTIL = Until(prediction=0.02)
# Of the node: joints, rate [Hz], seconds, and the largest share of a core.
JOINTS, NODE_RATE, NODE_SECONDS, NODE_SHARE = 7, 500.0, 30.0, 0.2
LINK = """<link name="l{0}"><inertial><origin xyz="0.1 0.02 0.05"/><mass value="{2}"/>
<inertia ixx="0.03" iyy="0.04" izz="0.02" ixy="0.002" ixz="0.001" iyz="-0.002"/></inertial></link>
<joint name="j{0}" type="revolute"><parent link="l{1}"/><child link="l{0}"/>
<origin xyz="0.1 0 0.2" rpy="{3} 0 0"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="100" velocity="3"/></joint>"""


class Session(NamedTuple):
    """
    What a session came to.

    Time of motion until it stopped, what was expected and true then, whether each truth is within
    3 σ then and after all periods, the time that a motion of sines needed, and, of one whose last
    motion was designed for what was unknown, the true error of the same motion again; NaN: none.
    """

    robot: str
    case: str
    time: float
    fixed: float
    expected: float
    actual: float
    stopped: np.ndarray
    whole: np.ndarray
    sines: float
    again: float


def session(name: str, case: str, seed: int, *, with_sines: bool) -> Session:
    """Run a session, and the same one to its fixed end."""
    chosen = plant(name)
    design = read_design(Path(ROOT, 'config', 'trajectories', f'{name}.yaml'))
    excitation = load(Path(ROOT, 'config', f'{name}.yaml')).excitation
    period = design.trajectory.period
    terms = make_terms(('viscous', 'coulomb', 'offset'), {})
    robot = with_friction(chosen.robot, (terms,) * chosen.robot.n)
    settings = dataclasses.replace(chosen.identification, method='wls', model='plain')
    edges = [k * period - LATE for k in range(1, PERIODS + 1)]
    base = base_parameters(robot)

    def recorded(motions: list[Trajectory]) -> tuple[Recording, np.ndarray]:
        """Run one period after the other; return what is recorded, and the true parameters."""
        time = np.arange(round(period * RATE)) / RATE
        whole = np.arange(PERIODS * len(time)) / RATE
        rows = zip(*(motion.sample(time) for motion in motions), strict=True)
        run = run_along(
            *(chosen, whole, tuple(map(np.concatenate, rows))), np.random.default_rng([seed, 7])
        )
        here, factors = drawn(run, seed)
        return log_of(here, factors, case, seed), base.of(truth(here, robot, factors))

    def estimate(log: Recording, count: int) -> Estimate:
        part = log.between(0.0, count * period)
        return estimate_base_parameters(part, robot, base, settings, lambda _: None).estimate

    motions = [design.trajectory] * PERIODS
    log, true = recorded(motions)
    whole, again = estimate(log, PERIODS), np.nan
    for count in range(1, PERIODS + 1):
        known = list(follow(pieces(log, edges[:count]), robot, settings, UNTIL))[-1]
        if known.enough(UNTIL):
            break
        # The next motion is designed while one runs of which nothing is known yet.
        if count + 2 <= PERIODS and known.design is not None:
            told, told_robot = known.design
            ends = clock.monotonic() + SEARCH * period
            found = next_motion(told_robot, excitation, told, motions[count], ends)
            if found is not None:
                again = actual_error(robot, log, whole.value, true)
                motions[count + 1 :] = [found] * (PERIODS - count - 1)
                log, true = recorded(motions)
    stopped = estimate(log, count)
    inside = (np.abs(each.value - true) <= 3.0 * each.sigma for each in (stopped, whole))
    actual = actual_error(robot, log, stopped.value, true)
    return Session(
        *(name, case, count * period, PERIODS * period, float(known.error[known.worst]), actual),
        *inside,
        sines_time(name, robot, settings, case, seed) if with_sines else np.nan,
        again if count == PERIODS else np.nan,
    )


def log_of(run: Run, factors: dict[str, float], case: str, seed: int) -> Recording:
    """Return the recording of one case."""
    return next(recording(run, x) for name, x in efforts(run, factors, seed) if name == case)


def pieces(log: Recording, edges: list[float]) -> Iterator[Recording]:
    """Cut a recording at its edges [s]."""
    for start, stop in zip([0.0, *edges], edges, strict=False):
        yield log.between(start, stop)


def sines_time(
    name: str, robot: Robot, settings: IdentificationSettings, case: str, seed: int
) -> float:
    """Return the time that sums of sines take until enough is known, at most the longest [s]."""
    chosen, rng = plant(name), np.random.default_rng([seed, 8])
    time = np.arange(round(LONGEST * RATE)) / RATE
    motion = sines(chosen.robot, chosen.simulation, time, rng, periodic=False)
    log = log_of(*drawn(run_along(chosen, time, motion, rng), seed), case, seed)
    edges = list(np.arange(2.0 * ASKED, LONGEST + 0.1, ASKED))

    def enough(known: Knowledge) -> bool:
        return known.enough(UNTIL)

    found = next(filter(enough, follow(pieces(log, edges), robot, settings, UNTIL)), None)
    # What is known is of the time that was seen, less the ends of the filters.
    return LONGEST if found is None else min(edge for edge in edges if edge >= found.time)


def actual_error(robot: Robot, log: Recording, found: np.ndarray, true: np.ndarray) -> float:
    """Return the error of prediction on working motions, of the worst joint."""
    speed = np.abs(np.gradient(log.position, log.time, axis=0)).max(axis=0)
    reached = log.position.min(axis=0), log.position.max(axis=0), speed
    q, dq, ddq, _ = working_motion(robot, *reached)
    W = regressor(robot, q, dq, ddq, columns=base_parameters(robot).columns)
    moving = np.abs(dq.T) > SLOWEST
    error, effort = (np.where(moving, W @ x, 0.0) for x in (found - true, true))
    return float(np.max(np.linalg.norm(error, axis=1) / np.linalg.norm(effort, axis=1)))


def node_share() -> float:
    """Return the processor time of the node while it follows a motion, over that time."""
    sys.path.insert(0, str(ROOT / 'test' / 'tools'))
    from diagnostic_msgs.msg import DiagnosticStatus
    from live_session import Session as LiveSession
    from sensor_msgs.msg import JointState

    from robotid_ros.files.yaml import dump_yaml
    from robotid_ros.nodes.common.messages import status, to_time
    from robotid_ros.nodes.common.runtime import LATCHED

    links = ''.join(LINK.format(k, k - 1, 8 - k, k % 2 * 1.57) for k in range(1, JOINTS + 1))
    urdf = f'<robot name="seven"><link name="l0"/>{links}</robot>'
    robot = build_robot(urdf, RobotSettings())
    time, rng = np.arange(round(NODE_SECONDS * NODE_RATE)) / NODE_RATE, np.random.default_rng(0)
    w = 0.2 * np.pi * np.arange(1, 6)
    a, phase = rng.normal(size=(5, JOINTS)) * 0.3, np.outer(time, w)
    q, dq, ddq = np.sin(phase) @ a, (np.cos(phase) * w) @ a, -(np.sin(phase) * w**2) @ a
    effort = inverse_dynamics(robot, robot.prior, q, dq, ddq) + 2.0 * dq + np.sign(dq)
    effort += 0.5 * np.exp(-((dq / 0.1) ** 2)) * np.sign(dq) + 0.1 * rng.normal(size=q.shape)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / 'seven.urdf').write_text(urdf)
        groups = {
            'robot': {'urdf': str(folder / 'seven.urdf')},
            'excitation': {'period': NODE_SECONDS / PERIODS, 'until': {'prediction': 1e-6}},
        }
        config = folder / 'seven.yaml'
        config.write_text(dump_yaml({'/**': {'ros__parameters': groups}}))
        with LiveSession(config, folder) as live:
            live.start('identification')
            live.ready('identification')
            node = live.client.node
            state = node.create_publisher(DiagnosticStatus, 'excitation/state', LATCHED)
            states, known = node.create_publisher(JointState, 'joint_states', 100), []
            node.create_subscription(
                DiagnosticStatus, 'identification/progress', known.append, LATCHED
            )
            say = {'session': 'one', 'state': 'approaching'}
            state.publish(status('excitation', '', say))
            live.client.wait_for(lambda: bool(known), what='the session is followed')
            state.publish(status('excitation', '', {**say, 'state': 'exciting'}))
            pid, begin = live.process('identification').pid, clock.monotonic()
            used = processor_time(pid)
            for t, position, torque in zip(time, q.tolist(), effort.tolist(), strict=True):
                message = JointState(name=robot.joints, position=position, effort=torque)
                message.header.stamp = to_time(10**18 + round(1e9 * t))
                states.publish(message)
                clock.sleep(max(0.0, begin + t - clock.monotonic()))
            used = processor_time(pid) - used
            seconds = clock.monotonic() - begin
            print(f'the node said {len(known)} times: {known[-1].message}')
    return used / seconds


def processor_time(pid: int) -> float:
    """Return the processor time that a process has taken [s]."""
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def show(name: str, found: list[Session]) -> None:
    """Print a line of the table."""
    time, sines, expected, actual = (
        np.array([getattr(each, key) for each in found])
        for key in ('time', 'sines', 'expected', 'actual')
    )
    tried = sines[np.isfinite(sines)]
    print(
        f'{name:24s} {len(found):4d} {np.median(time):7.1f} {np.mean(time):6.1f} '
        f'{found[0].fixed:6.1f} {np.median(tried) if len(tried) else np.nan:7.1f} '
        f'{100 * np.median(expected):9.2f} {100 * np.median(actual):7.2f} '
        f'{100 * np.quantile(actual, 0.9):6.2f} '
        f'{100 * share(found, "stopped"):8.2f} {100 * share(found, "whole"):6.2f}',
        flush=True,
    )


def share(found: list[Session], when: str) -> float:
    """Return the share of truths within 3 σ."""
    return float(np.mean(np.concatenate([getattr(each, when) for each in found])))


def main() -> int:
    """Print the table."""
    parser = command_line(__doc__)
    parser.add_argument('--sessions', type=int, default=200, help='of all robots together')
    parser.add_argument('--robots', nargs='+', default=ROBOTS, help='of config/')
    arguments = parser.parse_args()
    names, found = list(arguments.robots), list[Session]()
    for seed in range(arguments.sessions):
        name, case = names[seed % len(names)], CASES[seed // len(names) % len(CASES)]
        found.append(session(name, case, seed, with_sines=seed // len(names) % OF == 0))
        show(f'{name} {case}', found[-1:])
    print('motion until 2 % [s]: median, mean; fixed session, sines; error when it stops [%]:')
    print('median expected, actual, actual of nine in ten; truths within 3 σ [%]: then, fixed')
    for name in names:
        show(name, [each for each in found if each.robot == name])
    for case in dict.fromkeys(CASES):
        if own := [each for each in found if each.case == case]:
            show(case, own)
    show('all', found)
    gains = [each.actual / each.again for each in found if np.isfinite(each.again)]
    if gains:
        print(
            f'{len(gains)} sessions ran a motion for what was unknown: their true error is '
            f'{np.median(gains):.2f} times that of the same motion again, {min(gains):.2f} to '
            f'{max(gains):.2f}'
        )
    median = float(np.median([each.time / each.fixed for each in found]))
    missed = []
    if median > SHARE:
        missed.append(f'{100 * median:.0f} % of the fixed time in the median')
    missed += [
        f'{100 * share(found, when):.1f} % of truths within 3 σ, {what}'
        for when, what in (('stopped', 'where it stops'), ('whole', 'after all periods'))
        if share(found, when) < LEAST
    ]
    used = node_share()
    print(f'the node took {100 * used:.0f} % of a core')
    if used > NODE_SHARE:
        missed.append(f'the node takes {100 * used:.0f} % of a core')
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
