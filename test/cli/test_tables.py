"""Verbs on tables."""

import shutil

import numpy as np
import pytest
import yaml

from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.files.results import read_results

from .conftest import unwrapped

pytestmark = pytest.mark.usefixtures('without_bokeh')


@pytest.fixture(scope='module')
def log(tmp_path_factory, scara, sums):
    """Write the SCARA arm's motion as CSV, with its URDF beside."""
    folder = tmp_path_factory.mktemp('log')
    robot, chi = scara
    t, q, dq, ddq = (values[:2380] for values in sums())
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    tau += 0.01 * np.random.default_rng(1).normal(size=tau.shape)
    (folder / 'scara.urdf').write_text(robot.urdf)
    header = 'time_ms,Enc A [deg],Enc B [deg],Trq A,Trq B'
    matrix = np.column_stack([1e3 * t, np.degrees(q), tau])
    np.savetxt(folder / 'odd.csv', matrix, delimiter=',', header=header, comments='')
    header = 't;q1;q2;dq1;dq2;tau1;tau2'
    matrix = np.column_stack([t, q, dq, tau])
    np.savetxt(folder / 'log.csv', matrix, delimiter=';', header=header, comments='')
    return folder


def fits(folder, scara):
    robot, chi = scara
    results = read_results(folder)
    values = {entry.name: entry.value for entry in results.base}
    for name in ('Fv1', 'Fc1', 'Fv2', 'Fc2'):
        assert values[name] == pytest.approx(chi[robot.column(name)], rel=0.02)
    assert max(row.relative for row in results.identification) < 0.03


def test_a_csv_and_a_urdf_are_all_it_takes(run, log, scara, tmp_path):
    out = tmp_path / 'results'
    options = ('--urdf', log / 'scara.urdf', '-o', out, '--all')
    code, text, err = run('identify', log / 'log.csv', *options)
    assert (code, err) == (0, '')
    assert (
        'found by their names: time t, position q{i}, velocity dq{i}, effort tau{i}'
        in unwrapped(text)
    )
    fits(out, scara)
    code, text, err = run('validate', log / 'log.csv', '--parameters', out)
    assert (code, err) == (0, '') and 'joint_2' in text


def test_odd_columns_are_named_by_options(run, log, scara, tmp_path):
    out = tmp_path / 'results'
    columns = "position='Enc A [deg],Enc B [deg]' effort='Trq A..Trq B'"
    arguments = ('--urdf', log / 'scara.urdf', '--columns', columns)
    code, _, err = run(
        'identify', log / 'odd.csv', *arguments, '-o', out, '--units', 'position=deg'
    )
    assert (code, err) == (0, '')
    fits(out, scara)


def test_inspect_shows_a_table(run, log):
    code, text, err = run('inspect', log / 'log.csv', '--urdf', log / 'scara.urdf')
    assert (code, err) == (0, '')
    for said in ('joint states at 200.0 Hz', 'joint_2', 'Columns of'):
        assert said in unwrapped(text)


@pytest.mark.parametrize(
    ('options', 'text'),
    [
        (('--columns', 'position'), "write '--columns 'time=t position=q{i} effort=tau{i}''"),
        (('--columns', 'position=x{i}'), "no column 'x{i}' for position"),
        (('--units', 'effort=stone'), "'stone' is no unit of effort"),
        (('--rate', '2e6'), 'the rate is 2e+06 Hz'),
        (('--effort-topic', '/x'), "unknown topic of the recording '/x'"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(run, log, options, text):
    code, out, err = run('inspect', log / 'log.csv', *options)
    assert (code, out) == (1, '') and err.count('\n') == 1 and text in err


def test_a_configuration_names_description_and_joints(run, log, scara, tmp_path):
    text = (log / 'scara.urdf').read_text()
    finger = (
        '<link name="finger"/><joint name="finger_joint" type="prismatic">'
        '<parent link="base_link"/><child link="finger"/>'
        '<limit lower="0" upper="1" effort="1" velocity="1"/></joint></robot>'
    )
    (tmp_path / 'arm.urdf').write_text(text.replace('</robot>', finger))
    groups = {'robot': {'urdf': 'arm.urdf', 'joints': ['joint_1', 'joint_2']}}
    (tmp_path / 'arm.yaml').write_text(yaml.safe_dump({'/**': {'ros__parameters': groups}}))
    out = tmp_path / 'results'
    code, _, err = run('identify', log / 'log.csv', '-c', tmp_path / 'arm.yaml', '-o', out)
    assert (code, err) == (0, '')
    fits(out, scara)


def test_a_table_validates_what_another_identified(run, log, scara, tmp_path):
    out = tmp_path / 'results'
    other = shutil.copy(log / 'log.csv', tmp_path / 'other.csv')
    arguments = ('--urdf', log / 'scara.urdf', '-o', out, '--validation', other)
    code, text, err = run('identify', log / 'log.csv', *arguments)
    assert (code, err) == (0, '') and ' validation ' in text
