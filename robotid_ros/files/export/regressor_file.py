"""The observation matrix of a log and its torques, Y = W χ, for other programs to fit."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import numpy as np

from ...core.model.base_parameters import base_parameters
from ...core.pipeline.chunked_estimation import observe_in_turn
from ...core.regression.observation_system import System
from ...core.signals.recording import Recording
from ...exceptions import FileError, RecordingError
from ..atomic import file_errors, open_atomic
from ..configuration import from_mapping
from ..identification_input import AnyRecording
from .identified_model import IdentifiedModel
from .link_bodies import Array
from .tables import matlab_column

# Columns of the rows on disk before those of W.
LEADING = ('joint', 'time', 'Y')
# Rows that are held at once as text.
BLOCK = 4096
# A variable of a MAT file of version 5 [bytes].
MAX_MAT = 2**31 - 1


def write_regressor(
    path: Path, recording: AnyRecording, model: IdentifiedModel, *, overwrite: bool = True
) -> list[str]:
    """
    Write the rows that an identification uses: filtered, decimated, those of joints that move.

    W (R, b) of the base parameters and Y (R,) are written with the `joint` (R,), from 1, and the
    `time` (R,) of each row, and with the names and units of the columns. A long recording is read
    and observed in chunks: rows wait on disk.

    Parameters
    ----------
    path : `.csv`, `.mat` or `.npz`
    recording : of the robot
    model : what was identified, with the settings
    overwrite : False refuses to replace an existing file

    Returns
    -------
    Remarks on the recording.

    Raises
    ------
    RobotIdError : the recording cannot be used, or the file not be written

    """
    base = base_parameters(model.robot)
    settings = from_mapping({'identification': model.results.settings.get('identification', {})})
    signals = settings.identification.signals
    chunks = (recording,) if isinstance(recording, Recording) else recording
    notes: dict[str, None] = {}
    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with file_errors(path), TemporaryFile(dir=path.parent) as rows:
        for chunk in observe_in_turn(chunks, model.robot, base, signals):
            notes.update(dict.fromkeys(chunk.notes))
            _append(rows, chunk.system)
        if not rows.tell():
            raise RecordingError(
                f"no joint moves in '{recording.source}': choose another part of it"
            )
        rows.flush()
        table = np.memmap(rows, float, 'r').reshape(-1, len(LEADING) + base.rank)
        with open_atomic(path, overwrite=overwrite) as stream:
            FORMATS[path.suffix](stream, table, base.names, base.units)
    return [*notes]


def _append(stream: BinaryIO, system: System) -> None:
    for number in range(len(system.joints)):
        W, Y = system.rows(number)
        time = system.time[system.valid[number]]
        stream.write(np.column_stack([np.full(len(Y), number + 1.0), time, Y, W]).tobytes())


def _arrays(
    table: Array, names: tuple[str, ...], units: tuple[str, ...]
) -> Iterator[tuple[str, Any]]:
    yield 'W', table[:, len(LEADING) :]
    yield from ((name, table[:, k]) for k, name in enumerate(LEADING))
    yield from (('names', np.array(names)), ('units', np.array(units)))


def _write_npz(stream: BinaryIO, table: Array, *columns: tuple[str, ...]) -> None:
    np.savez(stream, **dict(_arrays(table, *columns)))


def _write_mat(stream: BinaryIO, table: Array, *columns: tuple[str, ...]) -> None:
    from scipy.io import savemat

    if table.nbytes > MAX_MAT:
        raise FileError(
            f'{table.nbytes >> 20} MB of rows are too many for a MAT file: take npz, or choose a '
            'part of the log'
        )
    arrays = {name: matlab_column(values) for name, values in _arrays(table, *columns)}
    savemat(stream, arrays, oned_as='column')


def _write_csv(
    stream: BinaryIO, table: Array, names: tuple[str, ...], units: tuple[str, ...]
) -> None:
    stream.write((','.join([*LEADING, *names]) + '\n').encode())
    for start in range(0, len(table), BLOCK):
        rows = table[start : start + BLOCK].tolist()
        stream.write(''.join(','.join(map(repr, row)) + '\n' for row in rows).encode())


FORMATS: dict[str, Callable[..., None]] = {
    '.npz': _write_npz,
    '.mat': _write_mat,
    '.csv': _write_csv,
}
