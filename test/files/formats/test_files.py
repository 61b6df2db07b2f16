"""Files as they come: matrices without names, data sets of episodes, missing packages, damage."""

import json
import sys

import numpy as np
import pytest
from scipy.io import savemat

from robotid_ros.core.findings import select
from robotid_ros.exceptions import FileError, RecordingError
from robotid_ros.files.bags import open_recording
from robotid_ros.files.formats.open_table import open_table
from robotid_ros.files.formats.read_options import ReadOptions

from .tables import DQ, Q, TAU, TIME, urdf

OPTIONS = ReadOptions(urdf=urdf('a', 'b'))


def write(path, *blocks):
    matrix = np.column_stack(blocks)
    if path.suffix == '.npy':
        np.save(path, matrix)
    else:
        np.savetxt(path, matrix, fmt='%.17g')
    return path


def test_columns_without_names_are_named_by_number(tmp_path):
    path = write(tmp_path / 'log.txt', TIME, TAU, Q)
    given = (('time', 'column1'), ('position', 'column4..column5'), ('effort', 'column2..column3'))
    found = open_table(path, ReadOptions(columns=given))
    np.testing.assert_array_equal(found.position, Q)


def test_names_of_joints_in_columns_count(tmp_path):
    path = tmp_path / 'echo.csv'
    head = '%time,field.header.stamp,field.name0,field.name1,'
    head += ','.join(f'field.{n}{k}' for n in ('position', 'velocity', 'effort') for k in (0, 1))
    rows = [
        f'{k},{1_700_000_000_000_000_000 + k * 10_000_000},b,a,'
        + ','.join(map(repr, [*q.tolist(), *dq.tolist(), *tau.tolist()]))
        for k, (q, dq, tau) in enumerate(zip(Q, DQ, TAU, strict=True))
    ]
    path.write_text('\n'.join([head, *rows]))
    found = open_table(path, OPTIONS)
    assert found.joints == ('b', 'a')
    np.testing.assert_array_equal(found.effort, TAU)
    np.testing.assert_allclose((found.stamp - found.stamp[0]) * 1e-9, TIME, atol=1e-6)


def lerobot(folder, files):
    pyarrow, writer = (pytest.importorskip(f'pyarrow{part}') for part in ('', '.parquet'))
    (folder / 'meta').mkdir(parents=True)
    (folder / 'meta/info.json').write_text(json.dumps({'fps': 100, 'features': {}}))
    for number, episodes in enumerate(files):
        path = folder / f'data/chunk-000/file-{number:03d}.parquet'
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = {
            'observation.state': [*Q] * len(episodes),
            'observation.effort': [*TAU] * len(episodes),
            'episode_index': np.repeat(episodes, len(Q)),
        }
        if episodes != [7]:
            columns['timestamp'] = np.tile(TIME, len(episodes)).astype(np.float32)
        writer.write_table(pyarrow.table(columns), path)
    return folder


@pytest.mark.parametrize('files', [[[0], [1], [2]], [[0, 1], [2]]])
def test_episodes_come_behind_each_other(tmp_path, files):
    recording = open_recording(lerobot(tmp_path / 'set', files), options=OPTIONS)
    assert recording.size == 3 * len(Q)
    steps = np.diff(recording.time)
    assert (steps > 0.0).all() and (steps > 1.0).sum() == 2
    np.testing.assert_array_equal(recording.position[len(Q) : 2 * len(Q)], Q)


def test_the_rate_of_a_data_set_replaces_stamps(tmp_path):
    path = lerobot(tmp_path / 'set', [[7]]) / 'data/chunk-000/file-000.parquet'
    found = open_table(path, OPTIONS)
    np.testing.assert_allclose(found.stamp * 1e-9, TIME, atol=1e-9)
    assert select(found.notes, 'stamps_from_rate')[0].values == {'rate': 100.0}


@pytest.mark.parametrize(('name', 'package'), [('log.parquet', 'pyarrow'), ('log.h5', 'h5py')])
def test_a_missing_package_is_named(tmp_path, monkeypatch, name, package):
    for module in [package, f'{package}.parquet']:
        monkeypatch.setitem(sys.modules, module, None)
    magic = {'pyarrow': b'PAR1', 'h5py': b'\x89HDF\r\n\x1a\n'}[package]
    (tmp_path / name).write_bytes(magic + bytes(100))
    with pytest.raises(FileError, match=f'pip install {package}'):
        open_recording(tmp_path / name)


@pytest.mark.parametrize(
    'name', ['log.npz', 'log.npy', 'log.mat', 'log.h5', 'log.parquet', 'log.csv.gz']
)
def test_damage_is_one_sentence(tmp_path, name):
    magic = {'npz': b'PK\x03\x04', 'npy': b'\x93NUMPY', 'mat': b'MATLAB 5.0 MAT-file'}
    magic |= {'h5': b'\x89HDF\r\n\x1a\n', 'parquet': b'PAR1', 'gz': b'\x1f\x8b'}
    (tmp_path / name).write_bytes(magic[name.split('.')[-1]] + bytes(range(200)))
    with pytest.raises((RecordingError, FileError), match=rf'{name}') as caught:
        open_recording(tmp_path / name, options=OPTIONS)
    assert '\n' not in str(caught.value)


