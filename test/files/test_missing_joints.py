"""Bags that lack joints of the description, or efforts of some."""

from pathlib import Path

from bag_tools import EPOCH, joint_state, write_mcap
import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.model import build_robot, inverse_dynamics, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.bags import open_recording
from robotid_ros.files.formats.read_options import ReadOptions
from robotid_ros.files.identification_input import open_input

ARM = ('joint_1', 'joint_2')
URDF = (Path(__file__).resolve().parents[2] / 'urdf' / 'scara.urdf').read_text()
LINK = (
    '<link name="{0}"><inertial><mass value="0.4"/><origin xyz="0.02 0 0"/>'
    '<inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/>'
    '<origin xyz="0.1 0 0"/><limit lower="0" upper="1" effort="9" velocity="9"/></joint>'
)
CART = URDF.replace(
    '</robot>',
    LINK.format('tip')
    + LINK.format('rim')
    + JOINT.format('finger', 'prismatic', 'link_2', 'tip')
    + JOINT.format('wheel', 'continuous', 'base_link', 'rim')
    + '</robot>',
)
TIME = np.arange(0.0, 20.0, 0.005)


@pytest.fixture(scope='module')
def torque():
    """Sample the motion and the torques of the arm with its finger at 0.03."""
    robot = build_robot(CART, RobotSettings(joints=ARM, locked={'finger': 0.03}))
    w = 2.0 * np.pi * 0.1 * np.arange(1, 6)[:, None]
    a = np.random.default_rng(0).normal(size=(5, 2)) * 0.5
    phase = TIME[:, None] * w.T
    q, dq, ddq = np.sin(phase) @ a, np.cos(phase) @ (a * w), -np.sin(phase) @ (a * w**2)
    return q, inverse_dynamics(robot, robot.prior, q, dq, ddq)


def write(folder, names, position, effort):
    rows = zip(TIME, position, effort, strict=True)
    return write_mcap(
        folder, (joint_state(EPOCH + round(t * 1e9), names, q, (), e) for t, q, e in rows)
    )


def opened(path, settings=None, text=CART, joints=()):
    return open_input([str(path)], settings, text, options=ReadOptions(joints=joints))


def columns(*values):
    return np.column_stack([np.broadcast_to(v, (len(TIME), *np.shape(v)[1:])) for v in values])


def test_a_finger_without_effort_is_locked_where_it_stood(torque, tmp_path):
    """Noise-free recovery: at zero, the finger would be in another place."""
    q, tau = torque
    still, none = np.full(len(TIME), 0.03), np.full(len(TIME), np.nan)
    path = write(tmp_path, (*ARM, 'finger'), columns(q, still), columns(tau, none))
    session = opened(path)
    assert session.recording.left_out == {'finger': (0.03, 0.03)}
    robot = session.robot
    assert robot.joints == ARM
    assert select(robot.warnings, 'locked_without_efforts')[0].joints == ('finger',)
    assert select(robot.warnings, 'joints_not_recorded')[0].joints == ('wheel',)
    found = identify(session.recording, robot, session.configuration.identification)
    base = base_parameters(robot)
    values = dict(zip(found.estimate.names, found.estimate.value, strict=True))
    true = base.of(robot.prior)
    own = [values[name] for name in base.names]  # beside them, what is shrunk
    np.testing.assert_allclose(own, true, atol=2e-3 * np.abs(true).max())
    long = open_recording(path, max_samples=1000)
    assert long.left_out == session.recording.left_out


@pytest.mark.parametrize('effort', [np.nan, 0.0])
def test_a_finger_that_moves_without_effort_is_one_sentence(effort, torque, tmp_path):
    q, tau = torque
    dead = np.full(len(TIME), effort)
    moving = 0.5 + 0.4 * np.sin(TIME)
    path = write(tmp_path, (*ARM, 'finger'), columns(q, moving), columns(tau, dead))
    with pytest.raises(
        RobotIdError, match=r'no changing effort of finger, which moves from 0.1 to'
    ):
        opened(path)
    with pytest.raises(RobotIdError, match='finger'):
        session = opened(path, joints=(*ARM, 'finger'))
        identify(session.recording, session.robot, session.configuration.identification)
    settings = {'robot': {'locked': {'finger': 0.5}}}
    assert opened(path, settings).robot.joints == ARM


def test_a_wheel_may_turn_without_effort(torque, tmp_path):
    q, tau = torque
    path = write(tmp_path, (*ARM, 'wheel'), columns(q, 3.0 * TIME), columns(tau, 0.0 * TIME))
    assert opened(path).robot.joints == ARM


def test_a_joint_that_is_asked_for_must_be_there(torque, tmp_path):
    q, tau = torque
    path = write(tmp_path, ARM, q, tau)
    with pytest.raises(RobotIdError, match="unknown joint of the recording 'finger'"):
        opened(path, joints=(*ARM, 'finger'))
    session = opened(path, joints=ARM)
    (note,) = select(session.robot.warnings, 'joints_not_recorded')
    assert note.joints == ('finger', 'wheel')


def test_other_names_are_matched_in_the_error(torque, tmp_path):
    path = write(tmp_path, ARM, *torque)
    renamed = CART
    for name in ARM:
        renamed = renamed.replace(f'"{name}"', f'"left_{name}"')
    with pytest.raises(
        RobotIdError, match='rename left_joint_1 to joint_1, left_joint_2 to joint_2 in'
    ):
        opened(path, text=renamed)
