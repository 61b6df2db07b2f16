"""Where the recordings of a fleet are, and which robot each is of."""

from collections.abc import Iterator, Sequence
import csv
import dataclasses
from datetime import datetime, timezone
import glob
import io
import math
from pathlib import Path

from ..exceptions import ConfigurationError, RecordingError
from ..files.atomic import read_text
from ..files.formats.read_options import BAG_SUFFIXES

COLUMNS = ('source', 'robot', 'type', 'time', 'tags', 'temperature')


@dataclasses.dataclass(frozen=True)
class Source:
    """A recording and its labels."""

    location: str
    robot: str
    type: str = ''  # of the robot; empty: that of the only configuration
    time: str = ''  # when it was recorded, ISO 8601; empty: as its stamps say
    tags: tuple[str, ...] = ()
    temperature: float | None = None  # [°C]

    @property
    def labels(self) -> str:
        """All but the location, as text."""
        return repr((self.robot, self.type, self.time, self.tags, self.temperature))


def find_sources(places: Sequence[str], manifest: str | None = None) -> list[Source]:
    """
    Find recordings, each once and sorted; where no manifest names the robot, it is the folder.

    Places are bags, folders that hold any at any depth, and patterns; the manifest is a CSV file
    with the column `source`, a path from its folder, and any of `robot`, `type`, `time`, `tags`
    (words) and `temperature` [°C].
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
    rows = list(csv.DictReader(io.StringIO(read_text(manifest))))
    unknown = set().union(*rows) - set(COLUMNS) if rows else set()
    if not rows or 'source' not in rows[0] or unknown:
        raise ConfigurationError(
            f"'{manifest}' must be a table with the column source, and of {', '.join(COLUMNS[1:])}"
            f' those that are known{"; not " + ", ".join(sorted(unknown)) if unknown else ""}'
        )
    folder = Path(manifest).absolute().parent
    for row in rows:
        location = str(folder / row['source'])
        yield Source(
            location,
            row.get('robot') or _folder(location),
            row.get('type') or '',
            _time(row.get('time'), manifest),
            tuple((row.get('tags') or '').replace(',', ' ').split()),
            _temperature(row.get('temperature'), manifest),
        )


def _time(value: str | None, manifest: str) -> str:
    if not value:
        return ''
    try:
        time = datetime.fromisoformat(value)
    except ValueError as error:
        raise ConfigurationError(
            f"'{manifest}' has the time '{value}': write 2026-01-31 or 2026-01-31T08:30:00+00:00"
        ) from error
    return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).isoformat()


def _temperature(value: str | None, manifest: str) -> float | None:
    if not value:
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigurationError(f"'{manifest}' has the temperature '{value}': write a number")
    return number
