"""
Simulated beside real motion: `robotid identify` beside `mujoco.sysid`, and servos beside CMA-ES.

    python benchmarks/sim2real.py [FOLDER] [--iterations N] [--only NAME …] [--check]

FOLDER holds the published logs of `datasets.py`. One part of each identifies, the other judges:
measured efforts drive the model in MuJoCo, anew from the measured state every second, and the
error is that of the positions, relative to the travel of each joint (RMS over joints and time).
`mujoco.sysid` fits the same windows of the first part from the description: the pseudo-inertia of
each body, and armature, damping and frictionloss of each joint. It needs
`pip install "mujoco[sysid]"`. Time is CPU time of the fit, reading left out.

The servos are those of `commands.py`: an arm and a leg, from commands and positions alone.
"""

import contextlib
from dataclasses import dataclass, replace
import io
import math
import os
from pathlib import Path
import sys
import tempfile
import time
from xml.etree import ElementTree as ET

# Before NumPy is imported: threads that wait for each other count as CPU.
os.environ |= dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1')

from commands import compare, ROBOTS
from common import command_line, configured, verdict
from datasets import Case, CASES
import mujoco
from mujoco import rollout, sysid
import numpy as np

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Samples
from robotid_ros.files.bags import open_recording
from robotid_ros.files.collect_results import save
from robotid_ros.files.configuration import read_urdf
from robotid_ros.files.export.identified_model import read_identified_model
from robotid_ros.files.export.ranges import as_described
from robotid_ros.files.export.simulators import mjcf

WINDOW = 1.0  # between two starts from the measured state [s]
STEP = 2e-3  # longest of the simulation [s]
# Ours over the peer's: largest error on other motion, largest time.
ERROR, TIME = 0.8, 0.1
# The peer's start: this share of what the efforts of the log could move.
START = 0.1
BEYOND = 10.0  # an error is counted up to this many times the travel: a simulation can diverge


@dataclass(frozen=True)
class Windows:
    """
    Measured seconds.

    Attributes
    ----------
    step : of the simulation [s]; a sample is a whole number of steps
    parts : steps a sample
    q, dq, tau : (W, S, n) positions, velocities, efforts

    """

    step: float
    parts: int
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray

    @classmethod
    def of(cls, samples: Samples) -> 'Windows':
        """Cut samples into windows; what is left at the end is dropped."""
        period = 1.0 / samples.rate
        size = round(WINDOW / period)
        count = len(samples.time) // size
        parts = math.ceil(period / STEP - 1e-9)

        def cut(values: np.ndarray) -> np.ndarray:
            return values[: count * size].reshape(count, size, -1)

        return cls(period / parts, parts, cut(samples.q), cut(samples.dq), cut(samples.tau))


def bare(text: str) -> mujoco.MjSpec:
    """Return the model of an MJCF without shapes: nothing collides."""
    file = ET.fromstring(text)
    for parent in list(file.iter()):
        for element in [e for e in parent if e.tag in ('geom', 'asset', 'contact')]:
            parent.remove(element)
    return mujoco.MjSpec.from_string(ET.tostring(file, encoding='unicode'))


def compiled(spec: mujoco.MjSpec, step: float) -> mujoco.MjModel:
    """Return a model with steps [s] whose motors have no limit: what acted was within them."""
    spec.option.timestep = step
    for motor in spec.actuators:
        motor.ctrllimited = motor.forcelimited = mujoco.mjtLimited.mjLIMITED_FALSE
    return spec.compile()


def error(model: mujoco.MjModel, joints: tuple[str, ...], measured: Windows) -> float:
    """Return the RMS error of the simulated positions over the travel [%]."""
    states = starts(model, joints, measured)
    effort = np.zeros((*measured.tau.shape[:2], model.nu))
    effort[:, :, [model.actuator(name).id for name in joints]] = measured.tau
    effort = np.repeat(effort, measured.parts, axis=1)[:, : -measured.parts or None]
    state, _ = rollout.rollout(model, mujoco.MjData(model), np.array(states), effort)
    places = [1 + model.joint(name).qposadr[0] for name in joints]
    simulated = state[:, measured.parts - 1 :: measured.parts, places]
    travel = np.ptp(measured.q.reshape(-1, len(joints)), axis=0)
    relative = (simulated - measured.q[:, 1:]) / travel
    relative = np.clip(np.nan_to_num(relative, nan=BEYOND), -BEYOND, BEYOND)
    return 100.0 * float(np.sqrt(np.mean(relative**2)))


def starts(model: mujoco.MjModel, joints: tuple[str, ...], measured: Windows) -> list[np.ndarray]:
    """Return the state of a simulation at the start of each window."""
    data, found = mujoco.MjData(model), []
    for q, dq in zip(measured.q[:, 0], measured.dq[:, 0], strict=True):
        for k, name in enumerate(joints):
            joint = model.joint(name)
            data.qpos[joint.qposadr[0]], data.qvel[joint.dofadr[0]] = q[k], dq[k]
        found.append(sysid.create_initial_state(model, data.qpos, data.qvel, data.act))
    return found


