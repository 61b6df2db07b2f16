"""
DIDIM on six axes: a TX-40 in MuJoCo under the joint_trajectory_controller, without its position.

    python benchmarks/studies/didim_tx40.py [--check] [--duration SECONDS]

The plant is the simulated robot of this package (MuJoCo, its own controller, sensors with noise),
which shares nothing with the model that identifies it; its links, friction and wrist coupling
differ from the URDF. Cases: as configured; with integral gains and velocity feed-forward; with
positions recorded at 15 times the noise of those that the controller works on. Without filter and
decimation (the paper's table 7) all of them ruin IDIM. Last, without a bound, encoders as noisy as
that in the loop itself, where the motors follow the noise.
"""

from collections.abc import Callable
import dataclasses
import sys

import _benchmarks  # noqa: F401
from common import command_line, configured, verdict
import numpy as np
from plant_session import follow

from robotid_ros.core.findings import render
from robotid_ros.core.identification_settings import IdentificationSettings, ReplaySettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot import Robot
from robotid_ros.core.parameters.essential import find_essential
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.regression.estimate import Estimate
from robotid_ros.core.replay.didim import didim
from robotid_ros.core.replay.replay_problem import make_replay_problem
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Controller, Recording, Reference, SignalSettings
from robotid_ros.exceptions import DivergenceError
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import SimulationSettings

# Of times (K,) and the start (n,): q, dq, ddq (K, n).
Motion = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...]]
TYPE = 'joint_trajectory_controller/JointTrajectoryController'
# Noise of bad encoders [rad].
NOISE = 3e-4
# How far each joint goes from its start [rad], and its largest acceleration [rad/s²], well inside
# the arm's.
REACH = np.array([1.5, 0.9, 0.9, 2.0, 1.6, 2.5])
LARGEST = np.array([9.0, 7.0, 12.0, 22.0, 18.0, 28.0])


def harmonics(
    t: np.ndarray, joints: int, period: float = 5.0, seed: int = 11
) -> tuple[np.ndarray, ...]:
    """Return five harmonics a joint from rest at 0, and their derivatives, (K, n) each."""
    rng = np.random.default_rng(seed)
    q, dq, ddq = (np.zeros((t.size, joints)) for _ in range(3))
    weights = rng.uniform(-1.0, 1.0, (5, joints))
    weights /= np.arange(1, 6)[:, None] ** 0.5
    for harmonic, a in enumerate(weights, start=1):
        w = 2.0 * np.pi * harmonic / period
        q += a * (1.0 - np.cos(w * t[:, None]))
        dq += a * w * np.sin(w * t[:, None])
        ddq += a * w * w * np.cos(w * t[:, None])
    return q, dq, ddq


