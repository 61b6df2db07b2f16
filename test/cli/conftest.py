"""A small robot, a recording of it, and the command line in this process."""

import base64
import gzip
from pathlib import Path
import re
import shutil

import numpy as np
import pytest

from robotid_ros.cli.main import main
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.files.bags import BagWriter, dump_session, RecordedSession
from robotid_ros.files.bags.session import SESSION_TOPIC

ROOT = Path(__file__).resolve().parents[2]
EPOCH = 1_700_000_000_000_000_000
RATE = 200.0


@pytest.fixture
def run(capsys):
    """Run the command line; gives exit code, output and errors."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def unwrapped(text: str) -> str:
    """Join the lines of each paragraph of the command line, with its label."""
    return re.sub(r'\n?  +', ' ', text)


def readable(page):
    """Unpack what a page holds of its plots, whose library numbers its objects in a process."""
    text = page.read_text()
    packed = re.findall(r'H4sI[\w+/=]+', text)
    assert packed
    for data in packed:
        text = text.replace(data, gzip.decompress(base64.b64decode(data)).decode())
    return re.sub(r'\bp\d{4,}\b', 'p', text)


@pytest.fixture(scope='session')
def scara():
    """Build the SCARA arm and parameters to find again."""
    urdf = (ROOT / 'urdf' / 'scara.urdf').read_text()
    robot = build_robot(urdf, RobotSettings())
    chi = np.array(robot.prior)
    for name, value in {'Fv1': 0.6, 'Fc1': 0.8, 'Fv2': 0.3, 'Fc2': 0.25, 'off1': 0.1}.items():
        chi[robot.column(name)] = value
    return robot, chi


def motion(seconds=24.0):
    """Sample sums of sines, another one in the second half, through rest: time, q, dq, ddq."""
    t = np.arange(0.0, seconds, 1 / RATE)
    q, dq, ddq = np.zeros((3, t.size, 2))
    rng = np.random.default_rng(11)
    for joint in range(2):
        for k in range(1, 5):
            w = 2 * np.pi * k / 12.0
            phase = rng.uniform(0, 6.28, 2)[(t >= seconds / 2).astype(int)]
            a = 0.9 / k
            q[:, joint] += a * np.sin(w * t + phase)
            dq[:, joint] += a * w * np.cos(w * t + phase)
            ddq[:, joint] -= a * w * w * np.sin(w * t + phase)
    # A robot does not jump from one motion to the other: it rests between them.
    s = np.clip(np.abs(t - seconds / 2), 0.0, 1.0)[:, None]
    side = np.sign(t - seconds / 2)[:, None]
    e, de = s**3 * (10 - 15 * s + 6 * s**2), 30 * s**2 * (1 - s) ** 2 * side
    dde = 60 * s * (1 - s) * (1 - 2 * s)
    return t, q * e, dq * e + q * de, ddq * e + 2 * dq * de + q * dde


@pytest.fixture(scope='session')
def sums():
    """Return what samples sums of sines."""
    return motion


@pytest.fixture(scope='session')
def bag(tmp_path_factory, scara):
    """Record the arm: joint states in alphabetical order, phases, robot and configuration."""
    return record(tmp_path_factory.mktemp('bags'), *scara)


@pytest.fixture(scope='session')
def results_of_bag(tmp_path_factory, bag):
    """Return what gives the results of the bag by a method, made once, or a copy of them."""
    made = {}

    def results(folder=None, method=''):
        if method not in made:
            made[method] = tmp_path_factory.mktemp('results')
            words = ['identify', str(bag), '-o', str(made[method])]
            assert main(words + ['--method', method] * bool(method)) == 0
        return made[method] if folder is None else shutil.copytree(made[method], folder)

    return results


@pytest.fixture(scope='session')
def body():
    """Choose a body of 2 kg that can exist, at the frame of the last joint: ZZ MX MY M."""
    return {'ZZ': 0.1, 'MX': 0.4, 'MY': -0.1, 'M': 2.0}


@pytest.fixture(scope='session')
def loaded(tmp_path_factory, scara, body):
    """Record the arm with the payload."""
    robot, chi = scara
    chi = chi.copy()
    for symbol, value in body.items():
        chi[robot.column(f'{symbol}2')] += value
    chi[robot.column('Fc2')] += 0.1
    return record(tmp_path_factory.mktemp('bags'), robot, chi, 'loaded')


def record(folder, robot, chi, name='scara'):
    from bag_tools import joint_state, status

    t, q, dq, ddq = motion()
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    tau += 0.01 * np.random.default_rng(1).normal(size=tau.shape)
    configuration = {'robot': {'name': 'scara', 'urdf': 'somewhere/else.urdf'}}
    with BagWriter(folder, name) as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        writer.add_topic('/excitation/state', 'diagnostic_msgs/msg/DiagnosticStatus')
        writer.write_text('/robot_description', robot.urdf, EPOCH)
        session = RecordedSession(configuration=configuration)
        writer.write_text(SESSION_TOPIC, dump_session(session), EPOCH)
        for state, second in (('exciting', 0.0), ('validating', 12.0), ('done', 24.0)):
            stamp = EPOCH + int(second * 1e9)
            writer.write('/excitation/state', status({'state': state}), stamp)
        for k in range(t.size):
            stamp = EPOCH + round(t[k] * 1e9)
            names = robot.joints[::-1]
            data = joint_state(stamp, names, q[k, ::-1], dq[k, ::-1], tau[k, ::-1])
            writer.write('/joint_states', data, stamp)
    return writer.path
