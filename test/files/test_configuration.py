"""A configuration says what it means, or which key is wrong."""

from pathlib import Path

import pytest
import yaml

from robotid_ros.exceptions import ConfigurationError, FileError
from robotid_ros.files.configuration import from_mapping, load, read_mapping, read_urdf, resolve

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / 'robot.yaml'
        path.write_text(text)
        return path

    return write


def nested(**groups):
    return yaml.safe_dump({'/**': {'ros__parameters': groups}})


def test_groups_reach_their_settings(write):
    path = write(
        nested(
            robot={'name': 'x', 'joints': ['a', 'b'], 'gravity': [0, 0, -9.81], 'urdf': 'x.urdf'},
            identification={'method': 'ols', 'signals': {'cutoff': 5}},
            use_sim_time=True,
        )
    )
    configuration = load(path)
    assert configuration.robot.joints == ('a', 'b')
    assert configuration.robot.gravity == (0.0, 0.0, -9.81)
    assert configuration.robot.urdf == str(path.parent / 'x.urdf')
    assert configuration.identification.method == 'ols'
    assert configuration.identification.signals.cutoff == 5.0


@pytest.mark.parametrize(
    ('groups', 'sentence'),
    [
        ({'robott': {}}, "unknown key 'robott': did you mean 'robot'?"),
        ({'robot': {'jonits': []}}, "unknown key 'robot.jonits'"),
        ({'robot': {'joints': 'a'}}, "'robot.joints' must be a list, not 'a'"),
        ({'robot': {'name': 7}}, "'robot.name' must be of type str"),
        ({'robot': 'tx40'}, "'robot' must be a group of keys"),
        ({'identification': {'signals': {'cutoff': -1}}}, 'must be at least 0'),
        ({'identification': {'method': 'magic'}}, 'use one of auto, ols, wls'),
    ],
)
def test_what_is_wrong_is_named_with_key_and_file(write, groups, sentence):
    path = write(nested(**groups))
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    assert sentence in str(caught.value) and 'robot.yaml' in str(caught.value)


@pytest.mark.parametrize(
    'text', ['', 'a: 1', '/**: 3', '/**: {parameters: {}}', '/**: {ros__parameters: 3}', '- 1']
)
def test_other_files_are_refused(write, text):
    with pytest.raises(ConfigurationError, match='ros__parameters'):
        load(write(text))


def test_a_key_given_twice_and_broken_yaml_are_refused(write):
    with pytest.raises(ConfigurationError, match='given twice'):
        load(write('/**:\n  ros__parameters:\n    robot: {name: a}\n    robot: {name: b}\n'))
    with pytest.raises(ConfigurationError, match='not valid YAML'):
        load(write('/**: [\n'))
    with pytest.raises(FileError, match='no such file'):
        load('/nowhere/robot.yaml')


def test_descriptions_are_found_by_package_and_by_path(tmp_path, monkeypatch):
    share = tmp_path / 'share'
    (share / 'ament_index/resource_index/packages').mkdir(parents=True)
    (share / 'ament_index/resource_index/packages/arm_description').touch()
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    found = resolve('package://arm_description/urdf/a%20b.urdf')
    assert found == share / 'arm_description' / 'urdf' / 'a b.urdf'
    with pytest.raises(FileError, match="'other' is not installed"):
        resolve('package://other/x.urdf')
    assert resolve('x.urdf', '/etc/robots') == Path('/etc/robots/x.urdf')
    assert resolve('/a/b.urdf', '/etc') == Path('/a/b.urdf')
    assert resolve('file:///a/b%20c.urdf') == Path('/a/b c.urdf')


def test_meshes_are_looked_for_beside_the_configuration_and_above_the_description(tmp_path):
    groups = {
        'robot': {'urdf': 'a/b/arm.urdf'},
        'excitation': {'workspace': {'mesh_folders': ['meshes', '/opt/meshes']}},
    }
    found = from_mapping(groups, tmp_path).excitation.workspace.mesh_folders
    near = [tmp_path / 'meshes', Path('/opt/meshes'), tmp_path / 'a' / 'b', tmp_path / 'a']
    assert found[:5] == tuple(map(str, [*near, tmp_path]))
    assert from_mapping({}).excitation.workspace.mesh_folders == ()


def test_a_missing_description_is_named(write):
    configuration = load(write(nested(robot={'urdf': 'none.urdf'})))
    with pytest.raises(FileError, match=r'none\.urdf'):
        read_urdf(configuration)
    assert read_urdf(from_mapping({})) is None


@pytest.mark.parametrize('path', sorted((ROOT / 'config').glob('*.yaml')), ids=lambda p: p.stem)
def test_the_mapping_of_a_shipped_robot_is_its_configuration(path):
    assert from_mapping(read_mapping(path), path.parent) == load(path)
    assert '<robot' in read_urdf(load(path))


@pytest.mark.parametrize(('chosen', 'model'), [(True, 'mixed'), (False, 'plain')])
def test_keys_of_earlier_versions_are_read(chosen, model):
    groups = {'identification': {'selection': chosen}}
    assert from_mapping(groups).identification.model == model
    groups['identification']['model'] = 'plain'
    assert from_mapping(groups).identification.model == 'plain'
    with pytest.raises(ConfigurationError, match='selection'):
        from_mapping({'identification': {'selection': 'maybe'}})


def test_a_value_of_earlier_versions_is_read():
    def rows(value):
        groups = {'identification': {'signals': {'rows': value}}}
        return from_mapping(groups).identification.signals.rows

    assert rows('all') == rows('smooth') == 'smooth' and rows('moving') == 'moving'
    for wrong in ('any', ['all']):
        with pytest.raises(ConfigurationError, match='rows'):
            rows(wrong)


def test_keys_that_are_gone_are_passed_over():
    old = {'drop': 0.1, 'controller_state_rate': 50.0, 'seed': 3}
    assert from_mapping({'simulation': old}).simulation.seed == 3
    assert from_mapping({'recorder': {'depth': 10, 'name': 'x'}}).recorder.name == 'x'
