"""The verdict: what it expects of other motions is what happens there."""

import dataclasses
import math
from pathlib import Path
import re

from hypothesis import given, strategies as st
import numpy as np
import pytest

from robotid_ros.core.excitation.working_motion import working_motion
from robotid_ros.core.findings import finding, select, Severity
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.dynamics import regressor
from robotid_ros.core.model.robot import unit_label
from robotid_ros.core.model.settings import ElasticSettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.verdict import (
    decide_level,
    FAIR,
    GOOD,
    JointError,
    judge,
    LEVELS,
    PARAMETERS,
    POOR,
    RESIDUAL,
    THRESHOLDS,
    UNIT,
    UNUSABLE,
    Verdict,
)
from robotid_ros.files.collect_results import save
from robotid_ros.files.results import read_results, verdict_of
from robotid_ros.files.verdict_text import cause

from .conftest import URDF

SETTINGS = IdentificationSettings(model='plain', method='wls', essential=False)


def fresh_error(found, truth):
    """Relative error of what is predicted on states that the verdict does not use, (n,)."""
    rng, robot = np.random.default_rng(77), found.robot
    size = (4000, robot.n)
    q, dq, ddq = (rng.uniform(-x, x, size) for x in (3.0, 3.0, 6.0))
    W = regressor(robot, q, dq, ddq, columns=found.base.columns)
    wanted = W @ found.base.of(truth)
    wrong = W @ found.estimate.value - wanted
    return np.linalg.norm(wrong, axis=1) / np.linalg.norm(wanted, axis=1)


@pytest.mark.parametrize(('duration', 'noise'), [(4.0, 0.05), (8.0, 0.05), (25.0, 0.05)])
def test_the_expected_error_is_the_actual_one(robot, truth, record, duration, noise):
    """In the median over joints and motions within a factor of 2, short or long."""
    ratios = []
    for seed in range(5):
        found = identify(record(seed, duration, noise), robot, SETTINGS)
        expected = np.array([joint.from_parameters for joint in judge(found).joints])
        ratios += list(expected / fresh_error(found, truth))
    assert 0.5 < np.median(ratios) < 2.0


def test_more_motion_makes_it_usable(robot, record):
    other = record(9, 10.0, 0.01)
    short = judge(identify(record(0, 1.5, 0.05), robot, SETTINGS, other))
    long = judge(identify(record(0, 30.0, 0.01), robot, SETTINGS, other))
    assert not short.usable and short.reason == PARAMETERS
    assert long.level == GOOD and long.validated
    assert max(j.from_parameters for j in long.joints) < 0.05


def test_noise_is_no_error_of_the_model(robot, record):
    verdict = judge(identify(record(0, 30.0, 0.5), robot, SETTINGS))
    assert verdict.residual > 0.08
    assert max(joint.from_model for joint in verdict.joints) < 0.05


def test_what_the_model_lacks_is_not_blamed_on_the_parameters(robot, record):
    """Torque that no parameter has, a little and a lot of it."""
    log = record(0, 60.0, 0.01)
    lacking = np.outer(np.sin(7.0 * log.position[:, 1]), [0.0, 1.0, 0.0])

    def judged(size):
        changed = dataclasses.replace(log, effort=log.effort + size * lacking)
        return judge(identify(changed, robot, SETTINGS))

    none, some, much = judged(0.0), judged(3.0), judged(60.0)
    assert none.joints[1].from_model < 0.03 and some.joints[1].from_model > 0.1
    assert (much.level, much.reason) == (UNUSABLE, RESIDUAL)


def test_currents_are_one_error_and_no_torques(robot, record, tmp_path):
    log = record(0, 30.0, 0.01)
    currents = dataclasses.replace(log, effort=0.05 * log.effort)
    found = identify(currents, robot, SETTINGS)
    coded = select(found.findings, 'effort_unit')
    assert len(coded) == 1 and coded[0].severity == Severity.ERROR
    verdict = judge(found)
    assert (verdict.level, verdict.reason) == (UNUSABLE, UNIT)
    results = save(found, currents, tmp_path)
    units = {entry.unit for entry in (*results.base, *results.standard)}
    units |= {row.unit for row in results.identification}
    assert units == {f'effort{rest}' for rest in ('', '·s/rad', '·s²', '·s²/m', '·s²/m²')}
    for name in ('parameters.yaml', 'report.html'):
        text = (tmp_path / name).read_text()
        # The description's own bodies, and the sentence that it is no N·m, apart.
        shown = re.sub(r'settings:.*|URDF: [^<]*|not N·m', '', text, flags=re.DOTALL)
        assert not re.findall(r'kg·m²|N·m', shown)


def test_a_gain_that_is_given_makes_torques_of_currents(record):
    settings = RobotSettings(
        friction={'default': ('viscous', 'coulomb', 'offset')}, drive_gain=(20.0,) * 3
    )
    log = record(0, 30.0, 0.01)
    currents = dataclasses.replace(log, effort=0.05 * log.effort)
    verdict = judge(identify(currents, build_robot(URDF, settings), SETTINGS))
    assert verdict.usable and verdict.effort_unit == ''


