"""`robotid rollout`: recorded motions in MuJoCo, which shares no code with the identification."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

import robotid_ros as rid
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.exceptions import ConfigurationError, ControllerError
from robotid_ros.files.export.identified_model import read_identified_model
from robotid_ros.files.rollouts import CONTROLLER, DESCRIBED, EFFORTS, IDENTIFIED, rms, roll_out
from robotid_ros.files.trajectory_file import read_design

from .conftest import unwrapped

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = IdentificationSettings()


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    """Identify a session of the simulated SCARA, whose bodies differ from the description."""
    values = yaml.safe_load((ROOT / 'config' / 'scara.yaml').read_text())
    parameters = values['/**']['ros__parameters']
    parameters['excitation']['periods'] = 1
    parameters['simulation'] |= {'inertial_error': 0.3, 'stribeck': {}}
    folder = tmp_path_factory.mktemp('rollouts')
    (folder / 'robot.yaml').write_text(yaml.safe_dump(values))
    log = rid.simulate(
        folder / 'robot.yaml', read_design(ROOT / 'config' / 'trajectories' / 'scara.yaml')
    )
    found = rid.identify(log, model='plain')
    rid.save(found, log, folder / 'results')
    return read_identified_model(folder / 'results'), log


def test_the_recorded_controller_leads_the_identified_robot_along_what_was_measured(session):
    model, log = session
    found = roll_out(model, log.phase('validating'), SETTINGS, draws=5)
    assert (found.driven_by, found.reason, found.starts) == (CONTROLLER, '', 1)
    identified, described = (rms(found.errors[name]) for name in (IDENTIFIED, DESCRIBED))
    noise = np.sqrt(2.0) * 2e-4  # of the encoders, twice
    assert (identified < 1e-3).all()
    assert (described > 2.0 * identified).any() or (described < noise).all()
    low, high = found.band
    assert (low <= 2.0 * identified).all()
    assert (high < described + noise).all()


def test_measured_efforts_lead_it_for_longer_than_the_described_one(session):
    model, log = session
    found = roll_out(model, log.phase('validating'), SETTINGS, draws=0, driven_by=EFFORTS)
    assert found.driven_by == EFFORTS
    assert found.starts > 2
    assert found.draws.shape[0] == 0
    error = rms(found.errors[IDENTIFIED])
    assert (error < 0.5 * rms(found.errors[DESCRIBED])).all()
    # From a state that is estimated, without feedback: a per cent of the travel within a second.
    assert (error < 0.01 * found.travel).all()
    start = np.nanmax(np.abs(found.errors[IDENTIFIED][:, 0]))
    assert start < 1e-12  # each start is where the robot was
    times = {name: found.horizon(each) for name, each in found.errors.items()}
    assert (times[IDENTIFIED] >= times[DESCRIBED]).all()
    assert times[DESCRIBED][-1] <= times[DESCRIBED][:-1].min()


def test_horizons_are_those_of_the_errors(session):
    """Errors that grow evenly leave a bound when they should; what was not measured does not."""
    model, log = session
    found = roll_out(model, log.phase('validating'), SETTINGS, draws=0, driven_by=EFFORTS)
    time = np.arange(101) / 100.0
    ramp = np.stack([0.05 * time, 0.4 * time], axis=-1)[None]
    found = dataclasses.replace(found, time=time, travel=np.array([1.0, 2.0]), bound=0.1)
    assert found.horizon(ramp) == pytest.approx([np.inf, 0.51, 0.51])
    ramp[:, 50:80] = np.nan
    assert found.horizon(ramp) == pytest.approx([np.inf, 0.80, 0.80])
    assert rms(np.array([[[3.0, np.nan], [4.0, 2.0]]])) == pytest.approx([12.5**0.5, 2.0])


def test_without_a_controller_the_efforts_drive_it_and_the_reason_is_said(
    run, bag, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert run('identify', bag, '-o', 'results', '--method', 'wls')[0] == 0
    code, out, err = run('rollout', bag, 'results', '--draws', 2)
    assert (code, err) == (0, '')
    text = unwrapped(out)
    assert 'driven by the measured efforts' in text
    assert 'does not hold the controller' in text
    code, out, err = run('rollout', bag, 'results', '--draws', 2, '--json')
    assert (code, err) == (0, '')
    found = json.loads(out)
    assert found['driven_by'] == EFFORTS
    # Bodies as described, friction not: what was identified is better.
    assert all(
        a < b for a, b in zip(*(found['rms'][k] for k in (IDENTIFIED, DESCRIBED)), strict=True)
    )
    code, _, err = run('rollout', bag, 'results', '--by', 'controller')
    assert code == 1
    assert 'does not hold the controller' in err
    assert not list(tmp_path.glob('MUJOCO_LOG*'))


def test_elastic_joints_are_refused(session):
    model, log = session
    elastic = rid.load_robot(ROOT / 'config' / 'planar_2r_elastic.yaml')
    with pytest.raises(ConfigurationError):
        roll_out(dataclasses.replace(model, robot=elastic.elastic), log, SETTINGS)


def test_an_unknown_controller_that_is_asked_for_is_an_error(session):
    model, log = session
    alone = dataclasses.replace(log.phase('validating'), controller=None)
    with pytest.raises(ControllerError):
        roll_out(model, alone, SETTINGS, driven_by=CONTROLLER)
