"""What hangs at a force-torque sensor, by sensors of MuJoCo at the tool of a UR10."""

import numpy as np
import pinocchio
import pytest
from sensor_arm import CENTRAL, MASS, ROBOT, SensorArm, TILT, TOOL

from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.payload.force_torque import (
    identify_at_sensor,
    REACTION,
    sensor_motion,
    SensorMotion,
)
from robotid_ros.core.payload.payload import identify_payload
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording, SignalSettings
from robotid_ros.exceptions import RecordingError

pytest.importorskip('mujoco')
OFFSET = np.array([12.0, -5.0, 30.0, 0.4, -0.2, 0.1])
NOISE = np.array([0.5, 0.5, 0.5, 0.02, 0.02, 0.02])


def motion(seed=0, count=4000):
    """Return 20 s of sums of sines."""
    rng, time = np.random.default_rng(seed), np.arange(count) * (20.0 / count)
    w = 2.0 * np.pi * 0.1 * np.arange(1, 6)
    a, b = rng.normal(size=(2, 5, ROBOT.n)) * 0.5
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    return s @ a + c @ b, c * w @ a - s * w @ b, -(s * w**2) @ a - c * w**2 @ b


def poses(count=6, each=1, seed=1):
    q = np.repeat(np.random.default_rng(seed).uniform(-2.0, 2.0, (count, ROBOT.n)), each, axis=0)
    return q, np.zeros_like(q), np.zeros_like(q)


def identify(states, wrench, sign=REACTION):
    """MuJoCo's sensors give what the arm exerts on the body."""
    moved = sensor_motion(ROBOT, TOOL, *states)
    return identify_at_sensor(moved, wrench, ROBOT.gravity, TOOL.name, sign)


def turned_by(found):
    """Return the angle between gravity as found and as it is."""
    true = TILT @ [0.0, 0.0, -1.0]
    return np.arccos(
        np.clip(found.model.gravity @ true / np.linalg.norm(found.model.gravity), -1.0, 1.0)
    )


@pytest.mark.parametrize('states', [motion(count=100), poses()], ids=['motion', 'six poses'])
def test_measurements_without_noise_give_everything(states):
    _, wrench = SensorArm().measure(*states)
    moved = sensor_motion(ROBOT, TOOL, *states)
    for sign, measured in ((REACTION, wrench + OFFSET), (-REACTION, OFFSET - wrench)):
        found = identify(states, measured, sign)
        known = np.isfinite(found.payload.central_sigma)
        assert known.tolist() == [True] * 4 + [bool(states[2].any())] * 6
        np.testing.assert_allclose(found.payload.central[known], CENTRAL[known], atol=1e-9)
        np.testing.assert_allclose(found.model.offset, OFFSET, atol=1e-9)
        assert found.model.gravity == pytest.approx(TILT @ [0.0, 0.0, -9.81], abs=1e-9)
        np.testing.assert_allclose(found.model.wrench(moved), measured, atol=1e-8)


@pytest.mark.parametrize('states', [motion(count=60), poses(10, 6)], ids=['motion', 'poses'])
def test_sigma_covers_the_truth(states):
    _, wrench = SensorArm().measure(*states)
    inside, rng = [], np.random.default_rng(3)
    for _ in range(40):
        found = identify(states, wrench + OFFSET + NOISE * rng.normal(size=wrench.shape))
        sigma = found.payload.central_sigma
        known = np.isfinite(sigma)
        errors = [*(found.payload.central - CENTRAL)[known] / sigma[known]]
        errors += [*(found.model.offset - OFFSET) / found.offset_sigma]
        inside.append([abs(error) < 2.0 for error in errors])
        assert turned_by(found) < 4.0 * found.gravity_sigma
    assert 0.92 < np.mean(inside) < 0.99


