"""
What damaged files do: thousands of them, each read in a process of its own with limits.

No file may end in a traceback, take over 20 s or 1 GB, or give other parameters without a word.
Prints a table by kind. Usage: `python benchmarks/damaged_files.py [--count 2000] [--check]`.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import os
from pathlib import Path
import random
import sys
import tempfile

from common import command_line, ROOT, verdict

sys.path.insert(0, str(ROOT / 'test' / 'tools'))
from damage import Good, is_silently_wrong, KINDS, make_good
from isolated import robotid

GOOD: list[Good] = []


def judge(kind: str, seed: int) -> tuple[str, int, str, str]:
    """Damage one file; return kind, seed, what came of it and the fault, '' for none."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = KINDS[kind](GOOD[0], random.Random(f'{kind} {seed}'), folder)
        outcome = robotid(*command)
        fault = outcome.fault
        if not fault and 'urdf' not in kind and kind not in ('session', 'configuration'):
            fault = is_silently_wrong(GOOD[0], folder)
    return kind, seed, 'read' if outcome.code == 0 else 'refused', fault


def judged(count: int, workers: int, only: str) -> Iterator[tuple[str, int, str, str]]:
    """Judge files of all kinds in turn."""
    kinds = [kind for kind in KINDS if only in kind]
    jobs = [(kinds[k % len(kinds)], k // len(kinds)) for k in range(count)]
    with ProcessPoolExecutor(workers, mp_context=get_context('fork')) as pool:
        for future in [pool.submit(judge, *job) for job in jobs]:
            yield future.result()


def main() -> int:
    """Damage, read, count."""
    parser = command_line(__doc__)
    parser.add_argument('--count', type=int, default=2000)
    parser.add_argument('--workers', type=int, default=os.cpu_count() or 1)
    parser.add_argument('--only', default='', help='kinds whose name holds this')
    args = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    faults = []
    with tempfile.TemporaryDirectory() as name:
        GOOD.append(make_good(Path(name)))
        robotid('identify', Path(name, 'bag'), '-o', Path(name, 'out'))
        for kind, seed, what, fault in judged(args.count, args.workers, args.only):
            counts[kind, 'fault' if fault else what] += 1
            if fault:
                faults.append(f'{kind} {seed}: {fault}')
                print(faults[-1], flush=True)
    print(f'{"kind":16} {"read":>8} {"refused":>8} {"faults":>8}')
    for kind in KINDS:
        cells = (counts[kind, what] for what in ('read', 'refused', 'fault'))
        print(f'{kind:16} ' + ' '.join(f'{cell:8}' for cell in cells))
    return verdict(faults, args.check)


if __name__ == '__main__':
    sys.exit(main())
