"""Tables of parameters for spreadsheets, MATLAB and NumPy."""

import csv
from io import BytesIO, StringIO

import numpy as np

from ..results import Entry, Results

# Columns of a table, which are the fields of its entries.
COLUMNS = (
    *('name', 'joint', 'unit', 'value', 'sigma', 'percent'),
    *('kind', 'combination', 'prior'),
)
TEXTS = ('name', 'joint', 'unit', 'kind', 'combination')


def tables_of(results: Results) -> dict[str, tuple[Entry, ...]]:
    """Return the tables of a result by name."""
    return {'base': results.base, 'standard': results.standard}


def csv_table(results: Results) -> str:
    """Return one row a parameter; `table` tells base from standard ones."""
    stream = StringIO()
    rows = csv.writer(stream, lineterminator='\n')
    rows.writerow(['table', *COLUMNS])
    for table, entries in tables_of(results).items():
        for entry in entries:
            values = (getattr(entry, column) for column in COLUMNS)
            rows.writerow([table, *('' if value is None else value for value in values)])
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
        for table, entries in tables_of(results).items()
        for column, values in columns_of(entries).items()
    }
    stream = BytesIO()
    np.savez_compressed(stream, joints=np.array(results.joints, dtype=str), **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def mat_structs(results: Results) -> bytes:
    """Return a MAT file with the structs `base` and `standard`, whose texts are cells."""
    from scipy.io import savemat

    structs = {
        table: {column: matlab_column(values) for column, values in columns_of(entries).items()}
        for table, entries in tables_of(results).items()
    }
    stream = BytesIO()
    joints = matlab_column(np.array(results.joints, dtype=str))
    savemat(stream, {'joints': joints, **structs}, oned_as='column')
    return stream.getvalue()


def matlab_column(values: np.ndarray) -> np.ndarray:
    """Return a column: a cell array where the values are texts."""
    return values.astype(object) if values.dtype.kind == 'U' else values