def peer(
    spec: mujoco.MjSpec, joints: tuple[str, ...], measured: Windows, iterations: int
) -> mujoco.MjSpec:
    """Fit a description by `mujoco.sysid`; return it with what was found."""
    for name in joints:
        sensor = spec.add_sensor(type=mujoco.mjtSensor.mjSENS_JOINTPOS, name=f'{name}_pos')
        sensor.objtype, sensor.objname = mujoco.mjtObj.mjOBJ_JOINT, name
    model = compiled(spec, measured.step)
    values = sysid.ParameterDict()
    for name in joints:
        body = model.body(model.joint(name).bodyid[0]).name
        if model.body(body).mass[0] > 0.0:
            values.add(
                sysid.body_inertia_param(
                    spec, model, body, inertia_type=sysid.InertiaType.Pseudo, modifier=set_body
                )
            )
    speed = np.abs(measured.dq).max(axis=(0, 1))
    effort = np.abs(measured.tau).max(axis=(0, 1))
    swing = np.abs(np.diff(measured.dq, axis=1)).max(axis=(0, 1)) / (
        measured.step * measured.parts
    )
    largest = {'armature': effort / swing, 'damping': effort / speed, 'frictionloss': effort}
    for quantity, size in largest.items():
        for k, name in enumerate(joints):

            def change(
                spec: mujoco.MjSpec,
                value: 'sysid.Parameter',
                quantity: str = quantity,
                name: str = name,
            ) -> None:
                of_damping = [float(value.value[0]), 0.0, 0.0]
                found = of_damping if quantity == 'damping' else float(value.value[0])
                setattr(spec.joint(name), quantity, found)

            start = START * size[k]
            values.add(sysid.Parameter(f'{name}_{quantity}', start, 0.0, size[k], modifier=change))
    period = measured.step * measured.parts
    stamps = period * np.arange(measured.q.shape[1])
    where = [model.actuator(name).id for name in joints]
    control = np.zeros((*measured.tau.shape[:2], model.nu))
    control[:, :, where] = measured.tau
    sequences = sysid.ModelSequences(
        'robot',
        spec,
        [f'second {k}' for k in range(len(control))],
        starts(model, joints, measured),
        [sysid.TimeSeries(stamps, each) for each in control],
        [sysid.TimeSeries.from_names(stamps, each, model) for each in measured.q],
    )
    residual = sysid.build_residual_fn(models_sequences=[sequences], n_threads=1)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints each iteration
        found, _ = sysid.optimize(
            initial_params=values, residual_fn=residual, verbose=False, max_iters=iterations
        )
    return sysid.apply_param_modifiers_spec(found, spec)


def set_body(spec: mujoco.MjSpec, value: 'sysid.Parameter') -> None:
    """Set a body's inertia; without the second line MuJoCo 4.0.0 finds it empty."""
    name = value.name.removesuffix('_inertia')
    sysid.apply_body_inertia(spec, name, value)
    spec.body(name).iquat[:] = 1.0, 0.0, 0.0, 0.0


def run(case: Case, bag: Path, iterations: int) -> list[str]:
    """Fit one robot both ways, print a row, return what misses its bound."""
    configuration, _ = configured(case.name)
    robot = build_robot(read_urdf(configuration) or '', replace(configuration.robot, friction={}))
    recording = open_recording(bag, robot.joints)
    start, middle, end = case.split
    first, other = recording.between(start, middle), recording.between(middle, end)
    settings = IdentificationSettings()
    begun = time.process_time()
    found = identify(first, robot, settings)
    seconds = time.process_time() - begun
    with tempfile.TemporaryDirectory() as folder:
        save(found, first, folder)
        model = read_identified_model(folder)
    described = as_described(model)
    assert described is not None
    signals = settings.signals
    fitted, judged = (Windows.of(prepare(part, robot, signals)) for part in (first, other))
    before, ours = (
        error(compiled(bare(mjcf(each)[0]), judged.step), robot.joints, judged)
        for each in (described, model)
    )
    begun = time.process_time()
    theirs = peer(bare(mjcf(described)[0]), robot.joints, fitted, iterations)
    peer_seconds = time.process_time() - begun
    result = error(compiled(theirs, judged.step), robot.joints, judged)
    ratio, share = ours / result, seconds / peer_seconds
    print(
        f'{case.name:6s}{before:12.1f}{ours:12.2f}{result:12.2f}{ratio:8.2f}'
        f'{seconds:10.1f}{peer_seconds:10.1f}{share:8.3f}',
        flush=True,
    )
    missed = []
    if not ratio <= ERROR:
        missed.append(f"{case.name}: {ratio:.2f} of the peer's error, bound {ERROR}")
    if not share <= TIME:
        missed.append(f"{case.name}: {share:.2f} of the peer's time, bound {TIME}")
    return missed


def main() -> int:
    """Compare on each log."""
    parser = command_line(__doc__, datasets=True)
    parser.add_argument('--iterations', type=int, default=50, help='of the peer, at most')
    names = [*(case.name for case in CASES), *ROBOTS]
    parser.add_argument('--only', nargs='+', choices=names, default=names)
    arguments = parser.parse_args()
    if not hasattr(sysid, 'optimize'):
        parser.error('mujoco.sysid is not installed: pip install "mujoco[sysid]"')
    print(
        f'{"":6s}{"described":>12s}{"ours":>12s}{"sysid":>12s}{"ratio":>8s}'
        f'{"ours [s]":>10s}{"sysid [s]":>10s}{"ratio":>8s}    errors in % of the travel'
    )
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if case.name in arguments.only:
                bag = case.bag(arguments.folder, Path(folder))
                missed += run(case, bag, arguments.iterations)
    missed += [text for name in ROBOTS if name in arguments.only for text in compare(name)]
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
