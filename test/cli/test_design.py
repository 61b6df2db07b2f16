"""`robotid design` writes what it promises, and says in one sentence what is wrong."""

import json
from pathlib import Path
import sys

import pytest
import yaml

from robotid_ros.cli.main import main
from robotid_ros.files.trajectory_file import read_design

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'scara.yaml'


def design(*arguments):
    return main(['design', *map(str, arguments)])


def test_writes_trajectory_and_page(tmp_path, capsys):
    file = tmp_path / 'trajectory.yaml'
    assert design(CONFIG, '-o', file, '--seed', 4) == 0
    result, page = read_design(file), (tmp_path / 'trajectory.html').read_text()
    assert result.seed == 4
    out = capsys.readouterr().out
    assert result.trajectory.hash in out
    assert f'page {tmp_path}/trajectory.html' in ' '.join(out.split())
    # What was used is in the page: hash, option, command.
    command = f'robotid design {CONFIG} -o {file} --seed 4'
    assert all(text in page for text in (result.trajectory.hash, 'seed: 4', command))


def test_the_page_is_named_for_other_programs(tmp_path, capsys):
    file = tmp_path / 'trajectory.yaml'
    assert design(CONFIG, '-o', file, '--time-limit', 5, '--json') in (0, 3)
    assert json.loads(capsys.readouterr().out)['page'] == str(tmp_path / 'trajectory.html')


def test_without_its_plotting_library_there_is_a_trajectory_and_a_warning(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, 'bokeh', None)
    assert design(CONFIG, '-o', tmp_path / 'trajectory.yaml', '--time-limit', 5) in (0, 3)
    assert [path.name for path in tmp_path.iterdir()] == ['trajectory.yaml']
    assert 'warning the page needs bokeh' in ' '.join(capsys.readouterr().out.split())


def test_a_poor_design_is_written_and_has_an_exit_code_of_its_own(tmp_path, capsys):
    """No time at all: what is imported for a design takes its time, too."""
    file = tmp_path / 'trajectory.yaml'
    assert design(CONFIG, '-o', file, '--time-limit', 1e-3) == 3
    assert read_design(file).verdict == 'poor'
    assert 'the design is poor: The search was stopped' in capsys.readouterr().err


@pytest.mark.parametrize('name', ['trajectory.yaml', 'trajectory.html'])
def test_never_replaces_a_file_unasked(tmp_path, capsys, name):
    (tmp_path / name).write_text('precious')
    assert design(CONFIG, '-o', tmp_path / 'trajectory.yaml') == 1
    assert [path.read_text() for path in tmp_path.iterdir()] == ['precious']
    error = capsys.readouterr().err
    assert name in error and '--force' in error


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [(('nowhere.yaml',), 'nowhere.yaml'), ((CONFIG, '--seed', -1), '--seed')],
)
def test_errors_are_one_sentence(tmp_path, capsys, arguments, words):
    assert design(*arguments, '-o', tmp_path / 'trajectory.yaml') == 1
    error = capsys.readouterr().err
    assert words in error
    assert error.count('\n') == 1


def test_the_next_motion_is_for_what_results_leave_unknown(run, bag, tmp_path):
    folder, file = tmp_path / 'identified', tmp_path / 'next.yaml'
    assert run('identify', bag, '-c', CONFIG, '-o', folder)[0] == 0
    code, out, _ = run('design', CONFIG, '-o', file, '--time-limit', 10, '--known', folder)
    assert code == 0 and 'F815' in out
    (note,) = [each for each in read_design(file).notes if each.code == 'F815']
    assert 0.0 < note.values['after'] < note.values['before'] < 0.2
    code, _, error = run(
        *('design', CONFIG, '-o', file, '--force', '--known', folder, '--payload', 2)
    )
    assert code == 1 and 'not for a payload' in error
    values = yaml.safe_load((folder / 'parameters.yaml').read_text())
    del values['data']['to']
    (folder / 'parameters.yaml').write_text(yaml.safe_dump(values))
    code, _, error = run('design', CONFIG, '-o', file, '--force', '--known', folder)
    assert code == 1 and 'lack the duration' in error and 'identify again' in error
