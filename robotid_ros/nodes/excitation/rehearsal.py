"""The session on a simulated twin, in a ROS domain of its own, before the robot itself moves."""

from collections.abc import Callable, Mapping
from pathlib import Path
import tempfile
import threading
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
from rclpy.node import Node

from ...core.excitation import Design
from ...core.model.robot import Robot
from ...core.setup.robot_setup import drives_for_gains, SimulatedDrives
from ...exceptions import ControllerError, RobotIdError, shortened
from ...node_settings import ExcitationNodeSettings
from ...simulation_settings import SimulationSettings
from ..common.controller import check_controller, ControllerClient, ControllerDescription
from ..common.messages import one_line, status
from ..common.runtime import LATCHED
from ..common.worker_process import run_in_process
from ..demo.recovery import Recovery, recovery_of
from ..demo.twin import write_twin
from .checks import expand_per_joint
from .session_design import read_positions

# What a rehearsal may take beside the motions themselves [s]: start, approaches and identification
# on a machine with other work.
GRACE = 300.0


class Rehearsals:
    """
    Runs sessions on twins and remembers of which motions that went well.

    Parameters
    ----------
    node : whose executor spins; it publishes `~/rehearsal`
    settings : of the sessions
    values : groups of the robot's configuration, as given
    controller : the one that moves the robot
    stop : set from outside to end a rehearsal

    """

    def __init__(
        self,
        node: Node,
        settings: ExcitationNodeSettings,
        values: Mapping[str, Any],
        controller: ControllerClient,
        stop: threading.Event,
    ):
        self._node, self._settings, self._values = node, settings, values
        self._controller, self._stop = controller, stop
        # The controller's parameters with which each motion went well, by the motions' hashes.
        self._passed: dict[tuple[str, ...], Mapping[str, Any]] = {}
        self._publisher = node.create_publisher(DiagnosticStatus, '~/rehearsal', LATCHED)

    def require(self, design: Design | None) -> None:
        """
        Refuse to go on where a rehearsal is required and this design had none that went well.

        A controller whose parameters were changed since is another one.
        """
        if not self._settings.require_rehearsal:
            return
        before = self._passed.get(_motions(design)) if design is not None else None
        if before is None:
            raise ControllerError(
                'this motion was not rehearsed: call ~/rehearse first, or set '
                'excitation.require_rehearsal to false'
            )
        now = self._controller.describe().values
        names = sorted({*before, *now})
        # As texts: an array equals none, and NaN not even itself.
        changed = [name for name in names if repr(before.get(name)) != repr(now.get(name))]
        if changed:
            raise ControllerError(
                f'the motion was rehearsed before {shortened(changed)} of '
                f"'{self._controller.name}' changed: call ~/rehearse again"
            )

    def run(
        self, design: Design, robot: Robot, urdf: str, progress: Callable[[float, str], None]
    ) -> str:
        """
        Run the very session on a twin of the present robot, and publish what came of it.

        Parameters
        ----------
        design, robot, urdf : what would move, and how
        progress : called with the share that is done and what is being done

        Raises
        ------
        RobotIdError : the robot is not there, or its twin's session did not go well

        """
        motions = _motions(design)
        self._passed.pop(motions, None)
        values = {'trajectory': motions[0], 'passed': False}
        try:
            controller = self._controller.describe()
            verdict = self._rehearse(design, robot, urdf, controller, progress)
        except RobotIdError as error:
            message = status('rehearsal', one_line(error), values, level=DiagnosticStatus.ERROR)
            self._publisher.publish(message)
            raise
        self._passed[motions] = controller.values
        values |= {
            'passed': True,
            'inside_3_sigma': verdict.inside,
            'known': verdict.known,
            'validation_residual': verdict.residual,
        }
        self._publisher.publish(status('rehearsal', f'on the twin {verdict}', values))
        return f'rehearsed: {verdict}'

    def _rehearse(
        self,
        design: Design,
        robot: Robot,
        urdf: str,
        controller: ControllerDescription,
        progress: Callable[[float, str], None],
    ) -> Recovery:
        check_controller(controller, robot)
        positions = read_positions(self._node, robot.joints, self._settings.timeout)
        # The simulated joints stop at their limits, a real one may rest a little beyond.
        stands = np.clip(
            [positions[joint] for joint in robot.joints], robot.limits.lower, robot.limits.upper
        )
        positions = dict(zip(robot.joints, stands.tolist(), strict=True))
        motion = design.trajectory.period * self._settings.periods
        if design.validation is not None:
            motion += design.validation.period
        locked = {'locked': dict(robot.locked)} if robot.locked else {}
        values = {**self._values, 'robot': {**self._values.get('robot', {}), **locked}}
        drives = self._guess_drives(robot, controller)
        with tempfile.TemporaryDirectory(prefix='robotid_rehearsal_') as name:
            folder = Path(name)
            config = write_twin(folder, values, urdf, design, controller, positions, drives)
            verdict: Recovery = run_in_process(
                rehearse,
                *(config, folder, motion + GRACE),
                progress=lambda value: progress(*value),
                stop=self._stop,
                time_limit=motion + GRACE,
            )
        return verdict

    def _guess_drives(self, robot: Robot, controller: ControllerDescription) -> SimulatedDrives:
        """Guess rotors and friction from the robot's size and its controller's gains."""
        rows = [controller.gains.get(joint, {}) for joint in robot.joints]
        p, d = (np.array([row.get(name, 0.0) for row in rows]) for name in 'pd')
        error = expand_per_joint(self._settings.tracking_error, robot.joints, 'tracking_error')
        rate = controller.rate or SimulationSettings.update_rate
        return drives_for_gains(robot, self._settings, (p, d), rate, error)


def _motions(design: Design) -> tuple[str, ...]:
    plans = (design.trajectory, design.validation)
    return tuple(plan.hash for plan in plans if plan is not None)


def rehearse(
    config: Path, folder: Path, time_limit: float, progress: Callable[[Any], None]
) -> Recovery:
    """
    Run a twin's session to its end; in a process of its own, see `run_in_process`.

    Parameters
    ----------
    config : the twin's configuration, see `write_twin`
    folder : of its recording and results
    time_limit : longest time [s]
    progress : called with the share that is done and what is being done

    """
    # Only the worker imports what it needs, the node starts without.
    from ..demo.demo import Demo

    # What its nodes warn of is not about the robot, in whose log it would stand.
    with Demo(config, folder, 'error') as session:
        results = session.run(lambda share, text: progress((share, text)), time_limit)
    verdict = recovery_of(results)
    if not verdict.passed:
        raise RobotIdError(f'the session on the twin ended, but only {verdict}')
    return verdict
