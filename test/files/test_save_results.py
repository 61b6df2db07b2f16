"""What an identification found is what its files say."""

import dataclasses
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from robotid_ros.core.findings import finding
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.robot import BaseParameters
from robotid_ros.core.parameters.essential import Essential
from robotid_ros.core.parameters.standard import Standard
from robotid_ros.core.pipeline.identification import Identification, Validation
from robotid_ros.core.regression.estimate import Estimate
from robotid_ros.core.replay.didim import History, Iteration
from robotid_ros.core.signals.recording import Recording
from robotid_ros.files.bags import RecordedSession
from robotid_ros.files.bags.session import changed_gains
from robotid_ros.files.collect_results import add_true_values, save
from robotid_ros.files.results import differences, read_results, write_results

URDF = Path(__file__).resolve().parents[2] / 'urdf' / 'scara.urdf'

PATH = (('Fc2', 80.0, 1.01, 0.4),)


def estimate(names, units, value, rng):
    root = rng.normal(size=(len(value), len(value)))
    covariance = 1e-4 * root @ root.T
    residual = np.array([0.02, 0.03])
    return Estimate(
        names, units, value, covariance, covariance, residual, 0.025, residual,
        np.array([90, 80]), np.array([12.5, 1.0]), 'wls',
    )  # fmt: skip


@pytest.fixture
def found():
    """Make up an identification of the SCARA arm: the first column of each joint and friction."""
    rng = np.random.default_rng(2)
    robot = build_robot(URDF.read_text(), RobotSettings())
    names = ('ZZ1', 'Fv1', 'Fc1', 'ZZ2', 'MX2', 'MY2', 'Fv2', 'Fc2')
    columns = np.array([robot.column(name) for name in names])
    matrix = np.zeros((len(names), robot.p))
    matrix[np.arange(len(names)), columns] = 1.0
    matrix[0, robot.column('M2')] = 0.25
    shown = ('ZZ1R', *names[1:])
    units = tuple(robot.parameters[c].unit for c in columns)
    combinations = ('ZZ1R = ZZ1 + 0.25·M2', *names[1:])
    classes = ('identifiable',) * robot.p
    base = BaseParameters(shown, units, combinations, matrix, columns, classes)
    chi = rng.uniform(0.5, 1.5, robot.p)
    consistent = np.ones(2, bool)
    standard = Standard(chi, 0.1 * chi, consistent, 0.03)
    measured = rng.normal(size=(100, 2))
    fitted = Validation(
        robot.joints, np.arange(100) * 0.01, measured, 0.97 * measured, np.ones((100, 2), bool)
    )
    values = rng.uniform(1, 2, len(names))
    best = estimate(shown, units, values, rng)
    essential = Essential(estimate(shown[:2], units[:2], values[:2], rng), np.arange(2), PATH)
    return Identification(
        robot,
        'wls',
        base,
        best,
        essential,
        standard,
        fitted,
        fitted,
        (finding('hardly_moved', ['joint_2'], share=0.01),),
    )


@pytest.fixture
def recording(found):
    values = np.zeros((100, 2))
    return Recording(
        found.robot.joints, np.arange(100) * 0.01, values, values, source='bags/x', origin=7
    )


def test_files_repeat_what_was_found(tmp_path, found, recording):
    truth = np.array(found.standard.value)
    results = save(found, recording, tmp_path / 'out', {'robot': {'name': 'x'}})
    names = [parameter.name for parameter in found.robot.parameters]
    results = add_true_values(results, found.base, names, truth)
    write_results(results, tmp_path / 'out')
    back = read_results(tmp_path / 'out')
    assert back.base == results.base and back.settings == {'robot': {'name': 'x'}}
    for entry, value, sigma, true in zip(
        back.base,
        found.estimate.value,
        found.estimate.sigma,
        found.base.of(truth),
        strict=True,
    ):
        assert (entry.value, entry.sigma, entry.true) == (value, sigma, true)
        assert entry.percent == pytest.approx(100 * sigma / value)
    assert [e.kind for e in back.base] == ['essential'] * 2 + ['small'] * 6
    assert back.base[0].combination == 'ZZ1 + 0.25·M2' and back.base[0].column == 'ZZ1'
    assert [e.value for e in back.standard] == list(found.standard.value)
    assert [row.relative for row in back.validation] == pytest.approx([0.03, 0.03])
    assert back.identification[0].torque == pytest.approx(
        np.sqrt(np.mean(found.fitted.measured[:, 0] ** 2))
    )
    assert back.data['consistent_residual'] == 0.03
    assert back.identification[0].r2 == pytest.approx(found.fitted.r2[0])
    assert back.essential['count'] == 2
    assert back.essential['path'] == [
        {'dropped': 'Fc2', 'percent': 80.0, 'growth': 1.01, 'p_value': 0.4}
    ]
    page = (tmp_path / 'out' / 'report.html').read_text()
    assert '2 of 8 are essential' in page
    assert back.data['origin'] == 7 and back.data['source'] == 'bags/x'
    assert back.findings == found.findings and back.versions['numpy'] == np.__version__


