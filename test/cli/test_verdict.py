"""The verdict in exit codes, in JSON, and where results that are marked unusable are read."""

import json
import re

import numpy as np
import pytest

import robotid_ros as rid
from robotid_ros.cli.shared_options import EXIT_UNUSABLE
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.files.results import read_results, verdict_of

from .conftest import RATE, ROOT

URDF = ROOT / 'urdf' / 'arm3.urdf'


@pytest.fixture(scope='module')
def logs(tmp_path_factory):
    """Tables of an arm: its torques, these without gravity, amperes, and what it cannot need."""
    folder = tmp_path_factory.mktemp('logs')
    settings = RobotSettings(friction={'default': ('viscous', 'coulomb', 'offset')})
    robot = build_robot(URDF.read_text(), settings)
    chi = np.array(robot.prior)
    for joint in (1, 2, 3):
        chi[robot.column(f'Fv{joint}')], chi[robot.column(f'Fc{joint}')] = 0.4, 0.5
    rng, time = np.random.default_rng(3), np.arange(round(15.0 * RATE)) / RATE
    w, a, phase = np.arange(1, 6) * 0.2 * np.pi, *rng.uniform(0.2, 1.0, (2, 5, 3))
    angle = time[:, None, None] * w[:, None] + 7.0 * phase
    q, dq, ddq = (
        np.sum(x, axis=1)
        for x in (
            0.4 * a * np.sin(angle),
            0.4 * a * w[:, None] * np.cos(angle),
            -0.4 * a * w[:, None] ** 2 * np.sin(angle),
        )
    )
    tau, still = inverse_dynamics(robot, chi, q, dq, ddq), np.zeros_like(q)
    friction = [p.symbol in ('Fv', 'Fc', 'off') for p in robot.parameters]
    weight = inverse_dynamics(robot, np.where(friction, 0.0, chi), q, still, still)
    other = 20.0 * np.sin(np.outer(time, [11.3, 13.7, 17.1]))
    efforts = {'torque': tau, 'light': tau - weight, 'amperes': 0.05 * tau, 'other': tau + other}
    names = [f'{k}_{j}' for k in ('position', 'velocity', 'effort') for j in robot.joints]
    for name, effort in efforts.items():
        noisy = effort + 1e-3 * np.std(effort, axis=0) * rng.normal(size=effort.shape)
        np.savetxt(
            folder / f'{name}.csv',
            np.column_stack([time, q, dq, noisy]),
            delimiter=',',
            header=','.join(['time', *names]),
            comments='',
        )
    return folder


def test_more_than_half_left_is_written_and_unusable(run, logs, tmp_path):
    code, out, err = run('identify', logs / 'other.csv', '--urdf', URDF, '-o', tmp_path, '--json')
    verdict = json.loads(out)['verdict']
    assert code == EXIT_UNUSABLE and not verdict['usable'] and verdict['reason'] == 'residual'
    assert 'Likeliest reason' in err and verdict['text'].startswith('Likeliest reason')
    assert not verdict_of(read_results(tmp_path)).usable
    assert 'Not usable' in (tmp_path / 'report.html').read_text()
    # Whoever reads it is told.
    exported = run('export', tmp_path, '--format', 'csv', '-o', tmp_path / 'e.csv', '--json')
    assert 'marked unusable' in json.loads(exported[1])['notes'][0]
    checked = run(
        *('validate', logs / 'torque.csv', '--urdf', URDF, '--parameters', tmp_path, '--json')
    )
    names = {each['name'] for each in json.loads(checked[1])['findings']}
    assert 'marked_unusable' in names
    code, out, err = run('compare', tmp_path, tmp_path, '--json')
    assert code == EXIT_UNUSABLE and 'marked unusable' in err
    assert [each['usable'] for each in json.loads(out)['verdicts'].values()] == [False, False]


@pytest.mark.usefixtures('without_bokeh')
def test_a_good_log_is_usable(run, logs, tmp_path):
    code, out, err = run('identify', logs / 'torque.csv', '--urdf', URDF, '-o', tmp_path, '--json')
    assert (code, err) == (0, '') and json.loads(out)['verdict']['usable']
    # Without gravity it is another robot's.
    args = ('--urdf', URDF, '--parameters', tmp_path, '--json')
    code, out, _ = run('validate', logs / 'light.csv', *args)
    assert code == EXIT_UNUSABLE and json.loads(out)['verdict']['reason'] == 'measured'


