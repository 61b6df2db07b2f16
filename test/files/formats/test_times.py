"""Times of every unit and origin."""

import datetime

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.exceptions import RecordingError

from .strangers import check, columns, text
from .tables import DQ, Q, TAU, TIME

START = datetime.datetime(2026, 5, 4, 23, 59, 57, tzinfo=datetime.UTC)
SECONDS = START.timestamp()
NAMES = ['q1', 'q2', 'dq1', 'dq2', 'tau1', 'tau2']
CLOCK = [START + datetime.timedelta(seconds=float(t)) for t in TIME]
QUIET = [name for name in NAMES if name[0] != 'd'], columns(Q, TAU)


def write(path, time, name='time', velocity=True, delimiter=','):
    header, values = (NAMES, columns(Q, DQ, TAU)) if velocity else QUIET
    path.write_text(text([name, *header], [time, *values], delimiter))
    return path


@pytest.mark.parametrize('velocity', [True, False])
@pytest.mark.parametrize(
    ('time', 'resolution'),
    [
        (TIME + SECONDS, 2e-6),
        ((TIME + SECONDS) * 1e3, 2e-6),
    ],
)
def test_dates_tell_the_unit(tmp_path, time, resolution, velocity):
    path = write(tmp_path / 'a.csv', time, velocity=velocity)
    check(path, velocity=velocity, resolution=resolution)


@pytest.mark.parametrize('scale', [1e3, 1e6, 1e9, 1e7, 1.0 / 60.0, 1.0 / 3600.0, 1.0 / 86400.0])
def test_velocities_tell_the_unit(tmp_path, scale):
    check(write(tmp_path / 'a.csv', TIME * scale))


def test_steps_too_short_for_seconds_are_asked_for(tmp_path):
    path = write(tmp_path / 'a.csv', TIME / 3600.0, velocity=False)
    with pytest.raises(RecordingError, match=r"may be min, h or d: .* --units 'time=d'"):
        check(path)
    check(path, 'time=h', velocity=False)


@pytest.mark.parametrize(
    ('step', 'may'),
    [(1e4, 'ms, us, 100ns or ns'), (1e7, 'ms, us, 100ns or ns'), (0.25, 's or ms')],
)
def test_times_of_several_units_are_asked_for(tmp_path, step, may):
    path = write(tmp_path / 'a.csv', np.arange(TIME.size) * step, velocity=False)
    with pytest.raises(RecordingError, match=f"may be {may}: .*--units 'time=.*--rate"):
        check(path)


@pytest.mark.parametrize(('scale', 'origin'), [(1.0, 2082844800.0), (1e7, 11644473600.0)])
def test_dates_of_other_origins_are_refused(tmp_path, scale, origin):
    """Of LabVIEW and of Windows."""
    path = write(tmp_path / 'a.csv', (TIME + SECONDS + origin) * scale)
    with pytest.raises(RecordingError, match=r'the times time reach .* give their unit'):
        check(path)


def test_times_that_stand_still_are_refused(tmp_path):
    path = write(tmp_path / 'a.csv', 20260504 + 0 * TIME)
    with pytest.raises(RecordingError, match=r'time are the same in all rows: .*--rate'):
        check(path)


@pytest.mark.parametrize(
    'form',
    [
        '%Y-%m-%d %H:%M:%S.%f',
        '%Y-%m-%dT%H:%M:%S.%fZ',
        '%Y/%m/%d %H:%M:%S.%f',
        '%H:%M:%S.%f',
        '%H:%M:%S,%f',
    ],
)
def test_dates_and_times_of_day_also_over_midnight(tmp_path, form):
    check(write(tmp_path / 'a.csv', [t.strftime(form) for t in CLOCK], delimiter=';'))


@pytest.mark.parametrize('form', ['%Y-%m-%d %H:%M:%S', '%H:%M:%S', ''])
@pytest.mark.parametrize('velocity', [True, False])
def test_stamps_of_a_coarse_clock_are_spread(tmp_path, form, velocity):
    time = [t.strftime(form) for t in CLOCK] if form else np.floor(TIME + SECONDS)
    path = write(tmp_path / 'a.csv', time, velocity=velocity)
    notes = check(path, velocity=velocity)
    (coarse,) = select(notes, 'stamps_rounded')
    assert coarse.values['rate'] == pytest.approx(100.0, rel=1e-3)


def test_states_that_are_published_twice_keep_their_stamps(tmp_path):
    header = ['time', *NAMES]
    values = [np.repeat(x, 2) for x in columns(TIME, Q, DQ, TAU)]
    (tmp_path / 'a.csv').write_text(text(header, values))
    check(tmp_path / 'a.csv', stamps=np.repeat(TIME, 2))


@pytest.mark.parametrize('name', ['', 'index', 'Uhrzeit'])
def test_dates_are_times_whatever_their_column_is_called(tmp_path, name):
    check(write(tmp_path / 'a.csv', [str(t.replace(tzinfo=None)) for t in CLOCK], name))


def test_a_day_that_never_changes_is_no_time(tmp_path):
    header = ['date', *NAMES, 'seconds']
    values = [np.full(TIME.size, 20260504), *columns(Q, DQ, TAU, TIME)]
    (tmp_path / 'a.csv').write_text(text(header, values))
    check(tmp_path / 'a.csv')


def test_durations_as_words(tmp_path):
    check(write(tmp_path / 'a.csv', [f'0:00:{t:09.6f}' for t in TIME]))


def test_durations_of_data_frames(tmp_path):
    pandas = pytest.importorskip('pandas')
    frame = pandas.DataFrame(dict(zip(*QUIET, strict=True)))
    frame.insert(0, 'clock', pandas.to_timedelta(TIME, unit='s'))
    path = tmp_path / 'a.parquet'
    frame.to_parquet(path)
    check(path, velocity=False)
