"""Where the recordings of a fleet are or arrive, and which robot each is of."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import csv
import dataclasses
from datetime import datetime, timezone
import glob
import io
import math
from pathlib import Path
from typing import Any

from ..exceptions import ConfigurationError, FileError, RecordingError
from ..files.atomic import read_text
from ..files.formats.read_options import BAG_SUFFIXES
from ..files.formats.table import optional_package
from ..files.remote_file import is_url, remote_files, RemoteFile

COLUMNS = ('source', 'robot', 'type', 'time', 'tags', 'temperature')


@dataclasses.dataclass(frozen=True)
class Source:
    """
    A recording and its labels.

    Attributes
    ----------
    location : path or URL
    robot : whose it is
    type : of the robot; empty: that of the only configuration
    time : when it was recorded, ISO 8601; empty: as its stamps say
    tags : words
    temperature : [°C], or None

    """

    location: str
    robot: str
    type: str = ''
    time: str = ''
    tags: tuple[str, ...] = ()
    temperature: float | None = None

    @property
    def labels(self) -> str:
        """All but the location, as text."""
        return repr((self.robot, self.type, self.time, self.tags, self.temperature))


def find_sources(places: Sequence[str], manifest: str | None = None) -> list[Source]:
    """
    Find recordings, each once and sorted; where no manifest names the robot, it is the folder.

    Parameters
    ----------
    places : bags, folders that hold any at any depth, patterns, URLs
    manifest : CSV or Parquet file with the columns `source` and, each optional, `robot`, `type`,
        `time`, `tags` (words) and `temperature` [°C]; sources are URLs, or paths from its folder

    """
    found = {source.location: source for source in _read_manifest(manifest)}
    for place in places:
        for location in _expand(place):
            found.setdefault(location, Source(location, _folder(location)))
    if not found:
        raise RecordingError('there is no recording in what was given: name bags or folders')
    return [found[location] for location in sorted(found)]


def _folder(location: str) -> str:
    """Return the name of the folder that a recording is in."""
    return location.rstrip('/').split('/')[-2] if '/' in location.rstrip('/') else 'robot'


def _expand(place: str) -> Iterator[str]:
    if is_url(place):
        yield from remote_files(place, BAG_SUFFIXES)
        return
    paths = [Path(p) for p in sorted(glob.glob(place, recursive=True))] or [Path(place)]
    for path in paths:
        path = path.absolute()
        if not path.exists():
            raise RecordingError(f"there is no recording at '{place}': name a bag or a folder")
        yield from map(str, bags_below(path) if path.is_dir() else [path])


def bags_below(folder: Path) -> list[Path]:
    """Return the folder if it is a recording, else the recordings in it, at any depth."""
    files = [file for file in folder.iterdir() if file.suffix in BAG_SUFFIXES]
    if files and (folder / 'metadata.yaml').exists():
        return [folder]
    inside = [
        bag for each in sorted(folder.iterdir()) if each.is_dir() for bag in bags_below(each)
    ]
    # A recorder that was killed left no metadata.yaml: one file named as its folder is a bag.
    if len(files) == 1 and not inside and files[0].stem.startswith(folder.name):
        return [folder]
    return sorted([*files, *inside])


def _read_manifest(manifest: str | None) -> Iterator[Source]:
    if manifest is None:
        return
    rows = _manifest_rows(manifest)
    unknown = set().union(*rows) - set(COLUMNS) if rows else set()
    if not rows or 'source' not in rows[0] or unknown:
        raise ConfigurationError(
            f"'{manifest}' must be a table with the column source, and of {', '.join(COLUMNS[1:])}"
            f' those that are known{"; not " + ", ".join(sorted(unknown)) if unknown else ""}'
        )
    folder = (
        manifest.rpartition('/')[0] if is_url(manifest) else str(Path(manifest).absolute().parent)
    )
    for row in rows:
        text, tags = str(row['source']), row.get('tags') or ''
        location = text if is_url(text) or text.startswith('/') else f'{folder}/{text}'
        yield Source(
            location,
            str(row.get('robot') or _folder(location)),
            str(row.get('type') or ''),
            _time(row.get('time'), manifest),
            tuple(tags if isinstance(tags, list) else str(tags).replace(',', ' ').split()),
            _temperature(row.get('temperature'), manifest),
        )


def _manifest_rows(manifest: str) -> list[Mapping[str, Any]]:
    if manifest.endswith('.parquet'):
        parquet = optional_package('pyarrow.parquet', manifest)
        with RemoteFile(manifest).open() if is_url(manifest) else open(manifest, 'rb') as stream:
            return list(parquet.read_table(stream).to_pylist())
    if is_url(manifest):
        with RemoteFile(manifest).open() as stream:
            text = stream.read().decode()
    else:
        text = read_text(manifest)
    return list(csv.DictReader(io.StringIO(text)))


def _time(value: Any, manifest: str) -> str:
    if value in (None, ''):
        return ''
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError as error:
        raise ConfigurationError(
            f"'{manifest}' has the time '{value}': write 2026-01-31 or 2026-01-31T08:30:00+00:00"
        ) from error
    return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).isoformat()


def _temperature(value: Any, manifest: str) -> float | None:
    if value in (None, ''):
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigurationError(f"'{manifest}' has the temperature '{value}': write a number")
    return number


def arrivals(folder: Path, wait: Callable[[float], None], every: float) -> Iterator[list[Source]]:
    """
    Yield the recordings that are complete and were not yielded as they are now, endlessly.

    A recording is complete when nothing of it has changed from one look to the next; `wait` lets
    the seconds between them pass. It may arrive at any depth, its robot is the folder it is in.
    """
    if not folder.is_dir():
        raise FileError(f"there is no folder '{folder}' to watch: make it, or name another")
    seen: dict[Path, list[tuple[str, int, int]]] = {}
    given: dict[Path, list[tuple[str, int, int]]] = {}
    while True:
        now = {bag: _state(bag) for bag in bags_below(folder.absolute()) if bag != folder}
        ready = [b for b, state in now.items() if seen.get(b) == state and given.get(b) != state]
        seen = now
        given |= {bag: now[bag] for bag in ready}
        if ready:
            yield [Source(str(bag), bag.parent.name) for bag in ready]
        wait(every)


def _state(bag: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of change of the files of a recording."""
    files = sorted(bag.rglob('*')) if bag.is_dir() else [bag]
    found = []
    for file in files:
        try:
            stat = file.stat()
        except FileNotFoundError:
            continue  # renamed between two looks
        found.append((file.name, stat.st_size, stat.st_mtime_ns))
    return found
