"""Opening recordings: bags of ROS 2 and ROS 1, also cut short or damaged, and tables."""

from collections.abc import Iterator
import contextlib
from pathlib import Path, PurePath
import tempfile
from typing import Any

from ...core.finding_codes import finding
from ...core.findings import Finding
from ...exceptions import ConfigurationError, RecordingError
from ..atomic import nearest_file, open_regular, read_text
from ..bounded import damage_errors, unpack_file
from ..formats.joint_table import JointTable
from ..formats.read_options import BAG_SUFFIXES, DEFAULTS, natural_order, ReadOptions, SUFFIXES
from ..yaml import parse_yaml
from .mcap_reader import MAGIC, McapReader
from .storage import Bag, REPAIR, ZSTD

METADATA, _SQLITE = 'metadata.yaml', b'SQLite format 3\0'


@contextlib.contextmanager
def open_bag(path: str | Path, options: ReadOptions = DEFAULTS) -> Iterator[Bag]:
    """
    Open a recording for reading: a bag of ROS 2 or ROS 1, or a table.

    Raises RecordingError where it is missing, empty, damaged or of an unknown kind; RobotIdError
    where a table lacks something, or does not fit the options.
    """
    notes: list[Finding] = []
    path = Path(path)
    parts, promised = data_files(path), 0
    if parts != [path]:
        parts, promised = _listed(path, parts, notes)
    with contextlib.ExitStack() as stack:
        readers, table = [], None
        for part in parts:
            reader = _reader_of(part, notes, options, stack)
            if isinstance(reader, JointTable):
                table = reader
                continue
            with damage_errors(path, REPAIR):
                reader.open()
            stack.callback(_close, reader)
            readers.append(reader)
        size = sum(part.stat().st_size for part in parts)
        bag = Bag(path, readers, notes, options, size, table)
        count = sum(bag.topics().values())
        if not count:
            raise RecordingError(f"'{path}' holds no messages: record again")
        if promised > count:
            notes.append(
                finding('messages_missing', file=METADATA, promised=promised, count=count)
            )
        if (options.columns or options.units or options.rate) and not bag.table:
            notes.append(finding('options_of_tables'))
        yield bag


def _close(reader: Any) -> None:
    with contextlib.suppress(Exception):
        reader.close()


def data_files(path: Path) -> list[Path]:
    """
    Find the files that hold messages or rows, by their names.

    Raises RecordingError where there are none.
    """
    if not path.exists():
        remedy = nearest_file(path) or ': give a rosbag2 folder or file'
        raise RecordingError(f"there is no recording at '{path}'{remedy}")
    if not path.is_dir():
        return [path]
    files = [f for f in sorted(path.iterdir(), key=natural_order) if f.suffix in BAG_SUFFIXES]
    # What was unpacked beside the packed file counts once.
    files = [f for f in files if f.suffix != '.zstd' or f.with_suffix('') not in files]
    if not files:
        from ..formats.arrays import is_lerobot

        if is_lerobot(path):
            return [path]
        raise RecordingError(
            f"'{path}' holds no recording (.mcap, .db3 or .bag): give another folder"
        )
    return files


def _listed(path: Path, files: list[Path], notes: list[Finding]) -> tuple[list[Path], int]:
    """Return the files in the order of `metadata.yaml`, and the messages that it promises."""
    if not (path / METADATA).exists():
        notes.append(finding('metadata_missing'))
        return files, 0
    try:
        content = parse_yaml(read_text(path / METADATA), METADATA)
        information = content['rosbag2_bagfile_information']
        names = [PurePath(name).name for name in information['relative_file_paths']]
        promised = information['message_count']
        if not isinstance(promised, int):
            raise TypeError(f'message_count is {promised!r}')
    except (ConfigurationError, LookupError, TypeError) as error:
        notes.append(finding('metadata_damaged', reason=str(error)))
        return files, 0
    there = {file.name: file for file in files}
    if missing := [name for name in names if name not in there]:
        notes.append(finding('files_missing', files=missing))
    return [there[name] for name in names if name in there] or files, promised


def _reader_of(
    path: Path, notes: list[Finding], options: ReadOptions, stack: contextlib.ExitStack
) -> Any:
    """
    Return what reads a file, by its first bytes, not opened yet; of a table its joint states.

    What is compressed is unpacked until `stack` is closed.
    """
    if path.suffix == '.zstd':
        target = Path(stack.enter_context(tempfile.TemporaryDirectory()), path.stem)
        unpack_file(path, target)
        path = target
    start = b''
    if not path.is_dir():
        with open_regular(path) as stream, damage_errors(path, REPAIR):
            start = stream.read(16)
        if not start:
            raise RecordingError(f"'{path}' is empty: the recorder died at once; record again")
    if start.startswith(_SQLITE):
        wal = path.with_name(f'{path.name}-wal')
        if wal.exists() and wal.stat().st_size:
            notes.append(finding('write_ahead_log', file=wal.name, database=path.name))
        from .foreign import SqliteReader

        return SqliteReader(path)
    if start.startswith(ZSTD):
        raise RecordingError(f"'{path}' is compressed: rename it to '{path.name}.zstd'")
    if start.startswith(b'#ROSBAG'):
        from .foreign import Ros1Reader

        return Ros1Reader(path)
    if start.startswith(MAGIC):
        return McapReader(path)
    # What reads tables takes as long to import as a bag to inspect.
    from ..formats.open_table import open_table

    if (table := open_table(path, options)) is not None:
        return table
    if path.suffix in SUFFIXES:
        raise RecordingError(f"'{path}' is no {path.suffix} file inside: export it again")
    raise RecordingError(
        f"'{path}' is neither MCAP nor SQLite, nor a table by its name: give a bag or one of "
        f'{", ".join(SUFFIXES)}'
    )
