"""Columns become joint states: which columns, which joints, which units, which stamps."""

import re

import numpy as np
import pytest

from robotid_ros.core.findings import select, Severity
from robotid_ros.core.signals.invalid_samples import MANY
from robotid_ros.core.signals.recording import EFFORT_UNITS
from robotid_ros.exceptions import ConfigurationError, RecordingError
from robotid_ros.files.formats.read_options import parse_assignments
from robotid_ros.files.formats.units import factors, usual_ratio

from .tables import DQ, Q, read, TAU, TIME, urdf


@pytest.mark.parametrize(('name', 'size'), EFFORT_UNITS.items())
def test_the_units_that_findings_name_can_be_given(name, size):
    assert factors('effort', name, np.zeros(2, bool)).tolist() == [size, size]


def test_numbers_stand_for_the_joints_in_the_order_of_the_description():
    found = read(joints=('shoulder', 'elbow'))
    assert found.joints == ('shoulder', 'elbow')
    np.testing.assert_array_equal(found.position, Q)
    np.testing.assert_array_equal(found.effort, TAU)
    assert np.isnan(found.velocity).all()
    (note,) = select(found.notes, 'columns_found')
    taken = dict(zip(note.values['quantities'], note.values['columns'], strict=True))
    assert taken == {'time': 't', 'position': 'q_{i}', 'effort': 'tau_{i}'}


def test_joints_that_were_not_logged_are_left_out():
    assert read(joints=('a', 'b', 'finger')).joints == ('a', 'b')


def test_names_count_and_not_the_order():
    columns = {'b_pos': Q[:, 1], 'a_pos': Q[:, 0], 'effort.a': TAU[:, 0], 'effort.b': TAU[:, 1]}
    found = read(q_=None, tau_=None, **columns)
    assert found.joints == ('b', 'a')
    np.testing.assert_array_equal(found.effort, TAU[:, ::-1])


def test_names_may_be_spelt_otherwise():
    columns = {'Joint_A.pos': Q[:, 0], 'Joint_B.pos': Q[:, 1]}
    assert read(joints=('a_joint', 'b_joint'), q_=None, **columns).joints == ('a_joint', 'b_joint')


def test_without_a_description_joints_have_numbers():
    assert read({'urdf': ''}).joints == ('joint_1', 'joint_2')
    assert read({'urdf': '', 'joints': ('x', 'y')}).joints == ('x', 'y')


def test_given_joints_choose_among_those_of_the_description():
    assert read({'joints': ('b', 'd')}, joints=('a', 'b', 'c', 'd')).joints == ('b', 'd')


def test_more_columns_than_joints_are_refused():
    with pytest.raises(
        RecordingError, match=r"2 columns q_\{i\}, .* 1 joints .*'position=q_1..q_1'"
    ):
        read(joints=('a',))


@pytest.mark.parametrize('again', ['q_1 (2)', 'q_1.1'])
def test_a_name_that_two_columns_have_is_refused_unless_they_are_equal(again):
    columns = {'q_1': Q[:, 0], again: Q[:, 1], 'q_2': Q[:, 1]}
    with pytest.raises(RecordingError, match=r"two columns 'q_1', .* the second one is 'q_1"):
        read(q_=None, **columns)
    assert read(q_=None, **(columns | {again: Q[:, 0]})).joints == ('a', 'b')
    chosen = read({'columns': (('position', f'q_1,{again}'),)}, q_=None, **columns)
    np.testing.assert_array_equal(chosen.position, Q)


def test_measured_comes_before_commanded_and_torque_before_current():
    others = {'target_q_': Q + 1.0, 'current_': TAU + 2.0, 'target_tau_': TAU + 1.0}
    found = read(**others)
    np.testing.assert_array_equal(found.position, Q)
    np.testing.assert_array_equal(found.effort, TAU)


def test_a_current_is_taken_where_nothing_better_is_and_told():
    found = read(tau_=None, actual_current_=TAU, target_moment_=TAU + 1.0)
    np.testing.assert_array_equal(found.effort, TAU)
    assert select(found.notes[-1:], 'effort_unit_of_log')[0].values['unit'] == 'A'


