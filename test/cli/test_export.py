"""`robotid export`: files for other programs, none of them replaced unasked."""

import dataclasses
from xml.etree import ElementTree

from identified_models import saved
import numpy as np
import pytest
import yaml

from robotid_ros.core.verdict import GOOD, Verdict
from robotid_ros.files.export.export import EXPORT_FORMATS
from robotid_ros.files.results import read_results, write_results

from .conftest import unwrapped


@pytest.fixture
def results(tmp_path, scara):
    robot, chi = scara
    chi = np.where([p.symbol == 'Ia' for p in robot.parameters], 0.1, chi)
    return saved(tmp_path / 'results', robot, chi)


def content(path):
    """Return the bytes of a file, or of the files of a folder."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return b''.join(file.read_bytes() for file in files)


@pytest.mark.parametrize(
    'kind', [kind for kind in EXPORT_FORMATS if kind not in ('ros2_controller', 'ranges')]
)
def test_every_format_is_written_beside_the_results(run, results, kind):
    path = results / f'scara{EXPORT_FORMATS[kind].suffix}'
    code, said, err = run('export', results / 'parameters.yaml', '--format', kind)
    assert (code, err) == (0, '') and unwrapped(said).endswith(f'written {path}\n')
    data = content(path)
    code, out, err = run('export', results, '--format', kind)
    assert (code, out) == (1, '') and 'add --force' in err and content(path) == data
    assert run('export', results, '--format', kind, '--force')[0] == 0
    notes = [line for line in unwrapped(said).splitlines() if line.startswith('note ')]
    text = data.decode(errors='replace')
    assert all(line.removeprefix('note ') in text for line in notes)
    if path.suffix in ('.xml', '.sdf', '.urdf'):
        assert len(ElementTree.fromstring(data)) > 0
    elif kind == 'moveit':
        manager = yaml.safe_load(text)['moveit_simple_controller_manager']
        assert manager['feedforward']['joints'] == ['joint_1', 'joint_2']
    elif path.suffix == '.yaml':
        assert set(yaml.safe_load(text)) == {'base_link', 'link_1', 'link_2'}


def test_a_controller_is_a_folder(run, results):
    command = ('export', results, '--format', 'ros2_controller')
    code, out, err = run(*command)
    assert (code, out) == (1, '') and 'no controller is written' in err and err.count('\n') == 1
    known = dataclasses.replace(read_results(results), verdict=Verdict(GOOD, ''))
    write_results(known, results)
    code, said, err = run(*command)
    path = results / 'scara_dynamics'
    assert (code, err) == (0, '') and unwrapped(said).endswith(f'written {path}\n')
    files = {str(each.relative_to(path)) for each in path.rglob('*') if each.is_file()}
    assert files == {
        'CMakeLists.txt',
        'README.md',
        'include/scara_dynamics/compensation.hpp',
        'include/scara_dynamics/dynamics.hpp',
        'include/scara_dynamics/model.hpp',
        'package.xml',
        'plugin.xml',
        'src/controller.cpp',
        'src/dynamics.cpp',
        'src/parameters.yaml',
    }
    assert ElementTree.parse(path / 'package.xml').findtext('name') == 'scara_dynamics'
    plugin = ElementTree.parse(path / 'plugin.xml').find('class').get('name')
    readme = (path / 'README.md').read_text()
    blocks = [block.split('```')[0] for block in readme.split('```yaml\n')[1:]]
    (manager,) = map(yaml.safe_load, blocks)
    assert manager['controller_manager']['ros__parameters']['arm_dynamics'] == {'type': plugin}
    assert 'masses and inertias are one choice' in readme
    assert set(yaml.safe_load((path / 'src/parameters.yaml').read_text())) == {'scara_dynamics'}
    code, _, err = run(*command)
    assert code == 1 and 'add --force' in err
    assert run(*command, '--force')[0] == 0


def test_what_a_format_lacks_is_said(run, results):
    _, out, _ = run('export', results, '--format', 'sdf')
    said = unwrapped(out)
    assert 'note rotor inertias' in said and 'note masses and inertias are one choice' in said


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (('--format', 'csv', '-o', 'parameters.yaml/x'), 'parameters.yaml'),
    ],
)
def test_what_cannot_be_done_is_one_sentence(run, results, monkeypatch, options, words):
    monkeypatch.chdir(results)
    code, out, err = run('export', results, *options)
    assert (code, out) == (1, '') and words in err and err.count('\n') == 1 and 'a bug' not in err


def test_results_that_are_none_are_named(run, tmp_path):
    code, _, err = run('export', tmp_path, '--format', 'csv')
    assert code == 1 and 'parameters.yaml' in err
