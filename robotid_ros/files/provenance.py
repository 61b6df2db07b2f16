"""What computed a result, and from what: versions of packages, hash of the recording."""

from collections.abc import Sequence
import hashlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
import platform

PACKAGES = ('robotid_ros', 'numpy', 'scipy', 'pin', 'rosbags', 'mcap')


def versions() -> dict[str, str]:
    """Versions of what computed a result."""
    found = {'python': platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def hash_of_recording(source: str) -> str:
    """
    Return the SHA-256 of a recording's file; '' where it is no file of ours to read.

    That of a folder is the one of its files' names and contents, in the order of the names.
    """
    path = Path(source)
    try:
        if path.is_file():
            return _digest([path], named=False)
        if source and path.is_dir():
            files = sorted(file for file in path.rglob('*') if file.is_file())
            return _digest(files, named=True)
    except OSError:
        pass
    return ''


def _digest(files: Sequence[Path], named: bool) -> str:
    digest = hashlib.sha256()
    for file in files:
        if named:
            digest.update(file.name.encode(errors='surrogateescape') + b'\0')
        with file.open('rb') as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
