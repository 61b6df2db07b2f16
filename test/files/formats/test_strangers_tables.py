"""Tables as PLCs, controllers, spreadsheets and data frames export them."""

import zipfile

import numpy as np
import pytest
from scipy.io import savemat

from robotid_ros.core.findings import select
from robotid_ros.exceptions import RecordingError
from robotid_ros.files.bags import open_recording
from robotid_ros.files.formats.column_names import understand
from robotid_ros.files.formats.open_table import open_table
from robotid_ros.files.formats.read_options import ReadOptions

from .strangers import check, columns, JOINTS, text
from .tables import DQ, Q, TAU, TIME, urdf

DEGREES = 180.0 / np.pi
NAMES = [f'{word}_{joint}' for word in ('pos', 'vel', 'eff') for joint in JOINTS]
ALL = columns(Q, DQ, TAU)
QUANTITIES = ('position', 'velocity', 'torque')


@pytest.mark.parametrize(
    ('encoding', 'words'),
    [
        (
            'cp1252',
            ('Zeit [ms]', 'Istposition Achse # [°]', 'Istdrehzahl # [1/min]', 'Istmoment #'),
        ),
        ('cp1252', ('Temps (ms)', 'Position axe # (°)', 'Vitesse axe # (tr/min)', 'Couple axe #')),
        ('utf-16', ('Tiempo [ms]', 'Posición # [°]', 'Velocidad # [rpm]', 'Par #')),
        ('utf-8', ('Tempo [ms]', 'Posizione giunto # [°]', 'Velocità # [rpm]', 'Coppia #')),
        ('utf-8-sig', ('Tempo [ms]', 'Posição junta # [°]', 'Velocidade # [rpm]', 'Torque #')),
    ],
)
def test_names_are_understood_in_many_languages(tmp_path, encoding, words):
    header = [words[0], *(word.replace('#', str(k)) for word in words[1:] for k in (1, 2))]
    values = columns(TIME * 1e3, Q * DEGREES, DQ * 30.0 / np.pi, TAU)
    path = tmp_path / 'log'
    path.write_bytes(text(header, values, ';', ',').encode(encoding))
    check(path)


@pytest.mark.parametrize(
    ('name', 'said'),
    [
        ('$AXIS_ACT[1]', ('position', False, '')),
        ('MACur.A', ('effort', False, '')),
        ('Sollposition', ('position', True, '')),
        ('Gelenkwinkel', ('position', False, '')),
        ('J (Nm)', ('effort', False, 'nm')),
        ('Temperatur Achse', ('temperature', False, '')),
        ('Torque [0.1%]', ('effort', False, '0.1%')),
        ('Position [inc]', ('position', False, 'inc')),
    ],
)
def test_what_names_say(name, said):
    meaning = understand(name)
    assert (meaning.quantity, meaning.reference, meaning.unit) == said


@pytest.mark.parametrize('name', ['axis', 'J (left)', 'setup', 'Fehler'])
def test_what_names_do_not_say(name):
    assert understand(name) is None


@pytest.mark.parametrize('form', ['{0}_ist_{1}', '{0}.act.{1}', '{1} actual {0}'])
def test_words_may_stand_between_quantity_and_axis(tmp_path, form):
    words = ('Lage', 'Geschwindigkeit', 'Moment')
    header = ['t', *(form.format(word, axis) for word in words for axis in 'XZ')]
    (tmp_path / 'a.csv').write_text(text(header, [TIME, *ALL]))
    found = open_table(tmp_path / 'a.csv', ReadOptions())
    assert found.joints == ('X', 'Z')
    np.testing.assert_allclose(found.position, Q, atol=1e-6)
    np.testing.assert_allclose(found.effort, TAU, atol=1e-6)


@pytest.mark.parametrize('repeated', [True, False])
def test_several_columns_of_times(tmp_path, repeated):
    header, values = [], []
    for name, column in zip(NAMES, ALL, strict=True):
        header += ['Time' if repeated else f'{name} time', name]
        values += [TIME, column]
    (tmp_path / 'a.csv').write_text(text(header, values))
    check(tmp_path / 'a.csv')


def tidy(joint):
    """Return the columns of a table with a row for each joint."""
    each = [(TIME, [joint(k)] * len(TIME), Q[:, k], DQ[:, k], TAU[:, k]) for k in range(2)]
    return [
        [x for row in zip(*parts, strict=True) for x in row] for parts in zip(*each, strict=True)
    ]


