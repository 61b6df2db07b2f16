"""Whether a bag that was closed holds what was written to it."""

from collections.abc import Mapping
from pathlib import Path

from ...core.finding_codes import render
from ...exceptions import FileError, RecordingError
from ...files.bags.opening import open_bag


def check_bag(path: Path, written: Mapping[str, int]) -> None:
    """
    Open a bag as whoever uses it will do, and count.

    Parameters
    ----------
    path : of the bag
    written : number of messages by topic

    Raises
    ------
    FileError : it cannot be read, or messages are missing

    """
    if not any(written.values()):
        return
    try:
        with open_bag(path) as bag:
            found, notes = {topic: bag.count(topic) for topic in written}, bag.notes
    except RecordingError as error:
        raise FileError(f'what was recorded cannot be read: {error}') from error
    if found != written or notes:
        said = ''.join(f' {render(note)}' for note in notes)
        raise FileError(
            f"'{path}' holds {sum(found.values())} of the {sum(written.values())} messages that "
            f'were written: check the disk, and record again.{said}'
        )
