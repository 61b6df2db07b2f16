"""Phases come in order whatever their messages' order, and know when they were cut."""

import itertools

from bag_tools import EPOCH, joint_state, status
import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import Trajectory
from robotid_ros.core.findings import select
from robotid_ros.core.signals.preparation import find_period
from robotid_ros.files.bags import BagWriter, dump_session, open_recording, RecordedSession
from robotid_ros.files.bags.session import build_phases, parse_speed, StateChange
from robotid_ros.files.bags.summary import summarise

PERIODS = {'exciting': 2.0, 'validating': 3.0}
# Two periods of an excitation, a validation.
WHOLE = (
    ('approaching', 0.0),
    ('exciting', 1.0),
    ('approaching', 5.0),
    ('validating', 6.0),
    ('approaching', 9.0),
    ('done', 9.5),
)


def changes(states, late=None):
    """Make states, that of number `late` received 1.7 s after its stamp."""
    made = [
        StateChange(name, time, time + 0.01 + 1.7 * (k == late), 2 if name == 'exciting' else 1)
        for k, (name, time) in enumerate(states)
    ]
    return sorted(made, key=lambda state: state.received)


def phases(states, end=10.0, late=None):
    return build_phases(changes(states, late), PERIODS, end)


@pytest.mark.parametrize('late', [None, *range(len(WHOLE))])
def test_a_late_message_changes_no_phase(late):
    found = phases(WHOLE, late=late)
    assert [(p.name, p.start) for p in found] == list(WHOLE)
    assert all(a.stop == b.start for a, b in itertools.pairwise(found))
    assert not any(p.cut for p in found)


def test_the_end_of_a_session_is_behind_it_whatever_its_clock_says():
    states = [*changes(WHOLE[:-1]), StateChange('done', -50.0, 9.5)]
    found = build_phases(states, PERIODS, 10.0)
    assert [p.name for p in found] == [name for name, _ in WHOLE]
    assert not any(p.cut for p in found)


def test_a_state_that_is_none_cuts_no_phase():
    states = changes([*WHOLE[:2], ('', 2.0), ('no state', 3.0), *WHOLE[2:]])
    assert build_phases(states, PERIODS, 10.0) == phases(WHOLE)


@pytest.mark.parametrize(
    ('states', 'end', 'cut', 'missing'),
    [
        (WHOLE[:2], 3.5, ['exciting'], [1.5]),
        ([*WHOLE[:2], ('failed', 2.0)], 9.0, ['exciting'], [3.0]),
        (WHOLE[:1], 0.5, ['approaching'], [0.0]),
        ([*WHOLE[:4], ('failed', 7.5)], 9.0, ['validating'], [1.5]),
        # The joint states end or begin inside a phase whose end is there.
        (WHOLE, 4.0, ['exciting', 'validating'], [1.0, 3.0]),
        ([(name, time - 2.0) for name, time in WHOLE], 8.0, ['exciting'], [1.0]),
        # Cut after the excitation: what was planned after it is not there.
        (WHOLE[:3], 5.5, ['approaching'], [0.0]),
        # Whoever ended it, all motions being there: 'done' was never said.
        ([*WHOLE[:-1], ('failed', 9.5)], 10.0, ['approaching'], [0.0]),
        ([*WHOLE[:-1], ('idle', 9.5)], 10.0, ['approaching'], [0.0]),
        ([*WHOLE[:3], ('designing', 5.5), *WHOLE[3:]], 10.0, ['approaching'], [0.0]),
        (WHOLE[:-1], 10.0, ['approaching'], [0.0]),
    ],
)
def test_a_phase_knows_that_it_was_cut(states, end, cut, missing):
    found = [p for p in phases(states, end) if p.cut]
    assert [p.name for p in found] == cut
    assert [p.missing for p in found] == pytest.approx(missing)


def bag(folder, seconds, states, speed='', name='bag', more=()):
    """Record a session of 10 s at 100 Hz up to some time; mean, least, most speed in tenths."""
    zero = np.zeros((2, 1))
    motions = {
        name: Trajectory(('a',), 'mfs', period, 1, zero[0], zero).to_dict()
        for name, period in PERIODS.items()
    }
    # Chunks as of a recording in real time.
    with BagWriter(folder, name, flush_period=0.0) as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        writer.add_topic('/excitation/state', 'diagnostic_msgs/msg/DiagnosticStatus')
        writer.write_text(
            '/recorder/session', dump_session(RecordedSession(trajectories=motions)), EPOCH
        )
        times = np.arange(round(100 * seconds)) * 0.01
        for time in times:
            stamp = EPOCH + round(time * 1e9)
            state = joint_state(stamp, ['a'], [np.sin(time)], [], [np.cos(3.0 * time)])
            writer.write('/joint_states', state, stamp)
        keys = ('speed', 'speed_min', 'speed_max')
        scaling = {key: f'0.{digit}' for key, digit in zip(keys, speed, strict=False)}
        for name, time in states:
            stamp = EPOCH + round(time * 1e9)
            values = {'state': name, 'stamp': f'{stamp // 10**9}.{stamp % 10**9:09d}'}
            values |= {'cycles': '2', **scaling, **dict(more)} if name == 'exciting' else {}
            writer.write('/excitation/state', status(values), stamp)
    return writer.path


