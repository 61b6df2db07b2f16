"""
DIDIM where the motion tells little: other people's arms, a rich and a poor motion, every start.

    python benchmarks/studies/didim_poor_motion.py [--check] [--robot NAME]...

The robots are those of the package example-robot-data where it is installed (`pip install
example-robot-data`), else three of `urdf/`. MuJoCo moves them under the joint trajectory
controller of this package, with rotors, friction and noise that no URDF knows; what identifies
has masses that are 30 % off, inertias that are off by two, and the friction of the description
(the TX-40's is up to six times the true one). The rich motion has
five harmonics on every joint; in the poor one every joint moves 15 % as far at half the speed, the
third and the last hardly.

For each start: steps; residual on another rich motion beside those of WLS, of the prior and of the
truth; share of all parameters within 3 sigma of the truth; of those with a %sigma below 10 in both
methods, how many agree with WLS within 3 sigma; how many stay near their prior.
"""

from collections.abc import Callable
import dataclasses
import sys
from typing import NamedTuple

import _benchmarks  # noqa: F401
from common import command_line, ROOT, verdict
from didim_tx40 import harmonics, session, truth
from installed_robots import ARMS, PACKAGE, robots_folder
import numpy as np

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import ReplaySettings
from robotid_ros.core.model import build_robot, Robot, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.core.model.robot import BaseParameters
from robotid_ros.core.regression.estimate import Estimate
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe, Rows
from robotid_ros.core.replay.didim import didim
from robotid_ros.core.replay.replay_problem import make_replay_problem
from robotid_ros.core.replay.simulation import direct_model, mass_matrices
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording, SignalSettings
from robotid_ros.exceptions import RankDeficientError, RobotIdError
from robotid_ros.simulation_settings import GainSettings, NoiseSettings, SimulationSettings

# Joints of the installed arms that move.
JOINTS = {
    'panda': [f'panda_joint{j}' for j in range(1, 8)],
    'xarm7': [f'joint{j}' for j in range(1, 8)],
    'baxter': ['left_s0', 'left_s1', 'left_e0', 'left_e1', 'left_w0', 'left_w1', 'left_w2'],
    'talos': [f'arm_left_{j}_joint' for j in range(2, 8)],
    'kinova': [f'j2s6s200_joint_{j}' for j in range(1, 7)],
    'z1': [f'joint{j}' for j in range(1, 7)],
    'ur10': [],
}
OWN = ('arm3', 'tx40', 'ur10')
STARTS = ('regular', 'idim', 'prior')
# Natural frequency of the loops [rad/s], ten times that of the motion.
NATURAL_FREQUENCY = 40.0
RATE = 500.0
# Of the motions [s].
DURATION = 10.0
# Residual on the other motion over the larger of those of WLS and of the truth, at most; WLS has
# an error of its own, so that not all parameters agree with it.
WORSE, MIN_TRUE, MIN_AGREEING = 1.05, 0.95, 0.9


class Case(NamedTuple):
    """One robot: model with a wrong prior, simulated robot, largest reach of its motions."""

    robot: Robot
    base: BaseParameters
    plant: SimulationSettings
    reach: np.ndarray


def descriptions() -> dict[str, tuple[str, RobotSettings]]:
    """Return URDF and settings of each robot that is there."""
    folder = robots_folder()
    if folder is None:
        print(f'{PACKAGE} is not installed: robots of the package itself')
        return {name: ((ROOT / f'urdf/{name}.urdf').read_text(), RobotSettings()) for name in OWN}
    return {
        name: ((folder / ARMS[name]).read_text(), RobotSettings(joints=tuple(joints)))
        for name, joints in JOINTS.items()
    }


def wrong_prior(robot: Robot, seed: int = 5) -> Robot:
    """Return the robot with masses 30 % off, inertias about the joint's axes off by two."""
    rng = np.random.default_rng(seed)
    prior = robot.prior.copy()
    for first in robot.first_columns:
        mass, inertia = rng.choice([0.7, 1.3]), rng.choice([0.5, 2.0])
        m, h = prior[first + 9], prior[first + 6 : first + 9]
        steiner = (h @ h * np.eye(3) - np.outer(h, h)) / max(m, 1e-9)
        steiner = steiner[np.triu_indices(3)]
        about_com = prior[first : first + 6] - steiner
        prior[first : first + 6] = inertia * about_com + mass * steiner
        prior[first + 6 : first + 10] *= mass
    return dataclasses.replace(robot, prior=prior)


def make_case(urdf: str, settings: RobotSettings) -> Case:
    """Give a robot the rotors, friction, noise and gains that fit its size."""
    robot = build_robot(urdf, settings)
    lower = np.maximum(robot.limits.lower, -2.5)
    upper = np.minimum(robot.limits.upper, 2.5)
    signs = np.where(np.arange(robot.n) % 2, -1.0, 1.0)
    home = 0.5 * (lower + upper) + 0.15 * signs * (upper - lower)
    reach = np.minimum(np.array([1.2, 0.8, 1.0, 1.0, 1.5, 1.5, 1.5])[: robot.n],
                       0.9 * np.minimum(home - lower, upper - home))  # fmt: skip
    q, dq, ddq = rich(np.linspace(0.0, 5.0, 200), home, reach)
    mass = mass_matrices(direct_model(robot, robot.prior), q)
    inertia = mass.diagonal(axis1=1, axis2=2).max(axis=0)
    torque = np.abs(inverse_dynamics(robot, robot.prior, q, dq, ddq)).max(axis=0)
    friction = 0.1 * torque + 0.005 * torque.max()
    rotor = 0.2 * inertia + 0.02 * inertia.max()
    total = inertia + rotor
    gains = {
        joint: GainSettings(p=j * NATURAL_FREQUENCY**2, d=2.0 * j * NATURAL_FREQUENCY)
        for joint, j in zip(robot.joints, total.tolist(), strict=True)
    }
    plant = SimulationSettings(
        joints=robot.joints,
        update_rate=RATE,
        state_rate=RATE,
        initial_positions=tuple(home.tolist()),
        gains=gains,
        limit_effort=False,
        rotor_inertia=tuple(rotor.tolist()),
        viscous=tuple((0.5 * friction).tolist()),
        coulomb=tuple(friction.tolist()),
        offset=tuple((0.1 * friction).tolist()),
        noise=NoiseSettings(
            position=(2e-5,), velocity=(1e-3,), effort=tuple((0.1 * friction).tolist())
        ),
    )
    wrong = wrong_prior(robot)
    return Case(wrong, base_parameters(wrong), plant, reach)


