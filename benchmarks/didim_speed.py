"""
What a closed-loop replay costs: CPU time and memory, on one thread, on a UR10.

    OMP_NUM_THREADS=1 python benchmarks/didim_speed.py [--check] [--long]

The UR10 has viscous and Coulomb friction, offsets and rotor inertias; its loops run at 1 kHz with
the law of the joint_trajectory_controller, the integrator takes steps of 1 ms, the plain loop RK4.
"""

import resource
import sys
import time

from common import command_line, configured, verdict
import numpy as np
import pinocchio

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot import Robot
from robotid_ros.core.replay.control_laws import JointTrajectoryEffort
from robotid_ros.core.replay.didim import didim
from robotid_ros.core.replay.replay_problem import ReplayProblem, Torque
from robotid_ros.core.replay.simulation import direct_model, simulate

RATE = 1000.0
# Least speed of the simulation, and most of DIDIM on 10 s, in those of a plain loop.
FASTER, LOOPS = 2.5, 12.0


def ur10() -> tuple[Robot, np.ndarray]:
    """Return the robot and plausible standard parameters (p,)."""
    _, robot = configured('ur10')
    chi = robot.prior.copy()
    usual = {
        'Ia': (6.0, 6.0, 3.0, 0.6, 0.6, 0.6),
        'Fv': (12, 12, 8, 2, 2, 2),
        'Fc': (8, 8, 6, 2, 2, 1.5),
        'off': (0.1,) * 6,
    }
    for k, parameter in enumerate(robot.parameters):
        if parameter.symbol in usual and parameter.joint in robot.joints:
            chi[k] = usual[parameter.symbol][robot.joints.index(parameter.joint)]
    return robot, chi


def wave(robot: Robot, duration: float) -> Motion:
    """Return a periodic reference of five harmonics of 0.1 Hz a joint, from rest."""
    t = np.arange(round(duration * RATE))[:, None] / RATE
    rng = np.random.default_rng(3)
    q, dq, ddq = (np.zeros((t.size, robot.n)) for _ in range(3))
    for harmonic in range(1, 6):
        w = 2.0 * np.pi * 0.1 * harmonic
        a = rng.uniform(-0.5, 0.5, robot.n) / harmonic
        q += a * (1.0 - np.cos(w * t))
        dq += a * w * np.sin(w * t)
        ddq += a * w * w * np.cos(w * t)
    home = np.array([0.0, -1.2, 1.4, -0.5, 0.3, 0.0])
    return Motion(home + q, dq, ddq)


def law() -> JointTrajectoryEffort:
    """Return loops of some 5 Hz."""
    p = np.array([20000.0, 20000.0, 9000.0, 1200.0, 1100.0, 800.0])
    return JointTrajectoryEffort(RATE, p, 0.0, 0.05 * p)


def plain(robot: Robot, chi: np.ndarray, desired: Motion, steps: int) -> float:
    """Return the speed of the loop that anyone would write: friction by sign, RK4, numpy."""
    direct = direct_model(robot, chi)
    model, data, h = direct.model, direct.model.createData(), 1.0 / RATE
    control = law()
    p, d, viscous = control.loop.stiffness, control.loop.damping, np.diag(direct.damping)
    q, dq = desired.q[0].copy(), desired.dq[0].copy()

    def rate(position: np.ndarray, velocity: np.ndarray, tau: np.ndarray) -> np.ndarray:
        friction = viscous * velocity + direct.coulomb * np.sign(velocity) + direct.offset
        return pinocchio.aba(model, data, position, velocity, tau - friction)

    begin = time.process_time()
    for k in range(steps):
        tau = p * (desired.q[k] - q) + d * (desired.dq[k] - dq)
        k1 = rate(q, dq, tau)
        k2 = rate(q + h / 2 * dq, dq + h / 2 * k1, tau)
        k3 = rate(q + h / 2 * (dq + h / 2 * k1), dq + h / 2 * k2, tau)
        k4 = rate(q + h * (dq + h / 2 * k2), dq + h * k3, tau)
        q = q + h * dq + h * h / 6 * (k1 + k2 + k3)
        dq = dq + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return steps * h / (time.process_time() - begin)


def speed(robot: Robot, chi: np.ndarray) -> tuple[float, float]:
    """Print how many times faster than real time the simulation and a plain loop run."""
    desired, direct = wave(robot, 10.0), direct_model(robot, chi)
    figures = []
    for _ in range(5):
        begin = time.process_time()
        run = simulate(direct, law(), desired)
        figures.append(10.0 / (time.process_time() - begin))
    turning = float((np.abs(run.slip_sign) < 1.0).any(axis=1).mean())
    bare = max(plain(robot, chi, desired, 5000) for _ in range(3))
    print(
        f'simulation: {max(figures):.1f} times real time (median {np.median(figures):.1f}), '
        f'{100 * turning:.1f} % of the updates with a joint at rest or turning; '
        f'a plain loop: {bare:.1f}'
    )
    return max(figures), bare


def whole(robot: Robot, chi: np.ndarray, duration: float) -> tuple[float, float, int]:
    """Return CPU time [s] and peak memory [MB] of DIDIM from the regular start, and its steps."""
    desired, control = wave(robot, duration), law()
    rng = np.random.default_rng(0)
    tau = simulate(direct_model(robot, chi), control, desired).tau
    tau = tau + 0.02 * tau.std(axis=0) * rng.normal(size=tau.shape)
    rows = np.arange(tau.shape[0], dtype=float)
    base = base_parameters(robot)
    begin = time.process_time()
    torque = Torque(rows, tau, np.ones(rows.size, dtype=bool), RATE)
    case = ReplayProblem(robot, base, control, desired, torque, desired)
    estimate, _, history = didim(case, case.initial_parameters('regular'))
    used = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    sure = np.abs(estimate.value - base.of(chi)) <= 4.0 * estimate.sigma
    print(
        f'{duration:7.0f} s: {used:7.2f} s of CPU, {used / duration:.3f} s per second, peak '
        f'{peak:.0f} MB, {history.steps} steps, {100 * sure.mean():.0f} % of the parameters '
        'within 4 sigma'
    )
    return used, peak, history.steps


def main() -> int:
    """Measure, print and, with --check, compare with the bounds."""
    parser = command_line(__doc__)
    parser.add_argument('--long', action='store_true', help='up to ten minutes of motion')
    arguments = parser.parse_args()
    robot, chi = ur10()
    fast, bare = speed(robot, chi)
    print('DIDIM from the regular start, recording at 1 kHz:')
    used, peak, _ = whole(robot, chi, 10.0)
    for duration in (30.0, 100.0, 300.0, 600.0) if arguments.long else (30.0,):
        whole(robot, chi, duration)
    loops = used / (10.0 / bare)
    print(f'replay {fast / bare:.2f} × as fast as a plain loop, 10 s cost as much as {loops:.1f}')
    missed = [
        text
        for text, bad in (
            (f'{FASTER:g} × the speed of a plain loop: {fast / bare:.2f}', fast < FASTER * bare),
            (f'10 s at the cost of {LOOPS:g} plain loops: {loops:.1f}', loops > LOOPS),
            ('300 MB', peak > 300.0),
        )
        if bad
    ]
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
