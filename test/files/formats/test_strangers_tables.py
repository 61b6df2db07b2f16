"""Tables as PLCs, controllers, spreadsheets and data frames export them."""

import json
import zipfile

import numpy as np
import pytest
from scipy.io import savemat

from robotid_ros.core.finding_codes import select
from robotid_ros.exceptions import RecordingError
from robotid_ros.files.formats.column_names import understand
from robotid_ros.files.formats.open_table import open_table
from robotid_ros.files.formats.read_options import ReadOptions
from robotid_ros.files.formats.text_table import read_xlsx

from .strangers import check, columns, JOINTS, text, workbook
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
        ('utf-8-sig', ('时间(ms)', '关节#位置(°)', '关节#速度(rpm)', '关节#力矩')),
        ('gb18030', ('时间(ms)', '关节#位置(°)', '关节#速度(rpm)', '关节#力矩')),
        ('cp932', ('時間(ms)', '関節#角度(deg)', '関節#角速度(rpm)', '関節#トルク')),
        ('utf-16-le', ('Time [ms]', 'J#(deg)', 'J#(rpm)', 'J#(Nm)')),
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


def scope(path, step=1):
    """Write a scope of a PLC: a pair of columns a signal, each with times of its own."""
    signals = []
    for word, values, each in (('ActPos', Q, 1), ('ActVelo', DQ, 1), ('ActTorque', TAU, step)):
        for k, joint in enumerate(JOINTS):
            signals.append((f'GVL.{joint}.{word}', TIME[::each] * 1e3, values[::each, k]))
    above = ['Name;Arm', 'File;C:\\arm.svdx', '']
    for key, cell in (
        ('Name', ''),
        ('Data-Type', 'LREAL'),
        ('SampleTime[ms]', '10'),
        ('Port', '851'),
    ):
        above.append(';'.join(f'{key};{cell or name}' for name, _, _ in signals))
    rows = []
    for k in range(len(TIME)):
        cells = [(t[k], x[k]) if k < len(t) else ('', '') for _, t, x in signals]
        rows.append(';'.join(str(c).replace('.', ',') for pair in cells for c in pair))
    path.write_text('\r\n'.join([*above, *rows]))


def test_a_pair_of_columns_may_be_a_signal(tmp_path):
    scope(tmp_path / 'scope.csv')
    interpolated = 'signals_interpolated', 'rows_interpolated'
    assert not select(check(tmp_path / 'scope.csv'), *interpolated)


def test_signals_of_other_rates_are_interpolated_onto_the_positions(tmp_path):
    scope(tmp_path / 'scope.csv', 2)
    found = open_table(tmp_path / 'scope.csv', ReadOptions(urdf=urdf(*JOINTS)))
    known = np.isfinite(found.effort).all(axis=1)
    assert known.sum() >= len(TIME) - 1
    np.testing.assert_allclose(found.effort[known], TAU[known], atol=3e-3)
    (note,) = select(found.notes, 'signals_interpolated')
    assert note.values['signal'].startswith('GVL')


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


@pytest.mark.parametrize('joint', [lambda k: JOINTS[k], lambda k: k + 1])
def test_a_row_may_be_of_one_joint(tmp_path, joint):
    header = ['time', 'joint', 'position', 'velocity', 'torque']
    (tmp_path / 'a.csv').write_text(text(header, tidy(joint)))
    notes = check(tmp_path / 'a.csv')
    assert select(notes, 'rows_are_columns')[0].values == {'keys': ('joint',)}


def test_joints_that_report_in_turn_have_stamps_of_their_own(tmp_path):
    time, *others = tidy(lambda k: JOINTS[k])
    stamps = np.array(time) + 1e-3 * np.array([name == 'elbow' for name in others[0]])
    header = ['time', 'joint', 'position', 'velocity', 'torque']
    (tmp_path / 'a.csv').write_text(text(header, [stamps, *others]))
    found = open_table(tmp_path / 'a.csv', ReadOptions(urdf=urdf(*JOINTS)))
    known = np.isfinite(found.position).all(axis=1)
    late = np.column_stack([np.sin(2.0 * (TIME + 1e-3)), Q[:, 1]])  # at the times of the elbow
    assert known.sum() >= len(TIME) - 1
    np.testing.assert_allclose(found.position[known], late[known], atol=2e-4)


