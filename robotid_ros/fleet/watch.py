"""Recordings that arrive in a folder, each when it is complete."""

from collections.abc import Callable, Iterator
from pathlib import Path

from ..exceptions import FileError
from .sources import bags_below, Source

# A recording is complete when nothing of it has changed from one look to the next.
State = tuple[tuple[str, int, int], ...]


def arrivals(folder: Path, wait: Callable[[float], None], every: float) -> Iterator[list[Source]]:
    """
    Yield the recordings that are complete and were not yielded as they are now, endlessly.

    Parameters
    ----------
    folder : where they arrive, at any depth; their robots are the folders that they are in
    wait : lets so many seconds pass
    every : time between two looks [s]

    Raises
    ------
    FileError : there is no such folder

    """
    if not folder.is_dir():
        raise FileError(f"there is no folder '{folder}' to watch: make it, or name another")
    seen: dict[Path, State] = {}
    given: dict[Path, State] = {}
    while True:
        now = {bag: _state(bag) for bag in bags_below(folder.absolute()) if bag != folder}
        ready = [b for b, state in now.items() if seen.get(b) == state and given.get(b) != state]
        seen = now
        given |= {bag: now[bag] for bag in ready}
        if ready:
            yield [Source(str(bag), bag.parent.name) for bag in ready]
        wait(every)


def _state(bag: Path) -> State:
    """Return name, size and time of change of the files of a recording."""
    files = sorted(bag.rglob('*')) if bag.is_dir() else [bag]
    found = []
    for file in files:
        try:
            stat = file.stat()
        except FileNotFoundError:
            continue  # renamed between two looks
        found.append((file.name, stat.st_size, stat.st_mtime_ns))
    return tuple(found)
