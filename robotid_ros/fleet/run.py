"""
A run over a fleet: its recordings, the workers, and what is missing in the store.

Workers are those of Dask on this machine or behind the address of a scheduler; who started them
replaces those that die, and their bags go to others.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import csv
import dataclasses
from datetime import datetime, timezone
from functools import lru_cache
import glob
import hashlib
import io
import itertools
from pathlib import Path
from typing import Any, NamedTuple

from ..exceptions import ConfigurationError, RecordingError, RobotIdError
from ..files.atomic import read_text
from ..files.bags.storage import data_files
from ..files.formats.read_options import BAG_SUFFIXES
from ..files.provenance import hash_of_recording, versions
from ..node_settings import FleetSettings
from .session import FleetModel, identify_session, LOST, Row, without_result
from .store import FORMAT, SESSIONS, Store

COLUMNS = ('source', 'robot', 'type', 'time', 'tags')
RETIRED = 'temperature'  # of manifests of before, which nothing uses


@dataclasses.dataclass(frozen=True)
class Source:
    """A recording and its labels."""

    location: str
    robot: str
    type: str = ''  # of the robot; empty: that of the only configuration
    time: str = ''  # when it was recorded, ISO 8601; empty: as its stamps say
    tags: tuple[str, ...] = ()


def find_sources(places: Sequence[str], manifest: str | None = None) -> list[Source]:
    """
    Find recordings, each once and sorted; where no manifest names the robot, it is the folder.

    Places are bags, folders that hold any at any depth, and patterns; the manifest is a CSV file
    with the column `source`, a path from its folder, and any of `robot`, `type`, `time` and `tags`
    (words).
    """
    found = {source.location: source for source in _read_manifest(manifest)} if manifest else {}
    for place in places:
        for name in sorted(glob.glob(place, recursive=True)) or [place]:
            path = Path(name).absolute()
            if not path.exists():
                raise RecordingError(f"there is no recording at '{place}': name a bag or a folder")
            for bag in bags_below(path) if path.is_dir() else [path]:
                found.setdefault(str(bag), Source(str(bag), bag.parent.name))
    if not found:
        raise RecordingError(
            'there is no recording in what was given: name bags, folders of bags, or tables by a '
            'pattern such as recordings/*/*.csv'
        )
    return [found[location] for location in sorted(found)]


def bags_below(folder: Path) -> list[Path]:
    """Return the folder if it is a recording, else the recordings in it, at any depth."""
    there = sorted(folder.iterdir())
    files = [file for file in there if file.suffix in BAG_SUFFIXES]
    if files and (folder / 'metadata.yaml').exists():
        return [folder]
    inside = [bag for each in there if each.is_dir() for bag in bags_below(each)]
    # A recorder that was killed left no metadata.yaml: one file named as its folder is a bag.
    if len(files) == 1 and not inside and files[0].stem.startswith(folder.name):
        return [folder]
    return sorted([*files, *inside])


def _read_manifest(manifest: str) -> Iterator[Source]:
    rows = list(csv.DictReader(io.StringIO(read_text(manifest))))
    unknown = set().union(*rows) - {*COLUMNS, RETIRED} if rows else set()
    if not rows or 'source' not in rows[0] or unknown:
        raise ConfigurationError(
            f"'{manifest}' must be a table with the column source, and of {', '.join(COLUMNS[1:])}"
            f' those that are known{"; not " + ", ".join(sorted(unknown)) if unknown else ""}'
        )
    for row in rows:
        bag, given = Path(manifest).absolute().parent / row['source'], row.get('time') or ''
        try:
            time = datetime.fromisoformat(given) if given else None
        except ValueError as error:
            raise ConfigurationError(
                f"'{manifest}' has no time of {row['source']} ({error}): write 2026-01-31 or "
                '2026-01-31T08:30:00+00:00'
            ) from error
        if time is not None and time.tzinfo is None:
            time = time.replace(tzinfo=timezone.utc)
        yield Source(
            str(bag),
            row.get('robot') or bag.parent.name,
            row.get('type') or '',
            '' if time is None else time.isoformat(),
            tuple((row.get('tags') or '').replace(',', ' ').split()),
        )


FIRST_WORKER = 120.0  # longest waits for a scheduler and the first of its workers [s]
WAITING = 3  # bags handed out per worker at a time, those it works on included
# Of Dask on this machine: workers that may have children; and nothing that looks every few
# milliseconds how the time is spent, which on two cores is a tenth of it.
LOCAL = {
    'distributed.worker.daemon': False,
    'distributed.worker.profile.enabled': False,
    'distributed.admin.tick.interval': '1s',
}


class EngineError(RobotIdError, RuntimeError):
    """Dask is not installed, or its scheduler is gone."""


class Job(NamedTuple):
    """A call of a function that makes a row, the row's key, and what it is about."""

    key: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    about: Any = None


