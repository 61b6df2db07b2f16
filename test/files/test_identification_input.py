"""A recording becomes a session with its robot, and falls into the right parts."""

from pathlib import Path
import re
import sys

from bag_tools import write_table
import numpy as np
import pytest

from robotid_ros.core.findings import Finding
from robotid_ros.core.signals.recording import Phase, Recording
from robotid_ros.exceptions import ConfigurationError, RecordingError
from robotid_ros.files.bags import open_recording
from robotid_ros.files.configuration import from_mapping
from robotid_ros.files.formats.column_names import understand, words_of
from robotid_ros.files.formats.open_table import open_table
from robotid_ros.files.formats.read_options import ReadOptions
from robotid_ros.files.identification_input import LogPart, open_input, split

from .formats.tables import Q, TAU, TIME, urdf


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
    assert spans(split(recording(), LogPart(0.0, 0.5, True))) == [(0.0, 4.99), (5.0, 10.0)]
    assert spans(split(recording(), LogPart(0.6, 1.0, True))) == [(6.0, 10.0), (0.0, 5.99)]
    assert spans(split(recording(), LogPart(0.0, 9.9))) == [(0.0, 9.89), None]
    assert spans(split(recording(), LogPart(0, 3), LogPart(4, 5))) == [(0.0, 2.99), (4.0, 4.99)]


def test_a_part_that_ends_at_the_end_has_the_last_sample():
    assert spans([LogPart(0.5, 1.0, True).of(recording())]) == [(5.0, 10.0)]
    assert spans([LogPart(2.0, 100.0).of(recording())]) == [(2.0, 10.0)]


def test_too_little_is_refused():
    with pytest.raises(RecordingError, match=r'lasts 0\.200 s'):
        split(recording(count=21))
    with pytest.raises(RecordingError, match='choose at least'):
        split(recording(), LogPart(5.0, 5.1))


@pytest.fixture
def log(tmp_path):
    """Write a table, and a description of its joints."""
    header = 't,q_1,q_2,tau_1,tau_2'
    np.savetxt(
        tmp_path / 'log.csv',
        np.column_stack([TIME, Q, TAU]),
        delimiter=',',
        header=header,
        comments='',
    )
    return str(tmp_path / 'log.csv')


def calls(function):
    """Return file and name of each function of this package that a call passes."""
    found = []

    def note(frame, event, _):
        if event == 'call' and 'robotid_ros/' in frame.f_code.co_filename:
            name = frame.f_code.co_filename.partition('robotid_ros/')[2].rpartition('robotid_ros/')
            found.append((name[2], frame.f_code.co_name))

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found


def test_a_table_becomes_a_recording_without_messages(log):
    options = ReadOptions(urdf=urdf('a', 'b'))
    passed = calls(lambda: open_recording(log, options=options))
    assert not [name for file, name in passed if 'messages/' in file or 'serialize' in name]
    np.testing.assert_array_equal(open_recording(log, options=options).effort, TAU)


def test_configuration_and_description_are_read_once(log, tmp_path):
    (tmp_path / 'arm.urdf').write_text(urdf('a', 'b'))
    config = tmp_path / 'arm.yaml'
    config.write_text('/**: {ros__parameters: {robot: {urdf: arm.urdf, mass: 5.0}}}')
    passed = calls(lambda: open_input([log], str(config)))
    assert passed.count(('files/yaml.py', 'parse_yaml')) == 1
    assert passed.count(('files/robot_description.py', 'read_description')) == 1


def test_what_is_given_goes_before_what_was_recorded(log, tmp_path):
    kept, named, given = (
        urdf('a', 'b').replace('"arm"', f'"{name}"') for name in ('kept', 'named', 'given')
    )
    (tmp_path / 'named.urdf').write_text(named)
    write_table(tmp_path, open_table(Path(log), ReadOptions(urdf=kept)), kept)
    bag, settings = str(tmp_path / 'bag'), {'mass': 5.0}
    checked = from_mapping({'robot': {**settings, 'urdf': str(tmp_path / 'named.urdf')}})
    recorded = {'robot': settings}
    assert open_input([bag], recorded, fallback=given).urdf == kept
    assert open_input([bag], checked, fallback=given).urdf == named
    assert open_input([bag], checked, given).urdf == given
    assert open_input([log], recorded, fallback=given).urdf == given
    with pytest.raises(ConfigurationError, match='has no robot description'):
        open_input([log], recorded)


def test_another_log_is_read_with_the_description_of_the_first(log, tmp_path):
    arm = urdf('a', 'b')
    write_table(tmp_path, open_table(Path(log), ReadOptions(urdf=arm)), arm)
    other = open_input([str(tmp_path / 'bag')]).read(log)
    assert other.joints == ('a', 'b')
    np.testing.assert_array_equal(other.effort, TAU)


def test_the_way_in_is_no_longer_than_the_architecture_says(log, monkeypatch):
    def made(*_, **__):
        raise KeyboardInterrupt

    def open_log():
        with pytest.raises(KeyboardInterrupt):
            open_input([log], urdf=urdf('a', 'b'))

    open_input([log], urdf=urdf('a', 'b', 'c'))  # modules are imported now
    for kept in (understand, words_of):
        kept.cache_clear()
    monkeypatch.setattr(Recording, '__init__', made)
    # Only tests render each finding at once.
    monkeypatch.setitem(Finding.__init__.__globals__, 'render', str)
    passed = {call for call in calls(open_log) if not call[1].startswith('<')}
    page = Path(__file__).parents[2] / 'docs' / 'architecture.md'
    (count,) = re.findall(r'calls at most (\d+) functions of this package', page.read_text())
    assert 20 < len(passed) <= int(count), len(passed)
