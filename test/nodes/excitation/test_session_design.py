"""The design of a session has a page; poor ones are not run; joints that rest are locked."""

from pathlib import Path
import threading
from types import SimpleNamespace

import pytest
from rclpy.node import Node
from sensor_msgs.msg import JointState
from waiting import PATIENCE, wait_until

from robotid_ros.core.findings import finding
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.setup.joint_choice import place_locked_joints
from robotid_ros.exceptions import ControllerError, TrajectoryError
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.nodes.common.joint_states import read_positions
from robotid_ros.nodes.excitation.session_design import check_design, write_page

CONFIG = Path(__file__).resolve().parents[3] / 'config'
URDF = (Path(__file__).resolve().parents[3] / 'urdf' / 'ur10.urdf').read_text()
ARM = ('shoulder_pan_joint', 'shoulder_lift_joint', 'elbow_joint')
WRIST = ('wrist_1_joint', 'wrist_2_joint')
STANDING = {'wrist_1_joint': 0.7, 'wrist_2_joint': -0.3, 'finger_of_another_description': 0.1}


class Log(list[str]):
    """Keeps what is logged, with its severity before it."""

    def info(self, text: str) -> None:
        self.append(f'info: {text}')

    def warning(self, text: str) -> None:
        self.append(f'warning: {text}')

    def error(self, text: str) -> None:
        self.append(f'error: {text}')


@pytest.fixture
def saved():
    configuration = load(CONFIG / 'scara.yaml')
    plan = read_design(CONFIG / 'trajectories' / 'scara.yaml')
    return plan, read_urdf(configuration), configuration


def test_it_is_written_beside_and_stays(saved, tmp_path: Path):
    log, page = Log(), tmp_path / 'scara_trajectory.html'
    write_page(tmp_path / 'scara_trajectory.yaml', *saved, log)
    wait_until(lambda: log, 'it is written')
    assert log == [f"info: the arm along its motion: '{page}'"]
    assert saved[0].trajectory.hash in page.read_text()
    page.write_text('mine')
    write_page(tmp_path / 'scara_trajectory.yaml', *saved, log)
    assert page.read_text() == 'mine' and len(log) == 1


def test_where_it_cannot_be_written_is_a_warning(saved, tmp_path: Path):
    log = Log()
    (tmp_path / 'file').write_text('')
    write_page(tmp_path / 'file' / 'scara_trajectory.yaml', *saved, log)
    wait_until(lambda: log, 'it is said')
    (said,) = log
    assert said.startswith('warning: the design has no page: ') and 'Traceback' not in said


def test_a_page_that_a_bug_prevents_is_an_error_with_its_traceback(saved, tmp_path: Path):
    log = Log()
    write_page(tmp_path / 'scara_trajectory.yaml', saved[0], 1, saved[2], log)
    wait_until(lambda: log, 'it is said')
    (said,) = log
    assert said.startswith('error: the design has no page: ')
    assert '_draw_page' in said and 'a bug: please report it' in said


def test_a_poor_design_is_not_run():
    short = finding('search_too_short', evaluations=3, variables=30)
    with pytest.raises(TrajectoryError, match='the design is poor: The search was stopped'):
        check_design(SimpleNamespace(shortcomings=(short,)))
    check_design(SimpleNamespace(shortcomings=()))


def test_a_joint_is_locked_where_it_stands_unless_the_configuration_says_otherwise():
    settings = RobotSettings(joints=ARM, locked={'wrist_1_joint': 0.2})
    placed = place_locked_joints(URDF, settings, {**STANDING, 'elbow_joint': 1.0})
    assert placed.locked == {'wrist_1_joint': 0.2, 'wrist_2_joint': -0.3}
    # What nobody has heard of stands at the URDF's zero.
    assert build_robot(URDF, placed).locked == {**placed.locked, 'wrist_3_joint': 0.0}


@pytest.mark.ros
def test_positions_of_several_publishers_are_put_together(node: Node):
    publishers = [node.create_publisher(JointState, 'joint_states', 10) for _ in range(2)]
    end = threading.Event()

    def publish() -> None:
        while not end.wait(0.01):
            for publisher, names, place in zip(publishers, (ARM, WRIST), (0.5, 0.7), strict=True):
                # Doubled names, and values that are none, are passed over.
                publisher.publish(JointState(name=[names[0]] * 2, position=[9.0] * 2))
                publisher.publish(JointState(name=names[-1:], position=[float('nan')]))
                publisher.publish(JointState(name=names, position=[place] * len(names)))

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        # Both are required: when the second is discovered is not for a test to say.
        found = read_positions(node, (*ARM, *WRIST), PATIENCE)
        with pytest.raises(ControllerError, match='joint_state_broadcaster'):
            read_positions(node, ('tail_joint',), 0.1)
    finally:
        end.set()
        thread.join()
    assert found == {**dict.fromkeys(ARM, 0.5), **dict.fromkeys(WRIST, 0.7)}
