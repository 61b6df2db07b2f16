"""Tables of several trials, whose times start again with each."""

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.signals.preparation import resample_uniformly
from robotid_ros.core.signals.recording import SignalSettings
from robotid_ros.files.bags import open_recording
from robotid_ros.files.formats.stamps import join_restarted_trials

DURATION = 6.0  # of a trial [s]
SPEED = np.array([1.0, 1.9])  # angular frequencies [rad/s]
FASTEST = float(np.max(SPEED**2))  # acceleration [rad/s²]


def trials(folder, rate, count=2):
    """
    Write trials of one motion behind each other; none ends where the next one starts.

    Efforts drift: what repeats in every digit is a copy.
    """
    time = np.tile(np.arange(round(DURATION * rate)) / rate, count)
    q, drift = np.sin(np.outer(time, SPEED)), 1e-6 * np.arange(len(time))[:, None]
    rows = np.column_stack([time, q, np.cos(np.outer(time, 0.7 * SPEED)) + drift])
    path = folder / 'log.csv'
    np.savetxt(path, rows, delimiter=',', header='t,q1,q2,tau1,tau2', comments='', fmt='%.12g')
    return path


@pytest.mark.parametrize('rate', [40.0, 100.0, 125.0, 500.0])
def test_nothing_is_measured_between_two_trials(tmp_path, rate):
    recording = open_recording(trials(tmp_path, rate))
    even, rate, measured, notes = resample_uniformly(recording, SignalSettings())
    ddq = np.diff(even.position, 2, axis=0) * rate**2
    whole = measured[:-2] & measured[1:-1] & measured[2:]
    assert np.abs(ddq[whole]).max() < 1.01 * FASTEST
    # All of both trials counts, on the clock of the first, and nothing between them.
    assert abs(measured.sum() - 2 * DURATION * rate) < 1.5
    end = 2 * DURATION + 2.0 - 2.0 / rate
    np.testing.assert_allclose(even.time[measured][-1], end, atol=1.1 / rate)
    (note,) = select(notes, 'trials_joined')
    assert note.values['gap'] == 2.0
    assert not select(notes, 'clock_jumped', 'clock_drifts', 'simulated_time')


def test_trials_of_a_long_table_are_the_same(tmp_path):
    path = trials(tmp_path, 100.0, count=4)
    whole = open_recording(path)
    pieces = open_recording(path, max_samples=500)
    np.testing.assert_allclose(pieces.load().time, whole.time, atol=1e-9)


def test_stamps_that_are_far_off_start_no_trial():
    def stays(stamp):
        found, notes = join_restarted_trials(stamp, 'log')
        return found is stamp and not notes

    stamp = np.arange(1000) * 10_000_000
    assert stays(stamp) and stays(np.arange(1000) // 2 * 20_000_000)
    for rows in (slice(500, 501), slice(500, 540)):
        for value in (0, 10**15):
            odd = stamp.copy()
            odd[rows] = value
            assert stays(odd)
    assert stays(stamp.reshape(-1, 2, 20)[:, ::-1].ravel())
