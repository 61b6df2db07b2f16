"""
Identification against known truth: noise draws on the arm of STICTION and on a UR10.

    python benchmarks/studies/idim_truth.py [--draws 500] [--robots arm3 ur10] [--levels 1 5]
        [--check]

Per draw the torque gets white noise (a share of its RMS) and the encoders are quantised. Printed:
bias over σ, observed over stated σ, variance of WLS over OLS. Torques of the truth are Pinocchio's
Newton-Euler plus friction written down here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
import sys

import _benchmarks  # noqa: F401
from common import command_line, configured, ROOT, verdict
import numpy as np
import pinocchio

from robotid_ros.core.excitation.design import design
from robotid_ros.core.excitation.settings import ExcitationSettings, ValidationSettings
from robotid_ros.core.model import Robot
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.friction import make_terms
from robotid_ros.core.model.robot import BaseParameters
from robotid_ros.core.model.robot_builder import with_friction
from robotid_ros.core.regression.estimate import Estimate
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording, SignalSettings
from robotid_ros.files.trajectory_file import read_design

RATE, DURATION = 500.0, 20.0
COUNTS = 2**17  # of the encoders, per turn of the joint
# Largest bias over σ, and deviation of the stated σ; by how many of their own standard errors the
# latter, and the ratio of two variances, may exceed their bounds before that counts.
BIAS, HONEST, CLEAR = 0.3, 0.2, 3.0
FRICTION: dict[str, dict[str, tuple[float, ...]]] = {
    'arm3': {'Fv': (0.5, 0.277, 0.03), 'Fs': (2.0, 1.0, 2.0), 'Fsc': (-0.3, -0.2, -0.3)},
    'ur10': {
        'Ia': (2.0, 2.0, 0.9, 0.12, 0.12, 0.12),
        'Fv': (16.0, 14.0, 11.0, 2.7, 3.2, 2.8),
        'Fc': (11.0, 13.0, 8.0, 2.8, 3.2, 2.6),
        'off': (0.5, -0.8, 0.4, 0.1, -0.1, 0.05),
    },
}


@dataclass(frozen=True)
class Truth:
    """A robot, its true parameters, and a motion with its torque."""

    robot: Robot
    chi: np.ndarray
    time: np.ndarray
    q: np.ndarray
    tau: np.ndarray


def truth(name: str) -> Truth:
    """Build one robot, its motion and its true torque."""
    configuration, robot = configured(name)
    if name == 'arm3':  # the paper's friction; its configuration leaves it to the data
        terms = make_terms(('viscous', 'stiction'), {})
        robot = with_friction(robot, (terms,) * robot.n)
    chi = robot.prior.copy()
    for symbol, values in FRICTION[name].items():
        for joint, value in enumerate(values, start=1):
            chi[robot.column(f'{symbol}{joint}')] = value
    time = np.arange(round(DURATION * RATE)) / RATE
    q, dq, ddq = motion(name, robot, configuration.excitation, time)
    tau = rigid(robot, q, dq, ddq) + drives(name, dq, ddq)
    return Truth(robot, chi, time, q, tau)


def motion(
    name: str, robot: Robot, settings: ExcitationSettings, time: np.ndarray
) -> tuple[np.ndarray, ...]:
    """
    Return q, dq, ddq (N, n), designed for the friction that is identified.

    The stored design of arm3 is one for Coulomb friction: it leaves stiction and Stribeck
    difference nearly collinear, Fs2 ± 0.38 for 1.0 at 5 % noise.
    """
    if name == 'arm3':
        found = design(robot, replace(settings, validation=ValidationSettings(kind='none')))
    else:
        found = read_design(ROOT / f'config/trajectories/{name}.yaml')
    sampled = found.trajectory.sample(time)
    return sampled.q, sampled.dq, sampled.ddq


def rigid(robot: Robot, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Return the torque of the links of the description (N, n), without any armature."""
    model = pinocchio.Model(robot.model)
    model.armature = np.zeros(model.nv)
    data, order = model.createData(), robot.order
    tau = np.empty_like(q)
    for k in range(len(q)):
        tau[k, order] = pinocchio.rnea(model, data, q[k][order], dq[k][order], ddq[k][order])
    return tau


