"""Others read the store without this package, and a hash says what is in it."""

import math

import pytest

from robotid_ros.exceptions import FileError
from robotid_ros.fleet.pooling import pool, ROBOT
from robotid_ros.fleet.session import IDENTIFIED
from robotid_ros.fleet.store import Store


def friction(store):
    """Return (robot, Fc1) of the sessions that were identified."""
    return sorted(
        (row['robot'], p['value'])
        for row in store.current()
        if row['status'] == IDENTIFIED
        for p in row['parameters']
        if p['name'] == 'Fc1'
    )


def test_pandas_reads_it(store):
    pandas = pytest.importorskip('pandas')
    table = pandas.read_parquet(store.folder / 'sessions')
    rows = table[table.status == IDENTIFIED].explode('parameters')
    found = [
        (str(robot), p['value'])
        for robot, p in zip(rows.robot, rows.parameters, strict=True)
        if p['name'] == 'Fc1'
    ]
    assert sorted(found) == friction(store)


def test_polars_reads_it(store):
    polars = pytest.importorskip('polars')
    table = polars.scan_parquet(store.folder / 'sessions', hive_partitioning=True)
    rows = table.filter(polars.col('status') == IDENTIFIED).explode('parameters')
    found = rows.unnest('parameters').filter(polars.col('name') == 'Fc1').collect()
    assert sorted(found.select('robot', 'value').iter_rows()) == friction(store)


def test_duckdb_reads_it(store):
    duckdb = pytest.importorskip('duckdb')
    found = duckdb.sql(
        f"""SELECT robot, p.value FROM (
        SELECT robot, unnest(parameters) AS p
        FROM read_parquet('{store.folder}/sessions/**/*.parquet', hive_partitioning = true)
        WHERE status = '{IDENTIFIED}') WHERE p.name = 'Fc1'"""
    ).fetchall()
    assert sorted(found) == friction(store)


def test_pooled_estimates_are_in_it_once(store):
    before = sorted((store.folder / 'pooled').iterdir())
    rows = pool(store)
    assert sorted((store.folder / 'pooled').iterdir()) == before
    written = store.rows('pooled')
    assert [r['name'] for r in written] == [r['name'] for r in rows]
    robots = [row for row in written if row['level'] == ROBOT]
    assert all(0.0 < row['agreement_p'] <= 1.0 for row in robots)
    assert all(math.isfinite(p['sigma']) for row in written for p in row['parameters'])


def test_another_format_or_folder_is_one_sentence(tmp_path):
    with pytest.raises(FileError, match='no fleet'):
        Store.open(tmp_path)
    (tmp_path / 'store.json').write_text('{"format": 99}')
    with pytest.raises(FileError, match='not of format'):
        Store.open(tmp_path)


def test_a_damaged_file_is_one_sentence(store, tmp_path):
    import shutil

    folder = tmp_path / 'store'
    shutil.copytree(store.folder, folder)
    next((folder / 'sessions').rglob('*.parquet')).write_bytes(b'PAR1 no')
    with pytest.raises(FileError, match='is damaged'):
        Store.open(folder).current()