@pytest.mark.parametrize(
    ('columns', 'lacking'),
    [({'q_': None}, 'position'), ({'tau_': None}, 'effort'), ({'t': None}, 'time')],
)
def test_what_is_missing_is_named_with_the_remedy(columns, lacking):
    with pytest.raises(RecordingError, match=f'no column that looks like {lacking} .*{lacking}='):
        read(**columns)


@pytest.mark.parametrize(('count', 'told'), [(2, 'load{i}'), (3, 'tau{i}')])
def test_what_lacks_is_named_by_columns_of_unknown_meaning_if_as_many(count, told):
    columns = {f'load{k}': TAU[:, 0] for k in range(count)}
    with pytest.raises(RecordingError, match=re.escape(f"--columns 'effort={told}'")):
        read(tau_=None, **columns)


@pytest.mark.parametrize(
    ('pattern', 'columns'),
    [
        ('x_{i}', {'x_': Q}),
        ('x_1,x_2', {'x_': Q}),
        ('x_1..x_2', {'x_': Q}),
        ('state', {'state': Q}),
        ('state[2:4]', {'state': np.hstack([DQ, Q, TAU])}),
        ('{joint} enc', {'a enc': Q[:, 0], 'b enc': Q[:, 1]}),
    ],
)
def test_columns_are_named_by_patterns(pattern, columns):
    found = read({'columns': (('position', pattern),)}, **columns)
    np.testing.assert_array_equal(found.position, Q)


def test_a_pattern_without_columns_is_refused():
    with pytest.raises(RecordingError, match=r"no column 'x\{i\}' for position .*t, q_1, q_2"):
        read({'columns': (('position', 'x{i}'),)})


@pytest.mark.parametrize(
    ('quantity', 'unit', 'factor'),
    [
        *(('position', 'deg', 180 / np.pi), ('position', 'mm', 1e3), ('effort', 'mNm', 1e3)),
        *(('effort', 'N.m', 1.0), ('effort', 'A*0.5', 2.0), ('effort', 'mA*2', 500.0)),
        *(('velocity', 'rpm', 30 / np.pi), ('velocity', '°/s', 180 / np.pi)),
        *(('effort', 'A*2,mA*4', (0.5, 250.0)), ('position', 'deg,mm', (180 / np.pi, 1e3))),
        # The weight of 1 kg at 1 cm, of a pound at a foot.
        *(('effort', 'kgf·cm', 100 / 9.80665), ('effort', 'ft-lb', 1 / 1.3558179483314)),
    ],
)
def test_given_units_count(quantity, unit, factor):
    columns = {'q_': Q, 'dq_': DQ, 'tau_': TAU}
    name = {'position': 'q_', 'velocity': 'dq_', 'effort': 'tau_'}[quantity]
    found = read({'units': ((quantity, unit),)}, **columns | {name: columns[name] * factor})
    np.testing.assert_allclose(getattr(found, quantity), columns[name], rtol=1e-12)


@pytest.mark.parametrize('unit', ['furlong', 'Nm*x', 'Nm,Nm,Nm', 'A*'])
def test_unknown_units_are_refused(unit):
    with pytest.raises(ConfigurationError, match=r'unit'):
        read({'units': (('effort', unit),)})


@pytest.mark.parametrize(('name', 'told'), [('[bananas]', 1), ('(filtered)', 0), ('[Nm]', 0)])
def test_a_unit_that_nobody_knows_is_told(name, told):
    columns = {f'tau{k} {name}': TAU[:, k - 1] for k in (1, 2)}
    found = read(tau_=None, **columns)
    np.testing.assert_array_equal(found.effort, TAU)
    notes = select(found.notes, 'unit_assumed')
    assert [note.severity for note in notes] == [Severity.WARNING] * told


@pytest.mark.parametrize('order', [1, -1])
def test_each_column_may_name_its_unit(order):
    names = ['position b [mm]', 'position a [deg]'][::order]
    values = dict(zip(['position b [mm]', 'position a [deg]'], Q.T * [[1e3], [57.0]], strict=True))
    found = read(q_=None, **{name: values[name] for name in names})
    assert found.joints == ('b', 'a')[::order]
    expected = {'a': Q[:, 1] * np.radians(57.0), 'b': Q[:, 0]}
    for joint, position in zip(found.joints, found.position.T, strict=True):
        np.testing.assert_allclose(position, expected[joint], rtol=1e-12)


