"""Files behind a URL, read in parts as they are needed: http, S3 and what else fsspec knows."""

from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import hashlib
import os
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast

from ..exceptions import FileError

# Read ahead of what is asked for [bytes]: the heads of a few records, small beside a chunk.
READ_AHEAD = 1 << 18


def is_url(text: str) -> bool:
    """Return whether a text is a URL and not a path."""
    return '://' in text


@contextlib.contextmanager
def _remote_errors(url: str) -> Iterator[None]:
    """Turn what file systems raise into one sentence."""
    try:
        yield
    except FileError:
        raise
    except (ImportError, ValueError) as error:  # fsspec's for a protocol that it does not know
        raise FileError(
            f"'{url}' needs a package that is not here ({error}): pip install "
            "'robotid_ros[fleet]', for s3:// s3fs too"
        ) from error
    except Exception as error:  # each file system has errors of its own
        raise FileError(
            f"'{url}' cannot be read ({str(error) or type(error).__name__}): check address and "
            'access'
        ) from error


def _file_system(url: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    return url_to_fs(url)


@dataclasses.dataclass(frozen=True)
class RemoteFile:
    """A file behind a URL, with what readers of recordings ask of a path."""

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """Its last part."""
        return PurePosixPath(self.url.split('?')[0]).name

    @property
    def suffix(self) -> str:
        """The ending of its name."""
        return PurePosixPath(self.name).suffix

    def stat(self) -> os.stat_result:
        """
        Return its size; all else is zero.

        Raises
        ------
        FileError : it cannot be reached

        """
        return os.stat_result((0, 0, 0, 0, 0, 0, int(self._info().get('size') or 0), 0, 0, 0))

    def open(self) -> BinaryIO:
        """
        Open it; what is read is asked for by range.

        Raises
        ------
        FileError : it cannot be reached, or its server only sends whole files

        """
        with _remote_errors(self.url):
            system, path = _file_system(self.url)
            stream = system.open(path, 'rb', block_size=READ_AHEAD, cache_type='readahead')
            if not stream.seekable() or not _sends_parts(stream):
                raise FileError(
                    f"the server of '{self.url}' sends no parts of files: copy the file here"
                )
            return cast(BinaryIO, stream)

    def fingerprint(self) -> str:
        """
        Return a hash that changes with its content: of what the server says, else of all bytes.

        Raises
        ------
        FileError : it cannot be reached

        """
        info = self._info()
        known = [str(info[key]) for key in ('ETag', 'etag') if info.get(key)]
        if known:
            return hashlib.sha256(f'{known[0]} {info.get("size")}'.encode()).hexdigest()
        with self.open() as stream, _remote_errors(self.url):
            return hash_of(stream)

    def _info(self) -> dict[str, Any]:
        with _remote_errors(self.url):
            system, path = _file_system(self.url)
            return dict(system.info(path))


def _sends_parts(stream: Any) -> bool:
    """Ask for the last byte: a server that only sends whole files says so nowhere."""
    if stream.size > READ_AHEAD:
        stream.seek(stream.size - 1)
        try:
            stream.read(1)
        except ValueError:  # fsspec's
            return False
        stream.seek(0)
    return True


def remote_files(url: str, suffixes: Sequence[str]) -> list[str]:
    """
    Return the URLs that a URL stands for: of a pattern or a folder, the files of these suffixes.

    Raises
    ------
    FileError : it cannot be reached

    """
    if PurePosixPath(url.split('?')[0]).suffix in suffixes and '*' not in url:
        return [url]
    with _remote_errors(url):
        system, path = _file_system(url)
        found = system.glob(path) if '*' in path else system.find(path)
        names = [name for name in sorted(found) if PurePosixPath(name).suffix in suffixes]
        return [str(system.unstrip_protocol(name)) for name in names]


def hash_of(stream: BinaryIO) -> str:
    """Return the SHA-256 of all that is left in a stream."""
    digest = hashlib.sha256()
    while block := stream.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()