def test_errors_that_stay_in_a_pose_count_once():
    """As those of a sensor that is not linear: ten measurements of a pose say no more than one."""
    states, rng = poses(12, 10), np.random.default_rng(4)
    _, wrench = SensorArm().measure(*states)
    inside = []
    for _ in range(40):
        errors = np.repeat(rng.normal(size=(12, 6)), 10, axis=0) + 0.05 * rng.normal(size=(120, 6))
        found = identify(states, wrench + OFFSET + NOISE * errors)
        inside.append(np.abs(found.model.offset - OFFSET) < 2.0 * found.offset_sigma)
        inside.append(
            np.abs(found.payload.central - CENTRAL)[:4] < 2.0 * found.payload.central_sigma[:4]
        )
    assert 0.9 < np.mean(np.concatenate(inside)) <= 1.0


def test_the_efforts_of_the_joints_agree():
    """The same body, by the difference of two recordings and by the sensor, within their σ."""
    upright, rng = np.eye(3), np.random.default_rng(5)
    signals = SignalSettings(cutoff=20.0, standstill=0.0)
    base, estimates = base_parameters(ROBOT), []
    for seed, carries in enumerate((False, True)):
        states = motion(seed)
        effort, wrench = SensorArm(carries, upright).measure(*states)
        effort += 2.0 * states[1] + 0.3 * rng.normal(size=effort.shape)
        log = Recording(ROBOT.joints, np.arange(4000) / 200.0, states[0], effort)
        estimates.append(fit(observe(prepare(log, ROBOT, signals), ROBOT, base)))
    by_joints = identify_payload(ROBOT, base, *estimates, TOOL)
    rows = [x[::20] for x in states]
    noise = NOISE * rng.normal(size=(200, 6))
    by_sensor = identify(rows, wrench[::20] + OFFSET + noise).payload
    assert by_sensor.frame == by_joints.frame == 'tool0'
    sigma = np.hypot(by_sensor.central_sigma, by_joints.central_sigma)
    assert np.isfinite(sigma).all()
    assert (np.abs(by_sensor.central - by_joints.central) < 4.0 * sigma).all()
    assert by_sensor.mass == pytest.approx(MASS, rel=0.02)


def turns_about(axis, count=8, angle=2.5):
    """Poses that turn the sensor about one axis of the root."""
    axis = np.eye(3)[axis]
    rotation = np.array([pinocchio.exp3(a * axis) for a in np.linspace(0.0, angle, count)])
    return SensorMotion(rotation, *np.zeros((2, count, 6)))


@pytest.mark.parametrize(
    ('moved', 'names'),
    [
        (turns_about(2), [', M, ', 'the offset of fz']),
        (turns_about(0), ['the offset of fx', "gravity's direction"]),
        (turns_about(0, 6, 0.0), ['MX', 'the offset of tx']),
    ],
    ids=['about the vertical', 'about a level axis', 'one pose'],
)
def test_poses_that_do_not_determine_it_are_refused_by_name(moved, names):
    wrench = np.zeros((len(moved.rotation), 6))
    with pytest.raises(RecordingError, match=r'^the poses do not distinguish [^\n]*$') as refusal:
        identify_at_sensor(moved, wrench, ROBOT.gravity, 'tool0')
    assert [name for name in names if name not in str(refusal.value)] == []


def test_five_poses_are_too_few():
    states = poses(5)
    with pytest.raises(RecordingError, match='there are 5 measurements'):
        identify(states, np.zeros((5, 6)))


def test_without_a_body_the_offsets_are_found_and_the_direction_is_as_described():
    states, rng = poses(10, 6), np.random.default_rng(6)
    found = identify(states, OFFSET + NOISE * rng.normal(size=(60, 6)))
    assert np.all(np.abs(found.model.offset - OFFSET) < 4.0 * found.offset_sigma)
    np.testing.assert_array_equal(found.model.gravity, ROBOT.gravity)
    assert found.gravity_sigma == np.inf
    assert abs(found.payload.unconstrained[9]) < 4.0 * found.payload.sigma[9]
