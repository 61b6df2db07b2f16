"""
Files of an identification from commands: parameters.yaml, a MuJoCo model with servos, ranges.

Read back, they give draws of the servos, and rollouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TYPE_CHECKING

import numpy as np

from ..core.finding_codes import as_data
from ..core.findings import Finding, in_order
from ..core.model import build_robot, Robot, RobotSettings
from ..core.parameters.plain_friction import plain_friction
from ..core.replay.commanded import Commanded, ServoParameter
from ..core.replay.commanded_logs import commanded_log, CommandedLog
from ..core.signals.recording import Recording
from ..exceptions import FileError
from .atomic import read_text, write_text
from .export.identified_model import IdentifiedModel, Servo
from .export.identified_urdf import identified_urdf
from .export.mjcf import mjcf
from .export.ranges import DRAWS, range_of, ranges_files
from .identification_input import AnyRecording
from .provenance import hash_of_recording, versions
from .results import Results
from .results_file import PARAMETERS, results_folder, SERVO_FORMAT
from .robot_description import read_description
from .rollouts import IDENTIFIED, Rollouts
from .yaml import dump_yaml, parse_yaml, to_plain

if TYPE_CHECKING:
    import mujoco

MODEL, DESCRIPTION = 'identified.xml', 'description.urdf'
SERVO_FILES = (PARAMETERS, MODEL, DESCRIPTION)
# Standard parameters that stand for those of a servo.
STANDARD = {'armature': 'Ia', 'Fc': 'Fc', 'Fst': 'Fst', 'Fl': 'Fl'}
# Parameters by the names of their arrays in draws, as MuJoCo calls them.
SYMBOLS = {
    'kp': 'stiffness', 'kv': 'damping', 'bias': 'bias', 'armature': 'armature',
    'frictionloss': 'Fc', 'delay': 'delay',
}  # fmt: skip
# Least stiffness of a draw, over the identified one.
SOFTEST = 0.05
# Rotor inertia that holds a joint which was at rest [kg·m²].
HELD = 1e6
# Time between two starts [s]: servos hold a robot near its path, unlike measured efforts.
WINDOW = 5.0
# Parts of a step of the simulation over which commands are averaged.
PARTS = 8
# What drives, and what is shown beside: a robot that follows its commands at once.
SERVOS, AT_ONCE = 'servos', 'commands'


def save_servos(
    found: Commanded,
    recordings: Sequence[AnyRecording],
    folder: str | Path,
    notes: Sequence[Finding] = (),
    command: str = '',
) -> dict[str, Any]:
    """
    Write `parameters.yaml`, `identified.xml` and the description; return what the first holds.

    Raises FileError where the folder cannot be written.
    """
    robot = found.robot
    data = {
        'format': SERVO_FORMAT,
        'robot': robot.name,
        'method': 'commands',
        'created': datetime.now(timezone.utc).isoformat(timespec='seconds'),
        'joints': list(robot.joints),
        'locked': dict(robot.locked),
        'data': [
            {'source': r.source, 'duration': r.duration, 'sha256': hash_of_recording(r.source)}
            for r in recordings
        ],
        'command': command,
        'parameters': [to_plain(parameter) for parameter in found.parameters],
        'residual': dict(zip(robot.joints, found.residual.tolist(), strict=True)),
        'tracking_error': dict(zip(robot.joints, found.tracking.tolist(), strict=True)),
        'windows': found.windows,
        'simulations': found.simulations,
        'free': {'names': list(found.names), 'values': found.estimate.tolist()},
        'covariance': found.covariance.tolist(),
        'findings': [to_plain(as_data(note)) for note in in_order((*found.findings, *notes))],
        'versions': versions(),
    }
    model = servo_model(robot, found.parameters)
    write_text(Path(folder) / MODEL, mjcf(model)[0])
    write_text(Path(folder) / DESCRIPTION, robot.urdf)
    write_text(Path(folder) / PARAMETERS, dump_yaml(data))
    return data


def servo_model(robot: Robot, parameters: Sequence[ServoParameter]) -> IdentifiedModel:
    """Return a robot with the servos, rotors, friction and bodies that were identified."""
    known = {(p.symbol, p.joint): p.value for p in parameters if p.value is not None}
    of_all = known.get(('bodies', ''), 1.0)
    scales = np.array([known.get(('bodies', joint), of_all) for joint in robot.joints])
    chi = np.zeros(robot.p)
    chi[robot.body_columns] = robot.prior[robot.body_columns] * scales[:, None]
    columns = {(p.joint, p.symbol): k for k, p in enumerate(robot.parameters)}
    for (symbol, joint), value in known.items():
        column = columns.get((joint, STANDARD.get(symbol, '')))
        if column is not None:
            chi[column] = value
    servos = {
        joint: Servo(
            known['stiffness', joint],
            known['damping', joint],
            known.get(('bias', joint), 0.0),
            known.get(('limit', joint), np.inf),
        )
        for joint in robot.joints
        if {('stiffness', joint), ('damping', joint)} <= known.keys()
    }
    friction = plain_friction(robot, chi)
    if (scales != 1.0).any():
        robot = dataclasses.replace(robot, urdf=identified_urdf(robot, chi, friction))
    results = Results(
        robot.name, 'commands', '', robot.joints, (), (), (), plain_friction=friction
    )  # fmt: skip
    return IdentifiedModel(results, robot, chi, servos, tuple(_notes(robot, known, servos)))


def _notes(
    robot: Robot, known: Mapping[tuple[str, str], float], servos: Mapping[str, Servo]
) -> Iterator[str]:
    yield 'identified from commands and positions: torques are in proportion to the bodies'
    if ('delay', '') in known:
        yield (
            f'commands act {known["delay", ""]:.4g} s late, which is not in this file: hold them '
            'back'
        )
    if open_joints := [joint for joint in robot.joints if joint not in servos]:
        names = ', '.join(open_joints)
        yield f'stiffness or damping of {names} is not determined: these are motors'
    if any(symbol in ('Fst', 'Fl') and value for (symbol, _), value in known.items()):
        yield 'plain friction stands for stribeck and load_coulomb, see parameters.yaml'


@dataclasses.dataclass(frozen=True)
class IdentifiedServos:
    """
    What `robotid identify --method commands` has written.

    Attributes
    ----------
    robot, model : as described; as identified, in MuJoCo
    parameters : of servos and joints
    names, value, covariance : (m,), (m,), (m, m) of all that was free, determined or not: symbol
        and joint, '' of all

    """

    robot: Robot
    model: mujoco.MjModel
    parameters: tuple[ServoParameter, ...]
    names: tuple[tuple[str, str], ...]
    value: np.ndarray
    covariance: np.ndarray

    @property
    def determined(self) -> set[tuple[str, str]]:
        """Symbol and joint of the parameters that the log determines."""
        return {(p.symbol, p.joint) for p in self.parameters if p.value is not None}

    def draws(self, count: int, seed: int = 0) -> dict[str, np.ndarray]:
        """
        Return the identified servos, and draws of them, by the names of `SYMBOLS`.

        (count + 1, n) by joints, `delay` (count + 1,): normal by the covariance, and not below
        zero. What is not determined keeps its fitted value.
        """
        kept = np.array([name in self.determined for name in self.names], dtype=bool)
        covariance, rng = self.covariance * np.outer(kept, kept), np.random.default_rng(seed)
        theta = np.tile(self.value, (count + 1, 1))
        theta[1:] += rng.multivariate_normal(0.0 * self.value, covariance, count, method='eigh')
        joints, found = self.robot.joints, dict[str, np.ndarray]()
        for key, symbol in SYMBOLS.items():
            values = np.zeros((count + 1, len(joints)))
            for k, (own, joint) in enumerate(self.names):
                if own == symbol:
                    values[:, joints.index(joint) if joint else 0] = theta[:, k]
            least = {'kp': SOFTEST * values[0], 'bias': -np.inf}.get(key, 0.0)
            found[key] = np.maximum(values, least)
        # What stands for friction that is not plain, as in the model.
        known = {(p.symbol, p.joint): p.value for p in self.parameters}
        plain = servo_model(self.robot, self.parameters).plain_friction
        more = [plain[joint].coulomb - (known.get(('Fc', joint)) or 0.0) for joint in joints]
        found['frictionloss'] += np.array(more)
        found['delay'] = found['delay'][:, 0]
        return found

    def put(self, draws: Mapping[str, np.ndarray], number: int) -> None:
        """Make the model that of a draw; its delay is not of the model."""
        model, names = self.model, self.robot.joints
        servos = [model.actuator(name).id for name in names]
        dofs = [int(model.joint(name).dofadr[0]) for name in names]
        kp, kv, bias, armature, friction = (draws[key][number] for key in [*SYMBOLS][:-1])
        model.actuator_gainprm[servos, 0] = kp
        model.actuator_biasprm[servos, :3] = np.column_stack([kp * bias, -kp, -kv])
        model.dof_armature[dofs], model.dof_frictionloss[dofs] = armature, friction

    def simulated(self, log: CommandedLog, rows: np.ndarray, q: np.ndarray, dq: np.ndarray,
                  delay: float) -> np.ndarray:  # fmt: skip
        """
        Return positions (W, S, n) that follow the commands of a log.

        From rows (W, S) of it, whose first have positions and velocities (W, n); joints are in
        the model's order.
        """
        from mujoco import MjData, rollout

        model, h = self.model, self.model.opt.timestep
        names = [self.robot.joints[j] for j in self.robot.order]
        servos = [model.actuator(name).id for name in names]
        places = [int(model.joint(name).qposadr[0]) for name in names]
        speeds = [int(model.joint(name).dofadr[0]) for name in names]
        since = log.time[rows] - log.time[rows[:, :1]]
        steps = round(float(since.max()) / h) + 1
        # The mean command of each step, so that delays need not be whole ones.
        parts = h * (np.arange(steps)[:, None] + (np.arange(PARTS) + 0.5) / PARTS)
        at = log.time[rows[:, 0]][:, None, None] + parts - delay
        control = np.zeros((len(rows), steps, model.nu))
        control[:, :, servos] = (
            log.commanded(at.ravel()).reshape(len(rows), steps, PARTS, -1).mean(axis=2)
        )
        states = np.zeros((len(rows), 1 + model.nq + model.nv))
        states[:, 1 : 1 + model.nq] = model.qpos0
        states[:, [1 + k for k in places]] = q
        states[:, [1 + model.nq + k for k in speeds]] = dq
        path = rollout.rollout(model, MjData(model), states, control)[0]
        path = np.concatenate([states[:, None], path], axis=1)[..., [1 + k for k in places]]
        index = np.round(since / h).astype(int)
        return np.asarray(np.take_along_axis(path, index[..., None], axis=1))


def read_servos(path: str | Path) -> IdentifiedServos | None:
    """
    Read what `--method commands` wrote; None where results are of another method.

    Raises FileError where a file is missing or damaged.
    """
    folder = results_folder(path)
    file = folder / PARAMETERS
    content = parse_yaml(read_text(file), str(file)) if file.exists() else None
    if not isinstance(content, Mapping) or content.get('format') != SERVO_FORMAT:
        return None
    import mujoco  # which results of other methods do not need

    try:
        parts = [f'{name} '.split(' ') for name in content['free']['names']]
        names = tuple((symbol, joint) for symbol, joint, *_ in parts)
        value = np.array(content['free']['values'], dtype=float)
        covariance = np.array(content['covariance'], dtype=float).reshape(len(names), len(value))
        settings = RobotSettings(joints=tuple(content['joints']), locked=content['locked'])
        robot = build_robot(read_description(folder / DESCRIPTION), settings)
        model = mujoco.MjModel.from_xml_path(str(folder / MODEL))
        servos = tuple(ServoParameter(**each) for each in content['parameters'])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"results in '{folder}' are damaged ({error}): identify again") from error
    # Euler's steps of 2 ms shift a fast motion by more than encoders resolve.
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    for name, place in robot.locked.items():
        joint = model.joint(name)
        model.qpos0[joint.qposadr], model.dof_armature[joint.dofadr] = place, HELD
    # Also of joints whose servo has no value in the file: its ratios may be known well.
    for actuator in (model.actuator(name).id for name in robot.joints):
        model.actuator_biastype[actuator] = mujoco.mjtBias.mjBIAS_AFFINE
        model.actuator_ctrllimited[actuator] = 0
    return IdentifiedServos(robot, model, servos, names, value, covariance)


def servo_ranges(servos: IdentifiedServos) -> tuple[dict[str, bytes], list[str]]:
    """Write `ranges.yaml`, `draws.npz` with (N, n) arrays, and sentences on them."""
    draws, units = servos.draws(DRAWS), {p.symbol: p.unit for p in servos.parameters}

    def table(key: str, values: np.ndarray) -> dict[str, Any]:
        return range_of(units.get(SYMBOLS[key], ''), values[0], values[1:])

    joints = {
        joint: {
            key: table(key, draws[key][:, k])
            for key, symbol in SYMBOLS.items()
            if (symbol, joint) in servos.determined
        }
        for k, joint in enumerate(servos.robot.joints)
    }
    content = {'delay': table('delay', draws['delay']), 'joints': joints}
    own = {key: values[1:] for key, values in draws.items()}
    own['joints'] = np.array(servos.robot.joints)
    notes = ['a range is of one parameter alone; draws.npz has whole sets of servos']
    unknown = [f'{p.symbol} {p.joint}'.strip() for p in servos.parameters if p.value is None]
    if unknown:
        names = ', '.join(unknown)
        notes.append(f'the log does not determine {names}: these do not vary')
    return ranges_files(servos.robot.name, content, own), notes


def roll_out_servos(
    servos: IdentifiedServos,
    recording: Recording,
    *,
    draws: int = 30,
    bound: float = 0.05,
    progress: Callable[[float], None] = lambda share: None,
) -> Rollouts:
    """
    Simulate the commands of a log: the identified servos, draws of them, and ideal ones.

    Raises RecordingError where the log has no commands, or no stretch without a gap.
    """
    log = commanded_log(recording, servos.robot)
    runs = log.runs()
    size = min(round(WINDOW / log.period) + 1, max(len(rows) for rows in runs))
    rows = np.array([
        own[start : start + size]
        for own in runs for start in range(0, len(own) - size + 1, size - 1)
    ])  # fmt: skip
    back, values, errors = np.argsort(servos.robot.order), servos.draws(draws), list[np.ndarray]()
    q, dq = (values[rows[:, 0]] for values in log.smoothed[:2])
    for k in range(draws + 1):
        servos.put(values, k)
        path = servos.simulated(log, rows, q, dq, float(values['delay'][k]))
        errors.append((path - log.q[rows])[..., back])
        progress((k + 1) / (draws + 1))
    servos.put(values, 0)
    ahead = (log.commanded(log.time) - log.q)[rows][..., back]
    return Rollouts(
        servos.robot,
        SERVOS,
        '',
        log.period * np.arange(size),
        np.ptp(log.q, axis=0)[back],
        bound,
        {AT_ONCE: ahead, IDENTIFIED: errors[0]},
        np.array(errors[1:]).reshape(draws, *ahead.shape),
    )
