"""Parameters as tables for spreadsheets, MATLAB and NumPy."""

import csv
from io import BytesIO, StringIO
from typing import Any

import numpy as np

from ..results import Entry, Results

TABLES = ('base', 'standard')
# Columns of a table, which are the fields of its entries.
COLUMNS = (
    *('name', 'joint', 'unit', 'value', 'sigma', 'percent'),
    *('kind', 'combination', 'prior'),
)
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
    from scipy.io import savemat

    def matlab(value: Any) -> Any:
        """Turn texts into cell arrays, also those of a struct."""
        if isinstance(value, dict):
            return {name: matlab(each) for name, each in value.items()}
        return value.astype(object) if value.dtype.kind == 'U' else value

    stream, tables = BytesIO(), {table: columns_of(getattr(results, table)) for table in TABLES}
    content = {'joints': np.array(results.joints, dtype=str), **tables}
    savemat(stream, matlab(content), oned_as='column')
    return stream.getvalue()
