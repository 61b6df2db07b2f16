"""Samples from recordings as real logs are: jittered, gapped, repeated, spoiled."""

import dataclasses

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import FAMILIES, Trajectory
from robotid_ros.core.findings import select
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.signals.filters import lowpass
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Phase, Recording, Reference, SignalSettings
from robotid_ros.exceptions import RecordingError, UnknownNameError

BODY = (
    '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    '</inertial>'
)
JOINT = (
    '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><axis xyz="0 0 1"/>'
    '<limit lower="-3" upper="3" velocity="9" effort="9"/></joint>'
)
URDF = (
    f'<robot name="two"><link name="a"/><link name="b">{BODY}</link><link name="c">{BODY}</link>'
    + JOINT.format('one', 'a', 'b')
    + JOINT.format('two', 'b', 'c')
    + '</robot>'
)
ROBOT = build_robot(URDF, RobotSettings(drive_gain=(2.0, 1.0)))
PLAIN = SignalSettings(cutoff=20.0, standstill=0.02)


def signal(time, derivative=0):
    """Return a sum of slow sines (N, 2) or one of its derivatives."""
    w = 2.0 * np.pi * np.array([0.2, 0.5])
    turn = np.array([0.0, 0.5 * np.pi]) + 0.5 * np.pi * derivative
    return np.sin(np.outer(time, w) + turn) * w**derivative


def torque(time):
    """Return efforts (N, 2) that are no derivative alone."""
    return signal(time, 1) + signal(time, 2)


def recording(rate=500.0, duration=20.0, **changes):
    time = np.arange(round(rate * duration)) / rate
    made = Recording(('one', 'two'), time, signal(time), torque(time), source='the bag')
    return dataclasses.replace(made, **changes)


def interior(samples, margin=1.0):
    return (samples.time > samples.time[0] + margin) & (samples.time < samples.time[-1] - margin)


def check(samples, tolerance):
    inner = interior(samples)
    time = samples.time[inner]
    for derivative, values in enumerate((samples.q, samples.dq, samples.ddq)):
        np.testing.assert_allclose(values[inner], signal(time, derivative), atol=tolerance)


def test_derivatives_are_right():
    samples = prepare(recording(), ROBOT, PLAIN)
    check(samples, 2e-3)
    np.testing.assert_allclose(samples.tau, torque(samples.time) * [2.0, 1.0], atol=1e-9)
    assert samples.rate == pytest.approx(500.0)
    assert samples.decimation == 10


def test_the_cut_off_follows_the_motion_unless_it_is_given():
    """By ten times what the faster joint moves at, not below 5 Hz."""
    slow = prepare(recording(), ROBOT, SignalSettings())
    time = recording().time
    fast = recording(position=np.sin(2.0 * np.pi * 3.0 * time)[:, None] * [1.0, 0.5])
    assert 5.0 <= slow.cutoff < 15.0
    assert prepare(fast, ROBOT, SignalSettings()).cutoff == pytest.approx(30.0, rel=0.2)
    assert prepare(recording(), ROBOT, PLAIN).cutoff == 20.0


def test_rows_at_standstill_and_at_the_edges_are_left_out():
    samples = prepare(recording(), ROBOT, PLAIN)
    assert not samples.valid[0].any() and not samples.valid[-1].any()
    assert np.all(np.abs(samples.dq[samples.valid]) >= 0.02)
    assert samples.valid.mean() > 0.9


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_jittered_repeated_and_dropped_samples(seed):
    rng = np.random.default_rng(seed)
    made = recording()
    time = made.time + 2e-4 * rng.uniform(-1.0, 1.0, made.time.size)
    keep = np.sort(rng.choice(time.size, size=int(0.97 * time.size), replace=False))
    keep = np.sort(np.concatenate([keep, keep[::100]]))
    position, effort = signal(time)[keep], torque(time)[keep]
    spoiled = dataclasses.replace(made, time=time[keep], position=position, effort=effort)
    samples = prepare(spoiled, ROBOT, PLAIN)
    check(samples, 2e-2)
    assert select(samples.notes, 'stamps_repeated') and select(samples.notes, 'samples_missing')