def test_degrees_beyond_the_limits_are_found_and_told():
    found = read(q_=np.degrees(Q))
    np.testing.assert_allclose(found.position, Q, rtol=1e-12)
    (unit,) = select(found.notes, 'unit_assumed')
    assert (unit.values['quantity'], unit.values['unit']) == ('position', 'deg')
    raw = read({'urdf': ''}, q_=np.degrees(Q))
    np.testing.assert_array_equal(raw.position, np.degrees(Q))


@pytest.mark.parametrize(
    ('turns', 'severity', 'units'),
    [
        ((1.0, 1.0, 1.0), Severity.INFO, None),
        ((1.0, 0.02, 1e-3), Severity.WARNING, 'deg,rad,deg'),
        ((1.0, 0.02, 0.02), Severity.ERROR, 'deg,rad,rad'),
    ],
)
def test_columns_that_may_be_radians_beside_one_in_degrees_are_named(turns, severity, units):
    phases = np.outer(TIME, [1.0, 2.0, 3.0])
    found = read(joints=('a', 'b', 'c'), q_=np.degrees(np.sin(phases) * turns), tau_=phases)
    (told,) = select(found.notes, 'unit_assumed')
    expected = None if units is None else f'position={units}'
    assert (told.severity, told.values.get('units')) == (severity, expected)


def test_degrees_leave_prismatic_joints_alone():
    given = {'urdf': urdf('a', 'b', kinds=('revolute', 'prismatic'))}
    found = read(given | {'units': (('position', 'deg'),)}, q_=Q * [180 / np.pi, 1.0])
    np.testing.assert_allclose(found.position, Q, rtol=1e-12)


@pytest.mark.parametrize(('factor', 'unit'), [(180 / np.pi, 'deg/s'), (30 / np.pi, 'rpm')])
def test_velocities_are_compared_with_the_positions(factor, unit):
    found = read(dq_=DQ * factor)
    np.testing.assert_allclose(found.velocity, DQ, rtol=1e-12)
    assert ('velocity', unit) in [
        (n.values['quantity'], n.values['unit']) for n in select(found.notes, 'unit_assumed')
    ]
    assert len(read(dq_=DQ).notes) == 1


@pytest.mark.parametrize(
    ('time', 'told'),
    [
        *((TIME, ''), (TIME * 1e3, 'ms')),
        *((TIME + 1.7e9, ''), ((TIME + 1.7e9) * 1e3, 'ms'), ((TIME + 1.7e9) * 1e6, 'us')),
        ((TIME * 1e9).round().astype(np.int64) + 1_700_000_000_123_456_789, 'ns'),
    ],
)
def test_stamps_are_told_by_their_size(time, told):
    found = read(t=time)
    np.testing.assert_allclose((found.stamp - found.stamp[0]) * 1e-9, TIME, atol=5e-7)
    assert [n.values['unit'] for n in select(found.notes, 'time_unit_assumed')] == [told] * bool(
        told
    )


def test_a_count_of_the_rows_is_no_time_where_there_is_one():
    found = read(t=None, **{'log.time_index': np.arange(1, 601), 'data.time_cont': TIME})
    np.testing.assert_allclose(found.stamp * 1e-9, TIME, atol=1e-9)
    found = read(t=None, time=np.arange(600) * 1.0)  # ms
    np.testing.assert_allclose(found.stamp * 1e-9, TIME * 0.1, atol=1e-9)


def test_efforts_that_were_recorded_come_before_those_of_a_model():
    found = read(tau_=None, rec_torque_abs_=TAU, tau_a_all_=np.ones_like(TAU))
    np.testing.assert_array_equal(found.effort, TAU)


