"""Causes are named by trying the remedy, and no remedy is advised that does not help."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from robotid_ros.core.diagnostics.data_warnings import data_warnings
from robotid_ros.core.diagnostics.remedies import (
    BACKWARDS,
    EXCHANGED,
    find_causes,
    GAIN,
    POSITION_UNIT,
    REVERSED,
    SCALE,
    SIGN,
    SWAPPED,
    TIME,
    ZERO,
)
from robotid_ros.core.diagnostics.trials import (
    _least_distance,
    Efforts,
    folds_of,
    trial_rows,
    Trials,
)
from robotid_ros.core.findings import render, select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, inverse_dynamics, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot import INERTIAL
from robotid_ros.core.pipeline.estimation import estimate_base_parameters
from robotid_ros.core.signals.recording import EFFORT_UNITS, Recording, SignalSettings

from ..conftest import motion, RATE

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = IdentificationSettings(method='wls', model='plain', signals=SignalSettings(cutoff=8.0))
NOISE = 0.01


@pytest.fixture(scope='module')
def base(robot):
    return base_parameters(robot)


@pytest.fixture(scope='module')
def log(robot, truth):
    """Return a recording of 20 s with some noise."""
    time = np.arange(round(20.0 * RATE)) / RATE
    q, dq, ddq = motion(time, seed=1)
    tau = inverse_dynamics(robot, truth, q, dq, ddq)
    tau = tau + NOISE * tau.std(axis=0) * np.random.default_rng(7).normal(size=tau.shape)
    return Recording(robot.joints, time, q, tau)


@pytest.fixture(scope='module')
def estimated(robot, base):
    def of(recording):
        found = estimate_base_parameters(recording, robot, base, SETTINGS, lambda _: None)
        return found.samples, found.sampled_systems, found.estimate

    return of


@pytest.fixture(scope='module')
def causes(robot, base, estimated):
    def of(recording):
        samples, systems, _ = estimated(recording)
        return find_causes(robot, base, samples, trial_rows(systems))

    return of


def with_efforts(log, effort):
    return dataclasses.replace(log, effort=effort)


def test_a_clean_log_has_no_cause(causes, log):
    assert causes(log) == []


@pytest.mark.parametrize('signs', [(1, 1, -1), (-1, 1, 1), (-1, -1, 1), (-1, -1, -1)])
def test_signs_are_named_and_right_when_followed(causes, log, robot, signs):
    (found,) = causes(with_efforts(log, log.effort * signs))
    assert (
        found.name == SIGN and found.finding.values['after'] < 0.1 * found.finding.values['before']
    )
    assert found.finding.joints == tuple(
        j for j, s in zip(robot.joints, signs, strict=True) if s < 0
    )


def test_a_log_that_was_played_backwards_is_named(causes, log):
    other = {name: getattr(log, name)[::-1] for name in ('position', 'effort')}
    (found,) = causes(dataclasses.replace(log, **other))
    assert found.name == BACKWARDS and found.finding.values['after'] < 0.05


def test_friction_that_a_driver_compensates_too_much_is_no_log_played_backwards(
    causes, log, robot, truth
):
    links = np.where([p.symbol in INERTIAL for p in robot.parameters], truth, 0.0)
    motion_of_log = motion(log.time, seed=1)
    rigid = inverse_dynamics(robot, links, *motion_of_log)
    effort = 1.05 * rigid - 0.05 * inverse_dynamics(robot, truth, *motion_of_log)
    noise = 0.01 * rigid.std(axis=0) * np.random.default_rng(3).normal(size=rigid.shape)
    other = dataclasses.replace(log, position=motion_of_log[0], effort=effort + noise)
    assert causes(other) == []


def test_joints_without_weight_turn_with_those_that_carry_it(causes, log, robot, truth):
    """At low speed, without friction, no effort of the upright first joint shows its sign."""
    chi = np.where([p.symbol in INERTIAL for p in robot.parameters], truth, 0.0)
    q, dq, ddq = (x / 10.0**k for k, x in enumerate(motion(log.time / 10.0, seed=1)))
    effort = -inverse_dynamics(robot, chi, q, dq, ddq)
    effort += 0.3 * np.random.default_rng(7).normal(size=q.shape)
    (found,) = causes(dataclasses.replace(log, position=q, effort=effort))
    assert found.name == SIGN and found.finding.joints == robot.joints


def test_a_sign_is_named_where_only_samples_near_the_ends_move(log, robot, base, estimated):
    samples, systems, _ = estimated(with_efforts(log, log.effort * [1.0, -1.0, 1.0]))
    samples = dataclasses.replace(samples, valid=np.zeros_like(samples.valid))
    (found,) = find_causes(robot, base, samples, trial_rows(systems))
    assert found.name == SIGN and found.finding.joints == robot.joints[1:2]


@pytest.mark.parametrize('seed', [2, 3, 11])
def test_no_sign_is_told_of_an_effort_that_shows_none(causes, log, robot, seed):
    effort = log.effort * [1.0, -1.0, 1.0]
    drift = np.cumsum(np.random.default_rng(seed).normal(size=len(effort)))
    effort[:, 2] = (drift - drift.mean()) / drift.std() * effort[:, 2].std()
    (found,) = causes(with_efforts(log, effort))
    assert found.name == SIGN and found.finding.joints == robot.joints[1:2]


@pytest.mark.parametrize('pair', [(0, 1), (1, 2), (0, 2)])
def test_columns_of_two_joints_that_are_exchanged_are_named(causes, log, robot, pair):
    effort = log.effort.copy()
    effort[:, list(pair)] = effort[:, list(pair[::-1])]
    (found,) = causes(with_efforts(log, effort))
    assert found.name == SWAPPED and found.finding.joints == tuple(robot.joints[j] for j in pair)
    told = found.finding.values
    assert told['tried_on'] in robot.joints and told['after'] < told['before']


@pytest.mark.parametrize('both', [False, True])
@pytest.mark.parametrize('joint', [1, 2])
def test_a_joint_that_turns_the_other_way_is_named(causes, log, robot, joint, both):
    senses = np.where(np.arange(3) == joint, -1.0, 1.0)
    other = dataclasses.replace(log, position=senses * log.position)
    (found,) = causes(with_efforts(other, log.effort * senses) if both else other)
    assert found.name == REVERSED and found.finding.joints == (robot.joints[joint],)
    assert found.finding.values['after'] < 0.1 * found.finding.values['before']
    assert found.finding.values['gains'] == (1.0 if both else -1.0,)


@pytest.mark.parametrize('both', [True, False])
@pytest.mark.parametrize('pair', [(0, 1), (1, 2), (0, 2)])
def test_joints_that_are_exchanged_are_named_with_what_is(causes, log, robot, pair, both):
    order = np.arange(3)
    order[list(pair)] = pair[::-1]
    effort = log.effort[:, order] if both else log.effort
    (found,) = causes(dataclasses.replace(log, position=log.position[:, order], effort=effort))
    assert found.name == EXCHANGED and found.finding.joints == tuple(robot.joints[j] for j in pair)
    assert found.finding.values['after'] < 0.1 * found.finding.values['before']
    what = 'Positions and efforts' if both else 'Positions'
    assert found.finding.values['what'] == what


@pytest.mark.parametrize('length', [0.5, 1.5, 2.0, 3.0])
def test_stamps_of_another_unit_or_rate_are_named_with_their_factor(causes, log, length):
    (found,) = causes(dataclasses.replace(log, time=length * log.time))
    assert found.name == TIME and found.finding.joints == ()
    assert found.finding.values['length'] == pytest.approx(length, rel=0.1)
    assert found.finding.values['rate'] == pytest.approx(RATE, rel=0.1)


def test_a_part_of_gravity_that_the_driver_bears_is_named_with_its_share(
    causes, log, robot, truth
):
    weight = inverse_dynamics(robot, truth, log.position, 0.0 * log.position, 0.0 * log.position)
    friction = truth.copy()
    friction[[p.symbol in INERTIAL for p in robot.parameters]] = 0.0
    weight -= inverse_dynamics(robot, friction, *(0.0 * log.position,) * 3)
    (found,) = causes(with_efforts(log, log.effort - 0.6 * weight))
    assert found.name == TIME
    assert found.finding.values['share'] == pytest.approx(0.4, rel=0.1)


@pytest.mark.parametrize('size', [np.pi / 180.0, 2.0 * np.pi])
@pytest.mark.parametrize('joints', [(1,), (2,), (1, 2)])
def test_positions_of_joints_in_another_unit_are_named_with_it(causes, log, robot, joints, size):
    factors = np.where(np.isin(np.arange(3), joints), 1.0 / size, 1.0)
    (found,) = causes(dataclasses.replace(log, position=factors * log.position))
    assert found.name == POSITION_UNIT
    assert found.finding.joints == tuple(robot.joints[j] for j in joints)
    assert found.finding.values['size'] == pytest.approx(size)


def test_positions_of_another_gear_are_named_with_it(causes, log):
    (found,) = causes(dataclasses.replace(log, position=log.position * [1.0, 1.5, 1.0]))
    assert found.name == POSITION_UNIT and found.finding.joints == ('j2',)
    assert found.finding.values['size'] == pytest.approx(1.0 / 1.5, rel=0.02)


@pytest.mark.parametrize('by', [-0.8, 0.3])
def test_a_zero_that_is_off_is_named_with_its_value(causes, log, robot, truth, by):
    """Other masses make up for most of it: only with little noise is it told."""
    effort = inverse_dynamics(robot, truth, *motion(log.time, seed=1))
    position = log.position + by * (np.arange(3) == 1)
    (found,) = causes(dataclasses.replace(log, position=position, effort=effort))
    assert found.name == ZERO and found.finding.joints == (robot.joints[1],)
    assert found.finding.values['shifts'] == pytest.approx([-by], abs=0.03)


@pytest.fixture(scope='module')
def of_four_joints():
    """Return a robot of four joints and its log, with little noise."""
    joints = tuple(f'joint_{k}' for k in range(1, 5))
    urdf = (ROOT / 'urdf' / 'tx40.urdf').read_text()
    robot = build_robot(urdf, RobotSettings(joints=joints, friction={'default': ('viscous',)}))
    time = np.arange(round(20.0 * RATE)) / RATE
    both = zip(motion(time, seed=1), motion(time, seed=2), strict=True)
    q, dq, ddq = (np.hstack([one, other[:, :1]]) for one, other in both)
    effort = inverse_dynamics(robot, robot.prior, q, dq, ddq)
    effort += 1e-3 * effort.std(axis=0) * np.random.default_rng(7).normal(size=q.shape)
    return robot, Recording(robot.joints, time, q, effort)


def only_cause(robot, log):
    base = base_parameters(robot)
    found = estimate_base_parameters(log, robot, base, SETTINGS, lambda _: None)
    (cause,) = find_causes(robot, base, found.samples, trial_rows(found.sampled_systems))
    return cause


def test_zeros_that_are_off_are_named_together(of_four_joints):
    """As those of a table by Denavit and Hartenberg; of the last joint, masses hide it."""
    (robot, log), off = of_four_joints, np.array([0.0, 0.5 * np.pi, -0.5 * np.pi, 0.0])
    cause = only_cause(robot, dataclasses.replace(log, position=log.position + off))
    joints = robot.joints
    told = dict(zip(cause.finding.joints, cause.finding.values['shifts'], strict=True))
    assert cause.name == ZERO
    assert told == pytest.approx({joints[1]: -off[1], joints[2]: -off[2]}, abs=0.05)
    assert all(f' rad to {joint}' in render(cause.finding) for joint in joints[1:3])


@pytest.mark.parametrize('order', [(1, 2, 0, 3), (2, 0, 1, 3), (1, 0, 3, 2), (3, 2, 1, 0)])
def test_joints_in_another_order_are_named_with_their_columns(of_four_joints, order):
    """Joint `order[k]` is in the columns of joint k."""
    (robot, log), order = of_four_joints, list(order)
    position, effort = log.position[:, order], log.effort[:, order]
    cause = only_cause(robot, dataclasses.replace(log, position=position, effort=effort))
    moved = [j for j in range(4) if order[j] != j]
    columns = tuple(robot.joints[order.index(j)] for j in moved)
    assert cause.name == EXCHANGED
    assert cause.finding.joints == tuple(robot.joints[j] for j in moved)
    assert cause.finding.values['columns'] == columns
    assert f'{robot.joints[0]} are in the columns of {columns[0]}' in render(cause.finding)


def test_of_a_vertical_axis_another_sign_of_the_effort_is_the_same(causes, log, robot):
    senses = np.array([-1.0, 1.0, 1.0])
    other = dataclasses.replace(log, position=senses * log.position)
    (found,) = causes(other)
    assert found.name == SIGN and found.finding.joints == robot.joints[:1]
    assert causes(with_efforts(other, log.effort * senses)) == []


@pytest.mark.parametrize('factor', [1.35, 0.6, 1e3])
@pytest.mark.parametrize('joint', range(3))
def test_a_gain_is_named_with_its_value(causes, log, robot, joint, factor):
    (found,) = causes(with_efforts(log, log.effort * np.where(np.arange(3) == joint, factor, 1.0)))
    assert found.name == GAIN and found.finding.joints == (robot.joints[joint],)
    assert abs(found.finding.values['gains'][0] * factor - 1.0) < 0.02
    assert found.finding.values['factor'] == 1.0 / found.finding.values['gains'][0]


def test_a_gain_of_all_joints_does_not_show(causes, log):
    assert causes(with_efforts(log, 1.35 * log.effort)) == []


# A kgf·cm is too near to a lbf·in for a URDF whose masses are off.
@pytest.mark.parametrize(
    ('size', 'unit'),
    [(1e-3, 'mN·m'), (1e-2, 'N·cm'), (EFFORT_UNITS['kgf·cm'], None), (0.04, None)],
)
def test_a_unit_of_all_joints_is_named(causes, log, size, unit):
    (found,) = causes(with_efforts(log, log.effort / size))
    assert found.name == SCALE and found.finding.values.get('unit') == unit
    gains = found.finding.values['gains']
    assert gains == (size,) if unit else len(gains) > 1


@pytest.mark.parametrize('joint', range(3))
def test_efforts_that_are_noise_are_given_no_gain(causes, log, joint):
    effort = log.effort.copy()
    noise = np.random.default_rng(3).normal(size=len(effort))
    effort[:, joint] = effort[:, joint].std() * noise
    found = causes(with_efforts(log, effort))
    assert not [each for each in found if each.name == GAIN]


@pytest.mark.parametrize('joint', range(3))
def test_friction_that_jumps_soon_after_the_start_is_named(robot, base, estimated, truth, joint):
    """The motion starts at 3 s; the joint's friction rises 0.6 s later."""
    time = np.arange(round(15.0 * RATE)) / RATE
    t = np.maximum(time - 3.0, 0.0)
    q, dq, ddq = motion(t, seed=2)
    moves = (time > 3.0)[:, None]
    dq, ddq = dq * moves, ddq * moves
    tau = inverse_dynamics(robot, truth, q, dq, ddq)
    tau = tau + NOISE * tau.std(axis=0) * np.random.default_rng(7).normal(size=tau.shape)
    size = 1.0 * tau[:, joint].std()
    tau[:, joint] += size * np.sign(dq[:, joint]) * (time > 3.6)
    samples, systems, estimate = estimated(Recording(robot.joints, time, q, tau))
    found = data_warnings(robot, base, samples, systems, estimate)
    (jump,) = select(found, 'friction_jump')
    assert jump.joints == (robot.joints[joint],)
    told, since = jump.values['jump'], jump.values['since']
    assert abs(told - size) < 0.2 * size and abs(since - 3.6) < 0.2
    assert 'friction_jump' not in [
        each.name for each in find_causes(robot, base, samples, trial_rows(systems))
    ]


