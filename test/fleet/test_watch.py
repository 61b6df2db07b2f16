"""Recordings are taken when they are complete."""

import pytest

from robotid_ros.exceptions import FileError
from robotid_ros.fleet.sources import arrivals


def test_a_recording_is_yielded_once_when_it_no_longer_grows(tmp_path):
    waited = []

    def bag(name, content):
        folder = tmp_path / 'robot' / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f'{name}.mcap').write_bytes(content)
        return folder

    def wait(seconds):
        waited.append(seconds)
        if len(waited) < 4:  # it is being written
            bag('first', b'x' * len(waited))
        if len(waited) == 7:
            bag('second', b'y')

    looks = arrivals(tmp_path, wait, 0.5)
    (first,) = next(looks)
    assert first.location == str(tmp_path / 'robot' / 'first') and first.robot == 'robot'
    assert len(waited) == 4 and set(waited) == {0.5}
    (second,) = next(looks)
    assert second.location.endswith('second') and len(waited) == 8


def test_a_recording_that_is_replaced_comes_again(tmp_path):
    looks = arrivals(tmp_path, lambda _: None, 1.0)
    file = tmp_path / 'robot.mcap'
    file.write_bytes(b'x')
    assert [s.location for s in next(looks)] == [str(file)]
    file.write_bytes(b'xy')
    assert [s.location for s in next(looks)] == [str(file)]


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(FileError, match='no folder'):
        next(arrivals(tmp_path / 'none', lambda _: None, 1.0))