@pytest.mark.usefixtures('without_bokeh')
def test_the_command_line_says_what_efforts_are(run, logs, tmp_path):
    left = {}
    for kind in ('joint_torque', 'without_gravity'):
        args = ('--urdf', URDF, '-o', tmp_path / kind, '--effort-kind', kind)
        run('identify', logs / 'light.csv', *args)
        results = read_results(tmp_path / kind)
        assert results.settings['robot']['effort_kind'] == kind
        left[kind] = max(row.reported for row in results.identification)
    assert left['without_gravity'] < 0.1 * left['joint_torque']


@pytest.mark.usefixtures('without_bokeh')
def test_efforts_without_gravity_are_no_joint_torques(run, logs, tmp_path):
    """Recorded as joint torques they are marked unusable, with the likeliest reason."""
    usable = {}
    for kind in ('joint_torque', 'without_gravity'):
        args = ('--urdf', URDF, '-o', tmp_path / kind, '--effort-kind', kind, '--json')
        code, out, err = run('identify', logs / 'light.csv', *args)
        found = json.loads(out)
        usable[kind] = found['verdict']['usable']
        compensated = [f for f in found['findings'] if f['name'] == 'gravity_compensated']
        assert bool(compensated) == (kind == 'joint_torque')
        assert all(f['values']['after'] < f['values']['before'] for f in compensated)
        assert (code == EXIT_UNUSABLE) == (not usable[kind])
        assert ('Likeliest reason' in err) == (not usable[kind])
    assert usable == {'joint_torque': False, 'without_gravity': True}


@pytest.mark.usefixtures('without_bokeh')
def test_currents_are_no_torques(run, logs, tmp_path):
    code, out, _ = run('identify', logs / 'amperes.csv', '--urdf', URDF, '-o', tmp_path)
    assert code == EXIT_UNUSABLE and 'kg·m²' not in out
    assert 'N·m' not in out.replace('not N·m', '')
    assert re.findall(r'(?m)^error +(F\d+)', out) == ['F405']
    # A table that says so is believed, and so is a user who says what an ampere is worth.
    said = ('--urdf', URDF, '-o', tmp_path, '--force', '--json', '--units')
    found = json.loads(run('identify', logs / 'amperes.csv', *said, 'effort=A')[1])
    assert found['verdict']['effort_unit'] == 'A' and 'A·s²' in str(found['parameters'])
    code, out, _ = run('identify', logs / 'amperes.csv', *said, 'effort=A*20')
    assert code == 0 and json.loads(out)['verdict']['effort_unit'] is None


@pytest.mark.usefixtures('without_bokeh')
def test_the_first_seconds_of_a_real_robot_are_not_relied_on(run, tmp_path):
    folder = ROOT.parent / 'shared' / 'datasets' / 'ur10'
    log = folder / 'ur10_exciting_trajectory.db3'
    if not log.exists():
        pytest.skip('the log of the UR10 is not here')
    # Nothing validates: what comes later is another recording.
    recording = rid.load(log, urdf=folder / 'robot.urdf')
    short = recording.between(0.0, 6.0)
    result = rid.identify(short, rid.load_robot(folder / 'robot.urdf', short))
    verdict = rid.judge(result)
    assert verdict.level in ('poor', 'unusable') and verdict.reason == 'parameters'
    expected = {each.joint: each.from_parameters for each in verdict.joints}
    kept = tmp_path / 'short' / 'parameters.yaml'
    rid.save(result, short, kept.parent)
    later = ('--urdf', folder / 'robot.urdf', '--part', '8s:27s', '-o', tmp_path / 'later.html')
    _, out, _ = run('validate', log, '--parameters', kept, '--json', *later)
    actual = {each['joint']: each['moving'] for each in json.loads(out)['residuals']}
    worst = max(actual, key=actual.__getitem__)
    assert expected[worst] > 0.8 * max(expected.values())
    assert 0.5 < actual[worst] / expected[worst] < 2.0
    args = ('identify', log, '--urdf', folder / 'robot.urdf', '--json', '-o', tmp_path / 'long')
    code, out, _ = run(*args, '--part', '0:0.5')
    assert code == 0 and json.loads(out)['verdict']['usable']