@pytest.mark.parametrize('scale', [1e3, 1.0])
@pytest.mark.parametrize('rate', [2000.0, 5000.0, 2.5, 100.0])
@pytest.mark.parametrize('factors', [(1.0, 1.0), (180 / np.pi, 1.0), (1.0, 30 / np.pi)])
def test_velocities_prove_the_unit_of_stamps(rate, scale, factors):
    """Steps of 0.2 to 0.5 are those of 2 Hz in s and of 2 kHz in ms."""
    time = np.arange(600) / rate
    phase = time * rate / 100.0
    q = np.column_stack([np.sin(2.0 * phase), 0.5 * np.cos(3.0 * phase)]) * factors[0]
    dq = np.column_stack([2.0 * np.cos(2.0 * phase), -1.5 * np.sin(3.0 * phase)]) * rate / 100.0
    found = read({'urdf': ''}, t=time * scale, q_=q, dq_=dq * factors[1])
    np.testing.assert_allclose(found.stamp * 1e-9, time, atol=1e-9)
    units = [note.values['unit'] for note in select(found.notes, 'time_unit_assumed')]
    assert ('ms' in units) == (scale == 1e3)


def test_integer_stamps_are_exact():
    stamp = 1_700_000_000_123_456_789 + np.arange(600) * 9_999_999
    np.testing.assert_array_equal(read(t=stamp).stamp, stamp)


def test_given_units_of_time_and_rates_count():
    found = read({'units': (('time', 'ms'),)}, t=TIME)
    np.testing.assert_allclose(found.stamp * 1e-9, TIME * 1e-3, atol=1e-9)
    found = read({'rate': 50.0}, t=None)
    np.testing.assert_array_equal(found.stamp, np.arange(600) * 20_000_000)
    with pytest.raises(ConfigurationError, match='the rate is -1 Hz'):
        read({'rate': -1.0})


@pytest.mark.parametrize(
    ('rate', 'time', 'told'),
    [
        *((100.0, TIME, 0), (99.0, TIME, 0), (200.0, TIME, 1)),
        *((100.0, np.floor(TIME * 30) / 30, 0), (500.0, np.arange(600), 0)),
    ],
)
def test_a_rate_that_the_times_contradict_is_told(rate, time, told):
    found = read({'rate': rate}, t=time)
    np.testing.assert_allclose(found.stamp * 1e-9, np.arange(600) / rate, atol=1e-9)
    notes = select(found.notes, 'stamps_from_rate')
    assert [(x.severity, x.values['rate']) for x in notes] == [(Severity.WARNING, rate)] * told


def test_rows_without_a_time_are_left_out():
    time = TIME.copy()
    time[5] = np.nan
    found = read(t=time)
    assert found.position.shape == (599, 2) and found.notes[-1].values == {'count': 1}


@pytest.mark.parametrize('text', ['q', 'speed=x', 'position=a position=b', "position='a", 'time='])
def test_assignments_of_another_form_are_refused(text):
    with pytest.raises(ConfigurationError, match='write'):
        parse_assignments(text, 'x')


def test_assignments_may_hold_spaces():
    found = parse_assignments("time=t position='Joint {i} pos'", 'x')
    assert found == (('time', 't'), ('position', 'Joint {i} pos'))


@pytest.mark.parametrize('ends', [('secs', 'nsecs'), ('sec', 'nanosec'), ('sec', 'nsec')])
def test_seconds_and_nanoseconds_make_one_stamp(ends):
    stamp = 1_700_000_000_987_654_321 + np.arange(600) * 10_000_000
    values = dict(zip((f'header.stamp.{end}' for end in ends), divmod(stamp, 10**9), strict=True))
    found = read(t=None, **values)
    np.testing.assert_array_equal(found.stamp, stamp)
    found = read({'columns': (('time', ','.join(values)),)}, t=None, **values)
    np.testing.assert_array_equal(found.stamp, stamp)


def test_positions_and_efforts_in_different_rows_are_joined():
    stamp = np.repeat(TIME, 2)
    stamp[1::2] += 0.005
    q, tau = np.full((2, 1200, 2), np.nan)
    slope = np.array([1.5, -2.0])
    q[::2], tau[1::2] = Q, stamp[1::2, None] * slope
    found = read(t=stamp, q_=q, tau_=tau)
    np.testing.assert_array_equal(found.position, Q)
    np.testing.assert_allclose(found.effort[1:], TIME[1:, None] * slope, rtol=1e-12)
    assert np.isnan(found.effort[0]).all() and select(found.notes[-1:], 'rows_interpolated')


