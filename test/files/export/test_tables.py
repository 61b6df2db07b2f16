"""Tables of parameters are read back by what they are for: csv, NumPy, SciPy for MATLAB."""

import csv
from io import BytesIO, StringIO

from identified_models import of_configuration
import numpy as np
import pytest
from scipy.io import loadmat

from robotid_ros.files.export.tables import csv_table, mat_structs, npz_arrays


@pytest.fixture
def results(tmp_path):
    return of_configuration(tmp_path, 'scara').results


def test_csv_has_a_row_for_each_parameter(results):
    rows = list(csv.DictReader(StringIO(csv_table(results))))
    assert [row['table'] for row in rows[:4]] == ['base'] * 3 + ['standard']
    for row, entry in zip(rows, (*results.base, *results.standard), strict=True):
        assert (row['name'], row['joint'], row['unit']) == (entry.name, entry.joint, entry.unit)
        assert (float(row['value']), float(row['sigma'])) == (entry.value, entry.sigma)
        assert row['prior'] == ('' if entry.prior is None else '0.0')


def test_npz_holds_the_columns(results):
    arrays = np.load(BytesIO(npz_arrays(results)), allow_pickle=False)
    assert arrays['joints'].tolist() == list(results.joints)
    for table in ('base', 'standard'):
        entries = getattr(results, table)
        for column in ('name', 'unit', 'value', 'sigma', 'kind'):
            assert arrays[f'{table}_{column}'].tolist() == [getattr(e, column) for e in entries]
    assert np.isnan(arrays['base_prior']).all()


def test_mat_holds_structs_with_cells(results):
    structs = loadmat(BytesIO(mat_structs(results)), simplify_cells=True)
    assert structs['joints'].tolist() == list(results.joints)
    for table in ('base', 'standard'):
        entries = getattr(results, table)
        for column in ('name', 'unit', 'value', 'sigma'):
            # MATLAB has no other empty text than an empty array.
            found = [x if np.size(x) else '' for x in structs[table][column]]
            assert found == [getattr(e, column) for e in entries]