def test_what_stays_at_the_prior_is_marked(tmp_path, found, recording):
    estimate = dataclasses.replace(found.estimate, from_prior=(1, 5))
    save(dataclasses.replace(found, estimate=estimate), recording, tmp_path)
    kinds = [entry.kind for entry in read_results(tmp_path).base]
    assert kinds == ['essential', 'prior', 'small', 'small', 'small', 'prior', 'small', 'small']
    assert '<td class="c keep">prior</td>' in (tmp_path / 'report.html').read_text()


@pytest.mark.parametrize('obstacle', ['', 'joint_2'])
def test_both_residuals_stand_side_by_side(tmp_path, found, recording, obstacle):
    values = {'robot': 'arm', 'residual': 0.0345, 'base': 0.0312, 'without': 0.03}
    values['attainable'] = 0.034
    standard = dataclasses.replace(
        found.standard,
        residual=0.0345,
        base_residual=0.0312,
        spread=0.7,
        obstacle=finding('not_physical', [obstacle], **values) if obstacle else None,
    )
    save(dataclasses.replace(found, standard=standard), recording, tmp_path)
    back = read_results(tmp_path)
    assert (back.data['base_residual'], back.data['consistent_residual']) == (0.0312, 0.0345)
    assert back.data['prior_spread'] == 0.7
    page = unescape((tmp_path / 'report.html').read_text())
    assert (
        '3.45\N{NO-BREAK SPACE}%' in page
        and '3.12\N{NO-BREAK SPACE}% of the base parameters' in page
    )
    assert (back.data.get('obstacle', ''), back.data.get('attainable')) == (
        obstacle,
        0.034 if obstacle else None,
    )


def test_the_shortest_parameters_carry_the_base_ones(tmp_path, found, recording):
    results = save(found, recording, tmp_path)
    chi = np.zeros(found.robot.p)
    for name, value in results.minimal_parameters.items():
        chi[found.robot.column(name)] = value
    np.testing.assert_array_equal(found.base.of(chi), found.estimate.value)


def test_iterations_become_rows_of_numbers():
    def iteration(number, value, error):
        near, ones = np.array([0.1, 0.2]) / (number + 1), np.ones(2)
        of_motion = np.array(value), np.array(error), near
        return Iteration(number, *of_motion, ones, ones, 1.0, ones, None, 0.0)

    course = (iteration(0, [1.0, 0.0], [0.9, 0.4]), iteration(1, [0.0, 2.0], [0.1, 0.2]))
    history = History(('ZZ1', 'Fv1'), ('one', 'two'), course)
    rows = [*history.rows()]
    worst = {'iteration': 0.0, 'torque_error': 0.9, 'position_error': 0.2}
    assert worst.items() <= rows[0].items()
    assert rows[1]['parameter_change'] == pytest.approx(np.sqrt(5) / 2)
    # Every joint and every parameter of every iteration is kept.
    assert (rows[1]['torque error two'], rows[1]['ZZ1'], rows[1]['Fv1']) == (0.2, 0.0, 2.0)


def test_another_method_stands_beside_the_first(tmp_path, found, recording):
    value = found.estimate.value + 4.0 * found.estimate.sigma
    estimate = dataclasses.replace(found.estimate, value=value)
    other = dataclasses.replace(found, method='didim', estimate=estimate)
    results = save(dataclasses.replace(found, compared=other), recording, tmp_path)
    back = read_results(tmp_path)
    assert back.compared == results.compared and back.compared.method == 'didim'
    assert [entry.value for entry in back.compared.base] == list(value)
    gaps = [each.normalised for each in differences(back.base, back.compared.base)]
    assert gaps == pytest.approx([4.0 / np.sqrt(2.0)] * found.base.rank)


def test_gains_that_were_changed_are_told():
    gains = {'one': {'p': 1.0}, 'two': {'p': 2.0}}
    session = RecordedSession(controller={'gains': gains}, values={'gains_after': gains})
    assert changed_gains(session) == []
    assert changed_gains(RecordedSession(controller={'gains': gains})) == []
    after = {**gains, 'two': {'p': 3.0}}
    assert changed_gains(dataclasses.replace(session, values={'gains_after': after})) == ['two']
