"""Text on a terminal: aligned whatever the letters, silent where nobody watches."""

import io

import pytest

from robotid_ros.cli.terminal import display_width, format_number, format_table, ProgressBar


def test_columns_align_by_width_not_by_letters():
    text = format_table(('name', 'χ'), [('関節', '1.5'), ('joint', '-22.25'), ('e\u0301', '—')])
    lines = text.split('\n')
    assert {display_width(line) for line in lines} == {
        display_width('joint') + 2 + display_width('-22.25')
    }
    assert lines[2].endswith('   1.5')


def test_tables_without_rows_keep_their_header():
    assert format_table(('a', 'b'), []) == 'a  b\n─  ─'


def test_a_table_fits_the_terminal(monkeypatch):
    monkeypatch.setattr('sys.stdout.isatty', lambda: True, raising=False)
    monkeypatch.setenv('COLUMNS', '30')
    lines = format_table(('name', 'text'), [('x', 'a very long text ' * 4)]).split('\n')
    assert max(map(display_width, lines)) <= 30 and lines[2].endswith('…')
    numbers = format_table(('name', 'value'), [('a long name', '-0.00075012345678901234')]).split(
        '\n'
    )
    assert numbers[2].endswith('-0.00075012345678901234') and 'a long …' in numbers[2]


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        (1234.5678, '1235'),
        (0.00012345678, '0.0001235'),
        (1.0e-9, '1.000e-09'),
        (123456.0, '1.235e+05'),
        (float('nan'), '—'),
        (float('inf'), '∞'),
        (0.0, '0'),
    ],
)
def test_numbers_keep_four_digits(value, text):
    assert format_number(value) == text


def test_progress_shows_on_a_terminal_only():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    silent, shown = io.StringIO(), Terminal()
    for stream in (silent, shown):
        with ProgressBar(2, stream) as progress:
            progress.step('reading')
            progress.step('thinking')
    assert silent.getvalue() == ''
    assert 'thinking' in shown.getvalue() and shown.getvalue().endswith('\r\x1b[K')
