"""The files of a recording, in the order and number that its `metadata.yaml` tells."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
import re
from typing import Any

from ....exceptions import ConfigurationError, RecordingError
from ...atomic import read_text
from ...formats.open_table import table_reader
from ...yaml import parse_yaml

METADATA = 'metadata.yaml'
BAG_SUFFIXES = ('.mcap', '.db3', '.bag', '.zstd')


def find_files(path: Path, notes: list[str]) -> tuple[list[Path], dict[str, Any]]:
    """
    Find what to open: a file, or those of a folder in their order.

    Parameters
    ----------
    path : of a recording
    notes : what is unusual is appended to it, in words

    Returns
    -------
    The files, and what their metadata say of them.

    Raises
    ------
    RecordingError : there are none

    """
    if not path.exists():
        raise RecordingError(f"there is no recording at '{path}': give a rosbag2 folder or file")
    if not path.is_dir() or table_reader(path):
        return [path], {}
    files = [f for f in sorted(path.iterdir(), key=_natural_order) if f.suffix in BAG_SUFFIXES]
    # What was unpacked beside the packed file counts once.
    files = [f for f in files if f.suffix != '.zstd' or f.with_suffix('') not in files]
    if not files:
        raise RecordingError(
            f"'{path}' holds no recording (.mcap, .db3 or .bag): give another folder"
        )
    metadata, unusual = _read_metadata(path)
    files, missing = _in_order(files, metadata)
    notes += [*unusual, *missing]
    return files, metadata


def _natural_order(path: Path) -> list[Any]:
    """Sort key that puts part 2 before part 10."""
    return [int(x) if x.isdecimal() else x for x in re.split(r'(\d+)', path.name)]


def _read_metadata(folder: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """
    Read the metadata of a recording, which is not needed to read it.

    Returns
    -------
    What is in it, {} where it is missing or damaged, and that in words.

    """
    path = folder / METADATA
    if not path.exists():
        return {}, ('metadata.yaml is missing: read from the data files themselves',)
    try:
        content = parse_yaml(read_text(path), METADATA)
        information = content['rosbag2_bagfile_information']
        names, count = information['relative_file_paths'], information['message_count']
        if not isinstance(information, Mapping) or not isinstance(count, int):
            raise TypeError(f'message_count is {count!r}')
        return {'files': [PurePath(name).name for name in names], 'count': count}, ()
    except (ConfigurationError, LookupError, TypeError) as error:
        note = f'metadata.yaml is damaged ({error}): read from the data files themselves'
        return {}, (note,)


def _in_order(files: Sequence[Path], metadata: Mapping[str, Any]) -> tuple[list[Path], list[str]]:
    """Return the files that the metadata name, in their order, else all; and what is missing."""
    named = metadata.get('files', ())
    there = {file.name: file for file in files}
    found = [there[name] for name in named if name in there]
    missing = [name for name in named if name not in there]
    notes = [f'of the recording {", ".join(missing)} is missing'] if missing else []
    return found or list(files), notes


def missing_notes(metadata: Mapping[str, Any], count: int) -> list[str]:
    """Say where a recording has fewer messages than its metadata promise."""
    promised = metadata.get('count', 0)
    if promised <= count:
        return []
    return [f'metadata.yaml promises {promised} messages, {count} were found']