def test_gaps_are_left_out():
    made = recording()
    keep = (made.time < 8.0) | (made.time > 9.0)
    gapped = dataclasses.replace(
        made, time=made.time[keep], position=made.position[keep], effort=made.effort[keep]
    )
    samples = prepare(gapped, ROBOT, PLAIN)
    inside = (samples.time > 8.01) & (samples.time < 8.99)
    assert not samples.valid[inside].any()
    (gap,) = select(samples.notes, 'gap_left_out')
    assert (gap.values['duration'], gap.values['since']) == pytest.approx((1.0, 8.0), abs=5e-3)


def test_some_missing_numbers_are_told():
    position = recording().position.copy()
    position[100:110] = np.nan
    samples = prepare(recording(position=position), ROBOT, PLAIN)
    (found,) = select(samples.notes, 'samples_not_finite')
    assert found.values == {'count': 10}
    assert np.isfinite(samples.ddq).all()


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'effort': np.zeros((10000, 2))}, 'no effort'),
        ({'position': np.zeros((10000, 2))}, 'record a motion'),
        ({'position': np.ones((10000, 2)), 'effort': np.ones((10000, 2))}, 'brakes on: record a'),
        ({'position': np.full((10000, 2), np.nan)}, 'one, two are not numbers'),
        ({'time': np.arange(10000)[::-1] / 500.0}, 'jump back'),
    ],
)
def test_what_cannot_be_used_is_said(changes, words):
    with pytest.raises(RecordingError, match=words):
        prepare(recording(**changes), ROBOT, PLAIN)


def test_too_short():
    with pytest.raises(RecordingError, match='at least'):
        prepare(recording(duration=0.1), ROBOT, PLAIN)


def test_dead_channel_is_refused():
    effort = recording().effort.copy()
    effort[:, 1] = 0.3
    with pytest.raises(RecordingError, match='effort of two never changes while it moves'):
        prepare(recording(effort=effort), ROBOT, PLAIN)


def test_filter_has_no_phase():
    time = np.arange(4000) / 1000.0
    wave = np.sin(2.0 * np.pi * 2.0 * time)[:, None]
    filtered = lowpass(wave, 40.0, 1000.0)
    np.testing.assert_allclose(filtered[500:-500], wave[500:-500], atol=1e-6)


def test_averaging_lowers_the_noise():
    rng = np.random.default_rng(0)
    made = recording(duration=60.0)
    noisy = made.effort + 0.2 * rng.normal(size=made.effort.shape)
    size = FAMILIES['ffs'].size
    plan = Trajectory(('one', 'two'), 'ffs', 10.0, 1, np.zeros(2), np.zeros((size, 2)))
    made = dataclasses.replace(made, effort=noisy, trajectories={'exciting': plan})
    samples = prepare(made, ROBOT, dataclasses.replace(PLAIN, averaging=True))
    np.testing.assert_allclose(samples.noise, 0.2 * np.array([2.0, 1.0]), rtol=0.05)
    error = samples.tau / ROBOT.drive_gain - torque(samples.time)
    assert error.std() < 0.2 / np.sqrt(4.5)
    check(samples, 5e-3)
    assert samples.valid.sum(axis=0).max() <= 5000
    assert select(samples.notes, 'periods_averaged')


def test_parts_of_a_recording():
    made = recording()
    reference = Reference(made.time, made.position, made.position, made.position)
    phases = (Phase('exciting', 0.0, 12.0), Phase('validating', 12.0, 20.0))
    made = dataclasses.replace(made, reference=reference, phases=phases)
    part = made.phase('validating')
    assert part.time[0] == 12.0 and part.reference.time[0] == 12.0
    assert part.phases == phases[1:]
    swapped = made.select(('two', 'one'))
    np.testing.assert_array_equal(swapped.reference.q, made.reference.q[:, ::-1])
    np.testing.assert_array_equal(swapped.select(made.joints).effort, made.effort)
    with pytest.raises(UnknownNameError, match='validating'):
        made.phase('resting')
    with pytest.raises(UnknownNameError, match='one, two'):
        made.select(('three',))
    with pytest.raises(RecordingError, match='shape'):
        recording(effort=np.zeros((3, 2)))
