"""
What `methods.py` identifies: simulated robots, whose parameters are known, and published logs.

Each case draws: a recording, and a function that says how wrong base parameters are. Robots of
`config/` are simulated by MuJoCo under the joint_trajectory_controller, the SCARA of DIDIM's
section V by SciPy, neither with anything of the package's core; each draw has noise of its own, a
description that is 20 % off, and but for the SCARA a motion and links of its own. Friction is
viscous, Coulomb and offset, in plant and model.
"""

from collections.abc import Callable
import dataclasses
from functools import cache, partial
from pathlib import Path
import tempfile

import _benchmarks  # noqa: F401
from common import configured, DATASETS
from datasets import CASES as LOGS
from didim_tx40 import harmonics, noisier, session, truth
from disturbances import sines, TIME
import elastic_case
import numpy as np
from prior_draws import plain, wrong
from scara_plant import Data, experiment, INERTIA, NOMINAL, QUICK, RATE, ZETA
from scara_tables import PER_PAPER

from robotid_ros.core.model import regressor, Robot
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot import BaseParameters
from robotid_ros.core.regression.delays import prepare_without_delay
from robotid_ros.core.signals.recording import Controller, Recording, Reference, SignalSettings
from robotid_ros.files.bags import open_recording
from robotid_ros.simulation_settings import SimulationSettings, StribeckSettings

# Of a simulated motion [s]; share of the room, the speed and the acceleration that it uses.
SECONDS, SHARE = 10.0, 0.6
# Noise of bad encoders in the log [rad], over that of the configuration.
BAD = 1e-3
# Every so many samples of the other motion count.
STRIDE = 10
# SN [dB] and periods of the elastic arm's encoders.
LEVEL, PERIODS = 60, 10


@dataclasses.dataclass(frozen=True)
class Draw:
    """
    One recording.

    Attributes
    ----------
    robot : with a description that is not quite the recorded robot's
    true : (b,) base parameters; None of a real robot
    error : of base parameters (b,): relative error of the torques of another motion, the joints'
        root mean square; of a real robot what they leave of those measured; of an elastic one the
        normalised mean error of the parameters

    """

    recording: Recording
    robot: Robot
    true: np.ndarray | None
    error: Callable[[np.ndarray], float]


def reference(robot: Robot, seed: int, t: np.ndarray, home: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return a motion from rest at `home`, as large as the limits allow; (K, n) each."""
    limits = robot.limits
    room = np.minimum(np.minimum(home - limits.lower, limits.upper - home), np.pi / 2.0)
    most = (np.where(room > 0.0, room, np.inf), limits.velocity, limits.acceleration)
    whole = harmonics(np.linspace(0.0, 5.0, 500), robot.n, seed=seed)
    scale = SHARE * np.min(
        [each / np.abs(x).max(axis=0) for each, x in zip(most, whole, strict=True)], axis=0
    )
    q, dq, ddq = (scale * x for x in harmonics(t, robot.n, seed=seed))
    return home + q, dq, ddq


def torque_error(
    robot: Robot, base: BaseParameters, true: np.ndarray, settings: SimulationSettings
) -> Callable[[np.ndarray], float]:
    """Return the error of the torques of a motion that no method sees, with other frequencies."""
    q, dq, ddq = sines(robot, settings, TIME, np.random.default_rng(1000), periodic=False)
    W = regressor(robot, q[::STRIDE], dq[::STRIDE], ddq[::STRIDE])[:, :, base.columns]
    size = np.sum((W @ true) ** 2, axis=1)
    return lambda value: float(np.sqrt(np.mean(np.sum((W @ (value - true)) ** 2, axis=1) / size)))


def simulated(name: str, seed: int, *, noise: float = 0.0) -> Draw:
    """Draw a robot of `config/`, with more noise on the log of its positions [rad]."""
    configuration, robot = configured(name)
    robot = plain(robot)
    settings = dataclasses.replace(
        configuration.simulation, stribeck=StribeckSettings(), seed=seed + 1
    )
    recording = session(robot, settings, SECONDS, partial(reference, robot, seed))
    base = base_parameters(robot)
    standard = truth(robot, settings)
    true = base.of(standard)
    robot = dataclasses.replace(robot, prior=wrong(robot, standard, seed))
    recording = noisier(recording, noise) if noise else recording
    return Draw(recording, robot, true, torque_error(robot, base, true, settings))


def recording_of(data: Data, noise: float) -> Recording:
    """Return an experiment of the SCARA as a recording, with more noise on its positions [rad]."""
    joints = configured('scara')[1].joints
    t = np.arange(len(data.q)) / RATE
    kp, kv = data.motion.omega / (2.0 * ZETA), 2.0 * ZETA * data.motion.omega * INERTIA
    gains = {j: {'kp': float(a), 'kv': float(b)} for j, a, b in zip(joints, kp, kv, strict=True)}
    q = data.q + noise * np.random.default_rng(9).normal(size=data.q.shape)
    controller = Controller('drives', 'cascade', RATE, joints, ('effort',), gains)
    return Recording(
        joints, t, q, data.tau, reference=Reference(t, *data.reference), controller=controller
    )


def scara(seed: int, *, noise: float = 0.0) -> Draw:
    """Draw the noise of DIDIM's SCARA on fast loops: torques 8 %, encoders 0.02 mrad and more."""
    configuration, robot = configured('scara')
    true = NOMINAL / PER_PAPER
    error = torque_error(robot, base_parameters(robot), true, configuration.simulation)
    robot = dataclasses.replace(robot, prior=wrong(robot, robot.prior, seed))
    recording = recording_of(experiment(1.5 * SECONDS, seed + 1, QUICK), noise)
    return Draw(recording, robot, true, error)


@cache
def elastic_arm() -> elastic_case.Case:
    """Simulate the planar arm with springs."""
    return elastic_case.Case('planar_2r_elastic')


def elastic(seed: int) -> Draw:
    """Draw the noise of the planar arm's encoders."""
    case, robot = elastic_arm(), elastic_arm().robot()
    base = base_parameters(robot.elastic)
    true = case.true_base(robot.elastic, base)
    names = base.names

    def error(value: np.ndarray) -> float:
        both = (dict(zip(names, x.tolist(), strict=True)) for x in (value, true))
        return elastic_case.normalised_error(*both, case.truth)

    return Draw(case.noisy(LEVEL, PERIODS, seed), robot, true, error)


def published_log(name: str, seed: int) -> Draw:
    """Return the part of a log that identifies, judged by the other part; it has one draw."""
    log = next(each for each in LOGS if each.name == name)
    robot = plain(configured(name)[1])
    with tempfile.TemporaryDirectory() as folder:
        recording = open_recording(log.bag(DATASETS, Path(folder)), robot.joints)
    start, middle, end = log.split
    other = recording.between(middle, end)
    system = prepare_without_delay(other, robot, base_parameters(robot), SignalSettings()).system
    return Draw(recording.between(start, middle), robot, None, system.total_residual)


# By name: what draws. Those of one draw only are the real ones.
CASES: dict[str, Callable[[int], Draw]] = {
    'scara': scara,
    'scara, bad encoders': partial(scara, noise=BAD),
    'arm3': partial(simulated, 'arm3'),
    'emps': partial(simulated, 'emps'),
    'tx40': partial(simulated, 'tx40'),
    'tx40, bad encoders': partial(simulated, 'tx40', noise=BAD),
    'ur10': partial(simulated, 'ur10'),
    'elastic 2r': elastic,
    'emps log': partial(published_log, 'emps'),
    'tx40 log': partial(published_log, 'tx40'),
    'ur10 log': partial(published_log, 'ur10'),
}
