"""Commanded positions of tables: their columns, units, and data sets of LeRobot."""

import json

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.exceptions import FileError, RecordingError
from robotid_ros.files.bags import open_recording
from robotid_ros.files.formats.read_options import ReadOptions
from robotid_ros.files.formats.table import read_calibration

NAMES = ('shoulder_pan', 'elbow_flex', 'gripper')
TIME = np.arange(60) / 30.0
Q = np.column_stack([0.8 * np.sin(TIME * (k + 1)) for k in range(3)])
U = np.column_stack([0.8 * np.sin((TIME + 0.05) * (k + 1)) for k in range(3)])
URDF = '<robot name="so101"><link name="base"/>' + ''.join(
    f'<link name="l{k}"/><joint name="{name}" type="revolute"><parent link="base"/>'
    f'<child link="l{k}"/><axis xyz="0 0 1"/><limit lower="-1.9" upper="1.9" effort="5" '
    'velocity="10"/></joint>'
    for k, name in enumerate(NAMES)
) + '</robot>'  # fmt: skip
OPTIONS = ReadOptions(urdf=URDF, commands=True)


def lerobot(folder, version, scale=180.0 / np.pi, offset=0.0):
    """Write two episodes of a data set in the layout of v2.1 or v3.0."""
    pyarrow, writer = (pytest.importorskip(f'pyarrow{part}') for part in ('', '.parquet'))
    (folder / 'meta').mkdir(parents=True)
    motors = [f'{name}.pos' for name in NAMES]
    feature = {'dtype': 'float32', 'shape': [3], 'names': motors}
    info = {
        'codebase_version': version, 'robot_type': 'so101_follower', 'fps': 30,
        'features': {'action': feature, 'observation.state': feature},
    }  # fmt: skip
    (folder / 'meta/info.json').write_text(json.dumps(info))
    tables = [
        pyarrow.table({
            'action': [*(U * scale + offset).astype(np.float32)],
            'observation.state': [*(Q * scale + offset).astype(np.float32)],
            'timestamp': TIME.astype(np.float32),
            'frame_index': np.arange(60),
            'episode_index': np.full(60, episode),
        })
        for episode in range(2)
    ]  # fmt: skip
    paths = {
        'v2.1': 'data/chunk-000/episode_{:06d}.parquet',
        'v3.0': 'data/chunk-000/file-000.parquet',
    }
    parts = tables if version == 'v2.1' else [pyarrow.concat_tables(tables)]
    for number, table in enumerate(parts):
        path = folder / paths[version].format(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        writer.write_table(table, path)
    return folder


@pytest.mark.parametrize('version', ['v2.1', 'v3.0'])
def test_a_data_set_has_commands_by_the_names_of_joints(tmp_path, version):
    found = open_recording(lerobot(tmp_path / 'set', version), options=OPTIONS)
    assert found.joints == NAMES and found.size == 120
    np.testing.assert_allclose(found.position[:60], Q, atol=1e-6)
    np.testing.assert_allclose(found.reference.q[60:], U, atol=1e-6)
    np.testing.assert_array_equal(found.reference.time, found.time)
    assert not np.isfinite(found.effort).any()
    assert select(found.notes, 'unit_assumed')[0].values['unit'] == 'deg'


RANGES = {
    'shoulder_pan': (1, 0, 1000, 3000),
    'elbow_flex': (3, 1, 800, 3300),
    'gripper': (6, 0, 2000, 3500),
}
KEYS = 'id', 'drive_mode', 'range_min', 'range_max'
CALIBRATION = {
    name: {'homing_offset': 5, **dict(zip(KEYS, values, strict=True))}
    for name, values in RANGES.items()
}


def test_normalised_units_become_rad(tmp_path):
    path = tmp_path / 'arm.json'
    path.write_text(json.dumps(CALIBRATION))
    calibration = read_calibration(path)
    turn = 2.0 * np.pi / 4095
    scale = np.array([1.0 / (10 * turn), -1.0 / (12.5 * turn), 1.0 / (15 * turn)])
    folder = lerobot(tmp_path / 'set', 'v3.0', scale, np.array([0.0, 0.0, 50.0]))
    options = ReadOptions(urdf=URDF, commands=True, calibration=calibration)
    found = open_recording(folder, options=options)
    np.testing.assert_allclose(found.position[:60], Q, atol=1e-5)
    np.testing.assert_allclose(found.reference.q[:60], U, atol=1e-5)
    assert not select(found.notes, 'unit_assumed')
    # In degrees, the gripper alone stays normalised.
    first, _, gripper = read_calibration(path, degrees=True)
    assert first[1:] == (np.pi / 180.0, 0.0) and gripper == calibration[2]


def test_a_gripper_counts_from_where_the_description_closes_it(tmp_path):
    """At 0 and 100 it is at its limits, where its range is that of the description."""
    lower, upper = -0.175, 1.745
    ends = 'lower="-1.9" upper="1.9" effort="5" velocity="10"/></joint></robot>'
    urdf = URDF.replace(ends, ends.replace('-1.9', f'{lower}').replace('1.9', f'{upper}'))
    assert urdf != URDF
    low = 2000
    high = low + (upper - lower) * 4095 / (2.0 * np.pi)
    motors = {**CALIBRATION, 'gripper': {'range_min': low, 'range_max': high}}
    path = tmp_path / 'arm.json'
    path.write_text(json.dumps(motors))
    options = ReadOptions(urdf=urdf, commands=True, calibration=read_calibration(path))
    scale = np.array([100.0, 100.0, 50.0 / 0.8])  # the gripper goes from 0 to 100
    folder = lerobot(tmp_path / 'set', 'v3.0', scale, np.array([0.0, 0.0, 50.0]))
    found = open_recording(folder, options=options)
    expected = lower + (Q[:, 2] / 0.8 + 1.0) / 2.0 * (upper - lower)
    np.testing.assert_allclose(found.position[:60, 2], expected, atol=1e-4)


def test_values_up_to_100_may_be_normalised(tmp_path):
    folder = lerobot(tmp_path / 'set', 'v3.0', 99.0 / 0.8)
    (note,) = select(open_recording(folder, options=OPTIONS).notes, 'units_may_be_normalised')
    assert note.values['largest'] == pytest.approx(99.0, abs=1.0)


def test_a_calibration_of_another_arm_is_refused(tmp_path):
    path = tmp_path / 'arm.json'
    path.write_text(json.dumps({'gripper': CALIBRATION['gripper']}))
    options = ReadOptions(urdf=URDF, commands=True, calibration=read_calibration(path))
    with pytest.raises(RecordingError, match='no motor shoulder_pan, elbow_flex'):
        open_recording(lerobot(tmp_path / 'set', 'v3.0'), options=options)
    for text in ('[]', '{"a": {}}', '{', '{"a": {"range_min": 2, "range_max": 2}}'):
        path.write_text(text)
        with pytest.raises(FileError, match='no calibration of LeRobot'):
            read_calibration(path)


def test_columns_of_a_csv_are_commands(tmp_path):
    names = [f'{kind}_{name}' for kind in ('q', 'q_des') for name in NAMES]
    table = np.column_stack([TIME, Q, U])
    path = tmp_path / 'log.csv'
    np.savetxt(path, table, delimiter=',', header=','.join(['time', *names]), comments='')
    found = open_recording(path, options=OPTIONS)
    np.testing.assert_allclose(found.reference.q, U, atol=1e-12)
    units = (('command', 'deg'), ('position', 'rad'))
    named = (('command', ','.join(names[3:])),)
    options = ReadOptions(urdf=URDF, commands=True, units=units, columns=named)
    found = open_recording(path, options=options)
    np.testing.assert_allclose(found.reference.q, np.deg2rad(U), atol=1e-12)


def test_a_table_without_commands_says_so(tmp_path):
    path = tmp_path / 'log.csv'
    names = ['time', *(f'q_{name}' for name in NAMES), *(f'tau_{name}' for name in NAMES)]
    np.savetxt(
        path, np.column_stack([TIME, Q, U]), delimiter=',', header=','.join(names), comments=''
    )
    with pytest.raises(RecordingError, match='no column that looks like command'):
        open_recording(path, options=OPTIONS)
