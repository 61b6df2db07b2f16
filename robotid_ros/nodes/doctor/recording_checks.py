"""Whether there is room for recordings."""

from collections.abc import Iterator
from pathlib import Path
import shutil

from ...core.finding_codes import finding
from ...core.findings import Finding, Severity
from ...exceptions import FileError
from ...files.atomic import expect_writable
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
    disk = snapshot.disk
    if disk is None:
        return
    if disk.obstacle:
        yield finding('not_writable', reason=disk.obstacle)
        return
    severity = Severity.OK
    if disk.free < ENOUGH_SPACE:
        severity = Severity.ERROR if disk.free < LEAST_SPACE else Severity.WARNING
    setting = 'recorder.folder' if severity else None
    space = finding('disk_space', free=disk.free / 1e9, folder=disk.folder, setting=setting)
    yield space.at(severity)
