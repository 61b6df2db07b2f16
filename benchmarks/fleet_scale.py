"""
A day of 100,000 arms with an hour each: simulated at full size, from durations measured here.

Measures what a piece of a bag, a task, a row and a merge take, then simulates client, scheduler
and workers as queues, one event a task. Prints for numbers of workers the hours that a day's bags
take, and how busy each part is: the busiest breaks first.
"""

import argparse
from collections.abc import Iterator
import dataclasses
import heapq
from pathlib import Path
import pickle
import sys
import tempfile
import time

from common import command_line, ROOT
import fleet_bags
import numpy as np

from robotid_ros.files.bags import BagWriter
from robotid_ros.fleet.engine import Engine, Job
from robotid_ros.fleet.model import load_models
from robotid_ros.fleet.pooling import merge
from robotid_ros.fleet.run import hash_bag
from robotid_ros.fleet.session import factors_of, identify_session, put_together, session_row, Task
from robotid_ros.fleet.settings import FleetSettings
from robotid_ros.fleet.sources import Source
from robotid_ros.fleet.store import Store

ARMS, HOUR, RATE = 100_000, 3600.0, 1000.0
# Tasks that do nothing, to see what one costs; merges that are timed.
TASKS, MERGES = 2000, 20
WORKERS = (100, 300, 1000, 3000, 10_000)
# Spread of the durations of pieces, as σ of their logarithm.
SPREAD = 0.2


@dataclasses.dataclass(frozen=True)
class Constants:
    """
    What was measured.

    Attributes
    ----------
    piece : processor time of a piece [s]
    task : of scheduler and client per task [s]
    together : of a worker to merge the pieces of a bag [s]
    row : of the client to write its row [s]
    merge : of one more bag in a pool [s]
    read : of the client per byte that it hashes [s]
    bytes_in, bytes_out : of a bag of an hour, and of its row
    pieces : of a bag

    """

    piece: float
    task: float
    together: float
    row: float
    merge: float
    read: float
    bytes_in: float
    bytes_out: float
    pieces: int


def write_piece(folder: Path, seconds: float) -> Path:
    """Write the bag of a TX-40 at 1 kHz."""
    fleet_bags.RATE, fleet_bags.SECONDS = RATE, seconds
    arm = fleet_bags.Arm('tx40', 0)
    t, q, effort, _ = arm.record(0)
    stamps = 1_700_000_000 * 10**9 + np.round(t * 1e9).astype(np.int64)
    with BagWriter(folder, 'piece', flush_period=60.0) as writer:
        writer.add_topic('/joint_states', fleet_bags.JOINT_STATE)
        messages = fleet_bags.joint_states(arm.joints, stamps, q, effort)
        for stamp, data in zip(stamps.tolist(), messages, strict=True):
            writer.write('/joint_states', data, stamp)
    return writer.path


def measure(folder: Path) -> Constants:
    """Measure on this machine."""
    settings = FleetSettings()
    bag, pieces = write_piece(folder, settings.piece), round(HOUR / settings.piece)
    models, _ = load_models([str(ROOT / 'config' / 'tx40.yaml')])
    (model,) = models.values()
    task = Task(str(bag), model, (0, None), pieces)
    identify_session(task, settings.piece)  # imports
    session = identify_session(task, settings.piece)
    assert session.system is not None, session.reason
    began = time.process_time()
    _, size = hash_bag(str(bag))
    read = (time.process_time() - began) / size
    began = time.process_time()
    whole = put_together([session] * pieces, model)
    together = time.process_time() - began
    store, source = Store.open(folder / 'store', create=True), Source(str(bag), 'r')
    labels = {'key': 'k', 'bag': '', 'configuration': model.hash, 'version': ''}
    store.add_session(session_row(whole, source, labels, size), model.type, 'warm')
    began = time.process_time()
    for _ in range(pieces):
        pickle.loads(pickle.dumps(session))  # to the worker that puts them together
    row = session_row(whole, source, labels, size)
    store.add_session(row, model.type, 'r')
    row_seconds = time.process_time() - began
    began = time.process_time()
    merge(factors_of(row) for _ in range(MERGES))
    merge_seconds = (time.process_time() - began) / MERGES
    written = (
        sum(file.stat().st_size for file in (folder / 'store' / 'sessions').rglob('k.parquet'))
        // 2
    )
    return Constants(
        session.seconds, task_seconds(), together, row_seconds, merge_seconds, read,
        size * pieces, written, pieces,
    )  # fmt: skip


