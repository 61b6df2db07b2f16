"""What is not right before the motion is said in one sentence, and nothing moves."""

from collections.abc import Iterator
import dataclasses
from pathlib import Path

from live_session import Nodes
import numpy as np
import pytest
import rclpy
from rclpy.node import Node
import yaml

from robotid_ros.core.excitation.design import Design
from robotid_ros.core.excitation.trajectory import Trajectory
from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.trajectory_file import write_design

from .conftest import Session

pytestmark = pytest.mark.ros


@pytest.fixture
def session(joined: Session, nodes: Nodes) -> Iterator[Session]:
    """Give each test an excitation of its own beside one robot."""
    yield joined
    nodes.processes.stop(('excitation',))


def refusal(session: Session, trajectory: Path, **settings: object) -> str:
    """Start a session that cannot succeed; return what it says."""
    parameters = {f'excitation.{key}': value for key, value in settings.items()}
    parameters['excitation.trajectory'] = str(trajectory)
    session.start('simulated_robot', 'excitation', excitation=parameters)
    session.robot.wait()
    session.ready('excitation')
    seen = len(session.robot.positions)
    try:
        session.client.call_trigger('excitation/start')
    except RobotIdError as refused:
        # What can be checked at once is in the answer, too.
        answer = str(refused)
    else:
        answer = ''
    message = session.until('excitation', 'failed')
    assert message in answer or not answer
    assert 'exciting' not in session.client.states('excitation')
    session.client.wait_for(
        lambda: len(session.robot.positions) > seen + 20, what='the robot is seen afterwards'
    )
    positions = np.stack(session.robot.positions[seen:])
    assert np.ptp(positions, axis=0).max() < 1e-3
    assert '\n' not in message
    return message


def test_unknown_controller(session: Session, trajectory: Path):
    message = refusal(session, trajectory, controller='leg_controller', timeout=1.0)
    assert "no controller 'leg_controller'" in message
    assert 'list_controllers' in message


@pytest.fixture
def impostor(session: Session) -> Iterator[Node]:
    """Start a node with the parameters of a controller, and nothing else."""
    node = Node('deaf_controller', context=session.client.context)
    for name, value in (
        ('joints', ['joint_1', 'joint_2']),
        ('command_interfaces', ['effort']),
        ('state_interfaces', ['position', 'velocity']),
        ('gains.joint_1.p', 1.0),
        ('gains.joint_2.p', 1.0),
    ):
        node.declare_parameter(name, value)
    executor = session.client.node.executor
    assert executor is not None
    executor.add_node(node)
    yield node
    executor.remove_node(node)
    executor.create_task(node.destroy_node)


@pytest.mark.slow
def test_unreachable_action_server(session: Session, impostor: Node, trajectory: Path):
    # Its parameters must be found in this time; then it passes once more.
    message = refusal(session, trajectory, controller='deaf_controller', timeout=15.0)
    assert "nobody serves the action 'deaf_controller/follow_joint_trajectory'" in message


@pytest.mark.parametrize(
    ('name', 'value', 'says'),
    [
        ('gains.joint_2.p', 0.0, 'no proportional gain for joint_2'),
        ('state_interfaces', ['position'], 'lacks the state interface velocity'),
    ],
)
def test_unfit_controller(
    name: str, value: object, says: str, session: Session, impostor: Node, trajectory: Path
):
    impostor.set_parameters([rclpy.Parameter(name, value=value)])
    assert says in refusal(session, trajectory, controller='deaf_controller')


def test_trajectory_beyond_a_limit(session: Session, designed: Design, tmp_path: Path):
    plan = designed.trajectory
    faster = Trajectory.from_dict({**plan.to_dict(), 'period': plan.period / 4.0})
    path = write_design(tmp_path / 'faster.yaml', dataclasses.replace(designed, trajectory=faster))
    message = refusal(session, path)
    assert 'beyond its limit' in message
    assert 'joint_' in message


def test_trajectory_file_that_was_changed(session: Session, trajectory: Path, tmp_path: Path):
    values = yaml.safe_load(trajectory.read_text())
    values['trajectory']['coefficients'][0][0] += 0.1
    path = tmp_path / 'changed.yaml'
    path.write_text(yaml.safe_dump(values))
    assert 'changed.yaml' in refusal(session, path)


def test_missing_trajectory_file(session: Session, tmp_path: Path):
    assert 'missing.yaml' in refusal(session, tmp_path / 'missing.yaml')
