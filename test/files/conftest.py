"""Ground for the tests of files."""

import os
from pathlib import Path
import subprocess

import pytest

DATASETS = Path(__file__).resolve().parents[3] / 'shared' / 'datasets'


@pytest.fixture
def datasets() -> Path:
    """Measured data that is not part of the project."""
    if not DATASETS.is_dir():
        pytest.skip(f'no measured data at {DATASETS}')
    return DATASETS


@pytest.fixture
def tiny_disk(tmp_path):
    """Mount a disk of 1 MB."""
    folder = tmp_path / 'disk'
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip('mounting a small disk needs root')
    command = ['mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f'no small disk can be mounted: {done.stderr.strip()}')
    yield folder
    subprocess.run(['umount', '-l', str(folder)], check=True)
