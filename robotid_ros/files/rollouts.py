"""Rollouts: exported robots in MuJoCo, driven as the recorded one was, beside the record."""

from collections.abc import Callable, Mapping
import dataclasses
import itertools
import math
from typing import NamedTuple
from xml.etree import ElementTree as ET

import mujoco
from mujoco import rollout
import numpy as np

from ..core.identification_settings import IdentificationSettings
from ..core.model.base_parameters import base_parameters
from ..core.model.robot import ElasticRobot, Robot
from ..core.replay.commanded import commanded_log, windows_of
from ..core.replay.replay_problem import make_open_loop_problem, make_replay_problem, ReplayProblem
from ..core.signals.preparation import prepare
from ..core.signals.recording import Recording
from ..exceptions import ConfigurationError, ControllerError, RecordingError, UnknownNameError
from .export.identified_model import IdentifiedModel
from .export.ranges import as_described, possible
from .export.simulators import mjcf, TIMESTEP

# Time between two starts of a robot that measured efforts drive, and of one whose servos hold it
# near its path [s].
WINDOW, SERVO_WINDOW = 1.0, 5.0
# Quantiles of the draws between which a band is.
QUANTILES = (0.05, 0.95)
# What is simulated besides the draws, as tables and pages name it.
# AT_ONCE follows its commands without servos.
DESCRIBED, IDENTIFIED, AT_ONCE = 'described', 'identified', 'commands'
CONTROLLER, EFFORTS, SERVOS = 'controller', 'efforts', 'servos'


