"""Whether there is room for recordings."""

from collections.abc import Iterator
from pathlib import Path
import shutil

from ...exceptions import FileError
from ...files.atomic import expect_writable
from .findings import error, Finding, Severity
from .graph_snapshot import Disk, GraphSnapshot

# A minute of seven joints at 1 kHz, with the controller's states, takes about 60 MB: room for
# a session, and for a day of them [B].
LEAST_SPACE, ENOUGH_SPACE = 200e6, 2e9


def look_at_disk(folder: str) -> Disk:
    """Look whether a folder, which may be missing yet, can be written to."""
    path = Path(folder).expanduser().absolute()
    try:
        expect_writable(path)
        there = next(part for part in (path, *path.parents) if part.exists())
        return Disk(str(path), '', shutil.disk_usage(there).free)
    except (FileError, OSError) as error:
        return Disk(str(path), str(error).rpartition(': ')[0] or str(error))


def disk_findings(snapshot: GraphSnapshot) -> Iterator[Finding]:
    """Check the folder of the recorder, should it run on this machine."""
    disk, remedy = snapshot.disk, 'set recorder.folder to another one'
    if disk is None:
        return
    if disk.obstacle:
        yield error('disk', f'no recording can be written: {disk.obstacle}', remedy)
        return
    severity = Severity.OK
    if disk.free < ENOUGH_SPACE:
        severity = Severity.ERROR if disk.free < LEAST_SPACE else Severity.WARNING
    sentence = f"{disk.free / 1e9:.1f} GB are free for '{disk.folder}'"
    yield Finding(severity, 'disk', sentence, f'make room, or {remedy}' if severity else '')
