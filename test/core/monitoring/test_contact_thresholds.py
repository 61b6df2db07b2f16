"""Thresholds are passed as rarely as they say, by residuals that grow with the speed."""

import numpy as np
import pytest
from scipy.signal import lfilter

from robotid_ros.core.monitoring.external_effort import (
    Contact,
    contact_thresholds,
    ContactDetector,
    ContactThresholds,
    ExternalEffort,
)
from robotid_ros.exceptions import RecordingError

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
        assert (found.lowest <= found.at(v, m) * 1.01).all()
        assert (found.highest >= found.at(v, m) * 0.99).all()


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
    with pytest.raises(RecordingError, match='too short a time'):
        contact_thresholds(residuals(0.3, seed=1), 1.0)


def test_a_contact_is_told_once_and_kept():
    five, none = np.full(2, 5.0), np.zeros(2)
    thresholds = ContactThresholds(np.outer((1.0, 0.0, 0.0), np.ones(2)), five, five, five, 1.0)
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
