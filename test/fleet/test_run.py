"""A run adds what is missing, once, whatever dies on the way."""

from pathlib import Path

import pytest
from small_fleet import CONFIG, write_bag

from robotid_ros.exceptions import ConfigurationError, FileError, RecordingError
from robotid_ros.fleet import session
from robotid_ros.fleet.run import Engine, EngineError, find_sources, Job
from robotid_ros.fleet.session import FAILED, IDENTIFIED, load_models, LOST
from robotid_ros.fleet.store import Store
from robotid_ros.node_settings import FleetSettings

from .conftest import InProcess


def files(store):
    return {str(p.relative_to(store)): p.read_bytes() for p in Path(store).rglob('*.parquet')}


def values(store):
    """Return what a store says, without when."""
    return {k: v for k, v in files(store).items() if not k.startswith('plans')}


def test_each_bag_is_a_row_and_a_damaged_one_says_why(store):
    rows = store.current()
    assert sorted((row['robot'], row['status']) for row in rows) == [
        ('r0', FAILED),
        *(2 * [('r0', IDENTIFIED)]),
        *(2 * [('r1', IDENTIFIED)]),
    ]
    (failed,) = (row for row in rows if row['status'] == FAILED)
    assert 'broken.mcap' in failed['reason'] and failed['parameters'] == []
    for row in rows:
        if row['status'] == IDENTIFIED:
            assert row['time'].year == 2023 and row['type'] == 'scara'
            assert row['residual'] < 0.05 and len(row['joints']) == 2
            assert all(p['sigma'] > 0.0 for p in row['parameters'])


def test_a_second_run_does_nothing(bags, work, tmp_path):
    first = work(tmp_path / 'store', [bags])
    assert first.counts == {IDENTIFIED: 4, FAILED: 1}
    before = files(tmp_path / 'store')
    again = work(tmp_path / 'store', [bags], engine=Refusing())
    assert again.counts == {'kept': 5}
    assert files(tmp_path / 'store') == before


class Refusing:
    def run(self, jobs):
        assert not list(jobs)
        return iter(())


def test_what_changed_is_done_again_and_counts_once(work, tmp_path):
    bags = tmp_path / 'bags'
    write_bag(bags / 'r0', 's0', seconds=6.0)
    other = write_bag(bags / 'r0', 's1', seed=1, seconds=6.0)
    store = work(tmp_path / 'store', [bags]).store
    old = {row['key'] for row in store.current(())}
    for file in write_bag(tmp_path, 'new', seed=2, seconds=6.0).iterdir():
        (target,) = other.glob(f'*{file.suffix}')
        target.write_bytes(file.read_bytes())
    store = work(tmp_path / 'store', [bags]).store
    new = {row['key'] for row in store.current(())}
    assert len(new) == 2 and len(new & old) == 1
    assert len(store.rows('sessions', ('key',))) == 3


def test_what_was_lost_is_tried_again(work, tmp_path):
    bag = write_bag(tmp_path / 'r0', 's0', seconds=6.0)

    class Losing:
        def run(self, jobs):
            for job in jobs:
                yield job, session.without_result(LOST, 'the workers that had it died')

    run = work(tmp_path / 'store', [bag], engine=Losing())
    assert run.counts == {LOST: 1} and 'died' in run.store.current()[0]['reason']
    run = work(tmp_path / 'store', [bag])
    assert run.counts == {IDENTIFIED: 1}
    assert [row['status'] for row in run.store.current()] == [IDENTIFIED]


def test_a_run_that_is_interrupted_goes_on(bags, work, tmp_path, store):
    class Interrupted(InProcess):
        def run(self, jobs):
            for number, done in enumerate(super().run(jobs)):
                if number == 2:
                    raise KeyboardInterrupt
                yield done

    with pytest.raises(KeyboardInterrupt):
        work(tmp_path / 'store', [bags], engine=Interrupted())
    run = work(tmp_path / 'store', [bags])
    assert run.counts == {'kept': 2, IDENTIFIED: 3}
    done = {k: v for k, v in values(store.folder).items() if k.startswith('sessions')}
    assert values(tmp_path / 'store') == done


def test_a_manifest_names_robots_and_times(bags, work, tmp_path):
    manifest = bags / 'manifest.csv'
    manifest.write_text(
        'source,robot,type,time,tags,temperature\n'
        'r0/s0,left,arm,2025-02-03,day new,21.5\n'  # of before: passed over
        'r1/s1,right/7,arm,,,\n'
    )
    run = work(tmp_path / 'store', [], str(manifest), configurations=(f'arm={CONFIG}',))
    rows = {row['robot']: row for row in run.store.current()}
    left, right = rows['left'], rows['right/7']
    assert (left['time'].isoformat(), left['tags']) == (
        '2025-02-03T00:00:00+00:00',
        ['day', 'new'],
    )
    assert right['time'].year == 2023 and right['type'] == 'arm'
    assert run.store.names('arm') == ['left', 'right/7']


