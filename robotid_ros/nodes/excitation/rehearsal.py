"""The session on a simulated twin, in a ROS domain of its own, before the robot itself moves."""

from collections.abc import Mapping
import copy
from pathlib import Path
import tempfile
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np

from ... import simulation_settings as simulated
from ...core.excitation.design import Design
from ...core.setup.robot_setup import drives_for_gains, SimulatedDrives
from ...exceptions import ControllerError, RobotIdError, shortened
from ...files.atomic import write_text
from ...files.results import Recovery, recovery_of
from ...files.trajectory_file import write_design
from ...files.yaml import dump_yaml
from ..common.controller import check_controller, ControllerClient, ControllerDescription
from ..common.joint_states import read_positions
from ..common.messages import one_line, State, status
from ..common.runtime import ConfiguredNode, LATCHED
from ..common.worker_process import ProgressCallback, run_in_process
from .supervisor import SessionContext

# What it may take beside motions [s]: start, approaches, identification on a busy machine.
GRACE = 300.0
# How far the twin's bodies are from the URDF's by default: an identification has to find them.
INERTIAL_ERROR = 0.1
GUESSED = ('rotor_inertia', 'viscous', 'coulomb', 'offset')  # of the drives
CONFIGURATION, DESCRIPTION, TRAJECTORY = 'twin.yaml', 'robot.urdf', 'trajectory.yaml'


class Rehearsals:
    """Runs sessions on twins and remembers of which motions that went well, on `~/rehearsal`."""

    def __init__(self, node: ConfiguredNode, controller: ControllerClient):
        self._node, self._controller = node, controller
        # The controller's parameters with which each motion went well, by the motions' hashes.
        self._passed: dict[tuple[str, ...], Mapping[str, Any]] = {}
        self._publisher = node.create_publisher(DiagnosticStatus, '~/rehearsal', LATCHED)

    def require(self, design: Design | None) -> None:
        """Refuse to go on without a required rehearsal, or where the controller has changed."""
        if not self._node.configuration.excitation.require_rehearsal:
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

    def run(self, context: SessionContext, design: Design) -> str:
        """Run the session on a twin; publish and return what came of it, or raise why not."""
        motions = _motions(design)
        self._passed.pop(motions, None)
        values = {'trajectory': motions[0], 'passed': False}
        try:
            controller = self._controller.describe()
            verdict = self._rehearse(context, design, controller)
        except RobotIdError as error:
            self._publisher.publish(status('rehearsal', one_line(error), values, failed=True))
            raise
        self._passed[motions] = controller.values
        found = {'inside_3_sigma': verdict.inside, 'known': verdict.known}
        values |= {'passed': True, **found, 'validation_residual': verdict.residual}
        self._publisher.publish(status('rehearsal', f'on the twin {verdict}', values))
        return f'rehearsed: {verdict}'

    def _rehearse(
        self, context: SessionContext, design: Design, controller: ControllerDescription
    ) -> Recovery:
        robot, settings, limits = context.robot, context.settings, context.robot.limits

        def show(share: float, text: str) -> None:
            values = {'progress': round(share, 4)}
            context.publish_state(State.REHEARSING, f'on the twin: {text}', values)

        show(0.0, 'reading the robot')
        check_controller(controller, robot)
        positions = read_positions(self._node, robot.joints, settings.timeout)
        # The simulated joints stop at their limits, a real one may rest a little beyond.
        stands = np.clip([positions[joint] for joint in robot.joints], limits.lower, limits.upper)
        positions = dict(zip(robot.joints, stands.tolist(), strict=True))
        # Rotors and friction are guessed from the robot's size and its controller's gains.
        p, _, d = controller.pid_gains(robot.joints)
        rate = controller.rate or simulated.SimulationSettings.update_rate
        error = context.per_joint('tracking_error')
        drives = drives_for_gains(robot, settings, (p, d), rate, error)
        locked = {'locked': dict(robot.locked)} if robot.locked else {}
        values = self._node.values
        values = {**values, 'robot': {**values.get('robot', {}), **locked}}
        period = design.trajectory.period
        limit = period * settings.until.most_periods(settings.periods, period) + GRACE
        limit += design.validation.period if design.validation is not None else 0.0
        with tempfile.TemporaryDirectory(prefix='robotid_rehearsal_') as name:
            folder = Path(name)
            of = context.urdf, design, controller, positions, drives
            config = write_twin(folder, values, *of)
            verdict: Recovery = run_in_process(
                *(rehearse, config, folder, limit),
                progress=lambda value: show(*value),
                stop=context.stop,
                time_limit=limit,
            )
        return verdict