@pytest.mark.parametrize('wrong', [1e300, 3e9])
def test_times_that_no_stamp_holds_are_refused(wrong):
    time = TIME.copy()
    time[::9] = wrong
    with pytest.raises(RecordingError, match=r'the times t reach .*--units'):
        read(t=time)


@pytest.mark.parametrize('wrong', [1e300, 3e9, -3047.8])
def test_rows_of_a_damaged_beginning_are_left_out(wrong):
    time, q = TIME.copy(), Q.copy()
    time[1:6], q[1:6] = wrong + np.arange(5.0), -1e282
    found = read(t=time, q_=q)
    kept = np.r_[0, 6 : len(TIME)]
    np.testing.assert_array_equal(found.position, Q[kept])
    np.testing.assert_allclose((found.stamp - found.stamp[0]) * 1e-9, TIME[kept], atol=1e-6)
    assert select(found.notes, 'rows_without_time')[0].values['count'] == 5


@pytest.mark.parametrize(
    ('position', 'velocity', 'quantity', 'unit'),
    [
        (np.degrees(0.02 * Q), 0.02 * DQ, 'position', 'deg'),
        (Q / (2.0 * np.pi), DQ, 'position', 'rev'),
        (Q, DQ / (2.0 * np.pi), 'velocity', 'rev/s'),
    ],
)
def test_derivatives_tell_the_units(position, velocity, quantity, unit):
    found = read(q_=position, dq_=velocity)
    scale = 0.02 if unit == 'deg' else 1.0
    np.testing.assert_allclose(found.position, scale * Q, atol=1e-9)
    np.testing.assert_allclose(found.velocity, scale * DQ, atol=1e-9)
    told = [note.values for note in select(found.notes, 'unit_assumed')]
    assert (quantity, unit) in [(each['quantity'], each['unit']) for each in told]


@pytest.mark.parametrize('position', [Q * 5e4, Q * 500.0])
def test_positions_in_no_unit_are_refused(position):
    with pytest.raises(RecordingError, match=r"limits .* do not permit .* 'position=counts"):
        read(q_=position)
    np.testing.assert_allclose(
        read({'units': (('position', 'rad'),)}, q_=position).position, position
    )


def test_positions_of_motors_are_no_degrees():
    with pytest.raises(RecordingError, match=r"motor_q_{i} reach .* 'position=rad"):
        read(q_=None, motor_q_=Q * 60.0)
    gears = (('position', f'rad*{1 / 60}'),)
    np.testing.assert_allclose(read({'units': gears}, q_=None, motor_q_=Q * 60.0).position, Q)


def test_velocities_that_are_no_derivatives_are_refused():
    with pytest.raises(RecordingError, match=r'are 3 times the derivatives .* --units'):
        read(dq_=DQ * 3.0)
    found = read({'units': (('velocity', f'rad/s*{1 / 3}'),)}, dq_=DQ * 3.0)
    np.testing.assert_allclose(found.velocity, DQ)


@pytest.mark.parametrize('name', ['dq_', 'dq_rad_s_'])
def test_velocities_of_motors_do_not_make_seconds_milliseconds(name):
    with pytest.raises(RecordingError, match=r'955 times the derivatives .* --units'):
        read(**{name: DQ * 100.0 * 30.0 / np.pi})


def test_parts_of_a_long_log_tell_the_ratio_of_all():
    """It moves in a short part of it alone; the other joint's values are no derivative."""
    time = np.arange(3 * MANY) / 1e3
    moves = np.clip(time - 30.0, 0.0, 20.0)
    q = np.column_stack([np.sin(moves), np.sin(time)])
    slope = np.where((moves > 0.0) & (moves < 20.0), np.cos(moves), 0.0)
    noise = np.random.default_rng(3).normal(size=len(time))
    ratio = usual_ratio(time, q, np.column_stack([np.degrees(slope), noise]))
    assert ratio == pytest.approx(np.degrees(1.0), rel=1e-3)
    assert np.isnan(usual_ratio(time, q[:, 1:], noise[:, None]))