def test_words_that_name_trials_leave_rows_as_they_are(tmp_path):
    half = len(TIME) // 2
    header = ['time', 'name', *(name.replace(j, str(k)) for name in NAMES for k, j in
                                enumerate(JOINTS, 1) if name.endswith(j))]  # fmt: skip
    trial = ['first'] * half + ['second'] * half
    (tmp_path / 'a.csv').write_text(text(header, [np.tile(TIME[:half], 2), trial, *ALL]))
    found = open_table(tmp_path / 'a.csv', ReadOptions(urdf=urdf(*JOINTS)))
    np.testing.assert_allclose(found.position, Q)


def test_rows_of_other_joints_are_left_out_and_told(tmp_path):
    names = ['t', 'frame', *(f'{w}{k}' for w in ('name', *QUANTITIES) for k in (0, 1))]
    rows = [','.join(names)]  # rostopic echo -p
    for k, (t, *states) in enumerate(zip(TIME, Q, DQ, TAU, strict=True)):
        rows.append(','.join(map(str, [t + 100.0, '', *JOINTS, *np.ravel(states)])))
        if k > 2 and k % 3 == 0:
            rows.append(f'{int(t) + 100},,elbow,base,9,8,7,6,5,4')
    (tmp_path / 'echo.csv').write_text('\n'.join(rows) + '\n')
    (note,) = select(check(tmp_path / 'echo.csv'), 'rows_of_other_joints')
    assert note.values == {'count': (len(TIME) - 1) // 3}


def test_names_of_two_levels_are_refused(tmp_path):
    levels = [
        ','.join(['', *(q for q in QUANTITIES for _ in JOINTS)]),
        ','.join(['t', *JOINTS * 3]),
    ]
    (tmp_path / 'a.csv').write_text(text([], [TIME, *ALL], above=levels))
    with pytest.raises(RecordingError, match='no column that looks like'):
        check(tmp_path / 'a.csv')


@pytest.mark.parametrize('form', ['{:.2f} sec', '"[{0}, {0}]"'])
def test_cells_that_hold_more_than_a_number_are_refused(tmp_path, form):
    values = columns(TIME, Q, DQ, TAU)
    values[0] = [form.format(t) for t in TIME]
    (tmp_path / 'a.csv').write_text(text(['t', *NAMES], values))
    with pytest.raises(RecordingError, match='no column that looks like time'):
        check(tmp_path / 'a.csv')


def test_measurements_of_labview(tmp_path):
    header = ['X_Value', *NAMES, 'Comment']
    above = ['LabVIEW Measurement\t', 'Separator\tTab', '***End_of_Header***\t', '\t']
    above += [
        '\t'.join(['Samples', *['600'] * 6, '']),
        '\t'.join(['Date', *['2026/05/04'] * 6, '']),
    ]
    above += ['\t'.join(['Y_Unit_Label', *['deg'] * 2, *['deg/s'] * 2, *['mNm'] * 2, ''])]
    above += ['\t'.join(['Delta_X', *['0.010000'] * 6, '']), '***End_of_Header***' + '\t' * 7]
    values = [TIME, *columns(Q * DEGREES, DQ * DEGREES, TAU * 1e3)]
    (tmp_path / 'a.lvm').write_text(text(header, values, '\t', above=above))
    check(tmp_path / 'a.lvm')


def test_structures_of_simulink(tmp_path):
    from scipy.io import savemat

    signals = np.zeros(3, dtype=[('values', 'O'), ('label', 'O')])
    signals[:] = [(Q, 'q'), (DQ, 'qd'), (TAU, 'tau')]
    savemat(tmp_path / 'a.mat', {'ScopeData': {'time': TIME, 'signals': signals}})
    check(tmp_path / 'a.mat')
    each = {name: {'Time': TIME, 'Data': x} for name, x in (('q', Q), ('qd', DQ), ('tau', TAU))}
    savemat(tmp_path / 'b.mat', {'out': each})
    check(tmp_path / 'b.mat')


def test_torques_of_some_joints_and_forces_of_others(tmp_path):
    header = ['t', 'J1 Position (deg)', 'J2 Position (mm)', 'J1 Torque (Nm)', 'J2 Force (N)']
    values = columns(TIME, Q * [DEGREES, 1e3], TAU)
    (tmp_path / 'a.csv').write_text(text(header, values))
    description = urdf('J1', 'J2', kinds=('revolute', 'prismatic'))
    found = open_table(tmp_path / 'a.csv', ReadOptions(urdf=description))
    np.testing.assert_allclose(found.position, Q)
    np.testing.assert_allclose(found.effort, TAU)


def test_counts_and_shares_need_a_gain(tmp_path):
    path, turn = tmp_path / 'a.csv', 2.0 * np.pi / 2**20
    header = ['t', 'q1 [inc]', 'q2 [inc]', 'v1 [inc/s]', 'v2 [inc/s]', 'tau1 [%]', 'tau2 [%]']
    path.write_text(text(header, columns(TIME, Q / turn, DQ / turn, TAU / 0.5)))
    with pytest.raises(RecordingError, match=r"in inc, .* --units 'position=inc\*1.2e-5'"):
        check(path)
    notes = check(path, f'position=inc*{turn!r} effort=%*0.5', velocity=False)
    assert not select(notes, 'effort_unit_of_log')
    found = open_table(
        path, ReadOptions(urdf=urdf(*JOINTS), units=(('position', f'inc*{turn!r}'),))
    )
    (note,) = select(found.notes, 'effort_unit_of_log')
    assert note.values['unit'] == '%'


def test_a_workbook_is_told_what_to_do(tmp_path):
    with zipfile.ZipFile(tmp_path / 'log.xlsx', 'w') as archive:
        archive.writestr('[Content_Types].xml', '<Types/>')
    with pytest.raises(RecordingError, match='of a workbook, save a sheet as CSV'):
        open_table(tmp_path / 'log.xlsx', ReadOptions())


@pytest.mark.parametrize('start', [b'\x80\x04\x95rest', b'ARROW1\0\0', b'\xd0\xcf\x11\xe0\0'])
def test_files_of_other_programs_are_told_what_is_read(tmp_path, start):
    path = tmp_path / 'log'
    path.write_bytes(start)
    with pytest.raises(RecordingError, match=r'nor a table by its name: give a bag or one of'):
        open_recording(path)


@pytest.mark.parametrize('cell', ['1,234', '1,234.5', '5 km', '1.2.3'])
def test_numbers_that_cannot_be_read_are_no_missing_ones(tmp_path, cell):
    values = columns(TIME, Q, DQ, TAU)
    values[1] = [f'"{cell}"' if k % 3 else f'{x:.9f}' for k, x in enumerate(values[1])]
    path = tmp_path / 'a.csv'
    path.write_text(text(['t', *NAMES], values))
    with pytest.raises(RecordingError, match=rf"column 'pos_base' .* as '{cell}': export"):
        check(path)


def test_a_matrix_alone_is_a_table_without_names(tmp_path):
    values = np.column_stack([TIME, Q, DQ, TAU])
    savemat(tmp_path / 'a.mat', {'ans': values.T})
    np.savez(tmp_path / 'a.npz', values)
    named = zip(
        ('time', *QUANTITIES), ('1', '2..column3', '4..column5', '6..column7'), strict=True
    )
    given = tuple((name.replace('torque', 'effort'), f'column{part}') for name, part in named)
    for path in (tmp_path / 'a.mat', tmp_path / 'a.npz'):
        found = open_table(path, ReadOptions(urdf=urdf(*JOINTS), columns=given))
        np.testing.assert_array_equal(found.effort, TAU)


def test_quotes_may_hold_decimal_commas_between_commas(tmp_path):
    header, values = ['t', 'q1', 'q2', 'dq1', 'dq2', 'tau1', 'tau2'], columns(TIME, Q, DQ, TAU)
    plain = text(header, values, ';').splitlines()
    rows = [','.join(f'"{cell.replace(".", ",")}"' for cell in row.split(';')) for row in plain]
    (tmp_path / 'a.csv').write_text('\n'.join(rows))
    check(tmp_path / 'a.csv')


def test_a_group_of_the_times_may_have_a_number(tmp_path):
    h5py = pytest.importorskip('h5py')
    with h5py.File(tmp_path / 'a.h5', 'w') as file:
        for name, values in (('timestamps', TIME), ('q', Q), ('dq', DQ), ('tau', TAU)):
            file[f'robot0/proprio/{name}'] = values
    check(tmp_path / 'a.h5')


@pytest.mark.parametrize('joint', [lambda k: JOINTS[k], lambda k: k + 1])
def test_a_row_of_one_joint_is_refused(tmp_path, joint):
    header = ['time', 'joint', 'position', 'velocity', 'torque']
    (tmp_path / 'a.csv').write_text(text(header, tidy(joint)))
    with pytest.raises(RecordingError, match='a row for each joint: export a column for each'):
        check(tmp_path / 'a.csv')


@pytest.mark.parametrize('name', ['{} time', 'Time'])
def test_signals_with_times_of_their_own_are_refused(tmp_path, name):
    header, values = [], []
    for k, (signal, column) in enumerate(zip(NAMES, ALL, strict=True)):
        header += [name.format(signal), signal]
        values += [TIME + 1e-3 * (k % 2), column]
    (tmp_path / 'a.csv').write_text(text(header, values))
    with pytest.raises(RecordingError, match='signals with times of their own: export one column'):
        check(tmp_path / 'a.csv')
