"""The verbs on recordings, from a bag to files and back."""

import dataclasses
import re
import shutil

import mujoco
import numpy as np
import pinocchio as pin
import pytest
import yaml

from robotid_ros.files.bags import open_recording
from robotid_ros.files.results import read_results
from robotid_ros.files.robot_description import summarise_description

from .conftest import readable, record, unwrapped


@pytest.fixture(scope='module')
def identified(tmp_path_factory, results_of_bag):
    return results_of_bag(tmp_path_factory.mktemp('identified') / 'results')


def test_identify_finds_the_parameters_again(identified, scara):
    robot, chi = scara
    results = read_results(identified)
    assert results.robot == 'scara' and results.method == 'mixed'
    values = {entry.name: entry for entry in results.base}
    for name in ('Fv1', 'Fc1', 'Fv2', 'Fc2'):
        assert values[name].value == pytest.approx(chi[robot.column(name)], rel=0.02)
    assert max(row.relative for row in results.validation) < 0.03
    assert [row.joint for row in results.validation] == list(robot.joints)
    assert results.settings['robot']['name'] == 'scara'
    assert results.torques['validation'].time[0] >= 11.9


def test_identify_writes_files_that_others_load(identified):
    files = {'parameters.yaml', 'torques.npz', 'identified.urdf', 'report.html'}
    assert {f.name for f in identified.iterdir()} == files
    path = str(identified / 'identified.urdf')
    assert pin.buildModelFromUrdf(path).nv == mujoco.MjModel.from_xml_path(path).nv == 2
    assert 'validation' in (identified / 'report.html').read_text()


def test_identify_ends_with_tables(run, bag, tmp_path):
    code, out, err = run('identify', bag, '-o', tmp_path / 'x', '--method', 'ols')
    assert (code, err) == (0, '')
    for text in (
        'ZZ2',
        'Fc1',
        '%σ',
        'kg·m²',
        'validation',
        'all  ',
        'error on other motions',
        'report.html',
        str(tmp_path),
    ):
        assert text in out
    assert '\x1b' not in out and '\r' not in out


@pytest.mark.usefixtures('without_bokeh')
def test_identify_takes_parts_and_methods(run, bag, tmp_path):
    out = tmp_path / 'x'
    assert run('identify', bag, '-o', out, '--part', '0:0.4', '--method', 'ols')[0] == 0
    results = read_results(out)
    assert results.method == 'ols'
    assert results.data['to'] == pytest.approx(9.6, abs=0.01)
    assert results.torques['validation'].time[0] >= 9.5
    arguments = ('identify', bag, '-o', out, '--to', 8, '--validation-part', '20s:23s')
    assert run(*arguments, '--force')[0] == 0
    time = read_results(out).torques['validation'].time
    assert time[0] >= 19.9 and time[-1] <= 23.1
    other = shutil.copytree(bag, tmp_path / 'other')
    assert run('identify', bag, '-o', tmp_path / 'y', '--validation', other)[0] == 0


@pytest.mark.usefixtures('without_bokeh')
def test_results_are_replaced_only_when_asked(run, bag, tmp_path):
    out = tmp_path / 'x'
    out.mkdir()
    (out / 'parameters.yaml').write_text('precious')
    code, text, err = run('identify', bag, '-o', out, '--method', 'ols')
    assert (code, text) == (1, '') and err.count('\n') == 1
    assert f"'{out}/parameters.yaml' exists already" in err and '--force' in err
    assert [path.name for path in out.iterdir()] == ['parameters.yaml']
    assert (out / 'parameters.yaml').read_text() == 'precious'
    assert run('identify', bag, '-o', out, '--method', 'ols', '--force')[0] == 0
    assert read_results(out).method == 'ols'