@dataclasses.dataclass(frozen=True)
class Rollouts:
    """Simulated beside measured positions."""

    robot: Robot  # whose joints these are
    driven_by: str  # CONTROLLER, EFFORTS or SERVOS
    reason: str  # why no controller drives it, where none was known; else ''
    time: np.ndarray  # (S,) since a start [s]
    travel: np.ndarray  # (n,) of the recorded joints [rad or m]
    bound: float  # of an error, as a share of the travel
    # Simulated minus measured positions of W starts, (W, S, n), by what is simulated; NaN where
    # nothing was measured, infinite from where a simulation diverges.
    errors: Mapping[str, np.ndarray]
    # (D, W, S, n), the same of robots that the results' recording leaves possible.
    draws: np.ndarray

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the positions: rad or m."""
        return tuple(length for length, _ in self.robot.units.values())

    @property
    def starts(self) -> int:
        """Number of starts."""
        return len(self.errors[IDENTIFIED])

    @property
    def band(self) -> tuple[np.ndarray, np.ndarray]:
        """Quantiles of the root mean square errors of the draws, (n,) each."""
        low, high = np.quantile(rms(self.draws), QUANTILES, axis=0)
        return low, high

    def horizon(self, error: np.ndarray) -> np.ndarray:
        """Return how long an error (W, S, n) stays within the bound, (n + 1,) [s]."""
        beyond = np.abs(error) > self.bound * self.travel
        beyond = np.concatenate([beyond, beyond.any(axis=-1, keepdims=True)], axis=-1)
        first = np.where(beyond.any(axis=1), self.time[beyond.argmax(axis=1)], np.inf)
        return np.asarray(np.quantile(first, 0.5, axis=0, method='lower'))


def rms(error: np.ndarray, axes: tuple[int, ...] = (-3, -2)) -> np.ndarray:
    """Return the root mean square of an error (…, W, S, n) over starts and time, NaN left out."""
    known = ~np.isnan(error)
    total = np.where(known, error, 0.0)
    count = np.maximum(known.sum(axis=axes), 1)
    return np.asarray(np.sqrt((total**2).sum(axis=axes) / count))


def roll_out(
    model: IdentifiedModel,
    recording: Recording,
    settings: IdentificationSettings,
    *,
    draws: int = 30,
    bound: float = 0.05,
    driven_by: str = '',
    progress: Callable[[float], None] = lambda share: None,
) -> Rollouts:
    """
    Simulate a recorded motion: the robot as described, as identified, and `draws` of it.

    The `settings` say how positions are filtered, and a control law in place of the recorded one;
    `bound` is that of an error as a share of a joint's travel. What drives robots is CONTROLLER or
    EFFORTS; '': the controller where it and its reference are known. ConfigurationError: joints
    are elastic, or the results do not say how parameters vary. ControllerError, RecordingError,
    UnknownNameError: the recording cannot be used, or lacks what is asked for.
    """
    if isinstance(model.robot, ElasticRobot):
        raise ConfigurationError(
            'rollouts are of rigid joints, and this robot has springs: use robotid validate'
        )
    servos = model.estimate is not None
    if servos:
        drive = _by_commands(model, recording)
    else:
        drive = _by_torques(model, recording, settings, driven_by)
    described = None if servos else as_described(model)
    found = list[np.ndarray]()
    for each in itertools.chain(filter(None, (described,)), possible(model, draws)):
        found.append(drive.simulated(each) - drive.measured)
        progress(min(len(found) / (2 + draws), 1.0))
    known = len(found) - draws
    errors = dict(zip((DESCRIBED, IDENTIFIED)[-known:], found[:known], strict=True))
    if drive.commanded is not None:
        errors = {AT_ONCE: drive.commanded - drive.measured, **errors}
    drawn = np.array(found[known:]).reshape(draws, *drive.measured.shape)
    return Rollouts(model.robot, *drive[:4], bound, errors, drawn)


class _Driven(NamedTuple):
    """Starts of W simulations over S times, what drives them, and positions (W, S, n)."""

    by: str
    reason: str
    time: np.ndarray
    travel: np.ndarray
    measured: np.ndarray
    simulated: Callable[[IdentifiedModel], np.ndarray]
    commanded: np.ndarray | None = None


def _by_commands(model: IdentifiedModel, recording: Recording) -> _Driven:
    """Let servos follow the commands of a log."""
    log, back = commanded_log(recording, model.robot), np.argsort(model.robot.order)
    runs = log.runs()
    size = min(round(SERVO_WINDOW / log.period) + 1, max(len(rows) for rows in runs))
    rows = np.array([
        own[start : start + size]
        for own in runs for start in range(0, len(own) - size + 1, size - 1)
    ])  # fmt: skip
    windows = windows_of([log], [(0, own) for own in rows])
    index = np.round(windows.time / TIMESTEP).astype(int)
    q, dq = windows.state[..., back].swapaxes(0, 1)

    def simulated(each: IdentifiedModel) -> np.ndarray:
        """Return positions of servos; the mean command of a step, as delays are not whole ones."""
        delay = next(iter(each.servos.values())).delay
        control = windows.commanded(delay, TIMESTEP, int(index.max()))[..., back]
        exported = ExportedRobot(each, TIMESTEP)
        path = exported.run(q, dq, control)
        return np.asarray(np.take_along_axis(path, index[..., None], axis=1))

    time, travel = log.period * np.arange(size), np.ptp(log.q, axis=0)[back]
    commanded = log.commanded(log.time)[rows][..., back]
    return _Driven(SERVOS, '', time, travel, windows.q[..., back], simulated, commanded)


def _by_torques(
    model: IdentifiedModel, recording: Recording, settings: IdentificationSettings, driven_by: str
) -> _Driven:
    """Let the law of a controller move robots, or else the measured efforts; say why not it."""
    samples = prepare(recording, model.robot, settings.signals)
    base, replay = base_parameters(model.robot), settings.replay
    problem, reason = None, ''
    if driven_by != EFFORTS:
        try:
            problem = make_replay_problem(recording, model.robot, base, replay, samples)
        except (ControllerError, RecordingError, UnknownNameError) as error:
            if driven_by:
                raise
            reason = str(error)
    if problem is None:
        problem = make_open_loop_problem(samples, model.robot, base, replay)
        window = min(round(WINDOW * problem.law.rate), len(samples.time) - 1)
        problem = dataclasses.replace(problem, restart=window)
    # Nothing was measured before the first sample, behind the last one, and in gaps.
    time, step, rate = problem.time, 1.0 / samples.rate, problem.law.rate
    unknown = (time < samples.time[0] - step) | (time > samples.time[-1] + step)
    if samples.measured is not None:
        at = np.clip(np.searchsorted(samples.time, time), 0, len(samples.time) - 1)
        unknown |= ~samples.measured[at]
    measured = np.where(unknown[:, None], np.nan, problem.measured.q)
    # An end that is too short is left out.
    size = problem.restart or len(measured)
    measured = measured[: len(measured) // size * size].reshape(-1, size, model.robot.n)
    travel, by = np.ptp(samples.q, axis=0), EFFORTS if problem.restart else CONTROLLER

    def simulated(each: IdentifiedModel) -> np.ndarray:
        return _simulated(each, problem).reshape(measured.shape)

    return _Driven(by, reason, np.arange(size) / rate, travel, measured, simulated)


def _simulated(model: IdentifiedModel, problem: ReplayProblem) -> np.ndarray:
    """Return the positions of a robot's MJCF at the updates of a control law, (K, n)."""
    exported = ExportedRobot(model, 1.0 / problem.law.rate)
    start, size, torque = problem.measured, problem.restart, problem.torque
    first = torque.tau[np.flatnonzero(torque.valid)[0]] if torque.valid.any() else None
    law = problem.law.start(problem.desired, first)
    if size:  # measured efforts, whatever the robot does
        count = len(start.q) // size * size
        efforts = np.array([law(k, np.append(start.q[k], start.dq[k])) for k in range(count)])
        each = efforts.reshape(-1, size, efforts.shape[1])
        path = exported.run(start.q[:count:size], start.dq[:count:size], each)
        return path[:, :-1].reshape(efforts.shape)
    q = np.full(start.q.shape, np.inf)
    exported.place(start.q[0], start.dq[0])
    for k in range(len(q)):
        position, velocity = exported.state()
        if not np.isfinite(position).all():
            break
        q[k] = position
        exported.step(law(k, np.append(position, velocity)))
    return q


