"""Tables for spreadsheets, MATLAB and NumPy: parameters, and W and Y of a log for other fits."""

from collections.abc import Callable
import csv
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...core.finding_codes import render
from ...core.findings import Finding
from ...core.model.base_parameters import base_parameters
from ...core.pipeline.observation import observe_in_turn
from ...core.signals.recording import Recording
from ...exceptions import FileError, RecordingError
from ..atomic import open_atomic
from ..configuration import from_mapping
from ..identification_input import AnyRecording
from ..results import Entry, Results
from .bodies import Array
from .identified_model import IdentifiedModel

TABLES = ('base', 'standard')
# Columns of a table, which are the fields of its entries.
COLUMNS = (
    *('name', 'joint', 'unit', 'value', 'sigma', 'percent'),
    *('kind', 'combination', 'prior'),
)
# Columns of the rows on disk before those of W.
LEADING = ('joint', 'time', 'Y')
# A variable of a MAT file of version 5 [bytes].
MAX_MAT = 2**31 - 1
TEXTS = ('name', 'joint', 'unit', 'kind', 'combination')


def csv_table(results: Results) -> str:
    """Return one row a parameter; `table` tells base from standard ones."""
    stream = StringIO()
    rows = csv.writer(stream, lineterminator='\n')
    rows.writerow(['table', *COLUMNS])
    for table in TABLES:
        for entry in getattr(results, table):
            rows.writerow([table, *(getattr(entry, column) for column in COLUMNS)])
    return stream.getvalue()


def columns_of(entries: tuple[Entry, ...]) -> dict[str, np.ndarray]:
    """Return the columns of a table: texts, and numbers with NaN where there are none."""
    result = {}
    for column in COLUMNS:
        values = [getattr(entry, column) for entry in entries]
        result[column] = np.array(values, dtype=str if column in TEXTS else float)
    return result


def npz_arrays(results: Results) -> bytes:
    """Return an npz with arrays `base_name`, `base_value`, …, `standard_name`, …, `joints`."""
    arrays = {
        f'{table}_{column}': values
        for table in TABLES
        for column, values in columns_of(getattr(results, table)).items()
    }
    stream = BytesIO()
    np.savez_compressed(stream, joints=np.array(results.joints, dtype=str), **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def mat_structs(results: Results) -> bytes:
    """Return a MAT file with the structs `base` and `standard`, whose texts are cells."""
    stream, tables = BytesIO(), {table: columns_of(getattr(results, table)) for table in TABLES}
    _save_mat(stream, {'joints': np.array(results.joints, dtype=str), **tables})
    return stream.getvalue()


def _save_mat(stream: BinaryIO, content: dict[str, Any]) -> None:
    from scipy.io import savemat

    def matlab(value: Any) -> Any:
        """Turn texts into cell arrays, also those of a struct."""
        if isinstance(value, dict):
            return {name: matlab(each) for name, each in value.items()}
        return value.astype(object) if value.dtype.kind == 'U' else value

    savemat(stream, matlab(content), oned_as='column')


def write_regressor(
    path: Path, recording: AnyRecording, model: IdentifiedModel, *, overwrite: bool = True
) -> list[str]:
    """
    Write the rows that an identification uses: filtered, decimated, those of joints that move.

    W (R, b) of the base parameters and Y (R,) are written with the `joint` (R,), from 1, and the
    `time` (R,) of each row, and with the names and units of the columns, as `.csv`, `.mat` or
    `.npz`. A long recording is read and observed in chunks.

    Returns what was found in the recording, in words. RobotIdError: it cannot be used, or the file
    not be written.
    """
    base = base_parameters(model.robot)
    settings = from_mapping({'identification': model.results.settings.get('identification', {})})
    signals = settings.identification.signals
    chunks = (recording,) if isinstance(recording, Recording) else recording
    notes, rows = dict[Finding, None](), list[Array]()
    for chunk in observe_in_turn(chunks, model.robot, base, signals):
        notes.update(dict.fromkeys(chunk.notes))
        for k in range(len(chunk.system.joints)):
            W, Y = chunk.system.rows(k)
            time = chunk.system.time[chunk.system.valid[k]]
            rows.append(np.column_stack([np.full(len(Y), k + 1.0), time, Y, W]))
    if not any(map(len, rows)):
        raise RecordingError(f"no joint moves in '{recording.source}': choose another part of it")
    with open_atomic(path, overwrite=overwrite) as stream:
        FORMATS[path.suffix](stream, np.concatenate(rows), base.names, base.units)
    return [render(note) for note in notes]


def _arrays(table: Array, names: tuple[str, ...], units: tuple[str, ...]) -> dict[str, Any]:
    leading = {name: table[:, k] for k, name in enumerate(LEADING)}
    rows = {'W': table[:, len(LEADING) :], **leading}
    return {**rows, 'names': np.array(names), 'units': np.array(units)}


def _write_mat(stream: BinaryIO, table: Array, *columns: tuple[str, ...]) -> None:
    if table.nbytes > MAX_MAT:
        raise FileError(
            f'{table.nbytes >> 20} MB of rows are too many for a MAT file: take npz, or choose a '
            'part of the log'
        )
    _save_mat(stream, _arrays(table, *columns))


def _write_csv(
    stream: BinaryIO, table: Array, names: tuple[str, ...], units: tuple[str, ...]
) -> None:
    head = ','.join([*LEADING, *names])
    np.savetxt(stream, table, '%.17g', ',', header=head, comments='', encoding='utf-8')


FORMATS: dict[str, Callable[..., None]] = {
    '.npz': lambda stream, table, *columns: np.savez(stream, **_arrays(table, *columns)),
    '.mat': _write_mat,
    '.csv': _write_csv,
}
