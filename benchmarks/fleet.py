"""
A fleet of 200 bags: found is what is wrong, nobody else, whatever dies on the way.

40 simulated robots of five types with five sessions each (`fleet_bags.py`): friction drifts on six
of them, one carries a body that nobody declared, one has an inverted effort, three files are
broken. Prints throughput with one and two workers, the difference between pooled estimates and
those of one process, what the report finds, and whether a run with workers killed ends with the
same store.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
import resource
import sys
import tempfile
import time
from typing import Any

from common import command_line, ROOT, verdict
from fleet_bags import BROKEN, DRIFTS, PAYLOAD, robot_name, SIGN, TYPES, write_fleet
import numpy as np

from robotid_ros.core.findings import select
from robotid_ros.core.pipeline.observation import LogSet, observe_recording
from robotid_ros.core.regression.estimators import fit
from robotid_ros.files.bags import open_recording
from robotid_ros.fleet.pooling import (
    DRIFT,
    OUTLIER,
    PAYLOAD as PAYLOAD_KIND,
    pool,
    ROBOT,
    SIGN as SIGN_KIND,
)
from robotid_ros.fleet.report import write_fleet_report
from robotid_ros.fleet.run import Engine, find_sources, Job, Run
from robotid_ros.fleet.session import IDENTIFIED, load_models
from robotid_ros.fleet.store import Store
from robotid_ros.node_settings import FleetSettings

sys.path.insert(0, str(ROOT / 'test' / 'tools'))

from dask_processes import Cluster

# Of two workers over one; of a pooled estimate from that of all rows at once.
SPEED_UP, DIFFERENCE = 1.85, 1e-9
# Bags after which a worker is killed.
KILLS = (20, 60, 130, 170)
CONFIGURATIONS = [f'{name}={ROOT / "config" / name}.yaml' for name in TYPES]


def work(manifest: Path, folder: Path, engine: Engine) -> Run:
    """Run the fleet into a store, and pool it."""
    run = Run(Store.open(folder, create=True), load_models(CONFIGURATIONS)[0])
    run.work(find_sources([], str(manifest)), engine)
    return run


def throughput(manifest: Path, folder: Path, workers: int) -> float:
    """Print and return bags per second of workers that have imported everything."""
    with Engine(FleetSettings(workers=workers, memory=1.5)) as engine:
        warm = [Job(str(k), _import, (k,)) for k in range(8 * workers)]
        list(engine.run(iter(warm)))
        before = resource.getrusage(resource.RUSAGE_SELF)
        began = time.monotonic()
        run = work(manifest, folder, engine)
        seconds = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_SELF)
    client = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    count = run.counts.total()
    print(
        f'{workers} workers: {count} bags in {seconds:.1f} s, {count / seconds:.2f}/s; processor: '
        f'client {100 * client / seconds:.0f} %'
    )
    return count / seconds


def _import(number: int) -> int:
    from robotid_ros.fleet import session

    time.sleep(0.2)  # so that every worker gets one
    return number + len(session.__name__)


def largest_difference(store: Store) -> float:
    """
    Return the largest relative difference of pooled estimates from those of one process.

    An estimate that is zero within its σ has no digits that could agree: there σ is what the
    difference is relative to.
    """
    worst = 0.0
    sessions = [row for row in store.current() if row['status'] == IDENTIFIED]
    for row in pool(store):
        robot, base, settings = store.model(row['type'], row['configuration']).build()
        own = [s for s in sessions if s['type'] == row['type']]
        own = [s for s in own if row['level'] != ROBOT or s['robot'] == row['name']]
        assert {s['key'] for s in own} == set(row['sessions'])
        logs = LogSet(tuple(open_recording(s['source'], robot.joints) for s in own))
        assert logs.in_memory
        every = observe_recording(logs, robot, base, settings.signals).system
        expected = fit(every, settings.method)
        found = np.array([p['value'] for p in row['parameters']])
        size = np.maximum(np.abs(expected.value), expected.sigma)
        difference = np.abs(found - expected.value) / size
        worst = max(worst, float(difference.max()))
    return worst


def check_findings(store: Path) -> Iterator[str]:
    """Print what the report finds; yield what it misses, and whom it accuses wrongly."""
    found = write_fleet_report(store, store / 'report.html')
    for finding in found:
        print(f'  {finding}')
    drifting = {(type_, robot_name(type_, robot)) for type_, robot, _ in DRIFTS}
    wanted = {
        DRIFT: drifting,
        PAYLOAD_KIND: {(PAYLOAD[0], robot_name(*PAYLOAD))},
        SIGN_KIND: {(SIGN[0], robot_name(*SIGN[:2]))},
    }
    for kind, names in wanted.items():
        seen = {(f.values['type'], f.values['robot']) for f in select(found, kind)}
        yield from (f'{kind} of {robot} not found' for _, robot in sorted(names - seen))
        yield from (f'{kind} of {robot}, which has none' for _, robot in sorted(seen - names))
    guilty = set().union(*wanted.values())
    others = {(f.values['type'], f.values['robot']) for f in select(found, OUTLIER)} - guilty
    yield from (f'{robot} accused' for _, robot in sorted(others))


class Killing(Engine):
    """An engine whose workers die on the way."""

    def __init__(self, cluster: Cluster):
        self.cluster, self.done = cluster, 0
        cluster.start(workers=2)
        super().__init__(FleetSettings(), cluster.address)

    def run(self, jobs: Iterator[Job]) -> Iterator[tuple[Job, Any]]:
        """Yield what is done, and kill."""
        for outcome in super().run(jobs):
            self.done += 1
            if self.done in KILLS:
                self.cluster.kill_worker()
                self.cluster.add_worker()
            yield outcome


def values(store: Path) -> dict[str, bytes]:
    """Return the files of a store but those that say when and how fast it was made."""
    files = (file for name in ('sessions', 'pooled') for file in (store / name).rglob('*.parquet'))
    return {str(file.relative_to(store)): file.read_bytes() for file in files}


def killed_run(manifest: Path, folder: Path) -> Run:
    """Run the fleet while workers die."""
    with Cluster() as cluster, Killing(cluster) as engine:
        run = work(manifest, folder, engine)
    pool(run.store)
    return run


def main() -> int:
    """Make the fleet, run it in every way, print and judge."""
    parser = command_line(__doc__)
    parser.add_argument('--folder', type=Path, help='of bags made before; default: make them')
    args = parser.parse_args()
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        manifest = _timed('bags made', lambda: _bags(args.folder or scratch / 'bags'))
        rates = [throughput(manifest, scratch / f'store_{n}', n) for n in (1, 2)]
        print(f'2 workers over 1: {rates[1] / rates[0]:.2f}')
        if rates[1] < SPEED_UP * rates[0]:
            missed.append(f'{rates[1] / rates[0]:.2f} times one worker, not {SPEED_UP}')
        store = Store.open(scratch / 'store_2')
        worst = _timed('pooled and compared', lambda: largest_difference(store))
        print(f'pooled estimates differ from one process by {worst:.1e}')
        if not worst <= DIFFERENCE:
            missed.append(f'pooled estimates differ by {worst:.1e}')
        failed = [row for row in store.current() if row['status'] != IDENTIFIED]
        for row in failed:
            print(f'  {row["robot"]}: {row["reason"]}')
        if len(failed) != len(BROKEN):
            missed.append(f'{len(failed)} rows of reasons, not {len(BROKEN)}')
        missed += check_findings(scratch / 'store_2')
        run = _timed('with kills', lambda: killed_run(manifest, scratch / 'store_killed'))
        print(f'with {len(KILLS)} kills: {dict(run.counts)}')
        if values(scratch / 'store_killed') != values(scratch / 'store_2'):
            missed.append('the store of the run with kills differs')
    return verdict(missed, args.check)


def _bags(folder: Path) -> Path:
    manifest = folder / 'manifest.csv'
    if manifest.exists():
        return manifest
    folder.mkdir(parents=True, exist_ok=True)
    return write_fleet(folder)


def _timed(what: str, function: Callable[[], Any]) -> Any:
    began = time.monotonic()
    result = function()
    print(f'{what}: {time.monotonic() - began:.1f} s')
    return result


if __name__ == '__main__':
    sys.exit(main())
