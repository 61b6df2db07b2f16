"""`robotid design` writes what it promises, and says in one sentence what is wrong."""

from pathlib import Path

import pytest

from robotid_ros.cli.main import main
from robotid_ros.files.trajectory_file import read_design

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'scara.yaml'


def design(*arguments):
    return main(['design', *map(str, arguments)])


def test_writes_trajectory_and_picture(tmp_path, capsys):
    file, picture = tmp_path / 'trajectory.yaml', tmp_path / 'picture.png'
    assert design(CONFIG, '-o', file, '--plot', picture, '--seed', 4) == 0
    result = read_design(file)
    assert result.seed == 4
    assert result.trajectory.hash in capsys.readouterr().out
    assert picture.read_bytes().startswith(b'\x89PNG')


def test_a_poor_design_is_written_and_has_an_exit_code_of_its_own(tmp_path, capsys):
    """No time at all: what is imported for a design takes its time, too."""
    file = tmp_path / 'trajectory.yaml'
    assert design(CONFIG, '-o', file, '--time-limit', 1e-3) == 3
    assert read_design(file).verdict == 'poor'
    assert 'the design is poor: the search was stopped' in capsys.readouterr().err


def test_never_replaces_a_trajectory_unasked(tmp_path, capsys):
    file = tmp_path / 'trajectory.yaml'
    file.write_text('precious')
    assert design(CONFIG, '-o', file) == 1
    assert file.read_text() == 'precious'
    assert '--force' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [(('nowhere.yaml',), 'nowhere.yaml'), ((CONFIG, '--seed', -1), '--seed')],
)
def test_errors_are_one_sentence(tmp_path, capsys, arguments, words):
    assert design(*arguments, '-o', tmp_path / 'trajectory.yaml') == 1
    error = capsys.readouterr().err
    assert words in error
    assert error.count('\n') == 1