class ExportedRobot:
    """An exported robot in MuJoCo, whose joints that are not identified are held in place."""

    def __init__(self, model: IdentifiedModel, period: float) -> None:
        robot = model.robot
        self._model = mujoco.MjModel.from_xml_string(_bare(model))
        parts = math.ceil(period / self._model.opt.timestep - 1e-9)
        self._model.opt.timestep, self._parts = period / parts, parts
        if model.servos:  # Euler's steps shift a fast motion by more than encoders resolve
            self._model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        flags = mujoco.mjtDisableBit
        self._model.opt.disableflags |= flags.mjDSBL_CONTACT | flags.mjDSBL_AUTORESET
        self._data = mujoco.MjData(self._model)
        # What diverges shows in its positions; MuJoCo would also print, and write a log file.
        mujoco.set_mju_user_warning(lambda _: None)
        joints = [self._model.joint(name) for name in robot.joints]
        self._q = np.array([joint.qposadr[0] for joint in joints])
        self._v = np.array([joint.dofadr[0] for joint in joints])
        self._motors = np.array([self._model.actuator(name).id for name in robot.joints])
        self._model.actuator_ctrllimited[:] = 0  # what acted was within its limits

    def place(self, q: np.ndarray, dq: np.ndarray) -> None:
        """Start from positions and velocities (n,)."""
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[self._q], self._data.qvel[self._v] = q, dq
        model = self._model
        for follower, leader, law in zip(
            model.eq_obj1id, model.eq_obj2id, model.eq_data, strict=True
        ):
            at, value, speed = model.jnt_qposadr[follower], law[0], 0.0
            if leader >= 0:
                value += law[1] * self._data.qpos[model.jnt_qposadr[leader]]
                speed = law[1] * self._data.qvel[model.jnt_dofadr[leader]]
            self._data.qpos[at] = value
            self._data.qvel[model.jnt_dofadr[follower]] = speed
        mujoco.mj_forward(self._model, self._data)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and velocities, (n,) each."""
        return self._data.qpos[self._q], self._data.qvel[self._v]

    def step(self, torque: np.ndarray) -> None:
        """Hold torques (n,) for a period [N·m or N]."""
        self._data.ctrl[self._motors] = torque
        mujoco.mj_step(self._model, self._data, nstep=self._parts)

    def run(self, q: np.ndarray, dq: np.ndarray, control: np.ndarray) -> np.ndarray:
        """Return positions (W, K + 1, n) from states (W, n), under controls (W, K, n)."""
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        states = np.empty((len(q), mujoco.mj_stateSize(self._model, kind)))
        for state, *start in zip(states, q, dq, strict=True):
            self.place(*start)
            mujoco.mj_getState(self._model, self._data, state, kind)
        inputs = np.zeros((len(q), self._parts * control.shape[1], self._model.nu))
        inputs[..., self._motors] = np.repeat(control, self._parts, axis=1)
        path = rollout.rollout(self._model, self._data, states, inputs)[0]
        path = np.concatenate([states[:, None], path[:, self._parts - 1 :: self._parts]], axis=1)
        path = path[..., 1 + self._q]
        lost = np.logical_or.accumulate(~np.isfinite(path).all(axis=-1), axis=1)
        return np.where(lost[..., None], np.inf, path)


def _bare(model: IdentifiedModel) -> str:
    """Return a robot's MJCF without shapes, with joints held that are not identified."""
    file = ET.fromstring(mjcf(model)[0])
    for parent in list(file.iter()):
        for element in [e for e in parent if e.tag in ('geom', 'asset', 'contact')]:
            parent.remove(element)
    equality = file.find('equality')
    if equality is None:
        equality = ET.SubElement(file, 'equality')
    known = {*model.robot.joints, *(e.get('joint1') for e in equality)}
    for joint in file.iter('joint'):
        name = joint.get('name')
        if name is not None and name not in known:
            place = f'{model.robot.locked.get(name, 0.0)!r} 0 0 0 0'
            ET.SubElement(equality, 'joint', joint1=name, polycoef=place)
    return ET.tostring(file, encoding='unicode')
