"""One motion in every format: the recording that is read is the one that was written."""

import json

import numpy as np
import pytest
from rosbags import rosbag1
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import get_typestore, Stores
from scipy.io import savemat

from robotid_ros.files.bags import open_recording
from robotid_ros.files.formats.read_options import ReadOptions

JOINTS = ('shoulder', 'elbow', 'wrist')
RATE, COUNT = 250.0, 400
TIME = np.arange(COUNT) / RATE
Q, DQ, TAU = np.random.default_rng(3).normal(size=(3, COUNT, 3))
LINK = '<link name="l{0}"/><joint name="{1}" type="revolute"><parent link="l{2}"/>'
LINK += '<child link="l{0}"/><axis xyz="0 0 1"/><limit lower="-3" upper="3"/></joint>'
URDF = ''.join(LINK.format(k + 1, joint, k) for k, joint in enumerate(JOINTS))
OPTIONS = ReadOptions(urdf=f'<robot name="arm"><link name="l0"/>{URDF}</robot>')


def columns():
    for values, name in ((Q, 'q'), (DQ, 'dq'), (TAU, 'tau')):
        yield from ((f'{name}{k + 1}', values[:, k]) for k in range(3))


def csv(folder):
    names, values = zip(('t', TIME), *columns(), strict=True)
    text = '\n'.join(','.join(map(repr, row)) for row in np.column_stack(values).tolist())
    (folder / 'log.csv').write_text(f'{",".join(names)}\n{text}\n')
    return folder / 'log.csv'


def npz(folder):
    np.savez(folder / 'log.npz', time=TIME, q=Q, dq=DQ, tau=TAU, masses=np.ones(3))
    return folder / 'log.npz'


def npz_sideways(folder):
    np.savez(folder / 'log.npz', t=TIME[None], q=Q.T, qd=DQ.T, torque=TAU.T)
    return folder / 'log.npz'


def npy(folder):
    kinds = [('t', float), ('q', float, 3), ('dq', float, 3), ('tau', float, 3)]
    records = np.zeros(COUNT, kinds)
    for name, values in (('t', TIME), ('q', Q), ('dq', DQ), ('tau', TAU)):
        records[name] = values
    np.save(folder / 'log.npy', records)
    return folder / 'log.npy'


def mat(folder):
    savemat(folder / 'log.mat', {'data': {'t': TIME, 'q': Q, 'dq': DQ, 'tau': TAU}, 'name': 'arm'})
    return folder / 'log.mat'


def mat_73(folder):
    h5py = pytest.importorskip('h5py')
    with h5py.File(folder / 'log.mat', 'w', userblock_size=512) as file:
        for name, values in (('t', TIME[:, None]), ('q', Q), ('dq', DQ), ('tau', TAU)):
            file[f'data/{name}'] = values.T
        file['#refs#/a'] = np.ones((4, 4))
    with (folder / 'log.mat').open('r+b') as file:
        file.write(b'MATLAB 7.3 MAT-file')
    return folder / 'log.mat'


def hdf5(folder):
    h5py = pytest.importorskip('h5py')
    with h5py.File(folder / 'log.h5', 'w') as file:
        for name, values in (('t', TIME), ('q', Q), ('dq', DQ), ('tau', TAU)):
            file[name] = values
    return folder / 'log.h5'


def parquet(folder):
    pyarrow = pytest.importorskip('pyarrow')
    table = pyarrow.table(dict([('t', TIME), *columns()]))
    pyarrow.parquet = pytest.importorskip('pyarrow.parquet')
    pyarrow.parquet.write_table(table, folder / 'log.parquet')
    return folder / 'log.parquet'


def parquet_of_lists(folder):
    pyarrow = pytest.importorskip('pyarrow')
    writer = pytest.importorskip('pyarrow.parquet')
    arrays = {name: list(values) for name, values in (('q', Q), ('dq', DQ), ('tau', TAU))}
    time = (TIME * 1e9).round().astype('datetime64[ns]')
    writer.write_table(pyarrow.table({'time': time, **arrays}), folder / 'log.parquet')
    return folder / 'log.parquet'


def lerobot(folder):
    pyarrow = pytest.importorskip('pyarrow')
    writer = pytest.importorskip('pyarrow.parquet')
    names = [f'{joint}.pos' for joint in JOINTS]
    features = {'observation.state': {'dtype': 'float64', 'names': names[::-1]}}
    (folder / 'meta').mkdir()
    (folder / 'data/chunk-000').mkdir(parents=True)
    (folder / 'meta/info.json').write_text(json.dumps({'fps': RATE, 'features': features}))
    states = {
        'observation.state': list(Q[:, ::-1]),
        'observation.velocity': list(DQ[:, ::-1]),
        'observation.effort': list(TAU[:, ::-1]),
        'action': list(Q + 1.0),
        'timestamp': TIME,
        'frame_index': np.arange(COUNT),
        'episode_index': np.zeros(COUNT, int),
    }
    writer.write_table(pyarrow.table(states), folder / 'data/chunk-000/episode_000000.parquet')
    return folder


def messages(store):
    header = store.types['std_msgs/msg/Header']
    stamp = store.types['builtin_interfaces/msg/Time']
    for k in range(COUNT):
        time = round(TIME[k] * 1e9)
        extra = {'seq': k} if 'seq' in header.__dataclass_fields__ else {}
        head = header(stamp=stamp(time // 10**9, time % 10**9), frame_id='', **extra)
        state = store.types['sensor_msgs/msg/JointState']
        yield time + 1000, state(head, list(JOINTS), Q[k], DQ[k], TAU[k])


def ros1(folder):
    store = get_typestore(Stores.ROS1_NOETIC)
    kind = 'sensor_msgs/msg/JointState'
    with rosbag1.Writer(folder / 'log.bag') as writer:
        connection = writer.add_connection('/joint_states', kind, typestore=store)
        for time, message in messages(store):
            writer.write(connection, time, store.serialize_ros1(message, kind))
    return folder / 'log.bag'


def sqlite(folder):
    store = get_typestore(Stores.ROS2_JAZZY)
    kind = 'sensor_msgs/msg/JointState'
    storage = StoragePlugin.SQLITE3
    with Writer(folder / 'log', version=9, storage_plugin=storage) as writer:
        connection = writer.add_connection('/joint_states', kind, typestore=store)
        for time, message in messages(store):
            writer.write(connection, time, store.serialize_cdr(message, kind))
    return folder / 'log'


FORMATS = (
    *(csv, npz, npz_sideways, npy, mat, mat_73, hdf5, parquet, parquet_of_lists, lerobot),
    *(ros1, sqlite),
)
EVERY = pytest.mark.parametrize('write', FORMATS, ids=lambda f: f.__name__)


def check(recording):
    assert set(recording.joints) == set(JOINTS)
    recording = recording.select(JOINTS)
    np.testing.assert_allclose(recording.time, TIME, atol=1e-9)
    np.testing.assert_array_equal(recording.position, Q)
    if recording.velocity is not None:
        np.testing.assert_array_equal(recording.velocity, DQ)
    np.testing.assert_array_equal(recording.effort, TAU)


@EVERY
def test_a_recording_is_read_from_any_format(tmp_path, write):
    check(open_recording(write(tmp_path), options=OPTIONS))


@pytest.mark.parametrize('write', [csv, npz, ros1], ids=lambda f: f.__name__)
def test_a_long_log_is_read_in_chunks(tmp_path, write):
    chunked = open_recording(write(tmp_path), options=OPTIONS, max_samples=100)
    assert chunked.size == COUNT
    check(chunked.load())
