"""`robotid identify` of several logs of one robot."""

import dataclasses
import shutil

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.model import inverse_dynamics
from robotid_ros.files.results import read_results


@pytest.fixture(scope='module')
def tables(tmp_path_factory, scara, sums):
    """Write two logs of the arm, one for each half of its motion, and its description."""
    folder = tmp_path_factory.mktemp('tables')
    robot, chi = scara
    (folder / 'scara.urdf').write_text(robot.urdf)
    t, q, dq, ddq = sums()
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    tau += 0.01 * np.random.default_rng(1).normal(size=tau.shape)
    half = t.size // 2
    for name, rows in (('a', slice(half)), ('b', slice(half, None))):
        write(folder / f'{name}.csv', robot.joints, t[rows] - t[rows][0], q[rows], tau[rows])
    return folder


def write(path, joints, *columns):
    names = ['time', *(f'{j}_{what}' for what in ('position', 'effort') for j in joints)]
    np.savetxt(path, np.column_stack(columns), delimiter=',', header=','.join(names), comments='')


def test_two_tables_make_one_estimate(run, tables, scara, tmp_path):
    robot, chi = scara
    logs = (tables / 'a.csv', tables / 'b.csv')
    arguments = '--urdf', tables / 'scara.urdf', '-o', tmp_path, '--all'
    code, out, err = run('identify', *logs, *arguments)
    assert (code, err) == (0, ''), err
    assert '2 logs were identified together: a.csv, b.csv' in out
    both = read_results(tmp_path)
    assert select(both.findings, 'logs_agree')
    assert [log['source'] for log in both.data['logs']] == [str(log) for log in logs]
    assert both.data['source'] == ', '.join(map(str, logs))
    assert str(logs[1]) in (tmp_path / 'report.html').read_text()
    values = {entry.name: entry for entry in both.base}
    for name in ('Fv1', 'Fc1', 'Fv2', 'Fc2'):
        assert values[name].value == pytest.approx(chi[robot.column(name)], rel=0.02)
    out = tmp_path / 'one'
    arguments = (logs[0], '--urdf', tables / 'scara.urdf', '-o', out)
    assert run('identify', *arguments)[0] == 0
    one = {entry.name: entry for entry in read_results(out).base}
    # One log alone may open another kind of friction.
    common = one.keys() & values.keys()
    assert np.median([values[name].sigma / one[name].sigma for name in common]) < 0.9


@pytest.mark.usefixtures('without_bokeh')
def test_logs_that_disagree_name_parameter_and_log(run, tables, scara, sums, tmp_path):
    robot, chi = scara
    t, q, dq, ddq = (x[: len(x) // 2] for x in sums())
    worn = chi.copy()
    worn[robot.column('Fc2')] += 0.05
    tau = inverse_dynamics(robot, worn, q, dq, ddq)
    tau += 0.01 * np.random.default_rng(2).normal(size=tau.shape)
    write(tmp_path / 'worn.csv', robot.joints, t, q, tau)
    logs = (tables / 'a.csv', tables / 'b.csv', tmp_path / 'worn.csv')
    urdf = ('--urdf', tables / 'scara.urdf', '--method', 'wls')
    assert run('identify', *logs, *urdf, '-o', tmp_path / 'out')[0] == 0
    (found,) = select(read_results(tmp_path / 'out').findings, 'logs_disagree')
    assert (found.values['parameter'], found.values['outlier']) == ('Fc2', 'worn.csv')


@pytest.mark.usefixtures('without_bokeh')
def test_sessions_validate_on_what_each_has_left(run, bag, tmp_path):
    # Twice as many rows tell more of what is shrunk, and nothing more of the plain model.
    plain = ('--method', 'wls', '-o')
    again = shutil.copytree(bag, tmp_path / 'again')
    assert run('identify', bag, again, *plain, tmp_path / 'two')[0] == 0
    assert run('identify', bag, *plain, tmp_path / 'one')[0] == 0
    two, one = (read_results(tmp_path / name) for name in ('two', 'one'))
    for a, b in zip(two.base, one.base, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-3, abs=1e-3 * b.sigma)
    for a, b in zip(two.validation, one.validation, strict=True):
        assert a.relative == pytest.approx(b.relative, rel=1e-2)


def refused(run, *arguments):
    code, out, err = run('identify', *arguments)
    assert (code, out, err.count('\n')) == (1, '', 1), err
    return err


def test_logs_of_other_joints_or_poses_are_one_sentence(run, tables, scara, tmp_path):
    robot = scara[0]
    t = np.arange(400) / 100.0
    first, *others = robot.joints
    moving = np.sin(2.0 * t)
    write(tmp_path / 'less.csv', (first,), t, moving, np.cos(t))
    urdf = ('--urdf', tables / 'scara.urdf', '-o', tmp_path / 'out')
    err = refused(run, tables / 'a.csv', tmp_path / 'less.csv', *urdf)
    assert 'less.csv' in err and f'by --joints {first}' in err
    for name, place in (('low', 0.1), ('high', 0.9)):
        q = np.column_stack([moving, np.full(400, place)])
        write(
            tmp_path / f'{name}.csv', robot.joints, t, q, np.column_stack([np.cos(t), np.sin(t)])
        )
    err = refused(run, tmp_path / 'low.csv', tmp_path / 'high.csv', *urdf)
    assert f'{others[0]} stands at 0.1 in' in err and 'identify the logs separately' in err


@pytest.mark.usefixtures('without_bokeh')
def test_bags_of_other_robots_are_one_sentence(run, bag, scara, tmp_path):
    from .conftest import record

    robot, chi = scara
    heavier = dataclasses.replace(robot, urdf=robot.urdf.replace('mass value="', 'mass value="1'))
    other = record(tmp_path, heavier, chi, 'other')
    err = refused(run, bag, other, '-o', tmp_path / 'out')
    assert 'have different robot descriptions: give the right one for both' in err
    (tmp_path / 'arm.urdf').write_text(robot.urdf)
    out = ('--urdf', tmp_path / 'arm.urdf', '-o', tmp_path / 'out')
    assert run('identify', bag, other, *out)[0] == 0
