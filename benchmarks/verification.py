"""
What identified parameters are worth on the simulated robot: tracking errors, without a clock.

Each robot is identified from its stored excitation, noise as configured; then the validation
motion runs without and with the identified efforts as feed-forward, and with the proposed gains.
`robotid demo` does the same over DDS. Usage: `python benchmarks/verification.py [ROBOT ...]
[--check]`.
"""

from dataclasses import replace
import sys

from common import command_line, configured, ROOT, verdict
import numpy as np
from plant_session import follow, REST as HOLD

from robotid_ros.core.excitation.trajectory import Trajectory, Waypoints, waypoints
from robotid_ros.core.identification_settings import GainProposalSettings
from robotid_ros.core.model import Robot
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.recording import Controller, Recording
from robotid_ros.core.verification.feed_forward import REST, with_feed_forward, with_rests
from robotid_ros.core.verification.gains import propose_gains
from robotid_ros.core.verification.tracking import Tracking, tracks_better
from robotid_ros.files.configuration import Configuration
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.files.verification import proposal_sentence
from robotid_ros.nodes.common.controller import JTC
from robotid_ros.simulation_settings import SimulationSettings

# How many times smaller the error of each joint has to become; noise of the sensors is in it.
LEAST = {'tx40': 20.0, 'ur10': 20.0, 'arm3': 10.0, 'scara': 10.0}


def run(robot: Robot, settings: SimulationSettings, points: Waypoints) -> tuple[np.ndarray, ...]:
    """Run a motion; return measured q, effort and desired q of every update, (N, n)."""
    start = tuple(points.q[0].tolist())
    columns = [points.time, points.q, points.dq, points.ddq]
    columns += [] if points.tau is None else [points.tau]
    q, _, tau, desired, *_ = follow(
        robot,
        replace(settings, initial_positions=start),
        zip(*columns, strict=True),
        points.duration,
    )
    first = round(HOLD * settings.update_rate)
    return q[first:], tau[first:], desired[first:]


def track(robot: Robot, settings: SimulationSettings, points: Waypoints) -> Tracking:
    """Return the errors between the rests of a motion."""
    q, _, desired = run(robot, settings, points)
    time = np.arange(len(q)) / settings.update_rate - REST
    rows = (time >= 0.0) & (time <= points.duration - 2.0 * REST)
    return Tracking(robot.joints, time[rows], (desired - q)[rows])


def record(
    robot: Robot, configuration: Configuration, motion: Trajectory, periods: int
) -> Recording:
    """Record a motion at the rate of the joint states."""
    settings = configuration.simulation
    points = waypoints(motion, configuration.excitation.rate, periods)
    q, tau, _ = run(robot, settings, points)
    step = round(settings.update_rate / settings.state_rate)
    time = np.arange(len(q)) / settings.update_rate
    return Recording(robot.joints, time[::step], q[::step], tau[::step], source='the plant')


def verify(name: str) -> list[str]:
    """Identify and verify one robot; print its errors, return what misses its bound."""
    configuration, robot = configured(name)
    settings = configuration.simulation
    plan = read_design(ROOT / 'config' / 'trajectories' / f'{name}.yaml')
    assert plan.validation is not None
    recording = record(robot, configuration, plan.trajectory, configuration.excitation.periods)
    found = identify(recording, robot, configuration.identification)
    model = found.robot
    chi = np.zeros(model.p)
    chi[found.base.columns] = found.estimate.value
    points = with_rests(waypoints(plan.validation, configuration.excitation.rate))
    driven = with_feed_forward(points, model, chi, 1.0 / settings.update_rate)
    before, after = track(robot, settings, points), track(robot, settings, driven)
    present = {joint: {'p': g.p, 'i': g.i, 'd': g.d} for joint, g in settings.gains.items()}
    rate, rests = settings.update_rate, points.time[[1, -2]]
    controller = Controller('', JTC, rate, robot.joints, ('effort',), present)
    motion = points.sample(np.arange(*rests, 1.0 / rate))
    chi = found.standard.value
    # A command acts at once, and is held.
    wanted = GainProposalSettings()
    proposal = propose_gains(
        model,
        chi,
        controller,
        recording.position,
        motion,
        wanted,
        delay=0.5 / rate,
    )
    gains = {
        joint: replace(settings.gains[joint], p=g.p, i=g.i, d=g.d)
        for joint, g in proposal.new.items()
    }
    tried = track(robot, replace(settings, gains=gains), points)
    kept = proposal.better and tracks_better([before], [tried])
    print(f'\n{name}: {len(points.time)} points, {len(driven.time)} with feed-forward; proposed')
    print(f'gains are {"kept" if kept else "set back"}: {proposal_sentence(proposal)}')
    print('RMS of tracking errors [mrad or mm]')
    print('joint                   as it is   feed-forward   times smaller   proposed gains')
    ratio = before.rms / after.rms
    for j, joint in enumerate(robot.joints):
        print(
            f'{joint:20} {1e3 * before.rms[j]:11.4f} {1e3 * after.rms[j]:14.4f} '
            f'{ratio[j]:15.1f} {1e3 * tried.rms[j]:16.4f}'
        )
    missed = [
        f'{name}, {joint}: {value:.1f} times smaller, not {LEAST.get(name, 1.0):g}'
        for joint, value in zip(robot.joints, ratio, strict=True)
        if value < LEAST.get(name, 1.0)
    ]
    if not kept:
        missed.append(f'{name}: no better gains')
    return missed


def main() -> int:
    """Verify each robot."""
    parser = command_line(__doc__ or '')
    parser.add_argument('robots', nargs='*', metavar='ROBOT', help='default: those with a bound')
    args = parser.parse_args()
    missed = [text for name in args.robots or LEAST for text in verify(name)]
    return verdict(missed, args.check)


if __name__ == '__main__':
    sys.exit(main())