def test_a_bag_that_ends_inside_a_phase_says_how_much_is_missing(tmp_path):
    path = bag(tmp_path, 3.5, WHOLE[:2])
    for found in (open_recording(path), summarise(path)):
        (note,) = select(found.notes, 'session_cut')
        assert note.values == pytest.approx({'phase': 'exciting', 'missing': 1.5}, abs=0.05)


@pytest.mark.parametrize('share', [0.3, 0.6, 0.9, 0.999])
def test_a_bag_without_its_end_says_so(tmp_path, share):
    path = bag(tmp_path, 10.0, WHOLE)
    file = path / 'bag.mcap'
    file.write_bytes(file.read_bytes()[: round(share * file.stat().st_size)])
    for found in (open_recording(path), summarise(path)):
        assert select(found.notes, 'cut_short')


def test_a_whole_bag_says_nothing(tmp_path):
    path = bag(tmp_path, 10.0, WHOLE)
    assert open_recording(path).notes == ()
    assert not any(phase.cut for phase in open_recording(path).phases)


@pytest.mark.parametrize('cycles', ['', '-1', '9' * 4000, 'two', '²'])
def test_any_number_of_cycles_is_read(tmp_path, cycles):
    with BagWriter(tmp_path, 'bag') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        writer.add_topic('/excitation/state', 'diagnostic_msgs/msg/DiagnosticStatus')
        for k in range(50):
            state = joint_state(EPOCH + k * 10**7, ['a'], [k], [], [k])
            writer.write('/joint_states', state, EPOCH + k * 10**7)
        values = {'state': 'exciting', 'cycles': cycles}
        writer.write('/excitation/state', status(values), EPOCH + 10**7)
    assert [phase.name for phase in open_recording(writer.path).phases] == ['exciting']


def test_a_motion_at_half_the_speed_is_whole_after_twice_the_time():
    scaled = [('exciting', 1.0), ('approaching', 9.0), ('done', 9.5)]
    for speed, missing in (((0.5, 0.5, 0.5), 0.0), ((0.25, 0.25, 0.25), 8.0)):
        states = [s._replace(speed=speed) for s in changes(scaled)]
        (phase, *_) = build_phases(states, PERIODS, 10.0)
        assert (phase.speed, phase.missing, phase.cut) == (speed, missing, missing > 0.0)


@pytest.mark.parametrize(
    ('values', 'speed'),
    [
        ({}, (1.0, 1.0, 1.0)),
        ({'speed': '0.5', 'speed_min': '0.25', 'speed_max': '1.0'}, (0.5, 0.25, 1.0)),
        ({'speed': 'nan', 'speed_min': '0.25', 'speed_max': '1.0'}, (1.0, 1.0, 1.0)),
        ({'speed': '0.0', 'speed_min': '0.0', 'speed_max': '1.0'}, (1.0, 1.0, 1.0)),
        ({'speed': 'slow'}, (1.0, 1.0, 1.0)),
    ],
)
def test_the_speed_of_a_motion_is_read(values, speed):
    assert parse_speed(values) == speed


def test_a_motion_is_read_as_it_ran(tmp_path):
    states = (('exciting', 1.0), ('approaching', 9.0), ('done', 9.5))
    found = {
        name: open_recording(bag(tmp_path, 10.0, states, speed, name))
        for name, speed in (('steady', '555'), ('varied', '529'))
    }
    (steady, *_) = found['steady'].phases
    assert (steady.speed, steady.cut) == ((0.5, 0.5, 0.5), False)
    assert find_period(found['steady']) == 2.0 * PERIODS['exciting']
    (slow,) = select(found['steady'].notes, 'slow_motion')
    assert slow.values == {'phase': 'exciting', 'speed': 0.5}
    # Its periods differ: none can be averaged with another.
    assert find_period(found['varied']) is None
    (slow,) = select(found['varied'].notes, 'speed_changed')
    assert slow.values == {'phase': 'exciting', 'low': 0.2, 'high': 0.9}


def test_an_excitation_that_knew_enough_is_whole_though_more_was_planned():
    states = changes([('exciting', 1.0), ('approaching', 3.0), ('done', 9.5)])
    (cut, *_) = build_phases(states, PERIODS, 10.0)
    assert (cut.cut, cut.missing) == (True, 2.0)
    ended = [states[0], states[0]._replace(cycles=1, received=3.01), *states[1:]]
    (phase, *_) = build_phases(ended, PERIODS, 10.0)
    assert (phase.cut, phase.missing) == (False, 0.0)


@pytest.mark.parametrize('rests', ['1.0', 'nan', 'long', '-1'])
def test_periods_with_rests_between_them_do_not_repeat(tmp_path, rests):
    length = 1.0 if rests == '1.0' else 0.0
    states = [('exciting', 1.0), ('approaching', 5.0 + length), ('done', 9.5)]
    path = bag(tmp_path, 10.0, states, more={'rests': rests})
    recording = open_recording(path)
    (phase, *_) = recording.phases
    assert (phase.cut, phase.missing, phase.steady) == (False, 0.0, True)
    assert find_period(recording) == (None if length else PERIODS['exciting'])
