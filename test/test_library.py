"""The library: the path of its page, run as it stands, and what its values look like."""

from pathlib import Path
import re
import subprocess
import sys

import numpy as np
import pytest

import robotid_ros as rid
from robotid_ros.core.model import inverse_dynamics
from robotid_ros.files.trajectory_file import read_design

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / 'docs/guide/library.md'
LINK = (
    '<link name="{name}"><inertial><origin xyz="0.2 0 0"/><mass value="{mass}"/>'
    '<inertia ixx="0.01" iyy="0.08" izz="0.08" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
    '<origin xyz="{x} 0 0"/><axis xyz="0 1 0"/>'
    '<limit lower="-3" upper="3" velocity="4" effort="100"/></joint>'
)
URDF = ''.join(
    (
        '<robot name="two"><link name="base"/>',
        LINK.format(name='upper', mass=4.0),
        LINK.format(name='lower', mass=2.0),
        LINK.format(name='tip', mass=0.1),
        JOINT.format(name='shoulder', parent='base', child='upper', x=0.0),
        JOINT.format(name='elbow', parent='upper', child='lower', x=0.4),
        # A gripper's joint, of which the log knows nothing.
        JOINT.format(name='finger', parent='lower', child='tip', x=0.4),
        '</robot>',
    )
)
JOINTS = ('shoulder', 'elbow')
FRICTION = {'Fv1': 1.5, 'Fc1': 2.0, 'off1': 0.3, 'Fv2': 0.4, 'Fc2': 0.8, 'off2': -0.1}
NOISE = 0.02


@pytest.fixture(scope='module')
def folder(tmp_path_factory) -> Path:
    """Thirty seconds of a robot whose friction is known, and whose links are 20 % heavier."""
    place = tmp_path_factory.mktemp('library')
    (place / 'arm.urdf').write_text(URDF)
    robot = rid.load_robot(URDF, joints=JOINTS)
    chi = truth(robot)
    t = np.arange(0.0, 30.0, 0.002)
    rng = np.random.default_rng(3)
    a, phase = rng.uniform(0.05, 0.3, (2, 6)), rng.uniform(0.0, 6.0, (2, 6))
    w = 2.0 * np.pi * np.linspace(0.11, 1.3, 6)
    angle = w * t[:, None, None] + phase
    q, dq = (a * np.sin(angle)).sum(axis=2), (a * w * np.cos(angle)).sum(axis=2)
    ddq = (-a * w**2 * np.sin(angle)).sum(axis=2)
    tau = inverse_dynamics(robot, chi, q, dq, ddq) + NOISE * rng.normal(size=q.shape)
    np.savez(place / 'log.npz', t=t, q=q, tau=tau)
    return place


def truth(robot: rid.Robot) -> np.ndarray:
    chi = 1.2 * robot.prior
    for name, value in FRICTION.items():
        chi[robot.column(name)] = value
    return chi


@pytest.fixture(scope='module')
def recording(folder: Path) -> rid.Recording:
    log = np.load(folder / 'log.npz')
    return rid.from_arrays(log['t'], log['q'], log['tau'], joints=JOINTS)


@pytest.fixture(scope='module')
def result(folder: Path, recording: rid.Recording) -> rid.Identification:
    robot = rid.load_robot(folder / 'arm.urdf', recording)
    return rid.identify(recording.between(0.0, 20.0), robot, recording.between(20.0, 30.0))


def scripts() -> list[str]:
    return re.findall(r'```python\n(.*?)```', PAGE.read_text(), re.DOTALL)


def test_the_script_of_the_documentation_runs(folder: Path):
    script = max(scripts(), key=len)
    assert len([line for line in script.splitlines() if line.strip()]) <= 12
    command = [sys.executable, '-W', 'error', '-c', script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert '<two by ' in done.stdout
    files = {file.name for file in (folder / 'results').iterdir()}
    assert files == {'parameters.yaml', 'identified.urdf', 'torques.npz', 'report.html'}


def test_the_truth_is_found(result: rid.Identification):
    value = result.base.of(truth(result.robot))
    errors = (result.estimate.value - value) / result.estimate.sigma
    assert np.abs(errors).max() < 4.0
    assert (result.validation.moving_residual < 0.02).all()


def test_a_result_predicts_another_log_better_than_its_description(recording, result):
    other = recording.between(20.0, 30.0)
    found = rid.validate(other, result)
    prior = rid.validate(other, result.robot.prior, result.robot)
    assert found.total_residual() < 0.02 < 0.1 < prior.total_residual()


def test_the_model_on_the_robot_is_that_of_the_files(folder, recording, result):
    rid.save(result, recording, folder / 'saved')
    model = rid.InverseDynamics.load(folder / 'saved' / 'parameters.yaml')
    q, dq, ddq = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 2))
    expected = inverse_dynamics(
        result.robot, result.standard.value, *np.array([q, dq, ddq])[:, None]
    )
    np.testing.assert_allclose(model.efforts(q, dq, ddq), expected[0], rtol=1e-6)
    both = model.efforts(*(np.array([x, 0.5 * x]) for x in (q, dq, ddq)))
    np.testing.assert_array_equal(both[0], model.efforts(q, dq, ddq))
    assert model.joints == JOINTS
    with pytest.raises(rid.RobotIdError):
        rid.InverseDynamics.load(folder / 'nothing')


