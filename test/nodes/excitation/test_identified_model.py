"""Which results are verified: the configured ones, else those that were told of and are ours."""

from pathlib import Path

import numpy as np
import pytest

from robotid_ros.exceptions import ControllerError, FileError
from robotid_ros.files.configuration import Configuration, from_mapping, load, read_urdf
from robotid_ros.files.results import Entry, PARAMETERS, Results, URDF, write_results
from robotid_ros.nodes.common.model_node import load_model
from robotid_ros.nodes.excitation.verifications import find_results

CONFIG = Path(__file__).resolve().parents[3] / 'config' / 'scara.yaml'


def configured(results: Path | str, folder: Path | str = '') -> Configuration:
    verification = {'verification': {'results': str(results)}}
    return from_mapping({'excitation': verification, 'recorder': {'folder': str(folder)}})


def test_configured_results_come_first(tmp_path: Path):
    assert find_results(configured(tmp_path), 'elsewhere') == tmp_path
    (tmp_path / PARAMETERS).touch()
    assert find_results(configured(tmp_path / PARAMETERS), '') == tmp_path


def test_results_of_strangers_are_left_alone(tmp_path: Path):
    own = tmp_path / 'recordings'
    given = configured('', own)
    assert find_results(given, str(own / 'arm_identified')) == own / 'arm_identified'
    for told in (str(tmp_path / 'other'), str(own / '..' / 'other'), str(own)):
        with pytest.raises(FileError, match=r'in none of recorder\.folder'):
            find_results(given, told)
    with pytest.raises(ControllerError, match='nothing is identified yet'):
        find_results(given, '')


def results(*joints: str) -> Results:
    base = (Entry('ZZ1R', 3.0, 0.1, 1.0, column='ZZ1'), Entry('Fc2', 0.2, 0.1, 1.0, column='Fc2'))
    standard = (Entry('ZZ1', 2.5, 0.1, 1.0), Entry('M2', 4.0, 0.1, 1.0))
    return Results('scara', 'wls', 'now', joints, base, standard, ())


def test_parameters_are_put_on_the_model_by_name(tmp_path: Path):
    configuration = load(CONFIG)
    urdf = read_urdf(configuration) or ''
    write_results(results('joint_1', 'joint_2'), tmp_path)
    model = load_model(tmp_path, urdf, configuration.robot)
    minimal = {'ZZ1': 3.0, 'Fc2': 0.2}
    expected = [minimal.get(p.name, 0.0) for p in model.robot.parameters]
    np.testing.assert_array_equal(model.chi, expected)
    assert model.consistent[model.robot.column('M2')] == 4.0
    write_results(results('joint_2', 'joint_1'), tmp_path)
    with pytest.raises(FileError, match='has results of joint_2, joint_1, the robot has joint_1'):
        load_model(tmp_path, urdf, configuration.robot)


def test_an_arm_of_the_same_names_with_another_link_is_refused(tmp_path: Path):
    configuration = load(CONFIG)
    urdf = read_urdf(configuration) or ''
    write_results(results('joint_1', 'joint_2'), tmp_path)
    (tmp_path / URDF).write_text(urdf)
    load_model(tmp_path, urdf, configuration.robot)
    longer = urdf.replace('xyz="0.5 0.0 0.09"', 'xyz="0.6 0.0 0.09"')
    assert longer != urdf
    with pytest.raises(FileError, match='whose joint_2 has another position'):
        load_model(tmp_path, longer, configuration.robot)
