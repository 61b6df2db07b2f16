"""What a change explains is the difference of two Gaussian likelihoods; chance is calibrated."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, chi2

from robotid_ros.core.model import build_robot, regressor, RobotSettings
from robotid_ros.core.model.settings import CoupledMotorSettings
from robotid_ros.core.monitoring.drift_monitor import (
    ChangeTests,
    Evidence,
    followed_parameters,
    FRICTION,
    ParameterGroup,
)
from robotid_ros.core.monitoring.motion_rows import Row, RowSums

from ..conftest import URDF

GROUPS = (ParameterGroup(FRICTION, 'a', (0, 1), (0,)), ParameterGroup(FRICTION, 'b', (2,), (1,)))
VARIANCE, WIDE = np.array([0.04, 0.01, 0.09]), np.array([25.0, 16.0, 9.0])


def test_a_statistic_is_the_difference_of_dense_likelihoods():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(40, 3))
    y = phi @ [0.5, -0.2, 1.0] + rng.normal(size=40)
    found = Evidence(phi.T @ phi, phi.T @ y, VARIANCE).statistics(GROUPS, WIDE)
    without = np.eye(40) + phi @ np.diag(VARIANCE) @ phi.T
    for group, statistic in zip(GROUPS, found, strict=True):
        own = phi[:, list(group.members)]
        change = own @ np.diag(WIDE[list(group.members)]) @ own.T
        exact = y @ (np.linalg.inv(without) - np.linalg.inv(without + change)) @ y
        assert statistic == pytest.approx(exact, rel=1e-9)


def test_an_estimate_is_that_of_the_prior_and_the_rows():
    rng = np.random.default_rng(1)
    phi, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    mean, covariance = Evidence(phi.T @ phi, phi.T @ y, VARIANCE).estimate()
    exact = np.linalg.inv(phi.T @ phi + np.diag(1.0 / VARIANCE))
    assert covariance == pytest.approx(exact, rel=1e-10)
    assert mean == pytest.approx(exact @ phi.T @ y, rel=1e-9)


def test_chance_exceeds_a_threshold_as_often_as_it_says():
    rng = np.random.default_rng(2)
    phi, tries, level = rng.normal(size=(30, 3)), 2000, 0.05
    false = np.zeros(2)
    for _ in range(tries):
        y = phi @ (np.sqrt(VARIANCE) * rng.normal(size=3)) + rng.normal(size=30)
        statistics = Evidence(phi.T @ phi, phi.T @ y, VARIANCE).statistics(GROUPS, 1e4 * WIDE)
        false += statistics > chi2.isf(level, [2, 1])
    low, high = binom.interval(0.999, tries, level)
    assert (false >= low).all() and (false <= high).all()


def test_parts_agree_where_each_shows_one_value_by_itself():
    followed = SimpleNamespace(groups=GROUPS, columns=np.arange(3), scale=np.ones(3))
    tests = ChangeTests(followed, np.zeros(3), 0.01)
    rng, noise = np.random.default_rng(4), np.ones(1)

    def part(*change):
        rows = RowSums.none(1, 3)
        for phi in rng.normal(size=(40, 3)):
            measured = phi @ change + rng.normal()
            values = np.append(phi, measured)[None]
            rows = rows.with_row(Row(0, 0.05, values, np.ones(1, dtype=bool)))
        return rows

    early = part(2.0, -1.0, 0.0)
    assert tests.agree(GROUPS[0], (), early, part(2.0, -1.0, 0.0), noise)
    # A push that is over, another one, and the same after which hardly anything moved.
    assert not tests.agree(GROUPS[0], (), early, part(0.0, 0.0, 0.0), noise)
    assert not tests.agree(GROUPS[0], (), early, part(-1.0, 2.0, 0.0), noise)
    assert not tests.agree(GROUPS[0], (), early, RowSums.none(1, 3), noise)


def test_drives_offsets_and_the_load_are_followed():
    friction = {'default': ('viscous', 'coulomb', 'offset'), 'j2': ('stiction', 'spring')}
    wrist = {'wrist': CoupledMotorSettings(ratios=(0.0, 1.0, 1.0))}
    robot = build_robot(URDF, RobotSettings(friction=friction, couplings=wrist))
    followed = followed_parameters(robot, robot.prior + 0.1)
    names = {
        (group.kind, group.name): [followed.names[k] for k in group.members]
        for group in followed.groups
    }
    assert names == {
        ('friction', 'j1'): ['Fv1', 'Fc1'],
        ('offset', 'j1'): ['off1'],
        ('friction', 'j2'): ['Fs2', 'Fsc2'],
        ('payload', 'j3'): ['M3', 'MX3', 'MY3', 'MZ3'],
        ('friction', 'j3'): ['Fv3', 'Fc3'],
        ('offset', 'j3'): ['off3'],
        ('friction', 'wrist'): ['Fv23', 'Fc23'],
    }
    joints = {group.name: group.joints for group in followed.groups if group.kind == 'friction'}
    assert joints == {'j1': (0,), 'j2': (1,), 'j3': (2,), 'wrist': (1, 2)}
    assert [robot.parameters[k].name for k in followed.columns] == list(followed.names)


def test_a_change_of_the_scale_is_a_share_of_ordinary_torque(robot, truth):
    followed = followed_parameters(robot, truth)
    rng = np.random.default_rng(3)
    # A fifth of the limits of speed, 10 rad/s.
    q, dq = rng.uniform(-3.0, 3.0, (2000, 3)), rng.uniform(-2.0, 2.0, (2000, 3))
    W = regressor(robot, q, dq, rng.uniform(-2.0, 2.0, (2000, 3)))
    followed_torque = W[:, :, followed.columns] * truth[followed.columns]
    for group in followed.groups:
        joints, members = list(group.joints), list(group.members)
        own = followed_torque[:, :, members].sum(axis=2) if group.kind == FRICTION else W @ truth
        change = W[:, :, followed.columns[members]] * followed.scale[members]
        share = rms(change)[joints] / rms(own)[joints][:, None]
        # Where it is noticed first.
        assert (share.max(axis=0) > 0.2).all() and (share.max(axis=0) < 1.1).all(), group


def rms(torque):
    return np.sqrt(np.mean(torque**2, axis=1))


JOINTS, COLUMNS, MEMORY = 3, 7, 4.0


def rows(count, seed=0):
    """Return rows (N, n, m + 1), which joints move (N, n) and uneven durations (N,)."""
    rng = np.random.default_rng(seed)
    size = (count, JOINTS, COLUMNS + 1)
    return rng.normal(size=size), rng.random((count, JOINTS)) < 0.7, rng.uniform(0.05, 0.3, count)


def fed(values, used, durations, memory=MEMORY):
    result = RowSums.none(JOINTS, COLUMNS)
    for row, moved, duration in zip(values, used, durations, strict=True):
        result = result.with_row(Row(0, duration, row, moved), memory)
    return result


@pytest.mark.parametrize('memory', [0.3, MEMORY, np.inf])
def test_it_is_weighted_least_squares(memory):
    values, used, durations = rows(400)
    found = fed(values, used, durations, memory)
    clock = np.cumsum(durations[:, None] * used, axis=0)
    weights = used * np.exp(-(clock[-1] - clock) / memory)
    noise = np.array([0.1, 1.0, 20.0])
    phi, y = values[:, :, :-1], values[:, :, -1]
    whitened = weights / noise**2
    information = np.einsum('tj,tja,tjb->ab', whitened, phi, phi)
    score = np.einsum('tj,tja,tj->a', whitened, phi, y)
    assert found.information(noise)[0] == pytest.approx(information, rel=1e-12, abs=1e-10)
    assert found.information(noise)[1] == pytest.approx(score, rel=1e-12, abs=1e-10)
    root = np.sqrt(whitened).ravel()
    batch = np.linalg.lstsq(root[:, None] * phi.reshape(-1, COLUMNS), root * y.ravel())[0]
    recursive = np.linalg.solve(*found.information(noise))
    assert recursive == pytest.approx(batch, rel=1e-9)
    left = np.einsum('tj,tj->j', weights, (y - phi @ batch) ** 2)
    assert found.squares(batch) == pytest.approx(left, rel=1e-10)
    assert found.counts == pytest.approx(weights.sum(axis=0), rel=1e-12)
    assert found.time == pytest.approx(clock[-1])


def test_a_joint_that_rests_forgets_nothing():
    values, used, durations = rows(200)
    before = after = fed(values, used, durations)
    moved = np.array([True, False, False])
    for row, duration in zip(values, durations, strict=True):
        after = after.with_row(Row(0, duration, row, moved), MEMORY)
    assert np.array_equal(after.products[1:], before.products[1:])
    assert np.array_equal(after.counts[1:], before.counts[1:])
    assert abs(after.products[0] - before.products[0]).max() > 0.1 * before.products[0].max()


def test_sums_add_up_and_are_taken_apart():
    values, used, durations = rows(60)
    whole, first = (
        fed(values, used, durations, np.inf),
        fed(values[:20], used[:20], durations[:20], np.inf),
    )
    last = fed(values[20:], used[20:], durations[20:], np.inf)
    for sums, rest in ((first.plus(last), whole), (whole.minus(first), last)):
        for found, wanted in zip(sums, rest, strict=True):
            assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12)