def test_the_motion_is_that_of_the_limits(robot, record):
    found = identify(record(0, 10.0, 0.01), robot, SETTINGS)
    q, dq, ddq, lacking = working_motion(robot, *found.quality.reached)
    assert np.abs(q).max() < 3.0 and np.ptp(q, axis=0).min() > 4.0
    assert 2.0 < np.abs(dq).max() <= 0.6 * 10.0
    assert np.abs(ddq).max() <= 0.6 * 20.0 * (1 + 1e-12) and lacking == ('acceleration',)
    free = dataclasses.replace(
        robot.limits, lower=np.full(3, -np.inf), velocity=np.array([np.inf, 10.0, 10.0])
    )
    q, dq, _, lacking = working_motion(
        dataclasses.replace(robot, limits=free), *found.quality.reached
    )
    assert lacking == ('position', 'velocity', 'acceleration')
    lowest, highest, fastest = found.quality.reached
    assert (q >= lowest).all() and (q <= highest).all()
    assert np.abs(dq[:, 0]).max() <= fastest[0]


def test_quintic_moves_are_consistent(robot, record):
    """Velocity and acceleration are bounded by what moves over a range can have."""
    quality = identify(record(0, 10.0, 0.01), robot, SETTINGS).quality
    first, again = (working_motion(robot, *quality.reached)[:3] for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


SHARES = st.floats(0.0, 3.0) | st.just(math.nan)
JOINTS = st.lists(st.builds(JointError, st.text(), SHARES, SHARES, SHARES), min_size=1, max_size=4)


@given(JOINTS, st.integers(0, 3), st.floats(1.0, 3.0))
def test_larger_errors_never_make_a_better_verdict(joints, place, factor):
    def level(errors):
        return LEVELS.index(decide_level(errors, residual=0.0, validated=True).level)

    worse, k = list(joints), place % len(joints)
    worse[k] = JointError(
        '', *(factor * x for x in (worse[k].from_parameters, worse[k].from_model)),
        worse[k].measured * factor,
    )  # fmt: skip
    assert level(worse) >= level(joints)


def test_what_lowers_the_level():
    fine = [JointError('a', 0.01, 0.02, 0.03)]
    assert decide_level(fine, residual=0.03, validated=True).level == GOOD
    assert decide_level(fine, residual=0.03, validated=False).level == FAIR
    found = [
        finding('agreement_not_tested'),
        finding('unexplained_effort', ['b'], residual=0.2, alone=None),
        finding('unexplained_effort', ['a'], residual=0.1, alone=None),
    ]
    assert [each.severity for each in found] == [Severity.INFO, Severity.ERROR, Severity.ERROR]
    severe = decide_level(fine, found, residual=0.03, validated=True)
    assert (severe.level, severe.cause) == (FAIR, 2)  # of the worst joint
    assert decide_level(fine, found[:2], residual=0.03, validated=True).cause == 1
    # However well it fits what is read wrongly.
    wrong = finding('implausible_inertia', ['a'], inertias=[1.0], expected=[0.1])
    assert decide_level(fine, [wrong], residual=0.03, validated=True).level == POOR
    noisy = decide_level(fine, residual=THRESHOLDS[POOR] + 0.01, validated=True)
    assert (noisy.level, noisy.reason) == (UNUSABLE, RESIDUAL)
    assert decide_level([], residual=math.nan, validated=False).level == UNUSABLE


def test_a_verdict_is_read_as_it_was_written(robot, record, tmp_path):
    log = record(0, 10.0, 0.01)
    found = identify(log, robot, SETTINGS)
    save(found, log, tmp_path)
    read = verdict_of(read_results(tmp_path))
    written = judge(found)
    np.testing.assert_equal(dataclasses.asdict(read), dataclasses.asdict(written))
    assert isinstance(read, Verdict)
    # An error explains uncertain parameters before the motion does.
    poor = decide_level([JointError('joint_1', 2.0, 0.1)], residual=0.1, validated=False)
    results = read_results(tmp_path)
    assert 'too short or too poor' in cause(dataclasses.replace(results, verdict=poor))
    changed = finding('unexplained_effort', ['joint_1'], residual=0.2, alone=None)
    poor = dataclasses.replace(poor, cause=0, severe=1)
    results = dataclasses.replace(results, verdict=poor, findings=(changed,))
    assert 'unexplained' in cause(results)
    # Of a file of an earlier version the residuals tell.
    older = dataclasses.replace(read_results(tmp_path), verdict=None)
    assert verdict_of(older).joints[0].from_model == older.identification[0].reported


def test_the_documentation_has_the_thresholds():
    text = (Path(__file__).parents[2] / 'docs' / 'guide' / 'verdict.md').read_text()
    for bound in THRESHOLDS.values():
        assert f'{100 * bound:g} %' in text


@pytest.mark.parametrize(
    ('unit', 'effort', 'shown'),
    [
        ('N·m', '?', 'effort'),
        ('N·m·s/rad', 'A', 'A·s/rad'),
        ('kg·m²', 'A', 'A·s²'),
        ('kg·m', '?', 'effort·s²/m'),
        ('N·s/m', 'A', 'A·s/m'),
        ('1', 'A', '1'),
        ('kg·m²', '', 'kg·m²'),
    ],
)
def test_units_follow_the_effort(unit, effort, shown):
    assert unit_label(unit, effort) == shown


def test_springs_are_at_rest_on_working_motions(robot, record):
    """A motor behind a spring needs what the rigid joint needs."""
    motors = RobotSettings(elastic=ElasticSettings(joints=('j2',)))
    elastic = build_robot(URDF, motors).elastic
    quality = identify(record(0, 10.0, 0.01), robot, SETTINGS).quality
    wide = [np.append(values, 1.0) for values in quality.reached]
    q, dq, ddq, _ = working_motion(elastic, *wide)
    torque = (regressor(elastic, q, dq, ddq) @ elastic.prior)[elastic.motors]
    rigid, states = elastic.rigid, [x[:, :3] for x in (q, dq, ddq)]
    np.testing.assert_allclose(torque, regressor(rigid, *states) @ rigid.prior, atol=1e-9)
