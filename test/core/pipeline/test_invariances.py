"""Physics does not depend on how a robot is described or a recording is cut."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.pipeline.observation import observe_recording, split_into_chunks
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.model_error import count_model_error
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import SignalSettings
from robotid_ros.exceptions import RecordingError, StandstillError

from ..conftest import URDF

SIGNALS = SignalSettings(cutoff=15.0, decimation=4, time_offset=False)
# What is chosen is chosen by data that differ a little.
SETTINGS = IdentificationSettings(model='plain', signals=SIGNALS)


@pytest.fixture(scope='module')
def noisy(record):
    return record(duration=20.0, noise=0.01)


@pytest.fixture(scope='module')
def found(noisy, robot):
    return identify(noisy, robot, SETTINGS)


def by_name(identification):
    return dict(zip(identification.base.names, identification.estimate.value, strict=True))


def cut(recording, edges):
    """Cut a recording into pieces at these rows."""
    edges = [0, *edges, len(recording.time)]
    return [
        dataclasses.replace(
            recording,
            time=recording.time[a:b],
            position=recording.position[a:b],
            effort=recording.effort[a:b],
        )
        for a, b in pairwise(edges)
    ]


@pytest.mark.parametrize('order', [(2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_order_of_joints_does_not_matter(noisy, found, robot, order):
    """Torques follow their joints: another order of the same joints predicts the same."""
    joints = tuple(robot.joints[k] for k in order)
    other = build_robot(URDF, RobotSettings(joints=joints))
    again = identify(noisy, other, SETTINGS)
    assert again.estimate.total_residual == pytest.approx(found.estimate.total_residual, rel=1e-6)
    place = [again.fitted.joints.index(joint) for joint in robot.joints]
    np.testing.assert_allclose(
        again.fitted.predicted[:, place], found.fitted.predicted, rtol=1e-6, atol=1e-6
    )
    # A link's standard parameters are the same, wherever its joint stands in the list.
    for k, start in zip(order, other.first_columns, strict=True):
        np.testing.assert_allclose(
            again.standard.value[start : start + 14],
            found.standard.value[robot.first_columns[k] : robot.first_columns[k] + 14],
            rtol=1e-3,
            atol=1e-4,
        )


def test_order_of_recorded_channels_does_not_matter(noisy, found, robot):
    shuffled = noisy.select((robot.joints[2], robot.joints[0], robot.joints[1]))
    np.testing.assert_array_equal(
        identify(shuffled, robot, SETTINGS).estimate.value, found.estimate.value
    )


def test_units_of_torque_do_not_matter(noisy, found, robot):
    """In mN·m every base parameter is a thousand times as large, its %σ as it was."""
    milli = dataclasses.replace(noisy, effort=1000.0 * noisy.effort)
    base = base_parameters(robot)
    samples = prepare(milli, robot, SIGNALS)
    estimate = fit(count_model_error(samples, observe(samples, robot, base), robot, base))
    np.testing.assert_allclose(estimate.value, 1000.0 * found.estimate.value, rtol=1e-8)
    np.testing.assert_allclose(estimate.relative_sigma, found.estimate.relative_sigma, rtol=1e-6)


def test_drive_gain_undoes_the_units(noisy, found):
    """Efforts in mN·m with the gain 1e-3 are efforts in N·m."""
    milli = dataclasses.replace(noisy, effort=1000.0 * noisy.effort)
    geared = build_robot(URDF, RobotSettings(drive_gain=(1e-3, 1e-3, 1e-3)))
    again = identify(milli, geared, SETTINGS)
    np.testing.assert_allclose(again.estimate.value, found.estimate.value, rtol=1e-8)
    np.testing.assert_allclose(again.standard.value, found.standard.value, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize('shift', [1.7e9, -12.5])
def test_origin_of_time_does_not_matter(noisy, found, robot, shift):
    """Stamps of seconds since 1970 resolve a quarter of a microsecond."""
    late = dataclasses.replace(noisy, time=noisy.time + shift)
    again = identify(late, robot, SETTINGS)
    away = np.abs(again.estimate.value - found.estimate.value)
    assert np.all(away < 2e-3 * found.estimate.sigma + 1e-9)


def test_base_of_the_robot_may_turn(noisy, found):
    """Turn the robot and gravity alike: no joint feels it."""
    tilt = 0.7
    turned = URDF.replace('xyz="0 0 0.3" rpy="0 0 0"', f'xyz="0 0 0.3" rpy="{tilt} 0 0"', 1)
    assert turned != URDF
    gravity = (0.0, 9.81 * np.sin(tilt), -9.81 * np.cos(tilt))
    robot = build_robot(turned, RobotSettings(gravity=gravity))
    again = identify(noisy, robot, SETTINGS)
    np.testing.assert_allclose(
        again.fitted.predicted, found.fitted.predicted, rtol=1e-6, atol=1e-6
    )
    common = {'Fv1', 'Fv2', 'Fc3', 'off1'} & set(by_name(found))
    assert common
    for name in common:
        assert by_name(again)[name] == pytest.approx(by_name(found)[name], rel=1e-6)


@pytest.mark.parametrize('edges', [(2000,), (1000, 2000, 3000), (700, 1900, 2600, 3900)])
def test_pieces_give_what_the_whole_gives(noisy, found, robot, edges):
    """Pieces overlap by what their ends spoil: every row counts once."""
    again = identify(iter(cut(noisy, edges)), robot, SETTINGS)
    away = np.abs(again.estimate.value - found.estimate.value)
    assert np.all(away < 0.3 * found.estimate.sigma + 1e-9)
    rows = np.abs(again.estimate.rows - found.estimate.rows)
    assert np.all(rows <= 4 * (len(edges) + 1))
    assert again.estimate.total_residual == pytest.approx(found.estimate.total_residual, rel=0.05)
    assert set(again.essential.estimate.names) <= set(again.base.names)


def test_factors_are_the_rows(noisy, robot):
    """Triangular factors of one piece solve, and judge, as its rows do."""
    base = base_parameters(robot)
    rows = observe(prepare(noisy, robot, SIGNALS), robot, base)
    factors = observe_recording([noisy], robot, base, SIGNALS).system
    one, other = fit(rows), fit(factors)
    np.testing.assert_allclose(other.value, one.value, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(other.rows, one.rows)
    np.testing.assert_allclose(other.classical, one.classical, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(other.residual, one.residual, rtol=1e-7)
    np.testing.assert_allclose(other.sigma_torque, one.sigma_torque, rtol=1e-7)
    ratio = other.sigma / one.sigma
    assert 0.7 < np.median(ratio) < 1.3


def test_memory_of_factors_is_bounded(record, robot):
    """Many pieces leave no more behind than few do."""
    base = base_parameters(robot)
    long = record(duration=80.0, noise=0.01)
    pieces = cut(long, range(2000, len(long.time), 2000))
    sizes = [
        observe_recording(pieces[:k], robot, base, SIGNALS).system.batches.shape[1] for k in (3, 8)
    ]
    assert max(sizes) <= 128


def test_standstill_in_between_is_skipped(noisy, found, robot):
    still = dataclasses.replace(
        noisy,
        time=noisy.time + 100.0,
        position=np.repeat(noisy.position[-1:], len(noisy.time), axis=0),
    )
    again = identify([noisy, still], robot, SETTINGS)
    away = np.abs(again.estimate.value - found.estimate.value)
    assert np.all(away < 0.3 * found.estimate.sigma + 1e-9)
    with pytest.raises(StandstillError):
        identify([still], robot, SETTINGS)


@pytest.mark.parametrize('method', ['irls', 'iv', 'didim'])
def test_methods_that_need_the_whole_say_so(noisy, robot, method):
    settings = dataclasses.replace(SETTINGS, method=method)
    with pytest.raises(RecordingError, match='as a whole'):
        identify([noisy], robot, settings)


def test_pieces_of_a_recording_are_all_of_it(noisy):
    pieces = list(split_into_chunks(noisy))
    np.testing.assert_array_equal(np.concatenate([p.effort for p in pieces]), noisy.effort)
