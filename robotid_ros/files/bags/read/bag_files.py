"""The files of a recording, in the order that its `metadata.yaml` tells, and what reads them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, ExitStack
from pathlib import Path, PurePath
import tempfile
from typing import Any

from ....exceptions import ConfigurationError, FileError, RecordingError, RobotIdError
from ...atomic import nearest_file, open_regular, read_text
from ...bounded import unpack_file
from ...formats.read_options import BAG_SUFFIXES, natural_order, ReadOptions, SUFFIXES
from ...remote.remote_file import RemoteFile
from ...yaml import parse_yaml
from ..repair.mcap_reader import McapReader
from ..repair.mcap_records import is_mcap

METADATA = 'metadata.yaml'
ZSTD = b'\x28\xb5\x2f\xfd'
_SQLITE = b'SQLite format 3\0'


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
    files = data_files(path)
    if files == [path]:
        return files, {}
    metadata, unusual = _read_metadata(path)
    files, missing = _in_order(files, metadata)
    notes += [*unusual, *missing]
    return files, metadata


def data_files(path: Path) -> list[Path]:
    """Find the files that hold messages or rows, by their names; raises as `find_files`."""
    if not path.exists():
        remedy = nearest_file(path) or ': give a rosbag2 folder or file'
        raise RecordingError(f"there is no recording at '{path}'{remedy}")
    if not path.is_dir():
        return [path]
    files = [f for f in sorted(path.iterdir(), key=natural_order) if f.suffix in BAG_SUFFIXES]
    # What was unpacked beside the packed file counts once.
    files = [f for f in files if f.suffix != '.zstd' or f.with_suffix('') not in files]
    if not files and _is_table(path):
        return [path]
    if not files:
        raise RecordingError(
            f"'{path}' holds no recording (.mcap, .db3 or .bag): give another folder"
        )
    return files


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


def remote_mcap(url: str) -> RemoteFile:
    """Return the file behind a URL; raises `RecordingError` where it is no MCAP file."""
    file = RemoteFile(url)
    if file.suffix != '.mcap':
        raise RecordingError(
            f"'{url}' is no .mcap file, which alone are read in parts: copy it here"
        )
    return file


def _unpacked(path: Path, stack: ExitStack) -> Path:
    """Undo the compression of a file for as long as it is read."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    target = Path(folder, path.stem)
    unpack_file(path, target)
    return target


def reader_of(
    path: Path | RemoteFile, notes: list[str], options: ReadOptions, stack: ExitStack
) -> Any:
    """
    Return what reads a file, by its first bytes, or a folder of tables; not opened yet.

    Parameters
    ----------
    path : what is compressed is unpacked until `stack` is closed
    notes : what is unusual is appended to it, in words
    options : how to read it

    Raises
    ------
    RecordingError : it is empty or of an unknown kind

    """
    if isinstance(path, RemoteFile):
        if not is_mcap(path):
            raise RecordingError(f"'{path}' is not MCAP inside: copy it again from the robot")
        return McapReader(path)
    if path.suffix == '.zstd':
        path = _unpacked(path, stack)
    if path.is_dir():
        return _table(path, options)
    with open_regular(path) as stream, recording_errors(path):
        start = stream.read(16)
    if not start:
        raise RecordingError(f"'{path}' is empty: the recorder died at once; record again")
    if start.startswith(_SQLITE):
        wal = path.with_name(f'{path.name}-wal')
        if wal.exists() and wal.stat().st_size:
            notes.append(f"'{wal.name}' was not merged: run sqlite3 {path.name} .dump to do so")
        from ..foreign.sqlite_reader import SqliteReader

        return SqliteReader(path)
    if start.startswith(ZSTD):
        raise RecordingError(f"'{path}' is compressed: rename it to '{path.name}.zstd'")
    if start.startswith(b'#ROSBAG'):
        from ..foreign.ros1_reader import Ros1Reader

        return Ros1Reader(path)
    if is_mcap(path):
        return McapReader(path)
    if _is_table(path):
        return _table(path, options)
    raise RecordingError(
        f"'{path}' is neither MCAP nor SQLite, nor a table by its name: give a bag or one of "
        f'{", ".join(SUFFIXES)}'
    )


def _is_table(path: Path) -> bool:
    # What reads tables takes as long to import as a bag to inspect.
    from ...formats.open_table import table_reader

    return table_reader(path) is not None


def _table(path: Path, options: ReadOptions) -> Any:
    from ..foreign.table_reader import TableReader

    return TableReader(path, options)


@contextmanager
def recording_errors(path: Path | RemoteFile) -> Iterator[None]:
    """Turn whatever a parser says about damaged bytes into one sentence."""
    try:
        yield
    except RobotIdError:
        raise
    except PermissionError as error:
        raise RecordingError(f"'{path}' cannot be read: permission denied") from error
    except Exception as error:
        reason = str(error).rstrip('.') or type(error).__name__
        if isinstance(path, RemoteFile):
            raise FileError(
                f"'{path}' cannot be read to its end ({reason}): try again, or copy it here"
            ) from error
        raise RecordingError(
            f"'{path}' is damaged ({reason}): copy it again from the robot, or repair it with the "
            'tools of its format (sqlite3 .recover, rosbag reindex)'
        ) from error