def test_rest_before_the_motion_is_no_jump_of_friction(robot, base, truth):
    """At rest, noise of the positions has a sign and friction has none."""
    rng, time = np.random.default_rng(7), np.arange(round(15.0 * RATE)) / RATE
    q, dq, ddq = motion(np.maximum(time - 3.0, 0.0), seed=2)
    moves = (time > 3.0)[:, None]
    rough = [5.0 if p.symbol == 'Fc' else 1.0 for p in robot.parameters] * truth
    tau = inverse_dynamics(robot, rough, q, dq * moves, ddq * moves)
    q = q + 1e-4 * rng.normal(size=q.shape)
    signals = dataclasses.replace(SETTINGS.signals, rows='every')
    settings = dataclasses.replace(SETTINGS, signals=signals)
    recording = Recording(robot.joints, time, q, tau)
    found = estimate_base_parameters(recording, robot, base, settings, lambda _: None)
    arguments = found.samples, found.sampled_systems, found.estimate
    assert select(data_warnings(robot, base, *arguments), 'friction_jump') == []


@pytest.mark.parametrize('seed', [4, 11])
def test_no_sign_is_advised_that_makes_it_worse(robot, base, estimated, truth, seed):
    """Efforts that wander as much as they tell make friction negative, and no sign wrong."""
    chi = np.array(
        [0.0 if p.symbol in ('Fv', 'Fc') else x
         for p, x in zip(robot.parameters, truth, strict=True)]
    )  # fmt: skip
    time = np.arange(round(8.0 * RATE)) / RATE
    q, dq, ddq = motion(time, seed)
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    drift = np.cumsum(np.random.default_rng(seed + 1000).normal(size=tau.shape), axis=0)
    drift -= drift.mean(axis=0)
    tau = tau + 0.6 * tau.std(axis=0) * drift / drift.std(axis=0)
    samples, systems, estimate = estimated(Recording(robot.joints, time, q, tau))
    found = data_warnings(robot, base, samples, systems, estimate)
    assert not select(found, SIGN)