@pytest.mark.usefixtures('without_bokeh')
def test_a_recording_that_was_cut_short_is_identified(run, bag, tmp_path):
    path = tmp_path / 'cut' / 'cut.mcap'
    path.parent.mkdir()
    data = (bag / 'scara.mcap').read_bytes()
    path.write_bytes(data[: len(data) * 9 // 10])
    assert len(open_recording(path).time) > 4000
    assert run('identify', path.parent, '-o', tmp_path / 'a')[0] == 0


def test_validate_repeats_the_residuals(run, bag, identified):
    code, out, _ = run('validate', bag, '--parameters', identified, '--force')
    assert code == 0
    shown = {line.split()[0]: float(line.split()[3]) for line in out.split('\n')[2:4]}
    for row in read_results(identified).validation:
        assert shown[row.joint] == pytest.approx(100 * row.relative, rel=0.05)
    assert (
        run('validate', bag, '--parameters', identified, '--force', '--max-residual', 50)[0] == 0
    )
    code, _, err = run(
        'validate', bag, '--parameters', identified, '--force', '--max-residual', 1e-6
    )
    assert code == 1 and 'misses the bound' in err and err.count('\n') == 1


def test_report_is_the_same_page_again(run, results_of_bag, tmp_path):
    identified = results_of_bag()
    code, out, _ = run('report', identified, '-o', tmp_path / 'r.html')
    assert code == 0 and out.strip() == str(tmp_path / 'r.html')
    assert readable(tmp_path / 'r.html') == readable(identified / 'report.html')


def test_inspect_shows_what_is_there(run, bag):
    code, out, _ = run('inspect', bag)
    assert code == 0
    for text in ('/joint_states', '200.0', 'exciting', 'validating', 'live'):
        assert text in out


def test_inspect_tells_which_robot_is_described(run, bag, scara, tmp_path):
    assert (
        "robot description: 'scara' with the joints joint_1, joint_2\n" in run('inspect', bag)[1]
    )
    robot, _ = scara
    t = np.arange(400) / 200.0
    q = np.sin(np.outer(t, [3.0, 5.0]))
    table = np.column_stack([t, q, np.random.default_rng(0).normal(size=q.shape)])
    np.savetxt(tmp_path / 'a.csv', table, delimiter=',', header='t,q1,q2,tau1,tau2', comments='')
    (tmp_path / 'a.urdf').write_text(robot.urdf)
    _, out, err = run('inspect', tmp_path / 'a.csv')
    assert 'robot description: none recorded' in out, err
    assert 'robot description: none recorded' in out
    out = run('inspect', tmp_path / 'a.csv', '--urdf', tmp_path / 'a.urdf')[1]
    assert "robot description: 'scara' with the joints joint_1, joint_2\n" in out
    third = '<link name="x"/><joint name="j3" type="prismatic"><parent link="link_2"/>'
    third += '<child link="x"/></joint></robot>'
    text = summarise_description(robot.urdf.replace('</robot>', third), robot.joints)
    assert text.endswith('with the joints joint_1, joint_2, j3, without joint states of j3')
    assert summarise_description('<robot').startswith('unusable, the robot description is not')


def test_validate_refuses_some_of_the_joints(run, bag, identified):
    options = ('--parameters', identified, '--joints', 'joint_1', '--force')
    code, out, err = run('validate', bag, *options)
    assert (code, out) == (1, '') and 'parameters are of joint_1, joint_2' in err


def test_validate_shows_a_total_and_what_is_wrong(run, bag, loaded, identified, scara, tmp_path):
    code, out, err = run('validate', bag, '--parameters', identified, '--force')
    assert (code, err) == (0, '') and 'warning' not in out
    total = float(re.search(r'^all +([\d.]+) %', out, re.M)[1])
    rows = read_results(identified).validation
    expected = sum(r.rms**2 for r in rows) / sum(r.torque**2 for r in rows)
    assert total == pytest.approx(100 * expected**0.5, rel=0.05)
    _, out, _ = run('validate', loaded, '--parameters', identified, '--force')
    assert re.search(
        r'warning F\d+ .*\d+ % of the effort of joint_2 is not predicted', unwrapped(out)
    )
    robot, chi = scara
    other = dataclasses.replace(robot, urdf=robot.urdf.replace('name="scara"', 'name="twin"'))
    _, out, _ = run(
        'validate', record(tmp_path, other, chi), '--parameters', identified, '--force'
    )
    out = unwrapped(out)
    said = "The parameters are of 'scara' (joint_1, joint_2), the recording of 'tw"
    assert f'warning F140 {said}' in out


def test_torques_of_the_report_are_those_recorded(identified, bag):
    torques = read_results(identified).torques['identification']
    recording = open_recording(bag, torques.joints)
    at = np.clip(np.searchsorted(recording.time, torques.time), 0, len(recording.time) - 1)
    spread = np.linalg.norm(recording.effort[at] - torques.measured, axis=0)
    assert (spread < 0.1 * np.linalg.norm(torques.measured, axis=0)).all()


@pytest.mark.usefixtures('without_bokeh')
def test_validate_knows_the_configuration_of_the_identification(run, scara, sums, tmp_path):
    """A recording of joint states alone suffices; without the drive gain nothing would fit."""
    from bag_tools import EPOCH, joint_state, write_mcap

    from robotid_ros.core.model.dynamics import inverse_dynamics

    robot, chi = scara
    t, q, dq, ddq = (x[:2400] for x in sums(24.0))
    current = inverse_dynamics(robot, chi, q, dq, ddq) / [20.0, -10.0]
    rows = zip(t, q, current, strict=True)
    stamps = ((EPOCH + round(s * 1e9), x, i) for s, x, i in rows)
    path = write_mcap(tmp_path, (joint_state(s, robot.joints, x, (), i) for s, x, i in stamps))
    (tmp_path / 'scara.urdf').write_text(robot.urdf)
    settings = {'robot': {'urdf': 'scara.urdf', 'drive_gain': [20.0, -10.0]}}
    config = tmp_path / 'scara.yaml'
    config.write_text(yaml.safe_dump({'/**': {'ros__parameters': settings}}))
    out = tmp_path / 'out'
    assert run('identify', path, '-c', config, '-o', out)[0] == 0
    (tmp_path / 'scara.urdf').unlink()
    code, text, err = run('validate', path, '--parameters', out, '--max-residual', 5)
    assert (code, err) == (0, ''), text


@pytest.mark.usefixtures('without_bokeh')
def test_validate_predicts_with_the_friction_that_the_default_opened(run, scara, sums, tmp_path):
    """The configuration names none of its terms: they are those of the results."""
    from robotid_ros.core.model.dynamics import inverse_dynamics
    from robotid_ros.core.model.friction import SHRUNK

    robot, chi = scara
    t, q, dq, ddq = sums(24.0)
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    tau += 2.0 * np.sign(dq) * np.exp(-np.abs(dq) / 0.2)
    names = [f'{joint}.{kind}' for kind in ('position', 'effort') for joint in robot.joints]
    log = tmp_path / 'log.csv'
    rows = np.column_stack([t, q, tau])
    np.savetxt(log, rows, delimiter=',', header=','.join(['time', *names]), comments='')
    (tmp_path / 'scara.urdf').write_text(robot.urdf)
    out = tmp_path / 'out'
    assert run('identify', log, '--urdf', tmp_path / 'scara.urdf', '-o', out)[0] == 0
    written = yaml.safe_load((out / 'parameters.yaml').read_text())
    assert any(entry['name'][:-1] in SHRUNK for entry in written['base'])
    code, text, err = run('validate', log, '--parameters', out, '--max-residual', 5)
    assert (code, err) == (0, ''), (text, err)