class Engine(contextlib.ExitStack):
    """Workers of this machine, or of the scheduler at an address, until the context ends."""

    def __init__(self, settings: FleetSettings, scheduler: str = ''):
        super().__init__()
        try:
            import dask
            import distributed
        except ImportError as error:
            raise EngineError(
                f"a fleet needs Dask ({error}): pip install 'robotid_ros[fleet]'"
            ) from error
        self._distributed, target = distributed, scheduler
        try:
            if not scheduler:
                dask.config.set(LOCAL)
                target = distributed.LocalCluster(
                    n_workers=settings.workers or None,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=int(settings.memory * 1e9),
                    dashboard_address=':0',
                    silence_logs=50,
                )
                self.callback(target.close)
            # Workers here can be reached: what they found need not go through the scheduler.
            direct = None if scheduler else True
            self.client: Any = distributed.Client(
                target, set_as_default=False, timeout=FIRST_WORKER, direct_to_workers=direct
            )
            self.callback(self.client.close)
            self.client.wait_for_workers(1, timeout=FIRST_WORKER)
        except (OSError, TimeoutError, RuntimeError) as error:
            self.close()
            where = f"scheduler at '{scheduler}'" if scheduler else 'cluster on this machine'
            raise EngineError(f'no {where} with workers answers ({error}): start one') from error

    def run(self, jobs: Iterator[Job]) -> Iterator[tuple[Job, Any]]:
        """Yield jobs with their rows, few at once; EngineError: the scheduler is gone."""
        waiting = dict[Any, Job]()
        done = self._distributed.as_completed(loop=self.client.loop, raise_errors=False)
        killed = self._distributed.scheduler.KilledWorker
        gone = (self._distributed.client.FutureCancelledError, OSError, RuntimeError)
        while True:
            try:
                room = max(1, sum(self.client.nthreads().values())) * WAITING
                for job in itertools.islice(jobs, max(0, room - len(waiting))):
                    key = f'{job.function.__name__}-{job.key}'
                    future = self.client.submit(job.function, *job.arguments, key=key)
                    waiting[future.key] = job
                    done.add(future)
                if not waiting:
                    return
                future = next(done)
                error = future.exception()
                row = future.result() if error is None else {}
            except gone as ended:
                raise EngineError(
                    'the scheduler ended: start it and run again, finished sessions are kept'
                ) from ended
            job = waiting.pop(future.key)
            if isinstance(error, killed):
                reason = 'its workers died: it may need more memory than fleet.memory'
                row = without_result(LOST, reason)
            elif error is not None:
                row = without_result(LOST, f'{type(error).__name__}: {error}')
            yield job, row


# Called with how many bags are done, how many there are, and how many of the done failed.
Progress = Callable[[int, int, int], None]


@lru_cache
def version() -> str:
    """Return what a row is made by: version of the package and format of the store."""
    return f'{versions().get("robotid_ros", "unknown")}/{FORMAT}'


class Run:
    """
    One run into a store, with the models of each type.

    `counts` are of the bags of this run by status, 'kept' those that were there before; `reasons`
    of the bags that failed or were lost, by location.
    """

    def __init__(
        self, store: Store, models: Mapping[str, FleetModel], progress: Progress | None = None
    ):
        self.store, self.models, self._progress, self._total = store, models, progress, 0
        self.counts, self.reasons, self._plan = Counter[str](), dict[str, str](), dict[str, str]()

    def work(self, sources: Sequence[Source], engine: Engine) -> None:
        """Add the sessions of sources that are not there yet."""
        for source in sources:
            self._model_of(source)
        for model in self.models.values():
            self.store.add_model(model)
        rows = self.store.rows(SESSIONS, ('key', 'status'))
        there = {row['key'] for row in rows if row['status'] != LOST}
        self._total += len(sources)
        try:
            for job, found in engine.run(self._jobs(sources, there)):
                source, columns = job.about
                self._add(source, columns, found)
        finally:
            # A client that is killed before plans what it has kept in its next run.
            if self._plan:
                self.store.add_plan(self._plan)
                self._plan = {}

    def _model_of(self, source: Source) -> FleetModel:
        if not source.type and len(self.models) == 1:
            return next(iter(self.models.values()))
        if source.type not in self.models:
            raise ConfigurationError(
                f"'{source.location}' is of type '{source.type}', there are configurations of "
                f'{", ".join(self.models)}: name its type in the manifest, or add -c TYPE=FILE'
            )
        return self.models[source.type]

    def _jobs(self, sources: Sequence[Source], there: set[str]) -> Iterator[Job]:
        """Yield what is missing; hash each bag when its turn comes."""
        for source in sources:
            reason, content, size = '', '', 0
            model, path = self._model_of(source), Path(source.location)
            try:
                data_files(path)
                content = hash_of_recording(source.location)
                size = sum(f.stat().st_size for f in (path, *path.rglob('*')) if f.is_file())
            except (OSError, ValueError) as error:
                reason = str(error)
            if not content:
                reason = reason or f"'{source.location}' cannot be read: permission denied"
                content = hashlib.sha256(source.location.encode()).hexdigest()
            labels = repr((source.robot, source.type, source.time, source.tags))
            parts = (content, model.type, model.hash, version(), labels)
            key = hashlib.sha256('\0'.join(parts).encode()).hexdigest()
            columns = {'key': key, 'bag': content, 'configuration': model.hash, 'bytes': size}
            if not reason and key not in there:
                there.add(key)
                yield Job(key, identify_session, (source.location, model), (source, columns))
            elif not reason:
                self._count('kept', source, key)
            elif self.store.planned.get(source.location) in there:  # what was in it is known
                self.reasons[source.location] = reason
                self._count(LOST)
            else:
                self._add(source, columns, without_result(LOST, reason))

    def _add(self, source: Source, columns: Row, found: Row) -> None:
        """Add the row of a session: what its bag says, and of its source."""
        row = {
            **found,
            **columns,
            'version': version(),
            'time': datetime.fromisoformat(source.time) if source.time else found['time'],
            'source': source.location,
            'tags': [*source.tags],
        }
        of = self._model_of(source).type, source.robot
        self.store.add(SESSIONS, [row], row['key'], of)
        if 'factors' not in row:
            self.reasons[source.location] = row['reason']
        self._count(row['status'], source, row['key'])

    def _count(self, status: str, source: Source | None = None, key: str = '') -> None:
        """Count a bag, and plan with the session that it has now."""
        if source is not None and self.store.planned.get(source.location) != key:
            self._plan[source.location] = key
        self.counts[status] += 1
        if self._progress is not None:
            self._progress(self.counts.total(), self._total, len(self.reasons))
