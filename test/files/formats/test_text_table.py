"""Tables as text, of every form that loggers write."""

import gzip

from hypothesis import given, strategies as st
import numpy as np
import pytest

from robotid_ros.exceptions import RecordingError
from robotid_ros.files.formats.text_table import read_text_table

ROWS = np.array([[0.0, 1.5, -2.25], [0.1, 1.625, 3e-5], [0.2, 1.75, 4e10], [0.3, -1.0, 0.0]])
NAMES = ['t', 'q1', 'tau1']


def lines(delimiter, header=True, decimal='.', names=NAMES):
    body = [delimiter.join(repr(float(x)).replace('.', decimal) for x in row) for row in ROWS]
    return [*([delimiter.join(names)] if header else []), *body]


def read(path):
    table = read_text_table(path)
    return table, np.column_stack([*table.read(list(table.names)).values()])


@pytest.mark.parametrize('delimiter', [',', ';', '\t', '|', ' ', '   ', ', ', '\t '])
@pytest.mark.parametrize('end', ['\n', '\r\n'])
@pytest.mark.parametrize('header', [True, False])
def test_any_delimiter_is_found(tmp_path, delimiter, end, header):
    path = tmp_path / 'a.csv'
    path.write_bytes((end.join(lines(delimiter, header)) + end).encode())
    table, values = read(path)
    assert list(table.names) == (NAMES if header else ['column1', 'column2', 'column3'])
    assert table.has_header == header
    np.testing.assert_array_equal(values, ROWS)


@pytest.mark.parametrize(
    'change',
    [
        lambda rows: ['# a logger', '# of 2024', *rows],
        lambda rows: [f'# {rows[0]}', *rows[1:]],
        lambda rows: [f'%{rows[0]}', *rows[1:]],
        lambda rows: ['Robot;arm', '', 'Rate;100', '', *rows],
        lambda rows: [f'{row};' for row in rows],
        lambda rows: [rows[0], '', *rows[1:], '', ''],
        lambda rows: [';'.join(f'"{cell}"' for cell in row.split(';')) for row in rows],
    ],
)
def test_what_surrounds_a_table_is_passed_over(tmp_path, change):
    path = tmp_path / 'a.csv'
    path.write_text('\n'.join(change(lines(';'))))
    table, values = read(path)
    assert list(table.names) == NAMES
    np.testing.assert_array_equal(values, ROWS)


def test_decimal_commas_are_numbers(tmp_path):
    path = tmp_path / 'a.csv'
    path.write_text('\n'.join(lines(';', decimal=',')))
    np.testing.assert_array_equal(read(path)[1], ROWS)


def test_a_row_of_units_belongs_to_the_names(tmp_path):
    path = tmp_path / 'a.csv'
    head, *body = lines(',')
    path.write_text('\n'.join([head, '[s],deg,Nm', *body]))
    assert list(read(path)[0].names) == ['t [s]', 'q1 [deg]', 'tau1 [Nm]']


@pytest.mark.parametrize('encoding', ['utf-8-sig', 'utf-16', 'latin-1'])
def test_encodings_are_found(tmp_path, encoding):
    path = tmp_path / 'a.csv'
    names = ['t', 'q1 [°]', 'tau1']
    path.write_bytes('\n'.join(lines(',', names=names)).encode(encoding))
    table, values = read(path)
    assert list(table.names) == names
    np.testing.assert_array_equal(values, ROWS)


def test_a_compressed_table_is_read(tmp_path):
    path = tmp_path / 'a.csv.gz'
    path.write_bytes(gzip.compress('\n'.join(lines(',')).encode()))
    np.testing.assert_array_equal(read(path)[1], ROWS)


def test_missing_values_are_nan_and_texts_no_columns(tmp_path):
    path = tmp_path / 'a.csv'
    path.write_text('t,q1,mode,tau1\n0,1,run,2\n1,,run,3\n2,NaN,stop,n/a\n3,4,stop\n')
    table, values = read(path)
    assert (list(table.names), dict(table.texts)) == (['t', 'q1', 'tau1'], {'mode': 'run'})
    nan = np.nan
    np.testing.assert_array_equal(values, [[0, 1, 2], [1, nan, 3], [2, nan, nan], [3, 4, nan]])


EMPTY_CELLS = {
    'in the first row': [(0, 2)],
    'in the last column': [(1, 2), (2, 2)],
    'at the start': [(0, 0)],
    'in every other row': [(0, 1), (1, 2), (2, 1), (3, 2)],
}


@pytest.mark.parametrize('delimiter', [',', ';', '\t'])
@pytest.mark.parametrize('empty', EMPTY_CELLS.values(), ids=list(EMPTY_CELLS))
def test_empty_cells_are_neutral(tmp_path, delimiter, empty):
    path = tmp_path / 'a.csv'
    values = np.tile(ROWS, (2, 1))
    body = [[repr(float(x)) for x in row] for row in values]
    for row, column in empty:
        body[row][column], values[row, column] = '', np.nan
    path.write_text('\n'.join([delimiter.join(row) for row in [NAMES, *body]]))
    table, found = read(path)
    assert list(table.names) == NAMES
    np.testing.assert_array_equal(found, values)


