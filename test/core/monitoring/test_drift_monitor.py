"""Changes of friction and payload are told as what they are; noise, pushes and rest are not."""

import pickle

import numpy as np
import pytest
from scipy.signal import lfilter

from robotid_ros.core.identification_settings import DriftSettings
from robotid_ros.core.model import inverse_dynamics
from robotid_ros.core.monitoring.drift_monitor import (
    AdaptiveWindows,
    DriftMonitor,
    FRICTION,
    OFFSET,
    PAYLOAD,
)
from robotid_ros.core.monitoring.motion_rows import Row, RowSums

from ..conftest import motion

NOISE, CHANGED = 0.2, 15.0


@pytest.fixture
def monitor(robot, truth):
    residual = np.full(robot.n, 0.1)
    return DriftMonitor(robot, truth, np.zeros(robot.p), residual, DriftSettings(), 10.0, 0.02)


def pausing(time, seed, start, length, ramp=0.2):
    """Make the motion of `motion` that slows down to rest, for a while, and goes on."""
    fine = np.arange(0.0, time[-1] + 1e-3, 1e-3)
    nodes = start + np.array([0.0, ramp, ramp + length, 2.0 * ramp + length])
    share = np.interp(fine, nodes, [1.0, 0.0, 0.0, 1.0])
    pace = 0.5 - 0.5 * np.cos(np.pi * share)
    path = np.concatenate([[0.0], np.cumsum(0.5e-3 * (pace[1:] + pace[:-1]))])
    place, rate, change = (
        np.interp(time, fine, x)[:, None] for x in (path, pace, np.gradient(pace, 1e-3))
    )
    q, dq, ddq = motion(place[:, 0], seed)
    return np.array([q, dq * rate, ddq * rate**2 + dq * change])


@pytest.fixture
def at_work(robot, truth):
    """Make joint states: stamps, positions and efforts of a robot that changes half-way."""

    def make(seconds, rate=125.0, seed=0, noise=NOISE, at=CHANGED, pause=None, **changes):
        rng = np.random.default_rng(seed)
        time = (np.arange(round(seconds * rate)) + rng.uniform(-0.2, 0.2)) / rate
        time = time + rng.uniform(0.0, 0.2 / rate, len(time))
        states = motion(time, seed) if pause is None else pausing(time, seed, *pause)
        later = truth.copy()
        for name, change in changes.items():
            later[robot.column(name)] += change
        before, after = (inverse_dynamics(robot, chi, *states) for chi in (truth, later))
        effort = np.where(time[:, None] < at, before, after)
        q = states[0] + 1e-5 * rng.normal(size=effort.shape)
        effort = effort + noise * rng.normal(size=effort.shape)
        return np.round(1e9 * (time + 5.0)).astype(np.int64), q, effort

    return make


def feed(monitor, stamp, q, effort):
    """Return the changes told, and when [s]."""
    told = []
    for k in range(0, len(stamp), 25):
        rows = slice(k, k + 25)
        for change in monitor.update(stamp[rows], q[rows], effort[rows]):
            told.append((stamp[min(k + 24, len(stamp) - 1)] * 1e-9 - 5.0, change))
    return told


@pytest.mark.parametrize(
    ('rate', 'joint', 'sign'), [(100.0, 1, 1.0), (125.0, 2, -1.0), (1000.0, 3, 1.0)]
)
def test_friction_is_told_of_its_joint(robot, truth, monitor, at_work, rate, joint, sign):
    changes = {
        f'{s}{joint}': sign * 0.2 * truth[robot.column(f'{s}{joint}')] for s in ('Fv', 'Fc')
    }
    told = feed(monitor, *at_work(40.0, rate, seed=joint, **changes))
    ((when, change),) = told
    assert (change.group.kind, change.group.name) == (FRICTION, robot.joints[joint - 1])
    assert CHANGED < change.since * 1e-9 - 5.0 < when < CHANGED + 20.0
    assert change.share == pytest.approx(sign * 0.2, abs=0.04)
    wanted = np.array(list(changes.values()))
    assert (abs(change.value - wanted) < 4.0 * change.sigma).all()
    value, sigma = monitor.estimate()
    place = monitor.followed.names.index(f'Fc{joint}')
    now = truth[robot.column(f'Fc{joint}')] + changes[f'Fc{joint}']
    assert abs(value[place] - now) < 4.0 * sigma[place] < 0.4


def test_a_payload_is_told_with_its_mass_and_leaves_again(robot, monitor, at_work):
    load = {'M3': 1.0, 'MX3': 0.2, 'MY3': -0.05, 'MZ3': 0.02}
    stamp, q, effort = at_work(24.0, **load)
    ((when, change),) = feed(monitor, stamp, q, effort)
    assert change.group.kind == PAYLOAD and when < CHANGED + 2.5
    assert (abs(change.value - list(load.values())) < 4.0 * change.sigma).all()
    # The mass of an arm whose last joints are parallel shows in the first moment alone.
    assert change.value[1] == pytest.approx(0.2 + 0.0, abs=0.02)
    later, q, effort = at_work(15.0)
    told = feed(monitor, later + stamp[-1], q, effort)
    assert [(c.group.kind, c.reverted) for _, c in told] == [(PAYLOAD, True)]
    assert not monitor.changes


def test_an_offset_is_told_as_one(robot, monitor, at_work):
    told = feed(monitor, *at_work(30.0, off2=0.8))
    assert [(c.group.kind, c.group.name) for _, c in told] == [(OFFSET, robot.joints[1])]
    assert told[0][1].value == pytest.approx([0.8], abs=4.0 * told[0][1].sigma[0])


