"""Text on a terminal: aligned whatever the letters; colours and progress where one watches."""

import ast
import io
import os
from pathlib import Path
import pty
import re
import subprocess
import sys
import time

import pytest
from rich.cells import cell_len
from waiting import PATIENCE

import robotid_ros.cli
from robotid_ros.cli.terminal import (
    format_measured,
    format_number,
    format_percent,
    format_table,
    plain,
    print_error,
    print_findings,
    print_paragraph,
    ProgressBar,
)
from robotid_ros.core.findings import finding

ROOT = Path(robotid_ros.cli.__file__).parent


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Make standard output and standard error a terminal that shows colours."""
    monkeypatch.setenv('TERM', 'xterm')
    for name in ('NO_COLOR', 'FORCE_COLOR', 'COLORTERM'):
        monkeypatch.delenv(name, raising=False)

    def terminal() -> Terminal:
        stream = Terminal()
        monkeypatch.setattr('sys.stdout', stream)
        monkeypatch.setattr('sys.stderr', stream)
        return stream

    return terminal


def on_a_terminal(script: str) -> str:
    """Run a script whose standard error is a terminal; return what reaches it."""
    inside, outside = pty.openpty()
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path), 'TERM': 'xterm'}
    command = [sys.executable, '-c', script]
    with subprocess.Popen(command, stderr=outside, env=environment) as process:
        os.close(outside)
        shown, deadline = b'', time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                shown += os.read(inside, 4096)
            except OSError:  # the other end is closed
                break
        assert process.wait() == 0
    os.close(inside)
    return shown.decode().replace('\r\n', '\n')


def test_verbs_print_through_the_terminal_alone():
    """What they print is made printable there."""
    for path in ROOT.glob('*.py'):
        names = {n.func.id for n in ast.walk(ast.parse(path.read_text())) if is_call(n)}
        assert 'print' not in names or path.name == 'terminal.py', path


def is_call(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def test_numbers_align_on_the_right():
    text = format_table(('name', 'χ'), [('a', '1.5'), ('joint', '-22.25'), ('b', '—')], '<>')
    lines = text.split('\n')
    assert {len(line) for line in lines} == {len('joint') + 2 + len('-22.25')}
    assert lines[2].endswith('   1.5')


def test_tables_without_rows_keep_their_header():
    assert format_table(('a', 'b'), [], '<<') == 'a  b\n────'


def test_a_text_at_the_end_of_a_table_fits_the_terminal(terminal, monkeypatch):
    """It wraps below itself, and not a letter of it is lost; numbers stay whole."""
    monkeypatch.setenv('COLUMNS', '40')
    terminal()
    lines = format_table(('name', 'text'), [('x', 'a very long text ' * 4)], '<<').split('\n')
    assert max(map(cell_len, lines)) <= 40
    assert ' '.join(lines[2:]).split() == ['x', *'a very long text '.split() * 4]
    assert {line[:6] for line in lines[3:]} == {' ' * 6}
    number = '-0.00075012345678901234'
    monkeypatch.setenv('COLUMNS', '12')
    assert number in format_table(('name', 'value'), [('/topic/of/one/word', number)], '<>')


def test_a_table_in_a_pipe_is_whole():
    row = ('/a/topic/' * 30, '1.5', 'a text of words ' * 20)
    assert format_table(('a', 'b', 'c'), [row], '<><').split('\n')[2] == '  '.join(row).rstrip()


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        (1234.5678, '1235'),
        (0.00012345678, '0.0001235'),
        (1.0e-9, '1.000e-09'),
        (123456.0, '123500'),
        (12345678.0, '1.235e+07'),
        (float('nan'), '—'),
        (float('inf'), '∞'),
        (0.0, '0'),
    ],
)
def test_numbers_keep_four_digits(value, text):
    assert format_number(value) == text


@pytest.mark.parametrize(
    ('share', 'text'),
    [(0.0083, '0.83 %'), (0.247, '24.7 %'), (1.38, '138 %'), (300.849, '30100 %')],
)
def test_shares_keep_the_digits_that_one_reads(share, text):
    assert format_percent(share) == text


def test_findings_of_one_code_say_their_remedy_once(capsys):
    clipped = [finding('effort_clipped', [name], share=0.05) for name in ('a', 'b')]
    times = {'jump': 1.0, 'unit': 'N·m', 'start': 0.5, 'stop': 1.0}
    jumps = [finding('friction_jump', ['a'], since=since, **times) for since in (1.0, 2.0)]
    print_findings([*clipped, *jumps, finding('rows_interpolated')], every=False)
    said = ' '.join(capsys.readouterr().out.split())
    assert said.count('F217') == said.count('Run a slower trajectory') == 1
    assert said.count('is clipped in 5.0 %') == 2
    assert said.count('error F408') == 2 and '--to 1.00' in said and '--to 2.00' in said
    assert said.endswith('more F114: --all shows them, robotid explain CODE')


@pytest.mark.parametrize(
    ('value', 'sigma', 'text'),
    [
        (1.5006123, 0.00712, ('1.5006', '0.0071')),
        (-123.456, 4.2, ('-123.5', '4.2')),
        (12345.6, 420.0, ('12350', '420')),
        (2.0, float('inf'), ('2', '∞')),
    ],
)
def test_values_are_rounded_to_their_sigma(value, sigma, text):
    assert format_measured(value, sigma) == text


def test_paragraphs_break_between_words(capsys):
    text = 'the URDF at /a/very/long/path-with-hyphens/and/more/of/it is of another robot ' * 3
    print_paragraph(text.strip(), 'warning')
    lines = capsys.readouterr().out.splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert {line[:9] for line in lines} == {'warning  ', ' ' * 9}
    assert ' '.join(line[9:] for line in lines) == text.strip()


def test_colours_are_for_terminals_that_want_them(terminal, monkeypatch):
    def shown():
        stream = terminal()
        print_paragraph('mind \x1b[2J this [bold]', 'warning')
        print_paragraph('fine', style='good')
        return stream.getvalue()

    escaped = 'mind \\x1b[2J this [bold]'
    assert shown() == f'\x1b[33mwarning\x1b[0m  {escaped}\n\x1b[32mfine\x1b[0m\n'
    monkeypatch.setenv('NO_COLOR', '1')
    assert shown() == f'warning  {escaped}\nfine\n'
    monkeypatch.delenv('NO_COLOR')
    monkeypatch.setenv('TERM', 'dumb')
    assert shown() == f'warning  {escaped}\nfine\n'
    monkeypatch.setattr('sys.stdout', io.StringIO())
    print_paragraph('mind \x1b[2J this [bold]', 'warning')
    assert sys.stdout.getvalue() == f'warning  {escaped}\n'


def test_errors_are_sentences_not_pages(terminal, monkeypatch):
    monkeypatch.setenv('NO_COLOR', '1')
    monkeypatch.setenv('COLUMNS', '60')
    stream = terminal()
    print_error('some words ' * 20)
    assert max(map(len, stream.getvalue().splitlines())) <= 60


def test_there_is_no_progress_without_a_terminal(capfd):
    with ProgressBar() as progress:
        progress.step('reading')
    assert capfd.readouterr().err == ''


def test_the_bar_is_drawn_ticks_and_goes(tmp_path):
    shown = on_a_terminal(
        'import time\n'
        'from robotid_ros.cli.terminal import ProgressBar\n'
        'with ProgressBar() as bar:\n'
        '    bar.step("thinking [of] it")\n'
        '    bar.share(0.5)\n'
        '    time.sleep(2.5)\n'
    )
    assert re.search('━', shown) and 'thinking [of] it' in shown
    assert {' 0 s', ' 1 s', ' 2 s'} <= set(re.findall(r' \d s', shown))
    # The line is erased, and the cursor is there again.
    assert shown.rstrip().endswith('\x1b[2K') and '\x1b[?25h' in shown


def test_what_is_logged_stands_above_the_bar():
    shown = on_a_terminal(
        'import sys\n'
        'from robotid_ros.cli.terminal import ProgressBar\n'
        'with ProgressBar() as bar:\n'
        '    bar.step("waiting")\n'
        '    print("[WARN] a word", file=sys.stderr)\n'
    )
    text = re.sub(r'\x1b\[[\d?]*[A-Za-z]', '', shown).replace('\r', '\n')
    assert [line.strip() for line in text.split('\n')].count('[WARN] a word') == 1, shown


def test_json_has_no_numbers_that_are_none(tmp_path):
    np = pytest.importorskip('numpy')
    found = plain({'a': (np.float64('nan'), np.arange(2)), 'b': tmp_path, 'c': float('inf')})
    assert found == {'a': [None, [0, 1]], 'b': str(tmp_path), 'c': None}
