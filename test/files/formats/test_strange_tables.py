"""Tables of any form are read rightly, or refused with what their columns look like."""

import re

import numpy as np
import pytest
from scipy.io import savemat

from robotid_ros.exceptions import RecordingError
from robotid_ros.files.formats.open_table import open_table
from robotid_ros.files.formats.read_options import ReadOptions

from .strange import DDQ, DQ, JOINTS, MODE, Q, TAU, TIME
from .tables import urdf

OPTIONS = ReadOptions(urdf=urdf(*JOINTS))


def check(path, effort=TAU, options=OPTIONS, velocity=None, rows=slice(None)):
    """Read a table and compare it with the truth."""
    found = open_table(path, options)
    assert found.joints == JOINTS
    np.testing.assert_allclose((found.stamp - found.stamp[0]) * 1e-9, TIME, atol=1e-6)
    np.testing.assert_allclose(found.position[rows], Q[rows], atol=1e-8)
    np.testing.assert_allclose(found.effort[rows], effort[rows], atol=1e-6)
    if velocity is not None:
        np.testing.assert_allclose(found.velocity, DQ, atol=1e-7)


def matrix(path, *blocks):
    np.savetxt(path, np.column_stack(blocks), fmt='%.12g')
    return path


COLUMNS = {'time': 'column1', 'position': 'column2..column4', 'velocity': 'column5..column7'}
DERIVED = {
    'velocities': ((DQ,), 'column5..column7', 'derivatives of the positions'),
    'positions': ((TAU,), 'column2..column4', 'the positions'),
    'accelerations': ((DDQ,), 'column8..column10', 'the accelerations'),
    'velocities of motors': ((120.0 * DQ,), 'column8..column10', 'derivatives of the positions'),
    'one velocity': ((TAU,), 'column8,column6,column10', 'of b are the derivatives'),
}


@pytest.mark.parametrize(('more', 'effort', 'words'), DERIVED.values(), ids=list(DERIVED))
def test_efforts_that_derive_from_the_motion_are_refused(tmp_path, more, effort, words):
    path = matrix(tmp_path / 'a.txt', TIME, Q, DQ, *more)
    given = tuple((COLUMNS | {'effort': effort}).items())
    with pytest.raises(RecordingError, match=rf'{effort}: the efforts .*{words}.* no torques'):
        open_table(path, ReadOptions(urdf=OPTIONS.urdf, columns=given))


def csv(path, wrong):
    names = ['t', *(f'{word}{k}' for word in ('q', 'dq', 'tau') for k in (1, 2, 3))]
    values = np.column_stack([TIME, Q, DQ, wrong])
    np.savetxt(path, values, delimiter=',', header=','.join(names), comments='')


def npz(path, wrong):
    np.savez(path, t=TIME, q=Q, dq=DQ, tau=wrong)


def mat(path, wrong):
    savemat(path, {'log': {'t': TIME, 'q': Q, 'dq': DQ, 'tau': wrong}})


@pytest.mark.parametrize('write', [csv, npz, mat], ids=lambda write: write.__name__)
@pytest.mark.parametrize('wrong', [DQ, np.degrees(Q), DDQ], ids=['dq', 'q', 'ddq'])
def test_names_prove_no_torques(tmp_path, write, wrong):
    path = tmp_path / f'a.{write.__name__}'
    write(path, TAU)
    check(path)
    write(path, wrong)
    with pytest.raises(RecordingError, match=r'the efforts of a, b, c are .* no torques'):
        open_table(path, OPTIONS)


def test_columns_without_names_are_shown_and_asked_for(tmp_path):
    path = matrix(tmp_path / 'a.txt', TIME, Q, MODE, TAU)
    with pytest.raises(RecordingError, match='columns without names') as caught:
        open_table(path, OPTIONS)
    text = str(caught.value)
    assert '\n' not in text and 'column1: 0 to 5.995, column2:' in text
    assert 'column5: 0 to 2, ' in text
    example = re.search(r"--columns '(.*?)'", text)[1]
    assert example == 'time=column1 position=FIRST..LAST effort=FIRST..LAST'
    given = {'time': 'column1', 'position': 'column2..column4', 'effort': 'column6..column8'}
    check(path, options=ReadOptions(urdf=OPTIONS.urdf, columns=tuple(given.items())))


@pytest.mark.parametrize('text', ['{"t": [0.0, 0.1], "q": [1, 2]}', '[{"t": 0.0}]'])
def test_json_is_refused(tmp_path, text):
    (tmp_path / 'a.json').write_text(text)
    with pytest.raises(RecordingError, match='holds no table of numbers'):
        open_table(tmp_path / 'a.json', OPTIONS)
