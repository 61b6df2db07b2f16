"""What computed a result, and from what: versions of packages, hash of the recording."""

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
    """Return the SHA-256 of a file, or of the sorted files of a folder; '' where there is none."""
    path, digest = Path(source), hashlib.sha256()
    try:
        folder = bool(source) and path.is_dir()
        if not folder and not path.is_file():
            return ''
        files = (file for file in path.rglob('*') if file.is_file()) if folder else (path,)
        for file in sorted(files):
            if folder:
                digest.update(file.name.encode(errors='surrogateescape') + b'\0')
            with file.open('rb') as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
    except OSError:
        return ''
    return digest.hexdigest()
