"""What real logs suffer from: the right parameters with a note, or a warning; nothing silent."""

import dataclasses
import tracemalloc

import numpy as np
from plant_recording import arm, plant
import pytest

from robotid_ros.core.findings import CODES, select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.invalid_samples import (
    clipped_samples,
    find_frozen_efforts,
    find_repeated,
    find_spikes,
    find_usable_samples,
    unwrap_angles,
)
from robotid_ros.core.signals.recording import Recording, SignalSettings
from robotid_ros.core.signals.stamp_correction import sampling_times, undo_clock_jumps
from robotid_ros.exceptions import RecordingError, RobotIdError

# The filter is the same throughout, so that what differs is the fault.
SETTINGS = IdentificationSettings(essential=False, signals=SignalSettings(cutoff=10.0))


@pytest.fixture
def made():
    return plant().recording


def spoiled(made, rows=None, **changes):
    rows = np.arange(made.time.size) if rows is None else rows
    fields = {k: changes.get(k, getattr(made, k))[rows] for k in ('time', 'position', 'effort')}
    return dataclasses.replace(made, velocity=None, **fields)


def outcome(recording, made=None, **robot):
    """Identify; give the errors over their σ, and the findings."""
    model = arm(**robot)
    found = identify(recording, model, SETTINGS)
    true = (made or plant()).base(model)
    estimate = found.estimate
    error = [
        # Friction that is there for a fault alone has no true value: it is not right.
        (value - true.get(name, np.nan)) / sigma
        for name, value, sigma in zip(estimate.names, estimate.value, estimate.sigma, strict=True)
    ]
    return np.abs(error), found.findings


def names(findings):
    return {CODES[each.code].name for each in findings}


def right(error):
    # Of 25 parameters one in fifteen draws passes 3 σ by chance.
    assert np.mean(error < 3.0) >= 0.95 and error.max() < 4.0, np.sort(error)[-5:]


RNG = np.random.default_rng(7)


def jittered(r):
    return spoiled(r, time=r.time + RNG.uniform(-4e-4, 4e-4, r.time.size))


def dropped(r):
    return spoiled(r, np.flatnonzero(RNG.random(r.time.size) > 0.023))


def held(r):
    rows = np.arange(r.time.size)
    again = RNG.random(rows.size) < 0.05
    again[0] = False
    rows = np.where(again, rows - 1, rows)
    return spoiled(r, position=r.position[rows], effort=r.effort[rows])


def slow_driver(r):
    rows = np.arange(r.time.size) // 4 * 4
    return spoiled(r, position=r.position[rows], effort=r.effort[rows])


