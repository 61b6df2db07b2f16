"""A few robots' bags, the store that a run makes of them, and schedulers as processes."""

from dask_processes import Cluster
import pytest
from small_fleet import CONFIG, write_bag


@pytest.fixture(autouse=True, scope='session')
def packages():
    """Skip where they are not installed; not imported here, by every process that collects."""
    pytest.importorskip('distributed')
    pytest.importorskip('pyarrow')


class InProcess:
    """An engine without workers: jobs run here, one after the other."""

    def run(self, jobs):
        for job in jobs:
            yield job, job.function(*job.arguments)


@pytest.fixture(scope='session')
def bags(tmp_path_factory):
    """Write two robots with two sessions each, and a file that is no bag."""
    folder = tmp_path_factory.mktemp('fleet')
    for robot in range(2):
        for session in range(2):
            seed = 10 * robot + session
            write_bag(folder / f'r{robot}', f's{session}', seed=seed, day=session)
    (folder / 'r0' / 'broken.mcap').write_bytes(b'\x89MCAP0\r\nno')
    return folder


@pytest.fixture
def work():
    """Run a fleet in this process; gives the run."""
    from robotid_ros.fleet.run import find_sources, Run
    from robotid_ros.fleet.session import load_models
    from robotid_ros.fleet.store import Store

    def work(folder, places, manifest=None, engine=None, configurations=(str(CONFIG),)):
        models, _ = load_models(configurations)
        run = Run(Store.open(folder, create=True), models)
        run.work(find_sources([str(p) for p in places], manifest), engine or InProcess())
        return run

    return work


@pytest.fixture(scope='session')
def store(bags, tmp_path_factory):
    """Make the store of the bags, once."""
    from robotid_ros.fleet.pooling import pool
    from robotid_ros.fleet.run import find_sources, Run
    from robotid_ros.fleet.session import load_models
    from robotid_ros.fleet.store import Store

    folder = tmp_path_factory.mktemp('stores') / 'store'
    models, _ = load_models([str(CONFIG)])
    store = Store.open(folder, create=True)
    Run(store, models).work(find_sources([str(bags)]), InProcess())
    pool(store)
    return store


@pytest.fixture
def cluster():
    with Cluster() as cluster:
        yield cluster