def rich(t: np.ndarray, home: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return a motion that moves every joint by its reach."""
    full = harmonics(np.linspace(0.0, 5.0, 500), home.size)[0]
    scale = reach / np.abs(full).max(axis=0)
    q, dq, ddq = harmonics(t, home.size)
    return home + q * scale, dq * scale, ddq * scale


def poor(t: np.ndarray, home: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return a slow motion that moves every joint little, the third and the last hardly."""
    share = np.full(home.size, 0.15)
    share[[2, -1]] = 0.01
    q, dq, ddq = rich(0.5 * t, home, share * reach)
    return q, 0.5 * dq, 0.25 * ddq


def record(case: Case, motion: Callable[..., tuple[np.ndarray, ...]], seed: int) -> Recording:
    """Run the robot along a motion."""
    plant = dataclasses.replace(case.plant, seed=seed)
    return session(case.robot, plant, DURATION, lambda t, home: motion(t, home, case.reach))


def other(t: np.ndarray, home: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return a rich motion that is not the one that identifies."""
    q, dq, ddq = rich(1.1 * t, home, 0.9 * reach)
    return q, 1.1 * dq, 1.21 * ddq


def observed(case: Case, recording: Recording) -> Rows:
    """Return the rows of the measured motion."""
    return observe(prepare(recording, case.robot, SignalSettings()), case.robot, case.base)


def run(case: Case, motion: Callable[..., tuple[np.ndarray, ...]], check: Rows) -> list[str]:
    """Identify from one motion, from every start; return what misses its bound."""
    recording = record(case, motion, 1)
    true = case.base.of(truth(case.robot, case.plant))
    known = case.base.of(case.robot.prior)
    limit, wls = check.total_residual(true), None
    try:
        wls = fit(observed(case, recording), 'wls')
        limit = max(limit, check.total_residual(wls.value))
    except RankDeficientError as error:
        print(f'  WLS: {error}')
    shown = 'none' if wls is None else percent(check.total_residual(wls.value))
    print(
        f'  {motion.__name__}: other motion by WLS {shown}, by the prior '
        f'{percent(check.total_residual(known))}, by the truth '
        f'{percent(check.total_residual(true))}'
    )
    if wls is None:
        limit = check.total_residual(known)
    missed = []
    for start in STARTS:
        try:
            missed += compare(case, recording, start, check, (true, wls, limit))
        except RobotIdError as error:
            print(f'    {start:8s} {type(error).__name__}: {error}')
            missed.append(f'{start}: {error}')
    return [f'{case.robot.name}, {motion.__name__}, {text}' for text in missed]


def compare(
    case: Case,
    recording: Recording,
    start: str,
    check: Rows,
    bounds: tuple[np.ndarray, Estimate | None, float],
) -> list[str]:
    """Identify by DIDIM from one start, and print its line of the table."""
    true, wls, limit = bounds
    samples = prepare(recording, case.robot, SignalSettings())
    settings = ReplaySettings(start=start, step=1.0 / RATE)
    replay = make_replay_problem(recording, case.robot, case.base, settings, samples)
    found, _, history = didim(replay, replay.initial_parameters())
    left = check.total_residual(found.value)
    near = float(np.mean(np.abs(found.value - true) <= 3.0 * found.sigma))
    agreeing, sure = 0, 0
    if wls is not None:
        both = (found.relative_sigma < 10.0) & (wls.relative_sigma < 10.0)
        gap = np.abs(found.value - wls.value) <= 3.0 * np.hypot(found.sigma, wls.sigma)
        agreeing, sure = int(gap[both].sum()), int(both.sum())
    ended = ', not converged' if select(history.findings, 'not_converged') else ''
    print(
        f'    {start:8s} {history.steps:2d} steps, other motion {percent(left)}, truth within '
        f'3 sigma {percent(near)}, agreeing with WLS {agreeing} of {sure}, near the prior '
        f'{len(found.from_prior)} of {found.value.size}{ended}'
    )
    missed = [f'residual {percent(left)}'] if left > WORSE * limit else []
    missed += [f'truth within 3 sigma {percent(near)}'] if near < MIN_TRUE else []
    missed += [f'{agreeing} of {sure} agree'] if agreeing < MIN_AGREEING * sure else []
    return [f'{start}: {text}' for text in missed]


def percent(value: float) -> str:
    """Return a share as text."""
    return f'{100.0 * value:.1f} %'


def main() -> int:
    """Identify every robot from every motion and start."""
    parser = command_line(__doc__)
    parser.add_argument('--robot', action='append', help='only this one')
    arguments = parser.parse_args()
    missed: list[str] = []
    for name, (urdf, settings) in descriptions().items():
        if arguments.robot and name not in arguments.robot:
            continue
        case = make_case(urdf, settings)
        print(f'{name}: {case.robot.n} joints, {case.base.rank} base parameters')
        check = observed(case, record(case, other, 2))
        for motion in (rich, poor):
            missed += run(case, motion, check)
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