def drives(name: str, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Return what rotors and friction take (N, n): STICTION eq. 7-9, or Coulomb and viscous."""
    known = {symbol: np.array(values) for symbol, values in FRICTION[name].items()}
    if name == 'arm3':
        steep, gentle = (2.0 / np.pi * np.arctan(k * dq) for k in (1000.0, 20.0))
        return known['Fv'] * dq + known['Fs'] * steep + known['Fsc'] * gentle
    return known['Ia'] * ddq + known['Fv'] * dq + known['Fc'] * np.sign(dq) + known['off']


def draws(known: Truth, level: float, count: int) -> Iterator[Recording]:
    """Yield recordings with fresh torque noise, encoders quantised from a fresh zero."""
    rng = np.random.default_rng(round(1000 * level))
    sigma = level * np.sqrt(np.mean(known.tau**2, axis=0))
    step = 2.0 * np.pi / COUNTS
    for _ in range(count):
        zero = step * rng.random(known.robot.n)
        q = step * np.round((known.q - zero) / step) + zero
        tau = known.tau + sigma * rng.normal(size=known.tau.shape)
        yield Recording(known.robot.joints, known.time, q, tau)


def identified(
    known: Truth, base: BaseParameters, level: float, count: int
) -> dict[str, list[Estimate]]:
    """Return estimates of each draw by method."""
    estimates: dict[str, list[Estimate]] = {'ols': [], 'wls': []}
    for recording in draws(known, level, count):
        system = observe(prepare(recording, known.robot, SignalSettings()), known.robot, base)
        for method, found in estimates.items():
            found.append(fit(system, method))
    return estimates


def report(known: Truth, level: float, count: int) -> list[str]:
    """Print one row for a robot at one level of noise; return what falls short."""
    base = base_parameters(known.robot)
    estimates = identified(known, base, level, count)
    observed = {m: np.std([e.value for e in f], axis=0, ddof=1) for m, f in estimates.items()}
    values = np.array([e.value for e in estimates['wls']])
    stated = np.sqrt(np.mean([e.sigma**2 for e in estimates['wls']], axis=0))
    bias = np.abs(values.mean(axis=0) - base.of(known.chi)) / observed['wls']
    honest, ratio = stated / observed['wls'], (observed['wls'] / observed['ols']) ** 2
    # An observed σ has an error of its own.
    deviation = np.abs(honest - 1.0) - CLEAR * honest / np.sqrt(2.0 * count)
    excess = np.log(ratio) / ratio_error(values, np.array([e.value for e in estimates['ols']]))
    label = f'{known.robot.name}, {100 * level:g} %'
    print(f'{label}: {base.rank} base parameters, {count} draws')
    worst = base.names[int(np.argmax(bias))]
    print(f'  bias/σ      median {np.median(bias):.3f}, largest {bias.max():.3f} ({worst})')
    print(
        f'  stated/observed σ  {honest.min():.3f} … {honest.max():.3f}, mean {honest.mean():.3f}'
    )
    print(
        f'  var WLS/OLS {ratio.min():.3f} … {ratio.max():.3f}, median {np.median(ratio):.3f}',
        end='',
    )
    print(f', at most {excess.max():.1f} standard errors above 1')
    return [
        f'{label}: {text}'
        for text, failed in (
            (f'bias of {bias.max():.2f} σ', bias.max() >= BIAS),
            ('stated σ is not the observed one', deviation.max() > HONEST),
            ('variance of WLS above that of OLS', excess.max() > CLEAR),
        )
        if failed
    ]


def ratio_error(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the standard error of the log of the variance ratio of paired draws (b,)."""
    a, b = (x - x.mean(axis=0) for x in (one, other))
    correlation = np.sum(a * b, axis=0) / np.sqrt(np.sum(a**2, axis=0) * np.sum(b**2, axis=0))
    error: np.ndarray = np.sqrt(4.0 * (1.0 - correlation**2) / (len(one) - 1))
    return np.maximum(error, 1e-12)


def main() -> int:
    """Draw, estimate, compare."""
    parser = command_line(__doc__)
    parser.add_argument('--draws', type=int, default=500)
    parser.add_argument('--robots', nargs='+', default=list(FRICTION), choices=list(FRICTION))
    parser.add_argument(
        '--levels', nargs='+', type=float, default=[1.0, 5.0], help='of noise [%%]'
    )
    arguments = parser.parse_args()
    short: list[str] = []
    for name in arguments.robots:
        known = truth(name)
        for level in arguments.levels:
            short += report(known, level / 100.0, arguments.draws)
    return verdict(short, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