def long_form():
    """Return the columns of a table with a row for each value, signals behind each other."""
    return [
        [x for _ in NAMES for x in TIME],
        [name.split('_')[1] for name in NAMES for _ in TIME],
        [name.split('_')[0] for name in NAMES for _ in TIME],
        [x for column in ALL for x in column],
    ]


def test_a_row_may_be_one_value(tmp_path):
    header = ['time', 'joint', 'variable', 'value']
    (tmp_path / 'a.csv').write_text(text(header, long_form()))
    check(tmp_path / 'a.csv')
    pyarrow = pytest.importorskip('pyarrow')
    from pyarrow import parquet

    table = pyarrow.table(dict(zip(header, long_form(), strict=True)))
    parquet.write_table(table, tmp_path / 'a.parquet')
    check(tmp_path / 'a.parquet')


def test_words_that_name_trials_leave_rows_as_they_are(tmp_path):
    half = len(TIME) // 2
    header = ['time', 'name', *(name.replace(j, str(k)) for name in NAMES for k, j in
                                enumerate(JOINTS, 1) if name.endswith(j))]  # fmt: skip
    trial = ['first'] * half + ['second'] * half
    (tmp_path / 'a.csv').write_text(text(header, [np.tile(TIME[:half], 2), trial, *ALL]))
    found = open_table(tmp_path / 'a.csv', ReadOptions(urdf=urdf(*JOINTS)))
    np.testing.assert_allclose(found.position, Q)


def test_a_sheet_of_a_workbook_is_a_table(tmp_path):
    rows = [['Time', *NAMES], *(list(row) for row in zip(TIME, *ALL, strict=True))]
    workbook(tmp_path / 'a.xlsx', [[['robot', 'date'], ['arm', 46000.0]], rows])
    check(tmp_path / 'a.xlsx')


def test_cells_far_apart_take_no_memory(tmp_path):
    rows = [[float(k)] * (1 + len(NAMES)) for k in range(6)]
    workbook(tmp_path / 'a.xlsx', [[['Time', *NAMES], *rows]])
    with zipfile.ZipFile(tmp_path / 'a.xlsx') as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    far = b'<row r="99999999999"><c r="A1"><v>6</v></c><c r="XFD1"><v>2</v></c></row></sheetData>'
    with zipfile.ZipFile(tmp_path / 'a.xlsx', 'w') as archive:
        for name, content in parts.items():
            archive.writestr(name, content.replace(b'</sheetData>', far))
    time = read_xlsx(tmp_path / 'a.xlsx').read(['Time'])['Time']
    np.testing.assert_equal(time, [*range(7)])


def records():
    return [
        {'stamp': t, 'joints': {j: {'pos': a[k], 'vel': b[k], 'torque': c[k]} for k, j in
                                enumerate(JOINTS)}}
        for t, a, b, c in zip(TIME, Q, DQ, TAU, strict=True)
    ]  # fmt: skip


def test_json_of_every_form_is_a_table(tmp_path):
    path = tmp_path / 'a.json'
    path.write_text('\n'.join(map(json.dumps, records())) + '\n{"stamp": 7')
    check(path)
    path.write_text(json.dumps({'robot': 'arm', 'samples': records()}))
    check(path)
    named = {'t': TIME, 'names': JOINTS, 'q': Q, 'dq': DQ, 'tau': TAU}
    whole = {key: np.asarray(value).tolist() for key, value in named.items()}
    path.write_text(json.dumps(whole))
    check(path)
    rows = [
        dict(zip(named, row, strict=True))
        for row in zip(TIME, [JOINTS] * 600, Q, DQ, TAU, strict=True)
    ]
    lists = [{k: np.asarray(v).tolist() for k, v in row.items()} for row in rows]
    path.write_text(json.dumps(lists))
    check(path)
    path.write_text('{"stamp": 0.0')
    with pytest.raises(RecordingError, match='is no JSON'):
        check(path)


