"""A file is whole or absent, whatever happens while it is written."""

import os
import stat

from hypothesis import given, settings, strategies as st
import pytest

from robotid_ros.exceptions import ConfigurationError, FileError
from robotid_ros.files.atomic import (
    expect_writable,
    make_new_folder,
    new_names,
    read_text,
    write_bytes,
    write_text,
)
from robotid_ros.files.yaml import dump_yaml, parse_yaml


def test_writing_makes_folders_and_leaves_nothing_beside(tmp_path):
    path = write_text(tmp_path / 'a' / 'b' / 'c.yaml', 'χ: 1\n')
    assert read_text(path) == 'χ: 1\n'
    assert os.listdir(path.parent) == ['c.yaml']


def test_an_existing_file_stays_where_asked(tmp_path):
    path = write_text(tmp_path / 'x', 'old')
    with pytest.raises(FileError, match='exists already'):
        write_text(path, 'new', overwrite=False)
    assert read_text(path) == 'old'
    assert read_text(write_text(path, 'new')) == 'new'
    assert os.listdir(tmp_path) == ['x']


def test_permissions_follow_the_umask_and_the_file_that_was_there(tmp_path):
    old = os.umask(0o027)
    try:
        path = write_text(tmp_path / 'x', '')
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    assert stat.S_IMODE(write_text(path, 'y').stat().st_mode) == 0o604


def test_a_failure_half_way_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_text(tmp_path / 'x', 'old')

    def fail(*arguments):
        raise OSError(5, 'Input/output error')

    monkeypatch.setattr(os, 'fsync', fail)
    with pytest.raises(FileError, match='input/output error'):
        write_text(path, 'new')
    assert path.read_text() == 'old'
    assert os.listdir(tmp_path) == ['x']


def test_a_full_disk_leaves_nothing_behind(tiny_disk):
    path = write_text(tiny_disk / 'x', 'old')
    with pytest.raises(FileError, match=r"cannot access '.*x': no space left on device"):
        write_bytes(path, bytes(2 << 20))
    assert os.listdir(tiny_disk) == ['x']
    assert path.read_text() == 'old'


def test_space_is_looked_for_before_long_work(tiny_disk):
    expect_writable(tiny_disk / 'new', 1 << 10)
    with pytest.raises(FileError, match='MB left of 64 MB that are needed'):
        expect_writable(tiny_disk / 'new', 64 << 20)


def test_what_cannot_be_read_is_one_sentence(tmp_path):
    with pytest.raises(FileError, match='no such file'):
        read_text(tmp_path / 'none')
    (tmp_path / 'binary').write_bytes(b'\xff\xfe\x00')
    with pytest.raises(FileError, match='not a text file'):
        read_text(tmp_path / 'binary')


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=['Cs', 'Cc'])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('abc', min_size=1), inner),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(plain)
def test_yaml_reads_back_bit_for_bit(values):
    assert parse_yaml(dump_yaml(values), 'x') == values


def test_yaml_reads_numbers_as_ros_does():
    assert parse_yaml('[1e-3, -2E5, 1.0e3, 7, 0x10]', 'x') == [1e-3, -2e5, 1e3, 7, 16]
    assert parse_yaml("['1e-3', e5]", 'x') == ['1e-3', 'e5']
    assert parse_yaml(dump_yaml(['1e3', '1.0e3', '.5e1']), 'x') == ['1e3', '1.0e3', '.5e1']


def test_yaml_errors_say_where():
    with pytest.raises(ConfigurationError, match=r"line 2, column 1 .*'a' is given twice"):
        parse_yaml('a: 1\na: 2\n', 'x.yaml')
    with pytest.raises(ConfigurationError, match=r"'x.yaml', line 2, column 1"):
        parse_yaml('a: [1', 'x.yaml')


def test_a_new_folder_is_never_one_that_was_there(tmp_path):
    first, second, third = (make_new_folder(tmp_path / 'below' / 'found') for _ in range(3))
    assert [folder.name for folder in (first, second, third)] == ['found', 'found_2', 'found_3']
    (tmp_path / 'file').write_text('')
    (tmp_path / 'found.yaml').write_text('')
    names = new_names(tmp_path / 'found.yaml')
    assert [next(names).name for _ in range(2)] == ['found.yaml', 'found_2.yaml']
    with pytest.raises(FileError, match='file'):
        make_new_folder(tmp_path / 'file' / 'found')
