"""A design that runs on the simulated robot without ROS: what is identified is the robot."""

from pathlib import Path
import re

import numpy as np
import pytest

import robotid_ros as rid

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / 'config' / 'scara.yaml'


@pytest.fixture(scope='module')
def design():
    from robotid_ros.files.trajectory_file import read_design

    return read_design(ROOT / 'config' / 'trajectories' / 'scara.yaml')


@pytest.fixture(scope='module')
def recording(design):
    return rid.simulate(CONFIG, design)


def test_a_recording_holds_what_a_session_does(recording, design):
    assert [phase.name for phase in recording.phases] == ['exciting', 'validating']
    exciting = recording.phase('exciting')
    assert exciting.duration == pytest.approx(3 * design.trajectory.period, abs=0.01)
    start = np.abs(exciting.position[0] - design.trajectory.start)
    assert start.max() < 0.01 and recording.rate == pytest.approx(500.0)
    reference = recording.reference
    at = np.searchsorted(reference.time, exciting.time)
    assert np.abs(reference.q[at] - exciting.position).max() < 0.05


def test_its_parameters_are_found_again(recording):
    found = rid.identify(recording)
    friction = {'Fv1': 0.033, 'Fc1': 0.78, 'Fv2': 0.012, 'Fc2': 0.145}
    names, estimate = found.estimate.names, found.estimate
    for name, value in friction.items():
        k = names.index(name)
        assert abs(estimate.value[k] - value) < 4.0 * estimate.sigma[k], name
    assert (found.validation.moving_residual < 0.03).all()


def test_settings_take_the_place_of_the_files(design):
    short = rid.simulate(CONFIG, design, coulomb=[0.0, 0.0], viscous=[0.0, 0.0], state_rate=0.0)
    assert short.rate == pytest.approx(1000.0)
    assert short.configuration['simulation']['coulomb'] == [0.0, 0.0]
    with pytest.raises(rid.RobotIdError, match='coulom'):
        rid.simulate(CONFIG, design, coulom=[0.0])
    with pytest.raises(rid.RobotIdError, match='robotid demo'):
        rid.simulate(CONFIG, design, command_interface='position')


def test_a_robot_without_inertials_weighs_what_its_mass_says(design, tmp_path):
    urdf = (ROOT / 'urdf' / 'scara.urdf').read_text()
    bare = re.sub(r'<inertial>.*?</inertial>', '', urdf, flags=re.DOTALL)
    (tmp_path / 'bare.urdf').write_text(bare)
    text = CONFIG.read_text().replace('package://robotid_ros/urdf/scara.urdf', 'bare.urdf')
    efforts = []
    for mass in (200.0, 400.0):
        config = tmp_path / f'{mass:.0f}.yaml'
        config.write_text(text.replace('rotor_inertia:', f'mass: {mass}\n      rotor_inertia:'))
        still = {'coulomb': [0.0], 'viscous': [0.0], 'noise': {'effort': [0.0]}}
        efforts.append(rid.simulate(config, design, **still).phase('exciting').effort.std(axis=0))
    # The gains of the second joint are not made for such bodies.
    assert efforts[1][0] / efforts[0][0] == pytest.approx(2.0, rel=0.05)
