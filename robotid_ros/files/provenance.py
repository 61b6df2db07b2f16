"""What computed a result: versions of Python and packages."""

from importlib.metadata import PackageNotFoundError, version
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
