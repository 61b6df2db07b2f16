"""
DIDIM on a real axis: EMPS, from force, reference and control law alone.

    python benchmarks/studies/didim_emps.py [FOLDER] [--check]

FOLDER holds `emps/ident.npz` and `emps/valid_pulses.npz` (nonlinearbenchmark.org). The measured
position is used for one thing only: to say afterwards how close the simulated one comes.
"""

from dataclasses import replace
from pathlib import Path
import sys
from typing import NamedTuple

import _benchmarks  # noqa: F401
from common import command_line, configured, verdict
import numpy as np

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.identification_settings import ReplaySettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot import BaseParameters, Robot
from robotid_ros.core.replay.control_laws import ControlLaw, Step
from robotid_ros.core.replay.didim import didim
from robotid_ros.core.replay.replay_problem import make_replay_problem, ReplayProblem
from robotid_ros.core.replay.simulation import direct_model, simulate
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Controller, Recording, Reference, SignalSettings

# Published IDIM-LS estimate, and how close DIDIM should come (relative; None: not asked).
KNOWN = {
    'M': (95.1089, 0.005),
    'Fv': (203.5034, 0.04),
    'Fc': (20.3935, 0.03),
    'off': (-3.1648, None),
}
# The pulses add to the drive's input; measured on the log of their own controller [V per unit].
PULSE = 1.014


def recording_of(path: Path) -> tuple[Recording, np.ndarray]:
    """Return the log as a recording, and the pulses as a force (K, 1) [N]."""
    log = np.load(path)
    time = log['t'].ravel()
    gain, kp, kv = (float(log[name].squeeze()) for name in ('gtau', 'kp', 'kv'))
    velocity = np.gradient(log['q_ref'], time, axis=0)
    gains = {'joint_1': {'kp': kp, 'kv': kv * gain, 'differences': 1.0, 'limit': 10.0 * gain}}
    pulses = log['pulses_N'].reshape(-1, 1) if 'pulses_N' in log else np.zeros((time.size, 1))
    recording = Recording(
        ('joint_1',),
        time,
        log['q'],
        log['tau'],
        source=path.name,
        reference=Reference(time, log['q_ref'], velocity, np.gradient(velocity, time, axis=0)),
        controller=Controller('drive', 'cascade', 1000.0, ('joint_1',), ('effort',), gains),
    )
    return recording, PULSE * gain * pulses


def replay(path: Path, settings: ReplaySettings) -> ReplayProblem:
    """Return the log of `path` ready for DIDIM."""
    _, robot = configured('emps')
    return _problem(recording_of(path)[0], robot, base_parameters(robot), settings)


def _problem(
    recording: Recording, robot: Robot, base: BaseParameters, settings: ReplaySettings
) -> ReplayProblem:
    samples = prepare(recording, robot, SignalSettings())
    return make_replay_problem(recording, robot, base, settings, samples)


class Pushed(NamedTuple):
    """The control law of the axis beside the force of pulses (K, 1) [N]."""

    law: ControlLaw
    force: np.ndarray

    @property
    def rate(self) -> float:
        """Updates per second [Hz]."""
        return self.law.rate

    def start(self, desired: Motion, effort: np.ndarray | None = None) -> Step:
        """Return the total force at an update."""
        step = self.law.start(desired, effort)
        return lambda k, state: step(k, state) + self.force[k]


def predict(path: Path, case: ReplayProblem, value: np.ndarray) -> tuple[float, float, float]:
    """Return relative force error, largest and RMS position error [m] of parameters (b,)."""
    recording, force = recording_of(path)
    unused = int(case.transient * case.law.rate)
    fresh = _problem(recording, case.robot, case.base, case.settings)
    model = direct_model(case.robot, case.standard_parameters(value))
    run = simulate(model, Pushed(fresh.law, force), fresh.desired, step=case.settings.step)
    position = (run.q - recording.position)[unused:]
    total = (run.tau - recording.effort)[unused:]
    return (
        float(np.linalg.norm(total) / np.linalg.norm(recording.effort[unused:])),
        float(np.abs(position).max()),
        float(np.sqrt(np.mean(position**2))),
    )


def main() -> int:
    """Identify, print the table and, with --check, fail where a bound is missed."""
    parser = command_line(__doc__, datasets=True)
    arguments = parser.parse_args()
    folder = arguments.folder / 'emps'
    settings = ReplaySettings()
    case = replay(folder / 'ident.npz', settings)
    estimate, _, history = didim(case, case.initial_parameters('regular'))
    print('k    torque error   M         Fv        Fc       off')
    for record in history.iterations:
        numbers = '  '.join(f'{x:8.3f}' for x in record.value)
        print(f'{record.number}    {record.torque_error[0]:.4f}       {numbers}')
    missed = []
    print('\nparameter   published   DIDIM      sigma    deviation')
    for name, value, sigma in zip(estimate.names, estimate.value, estimate.sigma, strict=True):
        published, bound = KNOWN[name.rstrip('R').rstrip('1')]
        deviation = value / published - 1.0
        print(f'{name:10s} {published:10.4f} {value:10.4f} {sigma:9.4f} {100 * deviation:8.2f} %')
        if bound is not None and abs(deviation) > bound:
            missed.append(f'{name} is off by {100 * deviation:.2f} %')
    timed = replace(case, a_priori_inertia=history.iterations[-1].inertia)
    own = predict(folder / 'ident.npz', timed, estimate.value)
    pulses = predict(folder / 'valid_pulses.npz', timed, estimate.value)
    print(f'\niterations {history.steps}, residual {100 * estimate.total_residual:.2f} %')
    for name, (force, largest, rms) in (('ident', own), ('valid_pulses', pulses)):
        print(
            f'{name}: force error {100 * force:.2f} %, position error at most '
            f'{1e6 * largest:.1f} um, RMS {1e6 * rms:.1f} um'
        )
    missed += [f'{history.steps} iterations'] if history.steps > 5 else []
    missed += ['residual above 4.6 %'] if estimate.total_residual > 0.046 else []
    missed += ['position off by more than 60 um'] if own[1] > 60e-6 else []
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
