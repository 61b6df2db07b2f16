"""The SCARA study's experiments as DIDIM and IDIM take them."""

import dataclasses
import sys

import _benchmarks  # noqa: F401
from common import configured, ROOT
import numpy as np
from scara_plant import Data, differentiated, INERTIA, RATE, ZETA

sys.path.insert(0, str(ROOT / 'test' / 'tools'))
from best_cases import tuned_pd

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.identification_settings import ReplaySettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.regression.estimate import Estimate
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe, Rows
from robotid_ros.core.replay.didim import Iteration
from robotid_ros.core.replay.replay_problem import ReplayProblem, Torque
from robotid_ros.core.replay.simulated_observation import observe_simulation
from robotid_ros.core.replay.simulation import Simulation
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording, SignalSettings

# What is wrong in a replayed loop, see `scara.py`.
LAG, GAIN = 'ω_n', 'ω_n and ζ (k_p right)'


def wrong_loop(share: float, off: str) -> tuple[float, float]:
    """Return the shares of ω_n and ζ that are replayed."""
    return share, share if off == GAIN else 1.0


def problem(
    data: Data, keep: int, stride: int = 1, share: float = 1.0, off: str = LAG
) -> ReplayProblem:
    """Return the experiment ready for DIDIM, with what is `off` in its loop at a share of it."""
    _, robot = configured('scara')
    rows = np.arange(0, data.tau.shape[0], stride)
    of_omega, of_zeta = wrong_loop(share, off)
    return ReplayProblem(
        robot,
        base_parameters(robot),
        tuned_pd(RATE, of_omega * data.motion.omega, of_zeta * ZETA, INERTIA),
        Motion(*data.reference),
        Torque(rows.astype(float), data.tau[rows], np.ones(rows.size, dtype=bool), RATE / stride),
        Motion(*differentiated(data.q, RATE, 20.0)),
        ReplaySettings(decimation=keep, step=1.0 / RATE),
        a_priori_inertia=INERTIA,
    )


def idim(case: ReplayProblem, data: Data, cutoff: float, stride: int = 1) -> Estimate:
    """Identify from the measured motion, with the decimation and the rows of DIDIM."""
    rate = RATE / stride
    motion = differentiated(data.q[::stride], rate, cutoff)
    seen = Simulation(*motion, data.tau[::stride], np.sign(motion[1]))
    torque = case.torque._replace(row=case.torque.row / stride)
    law = dataclasses.replace(case.law, rate=rate)
    return fit(observe_simulation(dataclasses.replace(case, torque=torque, law=law), seen), 'wls')


def idim_of_package(case: ReplayProblem, data: Data, cutoff: float, keep: int) -> Estimate:
    """Identify from the measured motion as the package does, without rows at standstill."""
    time = np.arange(len(data.q)) / RATE
    recording = Recording(case.robot.joints, time, data.q, data.tau)
    signals = SignalSettings(cutoff=cutoff, decimation=keep, band=0.4 * RATE / keep)
    return fit(observe(prepare(recording, case.robot, signals), case.robot, case.base), 'wls')


def closeness(case: ReplayProblem, record: Iteration) -> dict[str, np.ndarray]:
    """Return ‖x_ddm − x‖/‖x‖ (3, n) of position, velocity, acceleration to either motion."""
    run = case.simulate(record.chi, record.gain_scale)
    return {
        name: np.array([
            np.linalg.norm(a - b, axis=0) / np.linalg.norm(b, axis=0)
            for a, b in zip(run[:3], other, strict=True)
        ])
        for name, other in (('measured', case.measured), ('reference', case.desired))
    }  # fmt: skip


def along(case: ReplayProblem, other: Data) -> Rows:
    """Return the system of the measured torque and W along another experiment's true motion."""
    q, dq = other.state[:, :2], other.state[:, 2:]
    ddq = np.gradient(dq, 1.0 / RATE, axis=0)
    seen = Simulation(q, dq, ddq, other.tau, np.tanh(dq / 1e-5))
    return observe_simulation(case, seen)
