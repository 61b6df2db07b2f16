"""Pooled estimates are those of all rows at once, in whatever order factors are merged."""

import itertools

from hypothesis import given, strategies as st
import numpy as np
import pytest
from small_fleet import CONFIG, write_bag

from robotid_ros.core.pipeline.observation import LogSet, observe_recording
from robotid_ros.core.regression.estimators import fit
from robotid_ros.files.bags import open_recording
from robotid_ros.fleet.pooling import merge, pool, ROBOT, TYPE
from robotid_ros.fleet.session import factors_of, IDENTIFIED, load_models, UNDETERMINED


def value_of(row):
    return np.array([p['value'] for p in row['parameters']])


def test_a_robot_is_pooled_as_if_all_was_read_at_once(store):
    (model,) = load_models([str(CONFIG)])[0].values()
    robot, base, settings = model.build()
    pooled = pool(store)
    assert [row['level'] for row in pooled] == [ROBOT, ROBOT, TYPE]
    rows = [row for row in store.current() if row['status'] == IDENTIFIED]
    for row in pooled:
        own = [r['source'] for r in rows if row['level'] == TYPE or r['robot'] == row['name']]
        assert len(own) == len(row['sessions'])
        logs = LogSet(tuple(open_recording(source, robot.joints) for source in sorted(own)))
        assert logs.in_memory
        every = observe_recording(logs, robot, base, settings.signals).system
        expected = fit(every, settings.method)
        np.testing.assert_allclose(value_of(row), expected.value, rtol=1e-9)
        assert row['residual'] == pytest.approx(expected.total_residual, rel=1e-9)
        sigma = [p['sigma'] for p in row['parameters']]
        np.testing.assert_allclose(sigma, expected.sigma, rtol=0.5)


@pytest.fixture(scope='module')
def factors(store):
    rows = [row for row in store.current() if row['status'] == IDENTIFIED]
    return [factors_of(row) for row in rows]


@given(order=st.permutations(range(4)), cuts=st.sets(st.integers(1, 3)))
def test_factors_merge_in_any_order_and_grouping(factors, order, cuts):
    expected = fit(merge(factors))
    edges = [0, *sorted(cuts), len(order)]
    groups = [merge(factors[k] for k in order[a:b]) for a, b in itertools.pairwise(edges)]
    found = fit(merge(groups))
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-10)
    np.testing.assert_allclose(found.classical, expected.classical, rtol=1e-8)
    assert found.rows.tolist() == expected.rows.tolist()


def test_a_row_gives_its_factors_back(store):
    row = next(row for row in store.current() if row['status'] == IDENTIFIED)
    found = fit(factors_of(row))
    np.testing.assert_allclose(found.value, value_of(row), rtol=1e-10)
    assert found.rows.tolist() == [joint['rows'] for joint in row['joints']]


def test_a_bag_that_tells_little_by_itself_still_counts(work, tmp_path):
    write_bag(tmp_path / 'bags' / 'r', 'still', seed=3, still=(0,))
    write_bag(tmp_path / 'bags' / 'r', 'both', seed=4)
    run = work(tmp_path / 'store', [tmp_path / 'bags'])
    assert run.counts == {IDENTIFIED: 1, UNDETERMINED: 1}, run.reasons
    (still,) = (row for row in run.store.current() if row['status'] == UNDETERMINED)
    assert 'does not excite' in still['reason'] and still['factors']
    (row,) = (row for row in pool(run.store) if row['level'] == ROBOT)
    assert len(row['sessions']) == 2
    both = next(r for r in run.store.current() if r['status'] == IDENTIFIED)
    sigma = {p['name']: p['sigma'] for p in both['parameters']}
    better = [p['sigma'] < sigma[p['name']] for p in row['parameters'] if p['name'][-1] == '2']
    assert better and np.mean(better) > 0.5


def test_sessions_that_agree_do_so_and_others_are_named(store, work, tmp_path):
    rows = [row for row in pool(store) if row['level'] == ROBOT]
    assert all(row['agreement_p'] > 0.01 for row in rows)
    for session in range(3):
        worn = [('Fc1', 0.2)] if session == 2 else []
        write_bag(tmp_path / 'r', f's{session}', seed=session, change=worn)
    changed = work(tmp_path / 'store', [tmp_path / 'r']).store
    (row,) = (row for row in pool(changed) if row['level'] == ROBOT)
    assert row['agreement_p'] < 1e-6 and row['agreement_parameter'].startswith('Fc1')
    (last,) = (s for s in changed.current() if s['source'].endswith('s2'))
    assert row['agreement_session'] == last['key']