def test_nothing_is_told_where_nothing_changes(monitor, at_work):
    stamp, q, effort = at_work(60.0, 100.0)
    rng = np.random.default_rng(9)
    # Errors of a model: with a memory of half a second, as large as the noise of a sample.
    slow = lfilter([np.sqrt(1.0 - 0.98**2)], [1.0, -0.98], rng.normal(size=q.shape), axis=0)
    assert feed(monitor, stamp, q, effort + 0.1 * slow) == []
    value, sigma = monitor.estimate()
    identified = monitor.followed.identified
    assert (abs(value - identified) < 4.0 * sigma).all()


@pytest.mark.parametrize(
    ('seed', 'every', 'longest'), [(4, 500, 100), (5, 300, 100), (5, 700, 150)]
)
@pytest.mark.slow
def test_pushes_are_not_told(monitor, at_work, seed, every, longest):
    stamp, q, effort = at_work(120.0, 100.0, 0 if seed == 4 else seed)
    rng = np.random.default_rng(seed)
    for start in range(0, len(stamp) - longest, every):
        effort[start : start + rng.integers(5, longest)] += rng.normal(size=3) * 10.0
    assert feed(monitor, stamp, q, effort) == []


def test_pushes_at_first_are_no_change(monitor, at_work):
    stamp, q, effort = at_work(30.0, 100.0)
    rng = np.random.default_rng(4)
    for start in range(0, len(stamp), 500):
        effort[start : start + 60] += rng.normal(size=3) * 10.0
    assert feed(monitor, stamp, q, effort) == []


def test_a_pause_within_a_trial_does_not_delay_a_payload(monitor, at_work):
    load = {'M3': 1.0, 'MX3': 0.2, 'MY3': -0.05, 'MZ3': 0.02}
    stamp, q, effort = at_work(24.0, pause=(CHANGED + 0.6, 1.5), **load)
    told = feed(monitor, stamp, q, effort)
    assert [change.group.kind for _, change in told] == [PAYLOAD]
    assert told[0][0] < CHANGED + 3.5


def test_rest_changes_nothing(monitor, at_work):
    stamp, q, effort = at_work(20.0)
    feed(monitor, stamp, q, effort)
    before = monitor.estimate()
    still = np.tile(q[-1], (5000, 1))
    later = stamp[-1] + np.arange(1, 5001) * 8_000_000
    # Whatever a joint bears at rest.
    feed(monitor, later, still, effort[-1] + np.linspace(0.0, 3.0, 5000)[:, None])
    after = monitor.estimate()
    # A block may end in motion.
    assert after[0] == pytest.approx(before[0], abs=0.2 * before[1].min())
    assert after[1] == pytest.approx(before[1], rel=0.05)
    assert (monitor.last_motion < later[100]).all()


def test_lost_and_wrong_messages_do_no_harm(robot, monitor, at_work):
    stamp, q, effort = at_work(40.0, Fc1=0.3, Fv1=0.2)
    rng = np.random.default_rng(0)
    kept = rng.random(len(stamp)) > 0.2
    kept[1000:1300] = False  # more than two seconds
    stamp, q, effort = stamp[kept], q[kept], effort[kept]
    q[rng.random(q.shape) < 0.01] = np.nan
    effort[rng.random(q.shape) < 0.01] = np.inf
    stamp[500] = 2**60
    stamp[700] = stamp[698]
    told = feed(monitor, stamp, q, effort)
    assert [(c.group.kind, c.group.name) for _, c in told] == [(FRICTION, robot.joints[0])]


@pytest.mark.parametrize('nothing', [0.0, np.nan])
def test_without_efforts_nothing_is_said(monitor, at_work, nothing):
    stamp, q, effort = at_work(10.0)
    assert feed(monitor, stamp, q, np.full_like(effort, nothing)) == []
    assert not monitor.enough().any()


def test_windows_begin_near_any_instant_and_hold_all_rows_since():
    rng, seconds = np.random.default_rng(0), 0.05
    windows, rows = AdaptiveWindows(RowSums.none(2, 3), 20.0), []
    for k in range(1000):
        stamp, used = round((k + 1) * seconds * 1e9), rng.random(2) < 0.8
        rows.append(Row(stamp, seconds, rng.normal(size=(2, 4)), used))
        windows.add(rows[-1])
    latest = windows.latest()
    begins = np.array([bucket.begin for bucket in latest]) * 1e-9
    ages = 1000 * seconds - begins
    assert ages[0] == pytest.approx(seconds) and len(latest) < 40
    assert (np.diff(ages) < 0.6 * ages[1:] + seconds).all()
    assert 10.0 < latest[-1].rows.time.max() <= 20.0
    for bucket in latest:
        whole = RowSums.none(2, 3)
        for row in rows[-bucket.size :]:
            whole = whole.with_row(row)
        assert bucket.begin == rows[-bucket.size].stamp - round(seconds * 1e9)
        assert bucket.rows.products == pytest.approx(whole.products, rel=1e-12, abs=1e-12)
    windows.forget(latest[5].begin)
    assert [bucket.begin for bucket in windows.latest()] == [b.begin for b in latest[:6]]


def test_memory_does_not_grow(monitor, at_work):
    stamp, q, effort = at_work(30.0, 50.0)
    sizes = []
    for k in range(3):
        feed(monitor, stamp + k * 30 * 10**9, q, effort)
        sizes.append(len(pickle.dumps(monitor)))
    # The filter remembers a transition for every length of a step, a thousand at the most.
    kept = monitor._states._filter._steps
    kept.clear()
    first = len(pickle.dumps(monitor))
    feed(monitor, stamp + 10 * 30 * 10**9, q, effort)
    monitor._states._filter._steps.clear()
    assert abs(len(pickle.dumps(monitor)) - first) < 0.1 * first and max(sizes) < 10 * first
