"""Stamps that run at another speed than the times of reception are told, once."""

from bag_tools import EPOCH, joint_state, motion
import numpy as np
import pytest

from robotid_ros.files.bags import BagWriter, open_recording, read_recording
from robotid_ros.files.bags.clock import drift_notes

COUNT = 2000
PERIOD = 10_000_000


def received(seed=0):
    """Return times of reception (N,) [ns] that a busy machine delays."""
    delay = np.random.default_rng(seed).exponential(5e-3, COUNT) * 1e9
    return EPOCH + PERIOD * np.arange(COUNT) + delay.astype(np.int64)


@pytest.mark.parametrize(
    ('factor', 'origin', 'words'),
    [
        (1.1, EPOCH, ('+10 %', 'inertias by 20 %')),
        (0.9, EPOCH, ('-10 %', 'clock of the stamps')),
        (0.8, 0, ('simulated time',)),
    ],
)
def test_a_drift_is_told(factor, origin, words):
    stamp = origin + (factor * PERIOD * np.arange(COUNT)).astype(np.int64)
    (note,) = drift_notes(stamp, received())
    assert all(word in note for word in words)


@pytest.mark.parametrize('factor', [1.0, 1.0005, 5.0, 0.01])
def test_equal_clocks_and_conversions_are_not(factor):
    stamp = EPOCH + (factor * PERIOD * np.arange(COUNT)).astype(np.int64)
    assert drift_notes(stamp, received()) == ()
    assert drift_notes(stamp, stamp) == () == drift_notes(stamp, np.full(COUNT, EPOCH))


@pytest.mark.parametrize('longest', [COUNT, COUNT // 2])
def test_a_bag_says_so_in_memory_or_not(tmp_path, monkeypatch, longest):
    monkeypatch.setattr('robotid_ros.files.bags.recording.DECIMATION', 20)
    values = motion(COUNT, 2)
    with BagWriter(tmp_path, 'bag') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        for k, row in enumerate(zip(*values, strict=True)):
            stamp = EPOCH + int(1.1 * PERIOD * k)
            data = joint_state(stamp, ('a', 'b'), *row)
            writer.write('/joint_states', data, EPOCH + PERIOD * k)
    recording = open_recording(writer.path, max_samples=longest)
    assert sum('+10 %' in note for note in recording.notes) == 1
    assert any('+10 %' in note for note in read_recording(writer.path).notes)