@pytest.fixture(scope='module')
def rows(estimated, log):
    return trial_rows(estimated(log)[1])


def test_errors_of_folds_are_those_of_rows_left_out(rows):
    """Second implementation: explicit weighted least squares on the other rows."""
    trials = Trials(rows)
    found, folds = trials.errors(Efforts.as_recorded(3)), folds_of(rows)
    own = []
    for W, y, used in zip(rows.W, rows.Y, rows.valid, strict=True):
        left = y[used] - W[used] @ np.linalg.lstsq(W[used], y[used], rcond=None)[0]
        own.append(np.sqrt(left @ left / (used.sum() - np.linalg.matrix_rank(W[used]))))
    for fold, errors in zip(folds, found, strict=True):
        kept = rows.valid & ~fold
        A = np.concatenate([W[k] / s for W, k, s in zip(rows.W, kept, own, strict=True)])
        b = np.concatenate([y[k] / s for y, k, s in zip(rows.Y, kept, own, strict=True)])
        value = np.linalg.lstsq(A, b, rcond=None)[0]
        expected = [
            np.sum((y[k] - W[k] @ value) ** 2)
            for W, y, k in zip(rows.W, rows.Y, rows.valid & fold, strict=True)
        ]
        assert np.allclose(errors, expected, rtol=0.01)


@pytest.mark.parametrize('factor', [1.0, -1.0])
def test_a_joint_without_rows_takes_no_part(robot, base, estimated, log, factor):
    samples, systems, _ = estimated(with_efforts(log, log.effort * [1.0, factor, 1.0]))
    rows = trial_rows(systems)
    rows = dataclasses.replace(rows, valid=rows.valid * np.array([[True], [True], [False]]))
    found = find_causes(robot, base, samples, rows)
    assert [each.finding.joints for each in found] == ([] if factor > 0.0 else [('j2',)])


@pytest.mark.parametrize('seed', range(5))
def test_limits_are_kept_with_the_least_distance(seed):
    """Second implementation: SciPy's bounded least squares."""
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(30, 8)) * 10.0 ** rng.uniform(-2, 2, 8), 100.0 * rng.normal(size=30)
    free = np.linalg.lstsq(A, b, rcond=None)[0]
    found = _least_distance(A.T @ A, free, np.eye(8))
    expected = lsq_linear(A, b, bounds=(0.0, np.inf), tol=1e-14).x
    size = np.linalg.norm(A, axis=0)
    assert np.allclose(found * size, expected * size, atol=1e-4 * np.linalg.norm(expected * size))