def test_what_does_not_fit_is_one_sentence(bags, work, tmp_path):
    with pytest.raises(RecordingError, match='no recording'):
        find_sources([str(tmp_path)])
    with pytest.raises(RecordingError, match='there is no recording at'):
        find_sources([str(tmp_path / 'none')])
    manifest = tmp_path / 'bad.csv'
    manifest.write_text('source,time\ns0,yesterday\n')
    with pytest.raises(ConfigurationError, match='has no time of s0'):
        find_sources([], str(manifest))
    manifest.write_text('robot,colour\na,b\n')
    with pytest.raises(ConfigurationError, match='the column source'):
        find_sources([], str(manifest))
    manifest.write_text(f'source,type\n{bags}/r0/s0,ur10\n')
    with pytest.raises(ConfigurationError, match='add -c TYPE=FILE'):
        work(tmp_path / 'store', [], str(manifest))
    (tmp_path / 'other').mkdir()
    (tmp_path / 'other' / 'file').write_text('')
    with pytest.raises(FileError, match='no fleet'):
        Store.open(tmp_path / 'other', create=True)
    with pytest.raises(ConfigurationError, match='two configurations'):
        load_models([str(CONFIG), str(CONFIG)])
    own = tmp_path / 'own.yaml'
    start = '/**:\n  ros__parameters:\n    '
    own.write_text(f'{start}robot: {{gravity: [0.0, 0.0, -9.81]}}\n')
    with pytest.raises(ConfigurationError, match='names no robot description'):
        load_models([str(own)])
    urdf = CONFIG.parents[1] / 'urdf' / 'scara.urdf'
    own.write_text(f'{start}robot: {{urdf: {urdf}}}\n    identification: {{method: didim}}\n')
    with pytest.raises(ConfigurationError, match="method 'didim' cannot: use one of"):
        load_models([str(own)])


@pytest.mark.parametrize(
    ('error', 'status', 'said'),
    [
        (MemoryError('full'), LOST, 'MemoryError: full'),  # tried again, elsewhere
        (IndexError('none'), FAILED, 'IndexError: none; the bag is damaged, or a bug'),
    ],
)
def test_what_nobody_expects_is_a_row(monkeypatch, error, status, said):
    def fail(location, model):
        raise error

    monkeypatch.setattr(session, '_identify', fail)
    (model,) = load_models([str(CONFIG)])[0].values()
    found = session.identify_session('bag', model)
    assert (found['status'], found['reason']) == (status, said)


@pytest.mark.slow
def test_workers_die_and_their_bags_go_to_others(
    bags, work, cluster, tmp_path, store, monkeypatch
):
    monkeypatch.setattr('robotid_ros.fleet.run.WAITING', 1)
    cluster.start(workers=2)
    counted = []

    class Killing(Engine):
        def run(self, jobs):
            for done in super().run(jobs):
                counted.append(done)
                if len(counted) in (1, 2):
                    cluster.kill_worker()
                    cluster.add_worker()
                yield done

    with Killing(FleetSettings(), cluster.address) as engine:
        run = work(tmp_path / 'store', [bags], engine=engine)
    assert run.counts == {IDENTIFIED: 4, FAILED: 1}
    done = {k: v for k, v in values(store.folder).items() if k.startswith('sessions')}
    assert values(tmp_path / 'store') == done


@pytest.mark.slow
def test_what_is_done_is_kept_where_the_scheduler_is_gone(
    bags, work, cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr('robotid_ros.fleet.run.FIRST_WORKER', 15.0)
    monkeypatch.setattr('robotid_ros.fleet.run.WAITING', 1)
    cluster.start(workers=1)

    class Ending(Engine):
        def run(self, jobs):
            for done in super().run(jobs):
                yield done
                cluster.kill_all()

    with Ending(FleetSettings(), cluster.address) as engine:
        with pytest.raises(EngineError, match='run again, finished sessions are kept'):
            work(tmp_path / 'store', [bags], engine=engine)
    assert work(tmp_path / 'store', [bags]).counts['kept'] >= 1


def test_workers_of_this_machine_have_one_thread_of_linear_algebra_each(tmp_path):
    with Engine(FleetSettings(workers=1, memory=1.0)) as engine:
        found = engine.client.run(_threads)
        (limit,) = [w['memory_limit'] for w in engine.client.scheduler_info()['workers'].values()]
    assert list(found.values()) == [('1', '1')] and limit == 10**9


def _threads():
    import os

    return os.environ['OPENBLAS_NUM_THREADS'], os.environ['OMP_NUM_THREADS']


def test_no_more_jobs_are_in_flight_than_workers_need():
    taken = []

    def jobs():
        for k in range(20):
            taken.append(k)
            yield Job(str(k), len, ('',))

    with Engine(FleetSettings(workers=1, memory=1.0)) as engine:
        for number, _ in enumerate(engine.run(jobs())):
            assert len(taken) <= number + 1 + 3
    assert len(taken) == 20