def test_values_show_themselves_in_a_line(recording, result):
    design = rid.design(result.robot, iterations=3, starts=1, workspace={'self_collision': False})
    for value in (recording, result, result.robot, result.estimate, result.validation, design):
        assert 10 < len(repr(value)) < 200 and '\n' not in repr(value)
    assert 'shoulder, elbow for 30 s at 500 Hz' in repr(recording)


def test_frames_of_pandas(result):
    pytest.importorskip('pandas')
    frame = result.to_pandas()
    assert list(frame.index) == list(result.estimate.names)
    np.testing.assert_array_equal(frame['value'], result.estimate.value)
    assert list(result.validation.to_pandas().index) == ['shoulder', 'elbow']


def test_settings_have_the_names_of_the_configuration(recording):
    robot = rid.load_robot(URDF, joints=JOINTS, friction={'default': ['viscous', 'coulomb']})
    assert not any(p.name.startswith('off') for p in robot.parameters)
    found = rid.identify(recording, robot, method='ols', signals={'cutoff': 20.0}, model='plain')
    assert found.method == 'ols' and found.validation is None
    with pytest.raises(rid.RobotIdError, match='cutof'):
        rid.identify(recording, robot, signals={'cutof': 20.0})
    with pytest.raises(rid.RobotIdError, match='gravty'):
        rid.load_robot(URDF, gravty=[0, 0, 0])


def test_a_configuration_is_a_robot_and_a_design():
    path = ROOT / 'config' / 'scara.yaml'
    assert rid.load_robot(path).joints == rid.load_robot(str(path)).joints
    assert rid.load_robot(path, friction={'default': ['viscous']}).p < rid.load_robot(path).p
    assert rid.design(path, iterations=2, starts=1, period=5.0).trajectory.period == 5.0


def test_a_design_is_written_with_its_page(folder):
    path, quick = ROOT / 'config' / 'scara.yaml', {'iterations': 2, 'starts': 1, 'period': 5.0}
    design = rid.design(path, **quick)
    page = rid.save_design(design, path, folder / 'moves' / 'scara.yaml', **quick)
    assert page == folder / 'moves' / 'scara.html'
    assert read_design(folder / 'moves' / 'scara.yaml') == design
    text = page.read_text()
    assert design.trajectory.hash in text and 'period: 5.0' in text and 'ground: 0.0' not in text
    other = rid.save_design(
        design, rid.load_robot(path), folder / 'b.yaml', workspace={'ground': 0.0}
    )
    assert 'ground: 0.0' in other.read_text()
    with pytest.raises(rid.RobotIdError, match='design it for this robot'):
        rid.save_design(design, ROOT / 'config' / 'arm3.yaml', folder / 'c.yaml')
    assert not (folder / 'c.yaml').exists()


@pytest.mark.parametrize(
    ('arrays', 'text'),
    [
        ((np.arange(4), np.zeros((4, 3)), np.zeros((4, 2))), 'position has the shape'),
        ((np.arange(4), np.zeros((4, 2)), np.zeros((3, 2))), 'effort has the shape'),
    ],
)
def test_arrays_that_do_not_fit_are_one_sentence(arrays, text):
    with pytest.raises(rid.RobotIdError, match=text):
        rid.from_arrays(*arrays, joints=JOINTS)


def test_what_cannot_be_written_or_read_is_one_sentence(folder, result):
    with pytest.raises(rid.RobotIdError, match="'torque'"):
        rid.load(folder / 'log.npz', columns={'torque': 'tau'})


def test_parameters_need_their_robot(recording, result):
    with pytest.raises(rid.RobotIdError, match='give it'):
        rid.validate(recording, result.robot.prior)
    with pytest.raises(rid.RobotIdError, match='3 parameters for a robot of'):
        rid.validate(recording, [1.0, 2.0, 3.0], result.robot)


def test_the_import_brings_nothing_along():
    code = (
        'import sys, robotid_ros as rid\n'
        "print(rid.__version__, sorted({'numpy', 'pinocchio'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    manifest = (ROOT / 'package.xml').read_text()
    assert done.stdout.split() == [re.search('<version>(.*)</version>', manifest)[1], '[]']


def test_every_name_is_there_and_documented():
    text = PAGE.read_text()
    for name in rid.__all__:
        assert getattr(rid, name) is not None
        assert name in text, name
    assert set(rid.__all__) <= set(dir(rid))
    with pytest.raises(AttributeError, match='identfy'):
        rid.__getattr__('identfy')
