"""
What a long run costs: many sessions in the same nodes, then one long recording beside live topics.

Prints memory, descriptors and threads of each node with their slopes, the CPU that it uses and the
joint states that the recording lacks. With a load so many busy loops run beside it. The robot runs
with real-time priority where that is allowed, as a controller_manager does: the load is that of
the session's nodes. Usage: `python benchmarks/soak.py [--sessions 30] [--minutes 60] [--load 0]
[--check]`.
"""

from collections.abc import Sequence
import os
from pathlib import Path
import sys
import tempfile
import time

from common import command_line, verdict
from fault_trial import NODES, Trial
from faults import prepare
from measure import busy, run_in_real_time
import numpy as np

from robotid_ros.files.bags import open_recording
from robotid_ros.nodes.common.waiting import wait_until

# Flat: what a session or a minute may add after the first third of the run, which fills caches.
MEGABYTES, HANDLES = 0.5, 0.1
# Joint states that may be missing, as a share.
LOST = 1e-3
# Of the recording.
RATE = 1000.0
# Longest wait for an answer of the recorder on a busy machine [s].
PATIENCE = 60.0
TICK = os.sysconf('SC_CLK_TCK')
FIGURES = ('memory [MB]', 'descriptors', 'threads')


def look_at(pid: int) -> tuple[float, float, float]:
    """Return a process's resident memory [MB], open descriptors and threads."""
    proc = Path('/proc', str(pid))
    pages = int((proc / 'statm').read_text().split()[1])
    megabytes = pages * os.sysconf('SC_PAGE_SIZE') / 1e6
    return megabytes, len(os.listdir(proc / 'fd')), len(os.listdir(proc / 'task'))


def seconds_of(pid: int) -> float:
    """Return the CPU time that a process has used [s]."""
    fields = Path('/proc', str(pid), 'stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def table(what: str, rows: np.ndarray, missed: list[str]) -> None:
    """
    Print first, last and slope of each figure of each node.

    Parameters
    ----------
    what : of which there is a row
    rows : (K, nodes, 3)
    missed : takes what is not flat

    """
    print(f'{"node":16} {"figure":12} {"first":>8} {"last":>8} {"slope":>10} per {what}')
    late = rows[len(rows) // 3 :]
    for j, node in enumerate(NODES):
        for k, figure in enumerate(FIGURES):
            slope = float(np.polyfit(np.arange(len(late)), late[:, j, k], 1)[0])
            print(
                f'{node:16} {figure:12} {rows[0, j, k]:8.1f} {rows[-1, j, k]:8.1f} {slope:10.3f}'
            )
            if slope > (HANDLES if k else MEGABYTES):
                missed.append(f'{node}: {figure} grows by {slope:.3f} per {what}')


def measured(trial: Trial) -> list[tuple[float, float, float]]:
    """Look at every node."""
    return [look_at(trial.process(name)) for name in NODES]


def sessions(trial: Trial, count: int, missed: list[str]) -> None:
    """Run whole sessions one after another."""
    rows = []
    for number in range(count):
        found = trial.complete(f'session {number + 1}')
        if found.complaints or found.not_judged:
            missed.append(f'{found.fault}: {found.not_judged or "; ".join(found.complaints)}')
        rows.append(measured(trial))
        print(f'session {number + 1} of {count}', file=sys.stderr, flush=True)
    table('session', np.array(rows), missed)


def recording(trial: Trial, minutes: float, missed: list[str]) -> None:
    """Record, with live prediction beside it."""
    used = [seconds_of(trial.process(name)) for name in NODES]
    path, rows = Path(trial.client.call_set_bool('recorder/record', True)), []
    for _ in range(max(3, round(minutes))):
        time.sleep(60.0 * minutes / max(3, round(minutes)))
        rows.append(measured(trial))
    table('minute', np.array(rows), missed)
    trial.client.call_set_bool('recorder/record', False, PATIENCE)
    closed = 'the bag was not closed within a minute'
    wait_until(lambda: trial.client.state('recorder') == 'closed', 60.0, what=closed)
    for name, before in zip(NODES, used, strict=True):
        share = (seconds_of(trial.process(name)) - before) / (60.0 * minutes)
        print(f'{name:16} {100 * share:5.1f} % of a core')
    missing, expected = lost_states(path)
    print(f'joint states: {missing} of {expected} lost, {100 * missing / expected:.4f} %')
    if missing > LOST * expected:
        missed.append(f'{missing} of {expected} joint states lost')


def lost_states(path: Path) -> tuple[int, int]:
    """Count joint states that are missing between the first and the last, and those expected."""
    found = open_recording(path)
    pieces: Sequence = [found] if hasattr(found, 'position') else list(found)
    stamps = np.unique(np.concatenate([piece.time for piece in pieces]))
    steps = np.maximum(np.round(np.diff(stamps) * RATE).astype(int), 1)
    return int(np.sum(steps - 1)), int(np.sum(steps)) + 1


def main() -> int:
    """Run, look, judge."""
    parser = command_line(__doc__)
    parser.add_argument('--sessions', type=int, default=30)
    parser.add_argument('--minutes', type=float, default=60.0)
    parser.add_argument('--load', type=int, default=0, help='busy loops beside it')
    args = parser.parse_args()
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as name, busy(args.load, apart=False):
        trial = Trial(*prepare(Path(name), RATE), Path(name), seed=0)
        try:
            trial.start()
            if not run_in_real_time(trial.process('simulated_robot')):
                print('the robot has no real-time priority: a load slows it down, too')
            sessions(trial, args.sessions, missed)
            if args.minutes:
                recording(trial, args.minutes, missed)
        finally:
            trial.close()
    return verdict(missed, args.check)


if __name__ == '__main__':
    sys.exit(main())
