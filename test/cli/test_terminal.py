"""Text on a terminal: aligned whatever the letters; colours and progress where one watches."""

import io
import os
import time

import pytest

from robotid_ros.cli.terminal import (
    display_width,
    format_number,
    format_table,
    lines_above,
    print_error,
    print_paragraph,
    PrintableStream,
    ProgressBar,
)
from robotid_ros.cli.terminal.json_output import plain
from robotid_ros.cli.terminal.progress import BAR_WIDTH, TICK


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shares(terminal: Terminal) -> list[int]:
    """Return how much of the bar was full, each time that it was drawn."""
    return [text.count('█') for text in terminal.getvalue().split('\r\x1b[K') if '░' in text]


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
    lines = format_table(('a', 'b', 'c'), [('long ' * 9, 'longer ' * 9, '-12.5')]).split('\n')
    assert max(map(display_width, lines)) <= 30 and lines[2].endswith('-12.5')
    assert lines[2].count('…') == 2
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


def test_paragraphs_break_between_words(capsys):
    text = 'the URDF at /a/very/long/path-with-hyphens/and/more/of/it is of another robot ' * 3
    print_paragraph(text.strip(), 'warning')
    lines = capsys.readouterr().out.splitlines()
    assert max(map(display_width, lines)) <= 80 and all(x.startswith('  ') for x in lines[1:])
    assert ' '.join(line.strip() for line in lines) == f'warning: {text.strip()}'


def test_colours_are_for_terminals_that_want_them(monkeypatch):
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.delenv('NO_COLOR', raising=False)

    def shown(stream):
        monkeypatch.setattr('sys.stdout', PrintableStream(stream))
        print_paragraph('mind \x1b[2J this', 'warning')
        print_paragraph('fine', style='good')
        return stream.getvalue()

    coloured = shown(Terminal())
    assert coloured == '\x1b[33mwarning:\x1b[0m mind \\x1b[2J this\n\x1b[32mfine\x1b[0m\n'
    assert shown(io.StringIO()) == 'warning: mind \\x1b[2J this\nfine\n'
    monkeypatch.setenv('NO_COLOR', '1')
    assert '\x1b' not in shown(Terminal())
    monkeypatch.delenv('NO_COLOR')
    monkeypatch.setenv('TERM', 'dumb')
    assert '\x1b' not in shown(Terminal())


def test_errors_are_sentences_not_pages(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr('sys.stderr', stream)
    print_error(f'robotid: {"joint_1, " * 2000}: name them by --joints')
    assert len(stream.getvalue()) < 1100 and stream.getvalue().count('\n') == 1
    assert stream.getvalue().endswith('name them by --joints\n')
    terminal = Terminal()
    monkeypatch.setattr('sys.stderr', terminal)
    monkeypatch.setenv('NO_COLOR', '1')
    monkeypatch.setenv('COLUMNS', '60')
    print_error('robotid: ' + 'some words ' * 20)
    assert max(map(len, terminal.getvalue().splitlines())) <= 60


def test_progress_shows_on_a_terminal_only():
    silent, shown = io.StringIO(), Terminal()
    for stream in (silent, shown):
        with ProgressBar(2, stream) as progress:
            progress.step('reading')
            progress.step('thinking')
    assert silent.getvalue() == ''
    assert 'thinking' in shown.getvalue() and shown.getvalue().endswith('\r\x1b[K')


def test_progress_never_goes_back_and_is_full_at_no_step():
    terminal = Terminal()
    with ProgressBar((('reading', 1.0), ('estimating', 8.0), ('writing', 1.0)), terminal) as bar:
        bar.step('reading')
        bar.share(0.5)
        bar.step('estimating')
        for iteration in range(40):
            bar.step(f'iteration {iteration}')
        bar.show(0.3, 'what is told twice')
        within = bar.fraction
        bar.step('writing')
        assert 0.1 < within < 0.9 <= bar.fraction < 1.0
    drawn = shares(terminal)
    assert (
        drawn == sorted(drawn) and drawn[-1] < BAR_WIDTH and 'iteration 39' in terminal.getvalue()
    )


def test_a_plan_that_becomes_known_later_is_taken():
    bar = ProgressBar((('reading', 1.0), ('estimating', 1.0)), io.StringIO())
    bar.step('reading')
    bar.plan((('reading', 1.0), ('estimating', 98.0), ('writing', 1.0)))
    bar.step('estimating')
    bar.share(0.5)
    assert bar.fraction == pytest.approx(0.5)


def test_the_clock_ticks_while_a_step_lasts():
    terminal = Terminal()
    with ProgressBar(1, terminal) as progress:
        progress.step('thinking')
        deadline = time.monotonic() + 100 * TICK
        while terminal.getvalue().count('thinking') < 3 and time.monotonic() < deadline:
            time.sleep(TICK / 5)
    assert terminal.getvalue().count('thinking') >= 3


def test_what_others_log_stands_above_the_bar(monkeypatch, tmp_path):
    """By file descriptor, as ROS logs: of this process and of those that it starts."""

    class Watched:
        """A terminal on file descriptor 2."""

        encoding = 'utf-8'
        isatty, write, flush = (lambda _: True), (lambda _, text: None), (lambda _: None)

    target = os.open(tmp_path / 'terminal', os.O_RDWR | os.O_CREAT)
    before = os.dup(2)
    os.dup2(target, 2)
    try:
        monkeypatch.setattr('sys.stderr', Watched())
        with ProgressBar(1) as bar, lines_above(bar):
            bar.step('waiting')
            os.write(2, b'[ERROR] from C\n[WARN] cut')
            os.system('echo [ERROR] from a process >&2')
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(target)
    written = (tmp_path / 'terminal').read_bytes().decode()
    assert '\r\x1b[K[ERROR] from C\n' in written
    assert '\r\x1b[K[WARN] cut[ERROR] from a process\n' in written


def test_json_has_no_numbers_that_are_none(tmp_path):
    np = pytest.importorskip('numpy')
    found = plain({'a': (np.float64('nan'), np.arange(2)), 'b': tmp_path, 'c': float('inf')})
    assert found == {'a': [None, [0, 1]], 'b': str(tmp_path), 'c': None}
    with pytest.raises(TypeError):
        plain(object())