def slow_positions(r):
    return spoiled(r, position=r.position[np.arange(r.time.size) // 4 * 4])


def frozen_efforts(r):
    rows = np.arange(r.time.size)
    return spoiled(r, effort=r.effort[np.where(rows % 1000 < 200, rows // 1000 * 1000, rows)])


def slow_efforts(r):
    return spoiled(r, effort=r.effort[np.arange(r.time.size) // 20 * 20])


def slow_efforts_jittered(r):
    return dataclasses.replace(slow_efforts(r), time=jittered(r).time)


def same_stamps(r):
    rows = np.sort(np.concatenate([np.arange(r.time.size), RNG.integers(0, r.time.size, 200)]))
    return spoiled(r, rows)


def gapped(r):
    return spoiled(r, np.flatnonzero((r.time < 5.0) | (r.time > 6.2)))


def endless_gap(r):
    return spoiled(r, time=np.where(r.time > 6.0, r.time + 1e9, r.time))


def wrapped(r):
    shifted = r.position + np.array([3.0, 0.0, 0.0])
    return spoiled(r, position=(shifted + np.pi) % (2.0 * np.pi) - np.pi)


def position_spikes(r):
    position = r.position.copy()
    # One of the nine falls where the joint passes.
    position[50::700, 1] = 1e-3
    return spoiled(r, position=position)


def lost_positions(r):
    position = r.position.copy()
    position[50::700, 1] = 0.0
    return spoiled(r, position=position)


def lost_efforts(r):
    """Lose a few in a hundred, whose steps are as usual as those of friction, and a row."""
    effort = r.effort.copy()
    effort[20::40, 1] = 0.0
    effort[2000:2300, 1] = 0.0
    return spoiled(r, effort=effort)


def effort_spikes(r):
    effort = r.effort.copy()
    effort[50::500, 1] = 500.0
    return spoiled(r, effort=effort)


def not_numbers(r):
    effort, position = r.effort.copy(), r.position.copy()
    effort[1000:1040] = np.nan
    effort[4000:4003, 2] = np.inf
    position[3000:3020, 1] = np.nan
    return spoiled(r, effort=effort, position=position)


def cut_off(r):
    limit = 0.7 * np.abs(r.effort).max(axis=0)
    return spoiled(r, effort=np.clip(r.effort, -limit, limit))


@pytest.mark.parametrize(
    ('spoil', 'name', 'values'),
    [
        (jittered, 'stamps_jitter', {}),
        (dropped, 'samples_missing', {}),
        (held, 'samples_repeated', {}),
        (slow_driver, 'samples_repeated', {}),
        (slow_positions, 'samples_repeated', {}),
        (frozen_efforts, 'samples_repeated', {}),
        (slow_efforts, 'efforts_slower', {'rate': pytest.approx(25.0)}),
        (slow_efforts_jittered, 'efforts_slower', {}),
        (same_stamps, 'stamps_repeated', {}),
        (gapped, 'gap_left_out', {}),
        (endless_gap, 'gap_left_out', {}),
        (wrapped, 'angles_unwrapped', {}),
        (position_spikes, 'spikes', {'count': 8, 'quantity': 'position'}),
        (lost_positions, 'zeros_left_out', {'count': 9, 'quantity': 'position'}),
        (lost_efforts, 'zeros_left_out', {'count': 443, 'quantity': 'effort'}),
        (effort_spikes, 'spikes', {'count': 12, 'quantity': 'effort'}),
        (not_numbers, 'samples_not_finite', {'count': 63}),
        (cut_off, 'effort_clipped', {}),
    ],
    ids=lambda case: getattr(case, '__name__', ''),
)
def test_what_can_be_repaired_is_and_is_said(made, spoil, name, values):
    error, found = outcome(spoil(made))
    told = select(found, name)
    assert told and told[0].values.items() >= values.items()
    assert not any('unexplained' in name or 'sign' in name for name in names(found))
    right(error)


def test_efforts_of_a_slower_bus_have_the_motion_of_their_time(made):
    rows = np.arange(made.time.size) // 50 * 50
    found = identify(spoiled(made, effort=made.effort[rows]), arm(), SETTINGS)
    assert found.estimate.total_residual < 0.03


def test_efforts_of_one_slower_joint_hold_back_no_other(made):
    effort = made.effort.copy()
    effort[:, 2] = slow_efforts(made).effort[:, 2]
    _, found = outcome(spoiled(made, effort=effort))
    assert not select(found, 'efforts_slower')


@pytest.mark.parametrize('share', [0.01, 0.05])
def test_coarse_efforts_are_not_frozen(made, share):
    unit = share * np.abs(made.effort).max(axis=0)
    coarse = np.round(made.effort / unit) * unit
    assert not find_frozen_efforts(made.position, coarse).any()
    at_rest = np.zeros_like(made.position)  # and efforts that a driver holds then
    assert not find_frozen_efforts(at_rest, frozen_efforts(made).effort).any()
    assert find_frozen_efforts(made.position, frozen_efforts(made).effort).mean() > 0.15


def test_rests_of_joints_on_a_slower_bus_are_no_repeated_samples(made):
    rows = np.arange(made.time.size)
    position = made.position.copy()
    position[:, 0] = position[np.where((rows > 1000) & (rows < 3000), 1000, rows) // 4 * 4, 0]
    kept, told = find_usable_samples(spoiled(made, position=position), 0.1)
    moving = (rows < 1000) | (rows > 3000)
    assert select(told, 'samples_repeated') and kept[1010:2990].all()
    assert kept[moving].mean() == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(('share', 'lost'), [(0.1, True), (0.4, False)])
def test_zeros_of_a_joint_that_mostly_rests_are_values(made, share, lost):
    effort = made.effort.copy()
    effort[1000 : 1000 + round(share * len(effort)), 0] = 0.0
    told = find_usable_samples(spoiled(made, effort=effort), 0.1)[1]
    assert bool(select(told, 'zeros_left_out')) == lost


def test_zeros_that_leave_few_rows_of_all_joints_are_refused():
    """Of each joint they are few enough; together they leave a third of rows."""
    rng, time = np.random.default_rng(1), np.arange(4000) * 2e-3
    phases = np.arange(7.0)
    position = np.sin(time[:, None] + phases)
    effort = 5.0 * np.cos(time[:, None] + phases) + 0.01 * rng.normal(size=position.shape)
    effort[rng.random(effort.shape) < 0.15] = 0.0
    names = tuple(f'joint_{k}' for k in range(7))
    one = Recording(names[:1], time, position[:, :1], effort[:, :1])
    assert select(find_usable_samples(one, 0.1)[1], 'zeros_left_out')
    with pytest.raises(RecordingError, match='68% of the samples are zeros or spikes'):
        find_usable_samples(Recording(names, time, position, effort), 0.1)


def test_rows_that_lack_without_a_gap_of_time_are_told(made):
    assert not select(find_usable_samples(made, 0.1)[1], 'position_jumps')
    rows = np.delete(np.arange(made.time.size), slice(2000, 2200))
    later = np.where(rows < 2000, made.time[rows], made.time[rows - 200])
    lost = dataclasses.replace(spoiled(made, rows), time=later)
    (told,) = select(find_usable_samples(lost, 0.1)[1], 'position_jumps')
    assert told.joints == made.joints
    assert told.values == {'count': 1, 'since': pytest.approx(made.time[2000] - made.time[0])}
    moved = made.position.copy()
    moved[2000:, 1] += 8.0 * np.quantile(np.abs(np.diff(moved[:, 1])), 0.99)
    (told,) = select(find_usable_samples(spoiled(made, position=moved), 0.1)[1], 'position_jumps')
    assert told.joints == ('joint_2',)
    with_gap = spoiled(made, rows)
    assert not select(find_usable_samples(with_gap, 0.1)[1], 'position_jumps')


@pytest.mark.parametrize('every', [4, 20])
def test_slow_states(made, every):
    error, _ = outcome(spoiled(made, np.arange(0, made.time.size, every)))
    right(error)


def test_coarse_efforts(made):
    step = np.array([0.04, 0.12, 0.04])
    error, found = outcome(spoiled(made, effort=np.round(made.effort / step) * step))
    right(error)
    assert not select(found, 'effort_steps')
    _, found = outcome(spoiled(made, effort=np.round(made.effort / 1.0) * 1.0))
    steps = {each.joints: each.values['step'] for each in select(found, 'effort_steps')}
    assert steps['joint_1',] == pytest.approx(1.0)


def test_a_dead_zone_is_left_out(made):
    step = np.array([0.3, 0.9, 0.3])
    coarse = np.round(made.effort / step) * step
    error, found = outcome(
        spoiled(made, effort=np.where(np.abs(coarse) < 3.5 * step, 0.0, coarse))
    )
    told = {each.joints: each.values['least'] for each in select(found, 'effort_dead_zone')}
    assert told['joint_2',] == pytest.approx(3.6)
    right(error)
    _, found = outcome(spoiled(made, effort=coarse))
    assert not select(found, 'effort_dead_zone')


def test_nothing_is_said_of_a_good_recording(made):
    error, found = outcome(made)
    right(error)
    assert names(found) <= {'smaller_than_sigma'}


@pytest.mark.parametrize('joint', range(3))
def test_an_opposite_sign_is_told_and_put_right_by_the_drive_gain(made, joint):
    sign = np.where(np.arange(3) == joint, -1.0, 1.0)
    turned = spoiled(made, effort=made.effort * sign)
    _, found = outcome(turned)
    (told,) = select(found, 'effort_sign')
    assert told.joints == (f'joint_{joint + 1}',)
    error, found = outcome(turned, drive_gain=tuple(sign))
    right(error)
    assert not select(found, 'effort_sign')


@pytest.mark.parametrize('gravity', [(9.81, 0.0, 0.0), (0.0, 0.0, 9.81)])
def test_an_arm_on_a_wall_or_a_ceiling_is_noticed(gravity):
    mounted = plant(gravity)
    _, found = outcome(mounted.recording, mounted)
    (told,) = select(found, 'gravity_direction')
    np.testing.assert_allclose(told.values['direction'], gravity, atol=0.01)
    error, found = outcome(mounted.recording, mounted, gravity=gravity)
    right(error)
    assert not select(found, 'gravity_direction', 'no_gravity')


def test_a_spring_at_a_joint_is_not_taken_for_gravity(made):
    turn = made.position[:, 0] - made.position[:, 0].mean()
    spring = np.outer(made.effort[:, 0].std() / turn.std() * turn, [1.0, 0.0, 0.0])
    _, found = outcome(spoiled(made, effort=made.effort + spring))
    assert not select(found, 'gravity_direction')


@pytest.mark.parametrize(('unit', 'odd'), [([14.0, 14.0, 7.0], '123'), ([1.0, 1.0, 7.0], '3')])
def test_currents_are_noticed(made, unit, odd):
    causes = 'effort_gain', 'effort_scale', 'effort_unit', 'effort_sign'
    _, found = outcome(spoiled(made, effort=made.effort / unit))
    (told,) = select(found, *causes)
    assert told.joints == tuple(f'joint_{j}' for j in odd)
    error, found = outcome(spoiled(made, effort=made.effort / unit), drive_gain=tuple(unit))
    right(error)
    assert not select(found, *causes)


def test_degrees_are_noticed(made):
    _, found = outcome(spoiled(made, position=np.degrees(made.position)))
    assert select(found, 'beyond_limits')
    _, found = outcome(spoiled(made, position=made.position + 2.0 * np.pi))
    assert not select(found, 'beyond_limits')


def test_a_delay_is_taken_out(made):
    late = spoiled(made, time=made.time, position=np.roll(made.position, -10, axis=0))
    late = late.between(0.0, made.time[-11])
    error, found = outcome(late)
    assert select(found, 'delay_removed')
    assert np.mean(error < 3.0) > 0.9


def test_a_delay_that_is_too_long_to_take_out_is_told(made):
    late = spoiled(made, position=np.roll(made.position, -30, axis=0))
    _, found = outcome(late.between(0.0, made.time[-31]))
    assert select(found, 'delay_too_long')


def test_dead_channels_are_refused(made):
    effort = made.effort.copy()
    effort[:, 1] = 3.3
    with pytest.raises(RecordingError, match='effort of joint_2 never changes while it moves'):
        outcome(spoiled(made, effort=effort))


def test_a_joint_that_rests_is_refused_by_name():
    resting = plant(still=('joint_3',))
    with pytest.raises(RobotIdError, match='3'):
        outcome(resting.recording, resting)


def test_one_clock():
    received = np.arange(1000) * 0.002
    stamp = np.where(received < 1.0, received, received - 100.0)
    stamp[700] = -1e9
    position = np.sin(received)[:, None]
    time, kept, jumps, notes = undo_clock_jumps(stamp, received, position)
    assert np.flatnonzero(~kept).tolist() == [700]
    np.testing.assert_allclose(time[kept], received[kept], atol=1e-9)
    np.testing.assert_allclose(jumps, [-100.0])
    assert notes[0].values['jump'] == pytest.approx(-100.0) and notes[1].values['count'] == 1
    position[500:] += 1.0
    time, *_ = undo_clock_jumps(stamp, received, position)
    assert time[500] - time[499] > 0.1
    same = undo_clock_jumps(received, received, position)
    assert same[0] is received and not same[3]


def test_true_jitter_stays_and_false_jitter_goes():
    even = np.arange(2000) * 0.002
    time = even + np.random.default_rng(0).uniform(-5e-4, 5e-4, even.size)
    kept = sampling_times(time, np.sin(3.0 * time)[:, None], 0.002)
    assert not kept.findings
    np.testing.assert_array_equal(kept.time, time)
    smooth = sampling_times(time, np.sin(3.0 * even)[:, None], 0.002)
    np.testing.assert_allclose(smooth.time, even, atol=5e-5)
    assert smooth.findings[0].values['jitter'] == pytest.approx(0.29e-3, abs=5e-6)


def test_jitter_is_judged_by_what_was_recorded_and_not_by_the_days_between():
    even = np.arange(4000) * 0.002
    position = np.sin(3.0 * even)[:, None]
    even[2000:] += 2 * 86_400.0
    time = even + np.random.default_rng(0).uniform(-5e-4, 5e-4, even.size)
    tracemalloc.start()
    smooth = sampling_times(time, position, 0.002)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_allclose(smooth.time, even, atol=5e-5)
    assert smooth.findings[0].values['jitter'] == pytest.approx(0.29e-3, abs=5e-6)
    assert peak < 10e6  # a grid over two days takes 700 MB
    true = np.sin(3.0 * (time - np.where(time > 100.0, 2 * 86_400.0, 0.0)))[:, None]
    assert not sampling_times(time, true, 0.002).findings


def test_a_loop_that_sleeps_drifts_with_its_samples():
    period = 0.005 + 1e-4 * np.abs(np.random.default_rng(4).normal(size=5000))
    time = np.cumsum(period)
    position = np.round(np.sin(3.0 * time)[:, None], 3)
    assert sampling_times(time, position, float(period.mean())) is None


def test_a_position_for_two_joints_is_told(made):
    position = made.position.copy()
    assert not select(find_usable_samples(made, 0.05)[1], 'column_for_two')
    position[:, 2] = position[:, 0]
    found = find_usable_samples(spoiled(made, position=position), 0.05)[1]
    (told,) = select(found, 'column_for_two')
    assert told.joints == (made.joints[0], made.joints[2])


def test_faults_one_by_one():
    wave = np.sin(np.linspace(0.0, 6.0, 600))
    assert not find_spikes(wave).any()
    wave[100] = 3.0
    assert np.flatnonzero(find_spikes(wave)).tolist() == [100]
    # So many that most of the largest steps are theirs; chatter is none.
    wave = np.sin(np.linspace(0.0, 60.0, 6000))
    spiked, chatter = wave.copy(), wave.copy()
    spiked[50::60] = 9999.0
    assert np.flatnonzero(find_spikes(spiked)).tolist() == list(range(50, 6000, 60))
    in_runs, rows = wave.copy(), [100, 101, 900, 901, 902, 2001]
    in_runs[rows] += 5.0
    assert np.flatnonzero(find_spikes(in_runs)).tolist() == rows
    chatter[3000:3200:2] += 1.0
    assert not find_spikes(chatter).any()
    turn = np.linspace(0.0, 20.0, 500)[:, None]
    straight, notes = unwrap_angles(np.angle(np.exp(1j * turn)), ['a'])
    np.testing.assert_allclose(np.diff(straight[:, 0]), np.diff(turn[:, 0]), atol=1e-12)
    assert notes and not unwrap_angles(turn, ['a'])[1]
    turn[250] += 20.0
    assert not unwrap_angles(turn, ['a'])[1]
    quantization_steps = np.round(20.0 * np.sin(np.linspace(0.0, 60.0, 5000)))[:, None]
    assert not clipped_samples(quantization_steps).any()
    assert clipped_samples(np.clip(quantization_steps, -12.0, 12.0)).mean() > 0.3


def test_rest_is_no_repetition_but_a_hanging_driver_is():
    time = np.arange(600) * 0.002
    position = np.where(time < 0.6, time, 0.6)[:, None]
    assert not find_repeated(time, position, position, 0.05).any()
    hung = np.where((time > 0.4) & (time < 0.8), 0.4, time)[:, None]
    assert find_repeated(time, hung, hung, 0.05)[205:395].all()