def test_a_column_that_stays_empty_keeps_its_name(tmp_path):
    path = tmp_path / 'a.csv'
    path.write_text('\n'.join([','.join([*NAMES, 'comment']), *(f'{x},' for x in lines(',')[1:])]))
    table, values = read(path)
    assert list(table.names) == [*NAMES, 'comment']
    np.testing.assert_array_equal(values[:, :3], ROWS)
    assert np.isnan(values[:, 3]).all()


def test_columns_of_different_rates_stand_side_by_side(tmp_path):
    path = tmp_path / 'a.csv'
    rows = [f'{k},{k},{-k},,' if k % 4 == 1 else f'{k},,,1.5,{k}' for k in range(400)]
    path.write_text('\n'.join(['__time,q1,tau1,imu_x,imu_y', *rows]))
    table, values = read(path)
    assert list(table.names) == ['__time', 'q1', 'tau1', 'imu_x', 'imu_y']
    np.testing.assert_array_equal(values[1::4, 2], -np.arange(400)[1::4])
    assert np.isnan(values[::4, 1:3]).all()


@pytest.mark.parametrize('delimiter', [';', '\t'])
@pytest.mark.parametrize('columns', [2, 3])
def test_decimal_commas_are_no_delimiters(tmp_path, delimiter, columns):
    path = tmp_path / 'a.csv'
    values = [f'{k},{k}' for k in range(9)]
    head = delimiter.join(NAMES[:columns])
    path.write_text('\n'.join([head, *(delimiter.join([v] * columns) for v in values)]))
    table, found = read(path)
    assert list(table.names) == NAMES[:columns]
    expected = [float(value.replace(',', '.')) for value in values]
    np.testing.assert_array_equal(found.T, [expected] * columns)


def test_a_header_between_dates_spoils_its_own_row_only(tmp_path):
    path = tmp_path / 'a.csv'
    stamps = [f'2024-01-31 12:00:0{k}+01:00' for k in range(6)]
    rows = [f'{s},1,2' for s in stamps]
    path.write_text('\n'.join(['time,q1,tau1', *rows[:3], 'time,q1,tau1', *rows[3:]]))
    time = read(path)[1][:, 0]
    assert np.isnan(time[3]) and len(time) == 7
    np.testing.assert_allclose(np.diff(time[[0, 1, 2, 4, 5, 6]]), 1.0)


def test_files_behind_each_other_with_other_columns_are_refused(tmp_path):
    path = tmp_path / 'a.csv'
    path.write_text('\n'.join([*lines(','), *lines(',')]))
    assert np.isnan(read(path)[1]).all(axis=1).sum() == 1
    path.write_text('\n'.join([*lines(','), *lines(',', names=['t', 'tau1', 'q1'])]))
    with pytest.raises(RecordingError, match='another header further down, t, tau1, q1: split'):
        read(path)
    path.write_text('\n'.join([*lines(','), *lines(',', names=['clock', 'tau1', 'q1'])]))
    with pytest.raises(RecordingError, match='another header further down, clock, tau1, q1: spl'):
        read(path)


def test_a_header_that_comes_again_is_no_other_one(tmp_path):
    path = tmp_path / 'a.csv'
    for head in ('t,q1,tau1,', 't,q1,tau1,q1', 't,q1,tau1,q1 (2)'):
        rows = [f'{0.01 * k:.2f},{k % 7},{k % 3},' for k in range(40)]
        path.write_text('\n'.join([head, *rows[:20], head, *rows[20:]]))
        assert np.isnan(read(path)[1][:, 0]).sum() == 1


def test_dates_are_seconds(tmp_path):
    path = tmp_path / 'a.csv'
    stamps = ['2024-01-31 12:00:00.25', '2024-01-31T12:00:01', '2024-01-31 12:00:02Z']
    path.write_text('time,q1,tau1\n' + ''.join(f'{s},1,2\n' for s in stamps))
    time = read(path)[1][:, 0]
    np.testing.assert_allclose(time - time[0], [0.0, 0.75, 1.75], atol=1e-6)
    assert time[0] == pytest.approx(1706702400.25, abs=1e-6)


JSON_LINES = ''.join(f'{{"t": {t}, "q": [{t}, 1, 2], "tau": [3, 4, 5]}}\n' for t in range(9))


@pytest.mark.parametrize('text', ['', 'hello world\n', 'a,b\nc,d\n', '{"t": [1, 2]}', JSON_LINES])
def test_what_is_no_table_is_one_sentence(tmp_path, text):
    path = tmp_path / 'a.csv'
    path.write_text(text)
    with pytest.raises(RecordingError, match='holds no table of numbers'):
        read_text_table(path)


def test_repeated_and_empty_names_become_unique(tmp_path):
    path = tmp_path / 'a.csv'
    path.write_text('\n'.join(lines(',', names=['t', '', 't'])))
    assert list(read(path)[0].names) == ['t', 'column2', 't (2)']


@given(
    st.integers(2, 5).flatmap(
        lambda n: st.lists(
            st.lists(st.floats(width=64), min_size=n, max_size=n), min_size=1, max_size=30
        )
    ),
    st.sampled_from([',', ';', '\t', ' ']),
)
def test_every_number_survives(tmp_path_factory, rows, delimiter):
    path = tmp_path_factory.mktemp('text') / 'a.csv'
    names = delimiter.join(f'x{k}' for k in range(len(rows[0])))
    body = '\n'.join(delimiter.join(map(repr, row)) for row in rows)
    path.write_text(f'{names}\n{body}\n')
    np.testing.assert_array_equal(read(path)[1], rows)