def test_a_log_that_changed_is_read_again(tmp_path):
    path = write(tmp_path / 'log.txt', TIME, TAU, Q)
    given = (('time', 'column1'), ('position', 'column4,column5'), ('effort', 'column2,column3'))
    open_table(path, ReadOptions(columns=given))
    write(path, TIME[:100], TAU[:100], Q[:100])
    assert len(open_table(path, ReadOptions(columns=given)).stamp) == 100


def test_objects_in_an_archive_are_passed_over(tmp_path):
    path = tmp_path / 'log.npz'
    date = np.datetime64('2024-01-31T12:00:00') + (TIME * 1e9).round().astype('timedelta64[ns]')
    np.savez(
        path, time=date, q=Q, tau=TAU, settings=np.array({'a': 1}, object), name=np.array('x')
    )
    found = open_table(path, OPTIONS)
    np.testing.assert_array_equal(found.position, Q)
    np.testing.assert_array_equal(np.diff(found.stamp), np.diff(date).astype(int))


def npz_with_names(folder, names, **arrays):
    np.savez(
        folder / 'log.npz', joint_names=np.array(names), robots=np.array(['x', 'y']), **arrays
    )
    return folder / 'log.npz'


def mat_with_names(folder, names, **arrays):
    info = {'joints': np.array(names, object)}
    savemat(folder / 'log.mat', {'data': {**arrays, 'info': info}})
    return folder / 'log.mat'


def hdf5_with_names(folder, names, **arrays):
    h5py = pytest.importorskip('h5py')
    with h5py.File(folder / 'log.h5', 'w') as file:
        for name, values in {**arrays, 'Joint Names': [n.encode() for n in names]}.items():
            file[name] = values
    return folder / 'log.h5'


def parquet_with_names(folder, names, **arrays):
    pyarrow, writer = (pytest.importorskip(f'pyarrow{part}') for part in ('', '.parquet'))
    columns = {name: list(values) for name, values in arrays.items()}
    columns |= {'name': [list(names)] * len(TIME)}
    writer.write_table(pyarrow.table(columns), folder / 'log.parquet')
    return folder / 'log.parquet'


@pytest.mark.parametrize('names', [('b', 'a'), ('arm_b', 'arm_a')])
@pytest.mark.parametrize(
    'write',
    [npz_with_names, mat_with_names, hdf5_with_names, parquet_with_names],
    ids=lambda f: f.__name__,
)
def test_names_of_joints_beside_arrays_count(tmp_path, write, names):
    found = open_table(write(tmp_path, names, t=TIME, q=Q, tau=TAU), OPTIONS)
    assert found.joints == ('b', 'a')
    np.testing.assert_array_equal(found.position, Q)
    np.testing.assert_array_equal(found.effort, TAU)


def test_parameters_beside_a_motion_are_passed_over(tmp_path):
    few = {name: np.ones(6) for name in ('Kp', 'Kd', 'gear', 'Kt', 'lower', 'upper')}
    motion = {'t': TIME, 'q': Q, 'qd': DQ, 'tau': TAU}
    savemat(tmp_path / 'log.mat', {'data': motion, 'parameters': few})
    found = open_table(tmp_path / 'log.mat', OPTIONS)
    np.testing.assert_array_equal(found.position, Q)


def test_records_in_groups_are_read(tmp_path):
    h5py = pytest.importorskip('h5py')
    names = 'time q1 q2 tau1 tau2'.split()
    with h5py.File(tmp_path / 'log.h5', 'w') as file:
        file['run/log'] = np.rec.fromarrays([TIME, *Q.T, *TAU.T], names=names)
    found = open_table(tmp_path / 'log.h5', OPTIONS)
    np.testing.assert_array_equal(found.position, Q)
    np.testing.assert_array_equal(found.effort, TAU)


def test_objects_of_matlab_are_no_columns(tmp_path):
    h5py = pytest.importorskip('h5py')
    with h5py.File(tmp_path / 'log.mat', 'w') as file:
        file['data'] = np.array([[3707764736, 2, 1, 1, 1, 1]], np.uint32)
        file['data'].attrs['MATLAB_object_decode'] = np.int32(3)
    with pytest.raises(RecordingError, match='save arrays, not objects'):
        open_table(tmp_path / 'log.mat', OPTIONS)


def test_columns_that_differ_in_their_first_word_are_proposed(tmp_path):
    columns = (*(f'{joint} {word}' for word in ('rod', 'oil') for joint in ('boom', 'stick')),)
    rows = [','.join(('time', 'boom angle', 'stick angle', *columns))]
    rows += [','.join(map(str, (t, *q, *q, *q))) for t, q in zip(TIME, Q, strict=True)]
    (tmp_path / 'log.csv').write_text('\n'.join(rows))
    with pytest.raises(RecordingError, match=r"--columns 'effort=\{joint\} rod'"):
        open_table(tmp_path / 'log.csv', OPTIONS)


def test_lists_of_different_lengths_are_no_columns(tmp_path):
    """They hold as many numbers as if each row had two, as the first one has."""
    pyarrow, writer = (pytest.importorskip(f'pyarrow{part}') for part in ('', '.parquet'))
    ragged = np.split(Q.ravel(), np.cumsum(np.tile([2, 3, 1], len(TIME) // 3))[:-1])
    content = {'t': TIME, 'position': [*map(list, ragged)], 'effort': list(TAU)}
    writer.write_table(pyarrow.table(content), tmp_path / 'log.parquet')
    with pytest.raises(RecordingError, match='no column that looks like position'):
        open_recording(tmp_path / 'log.parquet')