def motion(t: np.ndarray, home: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return a periodic reference of five harmonics a joint, from rest at `home`."""
    q, dq, ddq = harmonics(t, home.size)
    scale = np.minimum(LARGEST / np.abs(ddq).max(axis=0), REACH / np.abs(q).max(axis=0))
    return home + q * scale, dq * scale, ddq * scale


def session(
    robot: Robot, settings: SimulationSettings, duration: float, motion: Motion = motion
) -> Recording:
    """Run the plant along a motion; record what a session's bag would hold."""
    knots = np.arange(0.0, duration + 1e-9, 0.01)
    samples = zip(knots, *motion(knots, np.array(settings.initial_positions)), strict=True)
    q, dq, tau, *desired = follow(robot, settings, samples, duration)
    time = np.arange(q.shape[0]) * (1.0 / settings.update_rate)
    gains = {
        joint: {name: float(getattr(g, name)) for name in ('p', 'i', 'd', 'ff_velocity_scale')}
        for joint, g in settings.gains.items()
    }
    return Recording(
        robot.joints,
        time,
        q,
        tau,
        dq,
        source=f'the simulated {robot.name}',
        reference=Reference(time, *desired),
        controller=Controller('arm', TYPE, settings.update_rate, robot.joints, ('effort',), gains),
    )


def truth(robot: Robot, settings: SimulationSettings) -> np.ndarray:
    """Return the plant's own standard parameters in the robot's order, (p,)."""
    values = {}
    joints = Physics(robot.urdf, settings, robot.joints).true_parameters()
    for joint in joints[: robot.n]:
        number = robot.joints.index(joint.name) + 1
        values |= {f'{symbol}{number}': value for symbol, value in joint.values.items()}
    for coupling, motor in zip(robot.couplings, joints[robot.n :], strict=True):
        values |= {f'{symbol}{coupling.number}': v for symbol, v in motor.values.items()}
    return np.array([values[parameter.name] for parameter in robot.parameters])


def idim(recording: Recording, robot: Robot, cutoff: float = 0.0) -> Estimate:
    """Identify from the measured motion by WLS; without a cut-off [Hz] nothing is filtered."""
    raw = 0.49 / float(np.median(np.diff(recording.time)))
    signals = SignalSettings(cutoff=cutoff or raw, decimation=0 if cutoff else 1, averaging=False)
    # As the paper has it: nothing is chosen, and sigma are those of white residuals.
    settings = IdentificationSettings(
        method='wls', model='plain', covariance='residuals', signals=signals
    )
    found = identify(recording, robot, settings).estimate
    return dataclasses.replace(found, covariance=found.classical)


def compare(name: str, found: Estimate, kept: np.ndarray, true: np.ndarray) -> int:
    """Print how many essential parameters are within 3 sigma or 2 %; return how many are not."""
    gap = np.abs(found.value - true)
    right = (gap <= 3.0 * found.sigma) | (gap <= 0.02 * np.abs(true))
    wrong = [k for k in kept if not right[k]]
    print(
        f'  {name}: residual {100 * found.total_residual:.2f} % ('
        + ' '.join(f'{100 * r:.1f}' for r in found.residual)
        + f'), {len(kept) - len(wrong)} of {len(kept)} essential parameters within 3 sigma or 2 %'
    )
    for k in wrong[:6]:
        print(
            f'    {found.names[k]}: {found.value[k]:.4f} +- {found.sigma[k]:.4f}, true '
            f'{true[k]:.4f} ({100 * gap[k] / abs(true[k]):.1f} %)'
        )
    return len(wrong)


def run(name: str, recording: Recording, robot: Robot, true: np.ndarray) -> list[str]:
    """Identify one recording by DIDIM, and by IDIM with its best filter and with none."""
    samples = prepare(recording, robot, SignalSettings())
    case = make_replay_problem(recording, robot, base_parameters(robot), ReplaySettings(), samples)
    print(name)
    try:
        found, system, history = didim(case, case.initial_parameters('regular'))
    except DivergenceError as error:
        print('  DIDIM:', error)
        return [f'{name}: {error}']
    errors = ' '.join(f'{np.linalg.norm(r.torque_error):.3f}' for r in history.iterations)
    print(f'  DIDIM: {history.steps} steps, torque errors {errors}')
    for warning in map(render, history.findings):
        print('   ', warning)
    kept = find_essential(system, found).indices
    wrong = compare('DIDIM', found, kept, true)
    filtered = [idim(recording, robot, cutoff) for cutoff in (10.0, 20.0, 40.0)]
    best = min(filtered, key=lambda e: e.total_residual)
    compare('IDIM, best filter', best, kept, true)
    lost = compare('IDIM, no filter', idim(recording, robot), kept, true)
    missed = [f'{history.steps} steps'] if history.steps > 8 else []
    missed += [f'{wrong} essential parameters are off'] if wrong else []
    missed += ['the noise does not ruin IDIM'] if lost < len(kept) / 2 else []
    if found.total_residual > 1.1 * best.total_residual:
        missed.append('residual above 1.1 times that of IDIM')
    return [f'{name}: {text}' for text in missed]


def noisier(recording: Recording, sigma: float) -> Recording:
    """Return the recording with noise of `sigma` [rad] on what it says of the positions."""
    noise = sigma * np.random.default_rng(6).normal(size=recording.position.shape)
    return dataclasses.replace(recording, position=recording.position + noise, velocity=None)


def main() -> int:
    """Run the cases."""
    parser = command_line(__doc__)
    parser.add_argument('--duration', type=float, default=20.0, help='of the motion [s]')
    arguments = parser.parse_args()
    configuration, robot = configured('tx40')
    plain = configuration.simulation
    true = base_parameters(robot).of(truth(robot, plain))
    integral = {
        joint: dataclasses.replace(g, i=2.0 * g.p, ff_velocity_scale=0.3 * g.d)
        for joint, g in plain.gains.items()
    }
    noise = dataclasses.replace(plain.noise, position=(NOISE,))
    usual, pushed, shaken = (
        session(robot, dataclasses.replace(plain, **changed), arguments.duration)
        for changed in ({}, {'gains': integral}, {'noise': noise})
    )
    missed = run('as configured', usual, robot, true)
    missed += run('integral gains and feed-forward', pushed, robot, true)
    missed += run('0.3 mrad of noise in the log', noisier(usual, NOISE), robot, true)
    limits = run('0.3 mrad of noise in the loop', shaken, robot, true)
    for text in limits:
        print('no bound:', text)
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