def test_what_ros2_topic_echo_prints_is_a_table(tmp_path):
    rows, documents = [], []
    for t, *states in zip(TIME, Q, DQ, TAU, strict=True):
        whole, rest = divmod(round((t + 100.0) * 1e9), 10**9)
        fields = ['', *JOINTS, *(float(x) for state in states for x in state)]
        rows.append(','.join(map(str, [whole, rest, *fields])))
        lists = zip(('position', 'velocity', 'effort'), states, strict=True)
        body = ''.join(f'{k}:\n' + ''.join(f'- {x}\n' for x in v) for k, v in lists)
        stamp = f"header:\n  stamp:\n    sec: {whole}\n    nanosec: {rest}\n  frame_id: ''\n"
        documents.append(f'{stamp}name:\n- base\n- elbow\n{body}---\n')
    (tmp_path / 'echo.csv').write_text('\n'.join(rows))
    check(tmp_path / 'echo.csv')
    (tmp_path / 'echo.txt').write_text(''.join(documents) + 'header:\n  stamp')
    check(tmp_path / 'echo.txt')


@pytest.mark.parametrize('form', ['{:.2f} sec', '"[{0}, {0}]"'])
def test_cells_that_hold_more_than_a_number_are_refused(tmp_path, form):
    values = columns(TIME, Q, DQ, TAU)
    values[0] = [form.format(t) for t in TIME]
    (tmp_path / 'a.csv').write_text(text(['t', *NAMES], values))
    with pytest.raises(RecordingError, match='no column that looks like time'):
        check(tmp_path / 'a.csv')


@pytest.mark.parametrize('time', [True, False])
def test_measurements_of_labview(tmp_path, time):
    header = ['X_Value', *NAMES, 'Comment']
    above = ['LabVIEW Measurement\t', 'Separator\tTab', '***End_of_Header***\t', '\t']
    above += [
        '\t'.join(['Samples', *['600'] * 6, '']),
        '\t'.join(['Date', *['2026/05/04'] * 6, '']),
    ]
    above += ['\t'.join(['Y_Unit_Label', *['deg'] * 2, *['deg/s'] * 2, *['mNm'] * 2, ''])]
    above += ['\t'.join(['Delta_X', *['0.010000'] * 6, '']), '***End_of_Header***' + '\t' * 7]
    first = TIME if time else [''] * len(TIME)
    values = [first, *columns(Q * DEGREES, DQ * DEGREES, TAU * 1e3)]
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


@pytest.mark.parametrize(
    ('start', 'words'),
    [
        (b'\x80\x04\x95rest', 'pickled.* save it as .npz or CSV'),
        (b'TDSm', 'TDMS.* export it as CSV'),
        (b'ARROW1', 'Feather of Arrow: save it as Parquet'),
        (b'\xd0\xcf\x11\xe0', 'old Excel: save it as .xlsx'),
    ],
)
def test_files_of_other_programs_are_told_what_to_do(tmp_path, start, words):
    path = tmp_path / 'log'
    path.write_bytes(start)
    with pytest.raises(RecordingError, match=words):
        open_table(path, ReadOptions())


@pytest.mark.parametrize(
    ('delimiter', 'between', 'decimal'),
    [(',', ',', '.'), (';', ',', '.'), (';', '.', ','), ('\t', '.', ','), (';', '\xa0', ',')],
)
def test_signs_between_thousands_are_passed_over(tmp_path, delimiter, between, decimal):
    signs = str.maketrans(',.', between + decimal)
    values = [
        [f'"{1000.0 * value:,.6f}"'.translate(signs) for value in column]
        for column in columns(TIME, Q, DQ, TAU)
    ]
    path = tmp_path / 'a.csv'
    path.write_text(text(['t [ms]', *NAMES], values, delimiter))
    check(path, 'position=rad*1e-3 velocity=rad/s*1e-3 effort=mNm')


@pytest.mark.parametrize('cell', ['1,234', '5 km', '1.2.3'])
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
