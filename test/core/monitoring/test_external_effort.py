"""External effort: the observer of momentum, contacts, and what is known of friction at rest."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

from robotid_ros.core.model import build_robot, inverse_dynamics
from robotid_ros.core.model.dynamics import RobotDynamics
from robotid_ros.core.monitoring.external_effort import (
    Contact,
    contact_thresholds,
    ContactDetector,
    ContactThresholds,
    ExternalEffort,
    FORGOTTEN,
    FrictionAtRest,
    MomentumObserver,
)
from robotid_ros.exceptions import ConfigurationError, RecordingError
from robotid_ros.files.configuration import load, read_urdf

from ..conftest import motion

WIDTH, H = np.array([6.0, 2.0]), 0.01
LARGEST = WIDTH / np.sqrt(12.0)


def after(memory, seconds, dq=(0.0, 0.0), effort=(0.0, 0.0)):
    for _ in range(round(seconds / H)):
        sigma = memory.sigma(np.array(dq), np.array(effort), WIDTH, H)
    return sigma


def test_a_joint_that_has_never_moved_may_have_any_friction():
    assert after(FrictionAtRest(np.eye(2), 0.01), H) == pytest.approx(LARGEST)


def test_friction_is_known_after_a_slide_and_forgotten_with_time():
    memory = FrictionAtRest(np.eye(2), 0.01)
    assert after(memory, 0.1, dq=(0.1, -0.1), effort=(3.0, 1.0)).tolist() == [0.0, 0.0]
    assert (after(memory, 0.2, effort=(3.0, 1.0)) < 0.05 * LARGEST).all()
    # What an effort changes by at rest may be friction, but no more than there is of it.
    some, much = after(memory, H, effort=(3.5, 9.0))
    assert some == pytest.approx(0.5, rel=0.02) and much == pytest.approx(LARGEST[1])
    late = after(memory, FORGOTTEN, effort=(3.0, 1.0))
    assert late == pytest.approx(LARGEST * (1.0 - np.exp(-1.04)), rel=0.02)
    assert after(memory, H, dq=(0.1, 0.0), effort=(3.0, 1.0))[0] == 0.0


def test_a_joint_slides_with_all_of_its_drives():
    drives = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    memory = FrictionAtRest(drives, 0.01)
    assert after(memory, H, dq=(0.1, 0.1)).tolist() == [0.0, 0.0]
    memory = FrictionAtRest(drives, 0.01)
    assert after(memory, H, dq=(0.1, -0.1)) == pytest.approx(LARGEST)


TX40 = Path(__file__).resolve().parents[3] / 'config' / 'tx40.yaml'
GAIN, PUSH = np.array([20.0, 30.0, 40.0]), np.array([3.0, -5.0, 2.0])


def observe(model, states, time, gain, standstill):
    """Return r, below and above along a motion, (N, 3, n)."""
    observer = MomentumObserver(model, gain, standstill)
    rows = [(row[:3], row[3]) for row in np.stack(states, axis=1)]
    observer.start(*rows[0])
    found = [observer.observed]
    for row, h in zip(rows[1:], np.diff(time).tolist(), strict=True):
        observer.step(*row, h)
        found.append(observer.observed)
    return np.array(found)


@pytest.mark.parametrize('jitter', [0.0, 0.25])
def test_the_residual_is_the_first_order_response_to_a_step(robot, truth, jitter):
    chi = truth.copy()
    # Friction that jumps has no trapezoidal rule.
    chi[[robot.column(f'Fc{joint}') for joint in (1, 2, 3)]] = 0.0
    errors = []
    for count in (200, 400):
        time = np.linspace(0.0, 1.0, count + 1)
        time[1:-1] += jitter * np.random.default_rng(3).uniform(-1.0, 1.0, count - 1) / count
        q, dq, ddq = motion(time, seed=1)
        tau = inverse_dynamics(robot, chi, q, dq, ddq) - PUSH
        model = RobotDynamics(robot, chi)
        seen = observe(model, (q, dq, ddq, tau), time, GAIN, standstill=0.0)
        expected = PUSH * (1.0 - np.exp(-np.outer(time, GAIN)))
        errors.append(np.abs(seen[:, 0] - expected).max())
        assert not seen[:, 1:].any()
    # What is left is the error of the trapezoidal rule, which is of second order.
    assert errors[0] < 2e-3
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.3)


def test_what_friction_may_hide_at_rest_is_within_the_bounds():
    configuration = load(TX40)
    couplings = {'wrist': replace(configuration.robot.couplings['wrist'])}
    couplings['wrist'] = replace(couplings['wrist'], ratios=(0.0, 0.0, 0.0, 0.3, -1.0, 1.0))
    robot = build_robot(
        read_urdf(configuration) or '', replace(configuration.robot, couplings=couplings)
    )
    chi, rng = robot.prior.copy(), np.random.default_rng(8)
    dry = rng.uniform(0.5, 3.0, 7)
    for size, joint in zip(dry, ('1', '2', '3', '4', '5', '6', '56'), strict=False):
        names = [p.name for p in robot.parameters]
        chi[names.index(f'Fc{joint}' if f'Fc{joint}' in names else names[-1])] = size
    model = RobotDynamics(robot, chi)
    q, still = rng.uniform(-1.0, 1.0, 6), np.zeros(6)
    hold = model.gravity(q) + model.friction(q, still)
    largest = np.zeros(6)
    for _ in range(50):
        # Stuck drives bear any torque up to their friction, motors that turn two joints too.
        stuck = rng.choice([-1.0, 1.0], 7) * dry @ model.drives
        states = [np.tile(x, (30, 1)) for x in (q, still, still, hold + stuck - 0.5)]
        r, below, above = observe(model, states, np.arange(30) * 0.02, (20.0,), 0.01)[-1]
        assert (r - below <= 0.5).all() and (0.5 <= r + above).all()
        largest = np.maximum(largest, np.abs(r - 0.5) / np.maximum(below, above))
    # The bounds are not wider than static friction asks for.
    assert (largest > 0.75).all()


def test_after_a_slide_friction_keeps_its_direction(robot, truth):
    model, h = RobotDynamics(robot, truth), 0.002
    time = np.arange(0.0, 1.5, h)
    # Joint 2 slides down until 0.5 s and sticks there while a push lasts.
    speed = np.where(time < 0.5, -0.4 * np.sin(2.0 * np.pi * time) ** 2, 0.0)
    change = np.where(time < 0.5, -0.8 * np.pi * np.sin(4.0 * np.pi * time), 0.0)
    q, dq, ddq = (np.zeros((len(time), 3)) for _ in range(3))
    q[:, 1], dq[:, 1], ddq[:, 1] = np.cumsum(speed) * h, speed, change
    tau = np.array([model.efforts(*state) for state in zip(q, dq, ddq, strict=True)])
    friction = truth[robot.column('Fc2')]
    tau[time >= 0.5, 1] -= friction
    seen = observe(model, (q, dq, ddq, tau), time, (30.0,), 0.01)
    r, below, above = seen[-1, :, 1]
    # All of the friction is against the last direction; viscous friction of the slowest motion.
    assert abs(r) < 0.02 * friction
    assert above > 2.0 * friction > 0.3 * friction > below


def test_the_wrong_number_of_gains_is_refused(robot, truth):
    with pytest.raises(ConfigurationError, match='has 2 values: give one, or one per joint'):
        MomentumObserver(RobotDynamics(robot, truth), (10.0, 20.0), 0.01)


RATE, JOINTS = 200.0, ('a', 'b')
# Variances: constant, per square of the speed, per square of the inertia.
TRUE = np.array([[0.25, 1.0], [2.0, 0.0], [0.5, 0.1]])


def residuals(seconds, seed):
    """Return Gaussian residuals of known variance, at speeds up to 1 and inertias of 1 to 3."""
    rng = np.random.default_rng(seed)
    count = round(seconds * RATE)
    noise = rng.normal(size=(count + 200, 2))
    for _ in range(3):
        noise = lfilter([0.2], [1.0, -0.8], noise, axis=0)
    noise = noise[200:] / noise[200:].std(axis=0)
    time = np.arange(count) / RATE
    v, m = np.sin(np.outer(time, (0.7, 0.9))), 2.0 + np.sin(np.outer(time, (0.31, 0.23)))
    a, b, c = TRUE
    none, stamp = np.zeros_like(v), np.round(1e9 * time).astype(np.int64)
    sigma = np.sqrt(a + b * v**2 + c * m**2)
    return ExternalEffort(stamp, none, v, m, sigma * noise, none, none, none)


def samples(seen):
    return (ExternalEffort(*row) for row in zip(*seen, strict=True))


def test_the_size_of_the_residual_is_found_by_speed_and_inertia():
    found = contact_thresholds(residuals(600.0, seed=1), 1.0)
    for v, m in ((0.0, 1.0), (1.0, 1.0), (0.0, 3.0), (1.0, 3.0)):
        true = np.sqrt(TRUE[0] + TRUE[1] * v**2 + TRUE[2] * m**2)
        assert found.sigma(v, m) == pytest.approx(true, rel=0.1)


def test_false_alarms_are_as_rare_as_was_asked_for():
    asked = 360.0
    found = contact_thresholds(residuals(600.0, seed=1), asked)
    seen = residuals(3600.0, seed=2)
    beyond = np.abs(seen.effort) > found.at(seen.speed, seen.inertia)
    count = int((beyond[1:] & ~beyond[:-1]).sum())
    # A residual that came far in the motion that was seen makes them rarer.
    assert 0.3 * asked < count < 1.3 * asked
    rare = contact_thresholds(residuals(600.0, seed=1), 0.01)
    assert not (np.abs(seen.effort) > rare.at(seen.speed, seen.inertia)).any()


def test_a_residual_that_comes_further_than_a_gaussian_one_raises_its_threshold():
    seen = residuals(60.0, seed=3)
    seen.effort[4000:4010, 1] = 15.0
    one, other = contact_thresholds(residuals(60.0, seed=3), 1.0), contact_thresholds(seen, 1.0)
    assert other.factor[0] == one.factor[0]
    assert other.factor[1] > 1.5 * one.factor[1]
    detector = ContactDetector(JOINTS, other)
    assert not any(detector.take(sample) for sample in samples(seen))


def test_what_friction_hides_is_no_residual():
    seen = residuals(600.0, seed=3)
    hidden = np.where(np.abs(seen.speed) < 0.1, 20.0, 0.0)
    stuck = seen._replace(effort=seen.effort + 0.9 * hidden, below=hidden, above=hidden)
    one, other = contact_thresholds(seen, 1.0), contact_thresholds(stuck, 1.0)
    assert other.sigma(0.5, 2.0) == pytest.approx(one.sigma(0.5, 2.0), rel=0.1)
    assert other.factor == pytest.approx(one.factor, rel=0.15)


def test_too_little_is_refused():
    with pytest.raises(RecordingError, match='too short for thresholds'):
        contact_thresholds(residuals(0.3, seed=1), 1.0)


def test_a_contact_is_told_once_and_kept():
    five, none = np.full(2, 5.0), np.zeros(2)
    thresholds = ContactThresholds(np.outer((1.0, 0.0, 0.0), np.ones(2)), five)
    detector = ContactDetector(JOINTS, thresholds)

    def take(milliseconds, a=0.0, b=0.0, below=0.0, above=0.0):
        seen = ExternalEffort(
            *(milliseconds * 10**6, none, none, none, np.array([a, b])),
            *(np.array([below, 0.0]), np.array([above, 0.0]), none),
        )
        return detector.take(seen)

    assert not take(0, a=4.9)
    assert not take(10, a=9.0, below=4.1)
    assert not take(20, a=-9.0, above=4.1)
    assert take(30, a=-9.0, b=20.0, below=4.1)
    first = detector.contact
    assert first == Contact('b', 30 * 10**6, 20.0, 5.0, 1, True)
    # It goes on while an effort is beyond half of its threshold.
    assert not any(take(t, a=3.0) for t in range(40, 1000, 10))
    assert not any(take(t) for t in range(1000, 1190, 10)) and take(1200)
    assert not detector.contact.present and detector.contact.stamp == first.stamp
    assert take(1210, a=-5.1) and detector.contact.number == 2 and detector.contact.joint == 'a'
    # A gap is not quiet: after it the observer begins at zero.
    assert not take(5000) and not any(take(t, a=-5.1) for t in range(5010, 6000, 10))
    # Nor is a clock that was set back.
    assert not take(2000) and not any(take(t, a=-5.1) for t in range(2010, 3000, 10))
    assert detector.contact.number == 2 and detector.contact.present
