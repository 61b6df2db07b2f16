"""A run over a fleet: what is missing in the store is worked on, and added as it is done."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
from functools import cached_property, lru_cache
import hashlib
from pathlib import Path

from ..exceptions import ConfigurationError, FileError
from ..files.atomic import open_regular
from ..files.bags.opening import data_files
from ..files.provenance import versions
from .engine import Engine, Job, Lost
from .model import FleetModel
from .session import identify_session, LOST, Row, session_row, without_result
from .sources import Source
from .store import FORMAT, SESSIONS, Store

# Called with how many bags are done, how many there are, and how many of the done failed.
Progress = Callable[[int, int, int], None]
# Sessions after which the plan is written, for a client that is killed.
PLAN_EVERY = 100


@dataclasses.dataclass(frozen=True)
class HashedBag:
    """A source with the hash of its content, its size [bytes], and its model."""

    source: Source
    hash: str
    size: int
    model: FleetModel

    @cached_property
    def labels(self) -> Row:
        """Columns of the row that say what it is of; `key` is a hash of all that it depends on."""
        model = self.model.hash
        parts = (self.hash, self.model.type, model, version(), self.source.labels)
        key = hashlib.sha256('\0'.join(parts).encode()).hexdigest()
        return {'key': key, 'bag': self.hash, 'configuration': model, 'version': version()}


@lru_cache
def version() -> str:
    """Return what a row is made by: version of the package and format of the store."""
    return f'{versions().get("robotid_ros", "unknown")}/{FORMAT}'


def hash_bag(location: str) -> tuple[str, int]:
    """Return a hash of the content of a bag, and its size [bytes]."""
    files = data_files(Path(location))
    if any(file.is_dir() for file in files):
        files = sorted(file for folder in files for file in folder.rglob('*') if file.is_file())
    digest, size = hashlib.sha256(), 0
    for file in files:
        with open_regular(file) as stream:
            own = hashlib.sha256()
            while block := stream.read(1 << 20):
                own.update(block)
            digest.update(own.hexdigest().encode())
            size += stream.tell()
    return digest.hexdigest(), size


class Run:
    """
    One run into a store, with the models of each type.

    `counts` are of the bags of this run by status, 'kept' those that were there before; `reasons`
    of the bags that failed or were lost, by location.
    """

    def __init__(
        self,
        store: Store,
        models: Mapping[str, FleetModel],
        progress: Progress = lambda *_: None,
    ):
        self.store, self.models = store, models
        self.counts, self.reasons = Counter[str](), dict[str, str]()
        self._progress, self._total = progress, 0
        self._plan: dict[str, str] = {}
        self._bags: dict[str, HashedBag] = {}

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
            for job, outcome in engine.run(self._jobs(sources, there)):
                lost = isinstance(outcome, Lost)
                found = without_result(LOST, outcome.reason) if lost else outcome
                self._add(self._bags[job.key], found)
        finally:
            self._write_plan()

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
            model = self._model_of(source)
            try:
                bag = HashedBag(source, *hash_bag(source.location), model)
            except (FileError, ValueError) as error:
                self._add_unread(source, model, str(error), there)
                continue
            key = bag.labels['key']
            if key in there or key in self._bags:
                self._remember(bag, 'kept')
                continue
            self._bags[key] = bag
            yield Job(key, identify_session, (source.location, model))

    def _add_unread(self, source: Source, model: FleetModel, reason: str, there: set[str]) -> None:
        """Say that a bag cannot be read, in a row unless an earlier run knew what is in it."""
        if self.store.planned.get(source.location, '') in there:
            self.reasons[source.location] = reason
            self._count(LOST)
        else:
            nothing = hashlib.sha256(source.location.encode()).hexdigest()
            self._add(HashedBag(source, nothing, 0, model), without_result(LOST, reason))

    def _add(self, bag: HashedBag, found: Row) -> None:
        row = session_row(found, bag.source, bag.labels, bag.size)
        self.store.add_session(row, bag.model.type, bag.source.robot)
        if 'factors' not in row:
            self.reasons[bag.source.location] = row['reason']
        self._remember(bag, row['status'])

    def _remember(self, bag: HashedBag, status: str) -> None:
        key = bag.labels['key']
        if self.store.planned.get(bag.source.location) != key:
            self._plan[bag.source.location] = key
        if len(self._plan) >= PLAN_EVERY:
            self._write_plan()
        self._count(status)

    def _count(self, status: str) -> None:
        self.counts[status] += 1
        self._progress(self.counts.total(), self._total, len(self.reasons))

    def _write_plan(self) -> None:
        if self._plan:
            self.store.add_plan(self._plan)
            self._plan = {}