def task_seconds() -> float:
    """Return what a task costs scheduler and client together, of those that do nothing [s]."""
    with Engine(FleetSettings(workers=1, waiting=50)) as engine:
        list(engine.run(Job(f'warm{k}', len, ('',)) for k in range(50)))
        began = time.monotonic()
        list(engine.run(Job(str(k), len, ('',)) for k in range(TASKS)))
        return (time.monotonic() - began) / TASKS


@dataclasses.dataclass(frozen=True)
class Day:
    """Hours that a day's bags take, and the share of it that each part works."""

    hours: float
    workers: float
    scheduler: float
    client: float


def simulate(constants: Constants, workers: int, *, hashes: bool, arms: int = ARMS) -> Day:
    """
    Simulate a day: every piece of every bag, `FleetSettings.waiting` in flight per worker.

    Parameters
    ----------
    constants : durations
    workers : of one thread each
    hashes : whether the client reads every bag for its hash; not where a server knows it
    arms : with one bag each

    """
    rng = np.random.default_rng(0)
    count = arms * constants.pieces
    durations = constants.piece * np.exp(SPREAD * rng.normal(size=count) - SPREAD**2 / 2.0)
    durations[constants.pieces - 1 :: constants.pieces] += constants.together
    fetch = constants.read * constants.bytes_in if hashes else 0.0
    free = [0.0] * workers
    heapq.heapify(free)
    ends: list[float] = []
    client = scheduler = busy_client = busy_scheduler = 0.0
    room = workers * FleetSettings().waiting
    for k in range(count):
        if len(ends) >= room:
            # The client takes the next result before it hands out another piece.
            client = max(client, heapq.heappop(ends))
        work = (fetch if k % constants.pieces == 0 else 0.0) + constants.task / 2.0
        if k % constants.pieces == constants.pieces - 1:
            work += constants.row + constants.merge + constants.task / 2.0
        client, busy_client = client + work, busy_client + work
        scheduler = max(scheduler, client) + constants.task / 2.0
        busy_scheduler += constants.task / 2.0
        start = max(heapq.heappop(free), scheduler)
        end = start + float(durations[k])
        heapq.heappush(free, end)
        heapq.heappush(ends, end)
    total = max(max(free), client)
    return Day(
        total / 3600.0, float(durations.sum()) / total / workers,
        busy_scheduler / total, busy_client / total,
    )  # fmt: skip


def table(constants: Constants, arms: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield '| workers | hours | workers busy | scheduler | client | hours, hashed by the server |'
    yield '| ---: | ---: | ---: | ---: | ---: | ---: |'
    for workers in WORKERS:
        day, other = (simulate(constants, workers, hashes=x, arms=arms) for x in (True, False))
        shares = ' | '.join(f'{100 * x:.0f} %' for x in (day.workers, day.scheduler, day.client))
        yield f'| {workers} | {day.hours:.1f} | {shares} | {other.hours:.1f} |'


def main() -> int:
    """Measure, simulate, print."""
    parser: argparse.ArgumentParser = command_line(__doc__, check=False)
    parser.add_argument('--arms', type=int, default=ARMS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        constants = measure(Path(folder))
    for field in dataclasses.fields(constants):
        print(f'{field.name}: {getattr(constants, field.name):.3g}')
    hour = constants.pieces * constants.piece + constants.together
    day = args.arms * hour
    print(f'processor: {hour:.0f} s an hour of an arm, '
          f'{day / 86400:.0f} cores for a day')  # fmt: skip
    print(f'in: {args.arms * constants.bytes_in / 86400e9:.2f} GB/s, '
          f'out: {args.arms * constants.bytes_out / 1e9:.0f} GB a day')  # fmt: skip
    print('\n'.join(table(constants, args.arms)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
