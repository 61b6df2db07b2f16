"""What is not right before the motion is said in one sentence, and nothing moves."""

from collections.abc import Iterator
import dataclasses
from pathlib import Path

import numpy as np
import pytest
import rclpy
from rclpy.node import Node
import yaml

from robotid_ros.core.excitation import Design, Trajectory
from robotid_ros.files.trajectory_file import write_design

from .conftest import PATIENCE, Session

pytestmark = [pytest.mark.ros, pytest.mark.slow]


@pytest.fixture(scope='module')
def arena(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    session = Session(config, tmp_path_factory.mktemp('refusals'))
    session.start('simulated_robot')
    session.robot.wait()
    yield session
    session.close()


def refusal(arena: Session, trajectory: Path, **settings: object) -> str:
    """Start a session that cannot succeed; return what it says."""
    parameters = {f'excitation.{key}': value for key, value in settings.items()}
    arena.restart(excitation={'excitation.trajectory': str(trajectory), **parameters})
    rows = len(arena.robot.rows)
    arena.director.trigger('excitation/start', PATIENCE)
    message = arena.until('excitation', 'failed', 'done')
    assert arena.director.state('excitation') == 'failed'
    assert 'exciting' not in arena.director.states('excitation')[-3:]
    positions = np.stack([q for _, q in arena.robot.rows[rows:]])
    assert np.ptp(positions, axis=0).max() < 1e-3
    assert '\n' not in message
    return message


def test_unknown_controller(arena: Session, trajectory: Path):
    message = refusal(arena, trajectory, controller='leg_controller', timeout=1.0)
    assert "no controller 'leg_controller'" in message
    assert 'list_controllers' in message


def test_unreachable_action_server(arena: Session, trajectory: Path):
    impostor = Node('deaf_controller', context=arena.director.context)
    for name, value in (
        ('joints', ['joint_1', 'joint_2']),
        ('command_interfaces', ['effort']),
        ('state_interfaces', ['position', 'velocity']),
        ('gains.joint_1.p', 1.0),
        ('gains.joint_2.p', 1.0),
    ):
        impostor.declare_parameter(name, value)
    executor = arena.director.node.executor
    assert executor is not None
    executor.add_node(impostor)
    try:
        message = refusal(arena, trajectory, controller='deaf_controller', timeout=2.0)
        assert "nobody serves the action 'deaf_controller/follow_joint_trajectory'" in message
        impostor.set_parameters([rclpy.Parameter('gains.joint_2.p', value=0.0)])
        message = refusal(arena, trajectory, controller='deaf_controller', timeout=2.0)
        assert 'no proportional gain for joint_2' in message
        impostor.set_parameters([rclpy.Parameter('state_interfaces', value=['position'])])
        message = refusal(arena, trajectory, controller='deaf_controller', timeout=2.0)
        assert 'lacks the state interface velocity' in message
    finally:
        executor.remove_node(impostor)
        impostor.destroy_node()


def test_trajectory_beyond_a_limit(arena: Session, designed: Design, tmp_path: Path):
    plan = designed.trajectory
    faster = Trajectory.from_dict({**plan.to_dict(), 'period': plan.period / 4.0})
    path = write_design(tmp_path / 'faster.yaml', dataclasses.replace(designed, trajectory=faster))
    message = refusal(arena, path)
    assert 'beyond its limit' in message
    assert 'joint_' in message


def test_trajectory_file_that_was_changed(arena: Session, trajectory: Path, tmp_path: Path):
    values = yaml.safe_load(trajectory.read_text())
    values['trajectory']['coefficients'][0][0] += 0.1
    path = tmp_path / 'changed.yaml'
    path.write_text(yaml.safe_dump(values))
    assert 'changed.yaml' in refusal(arena, path)


def test_missing_trajectory_file(arena: Session, tmp_path: Path):
    assert 'missing.yaml' in refusal(arena, tmp_path / 'missing.yaml')
