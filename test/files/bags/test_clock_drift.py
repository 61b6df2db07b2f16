"""Stamps that run at another speed than the times of reception are told, once."""

from bag_tools import EPOCH, joint_state, motion
import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.files.bags import BagWriter, open_recording
from robotid_ros.files.bags.recording import drift_notes

COUNT = 2000
PERIOD = 10_000_000


def received(seed=0):
    """Return times of reception (N,) [ns] that a busy machine delays."""
    delay = np.random.default_rng(seed).exponential(5e-3, COUNT) * 1e9
    return EPOCH + PERIOD * np.arange(COUNT) + delay.astype(np.int64)


@pytest.mark.parametrize(
    ('factor', 'origin', 'name'),
    [
        (1.1, EPOCH, 'clock_drifts'),
        (0.9, EPOCH, 'clock_drifts'),
        (0.8, 0, 'simulated_time'),
    ],
)
def test_a_drift_is_told(factor, origin, name):
    stamp = origin + (factor * PERIOD * np.arange(COUNT)).astype(np.int64)
    (note,) = select(drift_notes(stamp, received()), name)
    assert note.values['share'] == pytest.approx(factor - 1.0, abs=5e-3)


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
    for notes in (recording.notes, open_recording(writer.path).notes):
        (note,) = select(notes, 'clock_drifts', 'simulated_time')
        assert note.values['share'] == pytest.approx(0.1, abs=5e-3)
