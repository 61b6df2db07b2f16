"""
Rollouts: exported robots in MuJoCo, driven as the recorded one was, beside what was recorded.

With the reference and the controller's gains the loop is closed by its law, over the whole
recording. Else the measured efforts drive the robot, which sooner or later leaves its path: it
starts anew every `WINDOW` seconds.
"""

from collections.abc import Callable, Mapping
import dataclasses
import itertools
import math
from xml.etree import ElementTree as ET

import mujoco
import numpy as np

from ..core.identification_settings import IdentificationSettings
from ..core.model.base_parameters import base_parameters
from ..core.model.robot import ElasticRobot, Robot
from ..core.replay.replay_problem import make_open_loop_problem, make_replay_problem, ReplayProblem
from ..core.signals.preparation import prepare
from ..core.signals.recording import Recording
from ..core.signals.samples import Samples
from ..exceptions import ConfigurationError, ControllerError, RecordingError, UnknownNameError
from .export.identified_model import IdentifiedModel
from .export.mjcf import mjcf
from .export.ranges import as_described, drawn

# Time between two starts of a robot that measured efforts drive [s].
WINDOW = 1.0
# Quantiles of the draws between which a band is.
QUANTILES = (0.05, 0.95)
# What is simulated besides the draws, as tables and pages name it.
DESCRIBED, IDENTIFIED = 'described', 'identified'
CONTROLLER, EFFORTS = 'controller', 'efforts'


@dataclasses.dataclass(frozen=True)
class Rollouts:
    """
    Simulated beside measured positions.

    Attributes
    ----------
    robot : whose joints these are
    driven_by : CONTROLLER or EFFORTS
    reason : why no controller drives it, where none was known; else ''
    time : (S,) since a start [s]
    travel : (n,) of the recorded joints [rad or m]
    bound : of an error, as a share of the travel
    errors : (W, S, n) simulated minus measured positions of W starts, by what is simulated; NaN
        where nothing was measured, infinite from where a simulation diverges
    draws : (D, W, S, n) the same of robots that the results' recording leaves possible

    """

    robot: Robot
    driven_by: str
    reason: str
    time: np.ndarray
    travel: np.ndarray
    bound: float
    errors: Mapping[str, np.ndarray]
    draws: np.ndarray

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints."""
        return self.robot.joints

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the positions: rad or m."""
        return tuple('m' if slides else 'rad' for slides in self.robot.prismatic)

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
        """
        Return for how long an error (W, S, n) is within the bound, (n + 1,) [s].

        That is the median of all starts, of each joint and last of all joints together; infinite
        where half of them never leave it.
        """
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
    Simulate a recorded motion: the robot as described, as identified, and draws of it.

    Parameters
    ----------
    model : what was identified
    recording : with the same joints
    settings : how positions are filtered; a control law in place of the recorded one
    draws : number of robots that are drawn, see `core.parameters.posterior`; 0: none
    bound : of an error, as a share of a joint's travel
    driven_by : CONTROLLER or EFFORTS; '': the controller where it and its reference are known
    progress : is told the share of the work that is done

    Raises
    ------
    ConfigurationError : joints are elastic, or the results do not say how parameters vary
    ControllerError, RecordingError, UnknownNameError : the recording cannot be used, or lacks the
        controller that is asked for

    """
    if isinstance(model.robot, ElasticRobot):
        raise ConfigurationError(
            'rollouts are of rigid joints, and this robot has springs: use robotid validate'
        )
    robot = model.robot
    samples = prepare(recording, robot, settings.signals)
    problem, reason = _problem(model, recording, samples, settings, driven_by)
    measured = _measured(problem, samples)
    robots = filter(None, (as_described(model), model))
    found = list[np.ndarray]()
    for each in itertools.chain(robots, drawn(model, draws) if draws else ()):
        error = simulated(each, problem) - measured
        # By starts, (W, S, n); an end that is too short is left out.
        window = problem.restart or len(error)
        starts = len(error) // window
        found.append(error[: starts * window].reshape(starts, window, -1))
        progress(min(len(found) / (2 + draws), 1.0))
    known = len(found) - draws
    errors = dict(zip((DESCRIBED, IDENTIFIED)[-known:], found[:known], strict=True))
    first = errors[IDENTIFIED]
    return Rollouts(
        robot,
        EFFORTS if problem.restart else CONTROLLER,
        reason,
        np.arange(first.shape[1]) / problem.law.rate,
        np.ptp(samples.q, axis=0),
        bound,
        errors,
        np.array(found[known:]).reshape(draws, *first.shape),
    )


def _problem(
    model: IdentifiedModel,
    recording: Recording,
    samples: Samples,
    settings: IdentificationSettings,
    driven_by: str,
) -> tuple[ReplayProblem, str]:
    """Return what drives the simulation from where, and why it is not the controller."""
    base, reason = base_parameters(model.robot), ''
    if driven_by != EFFORTS:
        try:
            replay = settings.replay
            return make_replay_problem(recording, model.robot, base, replay, samples), ''
        except (ControllerError, RecordingError, UnknownNameError) as error:
            if driven_by:
                raise
            reason = str(error)
    problem = make_open_loop_problem(samples, model.robot, base, settings.replay)
    window = min(round(WINDOW * problem.law.rate), len(samples.time) - 1)
    return dataclasses.replace(problem, restart=window), reason


def _measured(problem: ReplayProblem, samples: Samples) -> np.ndarray:
    """Return the measured positions at the updates, (K, n); NaN where there are none."""
    assert problem.measured is not None
    time, step = problem.time, 1.0 / samples.rate
    unknown = (time < samples.time[0] - step) | (time > samples.time[-1] + step)
    if samples.measured is not None:
        at = np.clip(np.searchsorted(samples.time, time), 0, len(samples.time) - 1)
        unknown |= ~samples.measured[at]
    return np.where(unknown[:, None], np.nan, problem.measured.q)


def simulated(model: IdentifiedModel, problem: ReplayProblem) -> np.ndarray:
    """
    Return the positions of a robot's MJCF at the updates of a control law, (K, n).

    They start where the measured ones do, and are infinite from where the simulation diverges.
    Nothing collides: the recorded robot did not.
    """
    assert problem.measured is not None
    exported = ExportedRobot(model, 1.0 / problem.law.rate)
    start, restart = problem.measured, problem.restart
    torque = problem.torque
    first = torque.tau[np.flatnonzero(torque.valid)[0]] if torque.valid.any() else None
    law = problem.law.start(problem.desired, first)
    q = np.full(start.q.shape, np.inf)
    for k in range(len(q)):
        if k == 0 or (restart and k % restart == 0):
            exported.place(start.q[k], start.dq[k])
        q[k], velocity = exported.state()
        if not np.isfinite(q[k]).all():
            q[k] = np.inf
            if not restart:
                break
            continue
        exported.step(law(k, q[k], velocity))
    return q


class ExportedRobot:
    """An exported robot in MuJoCo, whose joints that are not identified are held in place."""

    def __init__(self, model: IdentifiedModel, period: float) -> None:
        robot = model.robot
        self._model = mujoco.MjModel.from_xml_string(_bare(model))
        parts = math.ceil(period / self._model.opt.timestep - 1e-9)
        self._model.opt.timestep, self._parts = period / parts, parts
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
