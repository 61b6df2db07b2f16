"""Recordings that were cut short or damaged, made whole again as far as they can be."""

import os
from pathlib import Path
import shutil
import stat
import tempfile

from ...core.findings import Finding
from ...exceptions import RecordingError
from ..atomic import file_errors
from .mcap_reader import is_mcap, McapReader, MESSAGE
from .mcap_writer import McapFile


def repair_bag(path: str | Path) -> tuple[Finding, ...]:
    """
    Give a recording that was cut short its index, footer and `metadata.yaml`.

    Damaged chunks are left out. A whole copy is written first and then takes the place of the
    file, so that nothing is lost when this fails half-way; permissions are kept. A sound recording
    is left alone.

    Parameters
    ----------
    path : recording folder with one .mcap file, or such a file

    Returns
    -------
    What could not be read and is left out, in words.

    Raises
    ------
    RecordingError : not a recording of one MCAP file
    FileError : no space for the copy

    """
    path = Path(path)
    files = sorted(path.glob('*.mcap')) if path.is_dir() else [path]
    if len(files) != 1 or not is_mcap(files[0]):
        raise RecordingError(f"'{path}' is not a recording of one MCAP file: give its folder")
    reader = McapReader(files[0])
    reader.open()
    for _ in reader.blocks(reader.channels):
        pass  # only what was read is known to be sound
    described = not path.is_dir() or (path / 'metadata.yaml').exists()
    if reader.finished and described and not reader.lost:
        return ()
    mode = stat.S_IMODE(files[0].stat().st_mode)
    with file_errors(path):
        folder = Path(tempfile.mkdtemp(prefix='.repair-', dir=files[0].parent))
    try:
        copy = _copy(reader, folder / files[0].name)
        with file_errors(path):
            copy.path.chmod(mode)
            os.replace(copy.path, files[0])
        if path.is_dir():
            copy.write_metadata(path / 'metadata.yaml')
            (path / 'metadata.yaml').chmod(mode)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return reader.notes


def _copy(reader: McapReader, target: Path) -> McapFile:
    """Write what can be read of a file into a finished one."""
    copy = McapFile(target)
    try:
        channels = {
            number: copy.add_channel(
                channel.topic, schema.name, (schema.encoding, schema.data), channel.metadata
            )
            for number, (channel, schema) in reader.channels.items()
            if schema
        }
        for block in reader.blocks(channels):
            for start, data in zip(block.starts.tolist(), block.payloads(), strict=True):
                head = MESSAGE.unpack_from(block.data, start - MESSAGE.size)
                channel, sequence, received, published = head
                copy.write(channels[channel], data, received, published, sequence)
        copy.finish()
    except BaseException:
        copy.abandon()
        raise
    return copy
