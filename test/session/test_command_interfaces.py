"""Whole sessions of robots whose controllers command velocities or positions, or run slower."""

from pathlib import Path

import numpy as np
import pytest
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
import yaml

from robotid_ros.core.findings import select
from robotid_ros.core.model import build_robot
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.signals.recording import Recording
from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.bags import open_recording
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.results import read_results
from robotid_ros.nodes.demo.demo import true_standard_parameters

from .conftest import Session

pytestmark = [pytest.mark.ros, pytest.mark.slow]

SLIDER = '/simulated_robot/set_parameters_atomically'
NODES = ('simulated_robot', 'excitation', 'recorder', 'identification')
# A velocity's error is mended at this rate [1/s], and the reference's is handed on.
VELOCITY_GAINS = {'p': 20.0, 'd': 0.0, 'ff_velocity_scale': 1.0}


def configured(config: Path, folder: Path, **simulation: object) -> Path:
    """Take the short session, at twice real time, of a robot with drives of its own."""
    values = yaml.safe_load(config.read_text())
    values['/**']['ros__parameters']['simulation'].update(
        **{'update_rate': 250.0, 'state_rate': 250.0, 'real_time_factor': 2.0},
        **simulation,
    )
    path = folder / 'scara.yaml'
    path.write_text(yaml.safe_dump(values))
    return path


def start(session: Session, trajectory: Path, **identification: object) -> None:
    """Start all nodes."""
    folder = {'recorder.folder': str(session.folder)}
    session.start(
        *NODES,
        excitation={'excitation.trajectory': str(trajectory)},
        recorder=folder,
        identification={**folder, **identification},
    )
    session.robot.wait()
    session.ready('excitation', 'recorder', 'identification')


def finish(session: Session) -> Recording:
    """Wait for the end of a session; return what was recorded."""
    session.until('excitation', 'done')
    session.until('identification', 'done')
    return open_recording(session.client.latest['recorder/bag'].data)


def set_speed(session: Session, share: float) -> None:
    """Move the robot's speed slider."""
    scaling = Parameter('simulation.speed_scaling', value=share).to_parameter_msg()
    request = SetParametersAtomically.Request(parameters=[scaling])
    assert session.client.call(SetParametersAtomically, SLIDER, request).result.successful


def check_truth(session: Session, config: Path) -> None:
    """Hold the parameters against the true ones."""
    configuration = load(config)
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    truth = true_standard_parameters(
        robot, session.client.latest['simulated_robot/true_parameters']
    )
    true = dict(zip(base_parameters(robot).names, base_parameters(robot).of(truth), strict=True))
    results = read_results(Path(session.client.value('identification', 'folder')))
    inside = [abs(entry.value - true[entry.name]) <= 3.0 * entry.sigma for entry in results.base]
    assert np.mean(inside) >= 0.75, results.base
    found = {entry.name: entry.value for entry in results.base}
    for name in ('ZZ1R', 'ZZ2', 'MX2', 'Fc1', 'Fc2'):
        assert found[name] == pytest.approx(true[name], rel=0.05)
    assert all(row.moving < 0.03 for row in results.validation)


def test_velocities_by_a_controller_slower_than_its_robot(
    config: Path, trajectory: Path, tmp_path: Path
):
    gains = {joint: dict(VELOCITY_GAINS) for joint in ('joint_1', 'joint_2')}
    path = configured(
        config, tmp_path, command_interface='velocity', controller_rate=125.0, gains=gains
    )
    with Session(path, tmp_path) as session:
        start(session, trajectory)
        session.client.call_trigger('excitation/start')
        recording = finish(session)
        assert recording.controller.command_interfaces == ('velocity',)
        assert recording.controller.rate == 125.0
        # What was commanded are velocities, of a controller that updates at its own rate.
        exciting = recording.phase('exciting').reference
        assert np.median(np.diff(exciting.time)) == pytest.approx(0.008)
        assert np.abs(exciting.command - exciting.dq).max() < 0.3 * np.abs(exciting.dq).max()
        check_truth(session, path)
        # Its gains are no stiffness: none follow from the inertia.
        assert 'identification/proposed_gains' not in session.client.latest
        with pytest.raises(RobotIdError, match='a controller that commands efforts'):
            session.client.call_trigger('identification/update_controller')


def test_positions_at_shares_of_the_speed(config: Path, trajectory: Path, tmp_path: Path):
    path = configured(config, tmp_path, command_interface='position')
    averaging = {'identification.signals.averaging': True, 'identification.method': 'both'}
    with Session(path, tmp_path) as session:
        start(session, trajectory, **averaging)
        set_speed(session, 0.8)
        session.client.call_trigger('excitation/start')
        session.until('excitation', 'exciting')
        session.until('excitation', 'approaching')
        # So slow that it is certain to become faster on the way.
        set_speed(session, 0.3)
        session.until('excitation', 'validating')
        set_speed(session, 1.0)
        recording = finish(session)
        assert recording.controller.command_interfaces == ('position',)
        exciting, validating = (
            next(phase for phase in recording.phases if phase.name == name)
            for name in ('exciting', 'validating')
        )
        # Two periods of 4 s at 0.8 of the speed.
        assert exciting.speed == (0.8, 0.8, 0.8)
        assert exciting.stop - exciting.start == pytest.approx(10.0, abs=1e-6)
        assert recording.trajectories['exciting'].period == 5.0
        assert validating.speed[1:] == (0.3, 1.0)
        assert set(recording.trajectories) == {'exciting'}
        check_truth(session, path)
        results = read_results(Path(session.client.value('identification', 'folder')))
        (averaged,) = select(results.findings, 'periods_averaged')
        assert averaged.values['period'] == 5.0
        (slow,) = select(results.findings, 'slow_motion')
        assert slow.values == pytest.approx({'phase': 'exciting', 'speed': 0.8}, abs=5e-3)
        (varied,) = select(results.findings, 'speed_changed')
        assert varied.values['phase'] == 'validating'
        # DIDIM lacks the law of the drives; the rest stands.
        assert results.compared is None
        (lacking,) = select(results.findings, 'nothing_to_compare')
        assert 'arm_controller commands position, not efforts' in lacking.values['reason']
