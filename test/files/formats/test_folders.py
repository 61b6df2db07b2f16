"""Folders whose files hold one quantity each are one log."""

import numpy as np
import pytest
from scipy.io import savemat

from robotid_ros.core.finding_codes import select
from robotid_ros.exceptions import RecordingError
from robotid_ros.files.bags import open_recording
from robotid_ros.files.formats.open_table import open_table
from robotid_ros.files.formats.read_options import ReadOptions

from .tables import DQ, Q, TAU, TIME, urdf

OPTIONS = ReadOptions(urdf=urdf('a', 'b'))


def write(folder, *, header='', time=None, **blocks):
    """Write blocks as CSV, one file each, with times in front where some are given."""
    head = ','.join(['t', header]) if time is not None else header
    for name, values in blocks.items():
        content = values if time is None else np.column_stack([time, values])
        text = {'header': head, 'comments': ''} if header else {}
        np.savetxt(folder / f'{name}.csv', content, '%.17g', ',', **text)


def check(found):
    np.testing.assert_allclose(found.stamp * 1e-9, TIME, atol=1e-9)
    np.testing.assert_allclose(found.position, Q)
    np.testing.assert_allclose(found.effort, TAU)


@pytest.mark.parametrize('header', ['', 'a,b', 'joint_a,joint_b', 'J1,J2'])
def test_the_names_of_files_say_what_their_columns_are(tmp_path, header):
    write(tmp_path, header=header, positions=Q, motor_torques=TAU, vel=DQ)
    np.savetxt(tmp_path / 'log_time.txt', TIME)
    found = open_table(tmp_path, OPTIONS)
    check(found)
    np.testing.assert_allclose(found.velocity, DQ)
    assert found.joints == ('a', 'b')
    assert select(found.notes[:1], 'tables_joined')


def test_each_file_may_hold_the_same_times_and_names_of_its_own(tmp_path):
    write(tmp_path, header='a_position,b_position', time=TIME, one=Q)
    write(tmp_path, header='a_effort,b_effort', time=TIME, two=TAU)
    check(open_table(tmp_path, OPTIONS))


def test_one_file_a_joint(tmp_path):
    (tmp_path / 'note.txt').write_text('recorded on Monday\n')
    write(tmp_path, q1=Q[:, 0], q2=Q[:, 1], tau1=TAU[:, 0], tau2=TAU[:, 1], time=None)
    check(open_table(tmp_path, ReadOptions(urdf=OPTIONS.urdf, rate=100.0)))


def test_variables_of_mat_files_and_arrays(tmp_path):
    savemat(tmp_path / 'q.mat', {'q': Q})
    savemat(tmp_path / 'tau.mat', {'data': TAU})
    np.save(tmp_path / 'times.npy', TIME[:, None])
    check(open_table(tmp_path, OPTIONS))


@pytest.mark.parametrize('name', ['t', 'time', 'stamp_ms'])
def test_times_that_differ_are_interpolated(tmp_path, name):
    """Of one unit, whatever they are called; those of another are not mixed with them."""
    fine = np.linspace(0.0, TIME[-1], 1500)
    at_fine = np.column_stack([np.interp(fine, TIME, column) for column in TAU.T])
    write(tmp_path, header='a,b', time=TIME, pos=Q)
    content = np.column_stack([fine, at_fine])
    text = {'header': f'{name},a,b', 'comments': ''}
    np.savetxt(tmp_path / 'torque.csv', content, '%.17g', ',', **text)
    if name == 'stamp_ms':
        with pytest.raises(RecordingError, match=r'pos\.csv left out, of another length'):
            open_table(tmp_path, OPTIONS)
        return
    found = open_table(tmp_path, OPTIONS)
    np.testing.assert_allclose(found.position, Q)
    np.testing.assert_allclose(found.effort, TAU, atol=2e-3 * np.abs(TAU).max())
    assert select(found.notes, 'rows_interpolated')


def test_names_of_joints_count_before_what_other_files_are_called(tmp_path):
    write(tmp_path, header='a,b', positions=Q)
    write(tmp_path, header='b,a', torques=TAU[:, ::-1])
    write(tmp_path, header='fx,fy', force_sensor=9.0 * Q)
    check(open_table(tmp_path, ReadOptions(urdf=OPTIONS.urdf, rate=100.0)))


def test_files_of_another_length_are_left_out_and_told(tmp_path):
    write(tmp_path, q=Q, tau=TAU, velocity=DQ[:100], time_s=TIME)
    found = open_table(tmp_path, OPTIONS)
    check(found)
    assert np.isnan(found.velocity).all()
    assert found.notes[0].values['left_out'] == ('velocity.csv',)


def test_logs_that_are_whole_are_not_put_together(tmp_path):
    for name in ('monday', 'tuesday'):
        write(tmp_path, header='q1,q2,tau1,tau2', time=TIME, **{name: np.hstack([Q, TAU])})
    with pytest.raises(RecordingError, match=r"as 'monday.csv' is: give these files"):
        open_table(tmp_path, OPTIONS)


def test_a_damaged_file_of_a_folder_is_named(tmp_path):
    write(tmp_path, q=Q, tau=TAU, time_s=TIME)
    (tmp_path / 'velocity.npy').write_bytes(b'\x93NUMPY\x01\x00\x76\x00{')
    with pytest.raises(RecordingError, match=r"velocity.npy' is damaged"):
        open_table(tmp_path, OPTIONS)


@pytest.mark.parametrize('names', [('one', 'two'), ('q', 'results'), ('tau',), ()])
def test_a_folder_that_says_nothing_is_told_what_it_needs(tmp_path, names):
    write(tmp_path, **dict.fromkeys(names, Q))
    with pytest.raises(RecordingError, match='holds no recording'):
        open_recording(tmp_path)
