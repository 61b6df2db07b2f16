"""Atomic files: written under another name in the same folder, then renamed."""

from collections.abc import Iterable, Iterator
import contextlib
import errno
import itertools
import os
from pathlib import Path
import re
import shutil
import stat
import tempfile
from typing import BinaryIO

from ..exceptions import FileError, reason_of_system

# What Git keeps in a clone in place of a large file, until it is asked for that.
LFS_POINTER = b'version https://git-lfs'
# Of configurations, descriptions and results [bytes]; the largest that are known have 2 MB.
MAX_TEXT = 32 << 20


def write_text(path: str | Path, text: str, *, overwrite: bool = True) -> Path:
    """Write `text` as UTF-8, what has none of it escaped; see `write_bytes`."""
    return write_bytes(path, text.encode(errors='backslashreplace'), overwrite=overwrite)


def write_bytes(path: str | Path, data: bytes, *, overwrite: bool = True) -> Path:
    """Write a file; see `open_atomic`."""
    with open_atomic(path, overwrite=overwrite) as stream:
        stream.write(data)
    return Path(path)


@contextlib.contextmanager
def open_atomic(path: str | Path, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """
    Write a file whole or not at all, also when the disk fills up or the process dies.

    Missing folders are made, the permissions of a file that is replaced are kept. Yields a stream
    whose content gets the name when the context ends. Raises FileError where the file exists and
    may not be replaced, the disk is full or permission is missing.
    """
    path = Path(path)
    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f'.{path.name}.', dir=path.parent)
        try:
            with os.fdopen(handle, 'wb') as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
            with contextlib.suppress(FileNotFoundError):  # else that of the file that is replaced
                mode = path.stat().st_mode & 0o777
            os.chmod(name, mode)
            # A link fails when the name is taken, where a rename would replace.
            (os.replace if overwrite else os.link)(name, path)
        finally:
            Path(name).unlink(missing_ok=True)
        # Some network file systems cannot sync a folder; the file itself is on disk by now.
        with contextlib.suppress(OSError):
            descriptor = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def expect_writable(folder: str | Path, size: int = 0) -> int:
    """Return the free bytes of a folder, which may be missing; FileError: fewer than `size`."""
    folder = Path(folder).absolute()
    with file_errors(folder):
        there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        raise FileError(f"'{there}' is a file, not a folder: name another one")
    if not os.access(there, os.W_OK | os.X_OK):
        raise FileError(f"'{there}' may not be written to: name another folder")
    with file_errors(there):
        free = shutil.disk_usage(there).free
    if free < size:
        raise FileError(
            f"'{there}' has {free >> 20} MB left of {size >> 20} MB that are needed: free some, "
            'or name another folder'
        )
    return free


def make_new_folder(path: str | Path) -> Path:
    """Make a new folder of this name, or with the next free number behind it; or FileError."""
    path = Path(path)
    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in new_names(path):
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                break
    return folder


def beside_recording(recording: str | Path, ending: str) -> Path:
    """Return a path beside a recording: its name, without a suffix, and an ending."""
    path = Path(recording).absolute()
    name = path.stem if path.is_file() else path.name
    return path.with_name(f'{name}_{ending}' if ending else name)


def is_below(path: Path, folders: Iterable[str | Path]) -> bool:
    """Whether a path, which is resolved, is below one of these folders, links followed."""
    allowed = (Path(folder).expanduser().resolve() for folder in folders)
    return any(folder in path.parents for folder in allowed)


def new_names(path: Path) -> Iterator[Path]:
    """Yield names that a new file or folder may get where others are: x.yaml, x_2.yaml, …."""
    yield path
    stem, suffix = (path.stem, path.suffix) if path.is_file() else (path.name, '')
    yield from (path.with_name(f'{stem}_{number}{suffix}') for number in itertools.count(2))


@contextlib.contextmanager
def file_errors(path: str | Path) -> Iterator[None]:
    """Turn an `OSError` on `path` into a `FileError` of one sentence."""
    try:
        yield
    except FileError:
        raise
    except FileExistsError as error:
        raise FileError(f"'{path}' exists already: choose another name or remove it") from error
    except OSError as error:
        hint = nearest_file(path) if error.errno in (errno.ENOENT, errno.ELOOP) else ''
        raise FileError(f"cannot access '{path}': {reason_of_system(error)}{hint}") from error


def nearest_file(path: str | Path) -> str:
    """Ask whether a file beside a missing one was meant; empty where none is like it."""
    if Path(path).exists():
        return ''
    if re.match(r'[a-z]{2,}:/', str(path)):
        return ': it is an address; download it, and give the file'
    if Path(path).is_symlink():
        return ': it is a link to a file that is missing; correct it'
    import difflib  # here: most files are there

    with contextlib.suppress(OSError):
        beside = [each.name for each in Path(path).parent.iterdir()]
        nearest = difflib.get_close_matches(Path(path).name, beside, 1, 0.7)
        return f"; did you mean '{Path(path).with_name(nearest[0])}'?" if nearest else ''
    return ''


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file for reading, as devices and pipes may never end; else FileError."""
    with file_errors(path):
        # Without waiting for someone to write to a pipe.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, 'O_BINARY', 0))
        mode = os.fstat(handle).st_mode
        if stat.S_ISREG(mode):
            stream = os.fdopen(handle, 'rb')
            if stream.peek(len(LFS_POINTER)).startswith(LFS_POINTER):
                stream.close()
                raise FileError(
                    f"'{path}' is a pointer to a file in Git LFS: run 'git lfs pull' beside it"
                )
            return stream
        os.close(handle)
    kind = 'a folder' if stat.S_ISDIR(mode) else 'a device or a pipe'
    raise FileError(f"'{path}' is {kind}, not a regular file: give a file")


def read_text(path: str | Path) -> str:
    """Read a text file; FileError: missing, not readable, not regular, too large, not UTF-8."""
    with open_regular(path) as stream, file_errors(path):
        data = stream.read(MAX_TEXT + 1)
    if len(data) > MAX_TEXT:
        raise FileError(f"'{path}' has more than {MAX_TEXT >> 20} MB: give the right file")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FileError(f"'{path}' is not a text file: give the right file") from error
