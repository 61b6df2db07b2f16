"""W and Y of a log, as they are written, have the parameters as their solution."""

import csv

from identified_models import saved
import numpy as np
import pytest
from scipy.io import loadmat

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.core.signals.recording import Recording
from robotid_ros.exceptions import FileError, RecordingError
from robotid_ros.files.export import tables
from robotid_ros.files.export.identified_model import read_identified_model
from robotid_ros.files.export.tables import write_regressor

from .test_identified_urdf import TOOL

SETTINGS = {'identification': {'signals': {'cutoff': 10.0, 'time_offset': False}}}


@pytest.fixture
def robot():
    return build_robot(TOOL, RobotSettings())


@pytest.fixture
def model(tmp_path, robot):
    return read_identified_model(saved(tmp_path / 'results', robot, robot.prior, SETTINGS))


@pytest.fixture
def recording(robot):
    """Record a motion without noise."""
    time = np.arange(0.0, 20.0, 0.005)
    phase = np.outer(2.0 * np.pi * time / 10.0, [[1.0], [2.0], [3.0]]).reshape(-1, 3)
    shares, shifts = np.array([[0.5, 0.2], [0.2, -0.4], [0.1, 0.2]]), [0.3, 1.1]
    w = 2.0 * np.pi / 10.0 * np.array([1.0, 2.0, 3.0])[:, None, None]
    angle = phase.T[:, :, None] + np.array(shifts)
    q = np.einsum('knj,kj->nj', np.sin(angle), shares)
    dq = np.einsum('knj,kj->nj', w * np.cos(angle), shares)
    ddq = np.einsum('knj,kj->nj', -(w**2) * np.sin(angle), shares)
    return Recording(robot.joints, time, q, inverse_dynamics(robot, robot.prior, q, dq, ddq))


def check(W, Y, joint, names, robot):
    base = base_parameters(robot)
    assert tuple(names) == base.names and W.shape[1] == base.rank
    # What is left is what the low-pass filter takes of the motion's derivatives.
    assert np.linalg.norm(W @ base.of(robot.prior) - Y) < 1e-3 * np.linalg.norm(Y)
    assert {*joint} == {1, 2}


def test_every_format_holds_the_same_rows(tmp_path, model, recording, robot):
    for suffix in ('npz', 'mat', 'csv'):
        write_regressor(tmp_path / f'rows.{suffix}', recording, model)
    arrays = np.load(tmp_path / 'rows.npz', allow_pickle=False)
    columns = [arrays[name] for name in ('W', 'Y', 'joint')]
    check(*columns, arrays['names'], robot)
    assert arrays['units'].tolist() == list(base_parameters(robot).units)
    inside = (recording.time[0] <= arrays['time']) & (arrays['time'] <= recording.time[-1])
    assert inside.all() and len(arrays['time']) == len(arrays['Y'])
    structs = loadmat(tmp_path / 'rows.mat', simplify_cells=True)
    for name, values in zip(('W', 'Y', 'joint'), columns, strict=True):
        np.testing.assert_array_equal(structs[name], values)
    assert structs['names'].tolist() == arrays['names'].tolist()
    with (tmp_path / 'rows.csv').open() as stream:
        head, *rows = csv.reader(stream)
    assert head == ['joint', 'time', 'Y', *arrays['names']]
    found = np.array(rows, float)
    np.testing.assert_array_equal(found[:, 3:], columns[0])
    np.testing.assert_array_equal(found[:, 2], columns[1])


def test_a_recording_in_chunks_gives_its_rows_once(tmp_path, model, recording, robot):
    chunks = (recording.between(start, start + 5.0 - 1e-9) for start in (0.0, 5.0, 10.0, 15.0))
    write_regressor(tmp_path / 'rows.npz', chunks, model)
    arrays = np.load(tmp_path / 'rows.npz')
    check(arrays['W'], arrays['Y'], arrays['joint'], arrays['names'], robot)
    for joint in (1, 2):
        times = arrays['time'][arrays['joint'] == joint]
        assert len(times) > 50 and (np.diff(times) > 0.0).all()


def test_too_many_rows_for_a_mat_file_are_told(tmp_path, model, recording, monkeypatch):
    monkeypatch.setattr(tables, 'MAX_MAT', 1000)
    with pytest.raises(FileError, match='too many for a MAT file: take npz'):
        write_regressor(tmp_path / 'rows.mat', recording, model)
    assert [p.name for p in tmp_path.iterdir()] == ['results']


def test_nothing_is_replaced_and_nothing_is_left_behind(tmp_path, model, recording):
    path = tmp_path / 'rows.npz'
    path.write_bytes(b'kept')
    with pytest.raises(FileError, match='exists already'):
        write_regressor(path, recording, model, overwrite=False)
    assert path.read_bytes() == b'kept'
    still = Recording(recording.joints, recording.time, 0.0 * recording.position, recording.effort)
    with pytest.raises(RecordingError):
        write_regressor(tmp_path / 'other.npz', still, model)
    assert sorted(p.name for p in tmp_path.iterdir()) == ['results', 'rows.npz']
