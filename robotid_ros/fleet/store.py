"""
The store of a fleet: Parquet files that are added and never changed.

Each file gets its name when it is whole; the name of a session's file is its key, the hash of bag,
labels, model and version, so that the same work twice is one file.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from datetime import datetime, timezone
from functools import cached_property, lru_cache
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

from ..exceptions import FileError
from ..files.atomic import file_errors, open_atomic, read_text, write_text
from ..files.formats.table import optional_package
from ..files.yaml import parse_yaml
from .session import FleetModel, Row

FORMAT = 2
HEAD, SESSIONS, POOLED, PLANS, MODELS = 'store.json', 'sessions', 'pooled', 'plans', 'models'
PARTITIONS = ('type', 'robot')


@lru_cache
def schemas() -> Mapping[str, Any]:
    """Return the Arrow schema of each table; docs/files.md says what the columns mean."""
    pa = optional_package('pyarrow', 'a fleet')
    text, real, count = pa.string(), pa.float64(), pa.int64()
    words, numbers = pa.list_(text), pa.list_(real)
    joint = [('name', text), ('residual', real), ('sigma_torque', real), ('rows', count)]
    parameter = [('name', text), ('unit', text), ('value', real), ('sigma', real)]
    sessions = {
        **dict.fromkeys(('key', 'source', 'bag', 'configuration', 'version'), text),
        **{'time': pa.timestamp('us', tz='UTC'), 'tags': words},
        **{'status': text, 'reason': text, 'notes': words, 'warnings': words},
        **{'bytes': count, 'samples': count, 'duration': real, 'rate': real},
        **{'residual': real, 'condition': real},
        'joints': pa.list_(pa.struct([*joint, ('delay', real)])),
        'parameters': pa.list_(pa.struct(parameter)),
        **{'factor_size': pa.int32(), 'factors': numbers, 'batches': numbers},
    }
    pooled = {
        **dict.fromkeys(('key', 'level', 'name', 'type', 'configuration', 'version'), text),
        **{'sessions': words, 'residual': real, 'condition': real},
        'joints': pa.list_(pa.struct(joint)),
        'parameters': pa.list_(pa.struct(parameter)),
        **{'agreement_p': real, 'agreement_parameter': text, 'agreement_session': text},
    }
    tables = {SESSIONS: sessions, POOLED: pooled, PLANS: {'source': text, 'key': text}}
    return {name: pa.schema(list(columns.items())) for name, columns in tables.items()}


@dataclasses.dataclass(frozen=True)
class Store:
    """A folder of tables, see docs/files.md."""

    folder: Path

    @classmethod
    def open(cls, folder: str | Path, *, create: bool = False) -> 'Store':
        """Open a store, or make one."""
        folder = Path(folder)
        head = folder / HEAD
        if not head.exists():
            if not create or (folder.exists() and any(folder.iterdir())):
                raise FileError(f"'{folder}' is no fleet's store: give the folder of fleet run -o")
            write_text(head, json.dumps({'format': FORMAT}) + '\n')
        found = parse_yaml(read_text(head), str(head))
        if not isinstance(found, Mapping) or found.get('format') != FORMAT:
            raise FileError(
                f"'{head}' is not of format {FORMAT}: use the version that wrote it, or another"
            )
        return cls(folder)

    def add(self, table: str, rows: Sequence[Row], name: str = '', of: Sequence[str] = ()) -> None:
        """Add a file of rows to a table; one that has a name, once, unless it is of a robot."""
        now = f'{datetime.now(timezone.utc):%Y%m%dT%H%M%S%f}-{uuid4().hex[:8]}'
        path = _partition(self.folder / table, of) / f'{name or now}.parquet'
        if path.exists() and not of:
            return
        parquet = optional_package('pyarrow.parquet', str(path))
        pa = optional_package('pyarrow', str(path))
        content = pa.Table.from_pylist(list(rows), schema=schemas()[table])
        with open_atomic(path) as stream:
            # Numbers that are all different: a dictionary of them takes time and room.
            parquet.write_table(content, stream, use_dictionary=False)

    def add_plan(self, plan: Mapping[str, str]) -> None:
        """Add the key of the session that each source has from now on."""
        self.add(PLANS, [{'source': source, 'key': key} for source, key in plan.items()])
        self.planned.update(plan)

    def add_model(self, model: FleetModel) -> None:
        """Keep a model, which the report needs again."""
        path = self.folder / MODELS / f'{model.hash}.json'
        if not path.exists():
            write_text(path, model.content)

    def model(self, type: str, configuration: str) -> FleetModel:
        """Return a model by its hash."""
        return FleetModel(type, read_text(self.folder / MODELS / f'{configuration}.json'))

    def rows(
        self, table: str, columns: Iterable[str] | None = None, of: Sequence[str] = ()
    ) -> list[Row]:
        """Read a table or columns of it; sessions with `type` and `robot`, `of` these alone."""
        folder = self.folder / table
        dataset = optional_package('pyarrow.dataset', str(folder))
        pa = optional_package('pyarrow', str(folder))
        schema, partitioning = schemas()[table], None
        if table == SESSIONS:
            names = pa.schema([(name, pa.string()) for name in PARTITIONS])
            partitioning = dataset.partitioning(names, flavor='hive')
            schema = pa.unify_schemas([schema, names])
        files = sorted(map(str, _partition(folder, of).rglob('*.parquet')))
        if not files:
            return []
        with file_errors(folder):
            try:
                found = dataset.dataset(
                    files, schema=schema, partitioning=partitioning, partition_base_dir=str(folder)
                )
                chosen = None if columns is None else list(columns)
                return list(found.to_table(columns=chosen).to_pylist())
            except pa.ArrowInvalid as error:
                raise FileError(f"'{folder}' is damaged ({error}): remove that file") from error

    def names(self, *of: str) -> list[str]:
        """Return the types of the sessions, or the robots of a type."""
        found = _partition(self.folder / SESSIONS, of).glob(f'{PARTITIONS[len(of)]}=*')
        return sorted(unquote(path.name.partition('=')[2]) for path in found)

    def current(self, columns: Iterable[str] | None = None, of: Sequence[str] = ()) -> list[Row]:
        """Return the sessions that the latest plan of any source names, by key; as `rows`."""
        wanted = set(self.planned.values())
        chosen = None if columns is None else [*dict.fromkeys(['key', *columns])]
        rows = [row for row in self.rows(SESSIONS, chosen, of) if row['key'] in wanted]
        return sorted(rows, key=lambda row: str(row['key']))

    @cached_property
    def planned(self) -> dict[str, str]:
        """The key of the session of each source."""
        return {row['source']: row['key'] for row in self.rows(PLANS)}


def _partition(folder: Path, of: Sequence[str]) -> Path:
    """Return the folder of the sessions of a type, or of a robot of it."""
    pairs = zip(PARTITIONS, of, strict=False)
    return folder.joinpath(*(f'{name}={quote(value, safe=" ")}' for name, value in pairs))
