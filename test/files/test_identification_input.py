"""A recording becomes a session with its robot, and falls into the right parts."""

import numpy as np
import pytest

from robotid_ros.core.signals.recording import Phase, Recording
from robotid_ros.exceptions import RecordingError
from robotid_ros.files.identification_input import Part, split


def recording(phases=(), count=1001):
    time = np.arange(count) * 0.01
    values = np.sin(time)[:, None]
    return Recording(('a',), time, values, values, source='bag', phases=phases)


def spans(pair):
    return [None if r is None else (round(r.time[0], 9), round(r.time[-1], 9)) for r in pair]


def test_phases_count_where_no_part_is_given():
    phases = (Phase('approaching', 0, 1), Phase('exciting', 1, 6), Phase('validating', 6, 9))
    assert spans(split(recording(phases))) == [(1.0, 5.99), (6.0, 8.99)]
    assert spans(split(recording(phases[:2]))) == [(1.0, 5.99), None]
    assert spans(split(recording())) == [(0.0, 10.0), None]


def test_the_rest_validates_a_part():
    assert spans(split(recording(), Part(0.0, 0.5, True))) == [(0.0, 4.99), (5.0, 10.0)]
    assert spans(split(recording(), Part(0.6, 1.0, True))) == [(6.0, 10.0), (0.0, 5.99)]
    assert spans(split(recording(), Part(0.0, 9.9))) == [(0.0, 9.89), None]
    assert spans(split(recording(), Part(0, 3), Part(4, 5))) == [(0.0, 2.99), (4.0, 4.99)]


def test_a_part_that_ends_at_the_end_has_the_last_sample():
    assert spans([Part(0.5, 1.0, True).of(recording())]) == [(5.0, 10.0)]
    assert spans([Part(2.0, 100.0).of(recording())]) == [(2.0, 10.0)]


def test_too_little_is_refused():
    with pytest.raises(RecordingError, match=r'lasts 0\.200 s'):
        split(recording(count=21))
    with pytest.raises(RecordingError, match='choose at least'):
        split(recording(), Part(5.0, 5.1))