def _motions(design: Design) -> tuple[str, ...]:
    plans = (design.trajectory, design.validation)
    return tuple(plan.hash for plan in plans if plan is not None)


def rehearse(config: Path, folder: Path, limit: float, progress: ProgressCallback) -> Recovery:
    """Run a twin's session, in a process of its own; `progress`: share done, what is done."""
    # Only the worker imports what it needs, the node starts without.
    from ..demo.demo import Demo

    # What its nodes warn of is not about the robot, in whose log it would stand.
    with Demo(config, folder, 'error') as session:
        results = session.run(lambda share, text: progress((share, text)), limit)
    verdict = recovery_of(results)
    if not verdict.passed:
        raise RobotIdError(f'the session on the twin ended, but only {verdict}')
    return verdict


def write_twin(
    folder: Path,
    values: Mapping[str, Any],
    urdf: str,
    design: Design,
    controller: ControllerDescription,
    positions: Mapping[str, float],
    drives: SimulatedDrives | None = None,
) -> Path:
    """Write the configuration of a session of a twin; return its file. `drives` are a guess."""
    description, trajectory = folder / DESCRIPTION, folder / TRAJECTORY
    write_text(description, urdf)
    write_design(trajectory, design)
    groups = copy.deepcopy(dict(values))
    groups['robot'] = {**groups.get('robot', {}), 'urdf': str(description)}
    groups['excitation'] = {
        **groups.get('excitation', {}),
        'trajectory': str(trajectory),
        'controller': controller.name,
        'auto_start': False,
        'require_recorder': True,
        'require_rehearsal': False,
    }
    groups['recorder'] = {'folder': str(folder)}
    given = groups.get('simulation', {})
    if drives is not None and given.keys().isdisjoint(('joints', *GUESSED)):
        given = {**{key: getattr(drives, key).tolist() for key in GUESSED}, **given}
    # The order of the configuration's arrays, which need not be the controller's.
    joints = given.get('joints') or list(positions)
    groups['simulation'] = simulation = {
        'inertial_error': INERTIAL_ERROR,
        **given,
        'controller': controller.name,
        'joints': joints,
        'command_interface': controller.followed_interface,
        'initial_positions': [positions[joint] for joint in joints],
        'real_time_factor': 1.0,
        'fault': {'kind': ''},
    }
    if rate := controller.rate:
        states = given.get('state_rate', simulated.SimulationSettings.state_rate)
        simulation |= {'update_rate': rate, 'state_rate': min(states, rate)}
    # Those of the controller's parameters that the simulated one has as well.
    said = controller.fields_of
    known = [joint for joint in joints if joint in controller.gains]
    simulation['gains'] = {j: said(simulated.GainSettings, f'gains.{j}') for j in known}
    tolerances = {j: said(simulated.JointConstraintSettings, f'constraints.{j}') for j in joints}
    tolerances_of_all = said(simulated.ConstraintSettings, 'constraints')
    simulation['constraints'] = {**tolerances_of_all, 'joints': tolerances}
    content = {'/**': {'ros__parameters': _without_empty(groups)}}
    return write_text(folder / CONFIGURATION, dump_yaml(content))


def _without_empty(groups: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out groups without keys: rcl's parser takes what follows them for their content."""
    found = {k: _without_empty(v) if isinstance(v, Mapping) else v for k, v in groups.items()}
    return {k: v for k, v in found.items() if v != {}}
