"""
The model that nodes command or verify: what was identified, on the robot that is here.

And what nodes share that command efforts of it: results, payload, guardian.
"""

from collections.abc import Callable, Container
from pathlib import Path
import threading
from typing import Any, NamedTuple

import numpy as np
import pinocchio
from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter

from ...core.arrays import Array
from ...core.model import build_robot, Robot, RobotSettings
from ...core.parameters.carried_body import carrying
from ...exceptions import ControllerError, FileError, RobotIdError
from ...files.atomic import is_below
from ...files.configuration import Configuration
from ...files.results import chosen_settings, read_results, Results, URDF, verdict_of
from ...node_settings import CARRIED
from .guardian import Guardian, start_guardian
from .messages import one_line
from .runtime import WorkerNode

SAME_PLACE = 1e-3  # of a joint, in two descriptions of one arm [m or 1]


class VerifiedModel(NamedTuple):
    """Results in a folder; the robot with their friction; χ (p,) of torques, and of bodies."""

    folder: Path
    results: Results
    robot: Robot
    chi: Array
    consistent: Array


def load_model(folder: Path, urdf: str, settings: RobotSettings) -> VerifiedModel:
    """Read results onto the robot that is here; `FileError`: none, or those of another."""
    results = read_results(folder)
    settings = chosen_settings(settings, results)
    robot = build_robot(urdf, settings)
    if results.joints not in (robot.joints, robot.recorded_joints):
        raise FileError(
            f"'{folder}' has results of {', '.join(results.joints)}, the robot has "
            f'{", ".join(robot.joints)}: identify this robot, or name the folder of its results'
        )
    if (file := folder / URDF).exists():
        both = map(_joint_places, (robot, build_robot(file.read_text(), settings)))
        far = np.abs(np.subtract(*both)).max(axis=(1, 2)) > SAME_PLACE
        if far.any():
            raise FileError(
                f"'{folder}' has results of an arm whose "
                f'{robot.model.names[1 + int(np.argmax(far))]} has another position or axis: '
                'identify this robot, or correct its description'
            )
    return VerifiedModel(folder, results, robot, *parameters_of(results, robot))


def expect_own(folder: str, configuration: Configuration) -> Path:
    """Return a folder of results that anybody may have named; FileError: it is not of ours."""
    path, settings = Path(folder).resolve(), configuration.identification
    known = configuration.recorder.folder, *settings.folders, settings.output_dir
    if not is_below(path, filter(None, known)):
        raise FileError(
            f"'{folder}' is in none of recorder.folder, identification.folders and "
            'identification.output_dir of this node: set them as in the node identification'
        )
    return path


def parameters_of(results: Results, robot: Robot) -> tuple[Array, Array]:
    """Return parameters (p,) that give the identified torques, others 0, and those of bodies."""
    bodies = {entry.name: entry.value for entry in results.standard}
    chi, consistent = (
        np.array([values.get(p.name, 0.0) for p in robot.parameters])
        for values in (results.minimal_parameters, bodies)
    )
    return chi, consistent


def _joint_places(robot: Robot) -> Array:
    """Return the frames of the model's joints in the base, in a pose that is not zero."""
    data = robot.model.createData()
    pinocchio.forwardKinematics(robot.model, data, np.full(robot.model.nq, 0.5))
    return np.array([place.homogeneous for place in list(data.oMi)[1:]])


RETRY_PERIOD = 1.0  # from one attempt to find controller, results and guardian to the next [s]


class ModelNode(WorkerNode):
    """A node of the same name as its group of settings; options of `WorkerNode`."""

    _model: VerifiedModel
    _payload: Array  # what it adds to the model's parameters (p,)
    _robot: Robot | None = None

    def __init__(self, name: str, **options: Any):
        super().__init__(name, ('robot', name), **options)
        self._group, self.settings = name, getattr(self.configuration, name)
        self._controller = self.configuration.excitation.controller
        self._timeout = self.configuration.excitation.timeout
        self.subscribe_description()
        self._taking_payload = threading.Lock()
        self.add_on_set_parameters_callback(self._check_payload)
        self.add_post_set_parameters_callback(lambda _: self._take_payload())
        self.publish_state('starting', f"looking for '{self._controller}' and the results")

    def start_worker(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function in the worker thread; an error that is not foreseen is a state, too."""

        def work() -> None:
            try:
                function(*arguments)
            except Exception as error:
                self.publish_state('failed', one_line(error))
                raise

        super().start_worker(work)

    def _retry(self, attempt: Callable[[], str]) -> None:
        """Try, in the worker thread, until an attempt returns what there is to say of 'ready'."""
        last = ''
        while not self._stop.is_set():
            try:
                self.publish_state('ready', attempt())
                return
            except RobotIdError as error:
                if (reason := one_line(error)) != last:
                    self.publish_state('failed', reason)
                    self.get_logger().error(reason)
                last = reason
            self._stop.wait(RETRY_PERIOD)

    def _prepare(self) -> str:
        """Read results onto the robot, and find what else is needed."""
        urdf, folder = self.wait_for_urdf(), self.settings.results
        if not folder:
            remedy = f'set {self._group}.results to the folder of an identification'
            raise ControllerError(remedy)
        self._model = load_model(Path(folder), urdf, self.configuration.robot)
        self._robot = self._model.robot
        self._take_payload()
        return self._make_ready()

    def _check_verdict(self, levels: Container[str]) -> None:
        """Refuse results whose error on other motions, by σ or measured, is too large."""
        verdict = verdict_of(self._model.results)
        if verdict.level not in levels:
            error = 'unknown' if verdict.worst is None else f'{100 * verdict.worst.worst:.0f} %'
            raise ControllerError(
                f"the results are '{verdict.level}' for other motions (error {error}): identify "
                'again before an arm is moved by them'
            )

    def _make_ready(self) -> str:
        """Find what the node needs besides the model; return a sentence."""
        raise NotImplementedError

    def _new_guardian(self, service: str, *switch: str) -> Guardian:
        """Start a guardian that calls a service; `switch` as in `Guardian`."""
        guardian = start_guardian(self, self._group, self._controller, service, *switch)
        try:
            guardian.wait_ready(self._timeout)
        except ControllerError:
            guardian.close()
            raise
        return guardian

    def _read_payload(self, changed: dict[str, Any] | None = None) -> Array:
        """Return what the body adds (p,) that parameters say is carried, some `changed`."""
        names = [f'{self._group}.payload.{key}' for key in CARRIED]
        given = changed or {}
        *values, frame = (given.get(name, self.get_parameter(name).value) for name in names)
        central = np.hstack([np.asarray(value, dtype=float) for value in values])
        if central.shape != (10,):
            raise ControllerError('a payload has a centre of 3 and an inertia of 6 numbers')
        return carrying(self._model.robot, np.zeros(self._model.robot.p), frame, central)

    def _take_payload(self) -> None:
        """Keep what the body that is carried adds; the one that was set last counts."""
        if self._robot is not None:
            with self._taking_payload:
                self._payload = self._read_payload()

    def _check_payload(self, parameters: list[Parameter]) -> SetParametersResult:
        if self._robot is not None:
            try:
                self._read_payload({p.name: p.value for p in parameters})
            except RobotIdError as error:
                return SetParametersResult(successful=False, reason=one_line(error))
        return SetParametersResult(successful=True)
