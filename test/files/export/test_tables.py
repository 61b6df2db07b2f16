"""A table of parameters is read back whole."""

import csv
from io import StringIO

from identified_models import of_configuration
import pytest

from robotid_ros.files.export.export import csv as csv_table


@pytest.fixture
def model(tmp_path):
    return of_configuration(tmp_path, 'scara')


def test_csv_has_a_row_for_each_parameter(model):
    rows, results = list(csv.DictReader(StringIO(csv_table(model)[0]))), model.results
    assert [row['table'] for row in rows[:4]] == ['base'] * 3 + ['standard']
    for row, entry in zip(rows, (*results.base, *results.standard), strict=True):
        assert (row['name'], row['joint'], row['unit']) == (entry.name, entry.joint, entry.unit)
        assert (float(row['value']), float(row['sigma'])) == (entry.value, entry.sigma)
        assert row['prior'] == ('' if entry.prior is None else '0.0')
