"""
Do the tests see mistakes? Mutations of the core, and which test notices each.

    python benchmarks/mutants.py [--count 100] [--seed 0] [--workers 2] [--only TEXT] [--check]

Each is applied in a copy of the package, never in the tree, and the tests that know the module run
until the first fails: those that name it, those of its folder. To the scientific mistakes of
`named_mutants.py` come as many as are wanted, drawn from all that `mutation_operators.py` makes of
the modules below: so many of each, so that a long one counts no more than a short one.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
import importlib.util
import multiprocessing
import os
from pathlib import Path
import queue
import random
import re
import resource
import shutil
import sys
import tempfile
from typing import NamedTuple

from common import command_line, ROOT, verdict
from mutation_operators import Mutation, mutations
from named_mutants import EQUIVALENT, NAMED

CORE = 'robotid_ros/core'
# Where formulas are; searches, settings and texts are not.
MODULES = tuple(
    """
    model/base_parameters model/dynamics model/drive_torques model/friction model/friction_shapes
    model/mimic_joints
    parameters/essential parameters/physical_consistency parameters/prior_pull parameters/standard
    payload/drive_gains payload/payload
    regression/block_bootstrap regression/block_sampling regression/covariance
    regression/estimators regression/gaussian_prior regression/goodness_of_fit
    regression/least_squares regression/model_error regression/observation_system
    replay/anderson_mixing replay/initial_parameters replay/replay_problem
    replay/simulated_observation replay/simulation/closed_loop
    replay/simulation/direct_dynamics replay/simulation/integrators
    selection/cross_validation signals/filters signals/fourier_series signals/periodic
    signals/preparation signals/usable_rows timing/delay_compensation timing/delay_estimation
    """.split()
)
COPIED = 'robotid_ros test urdf config launch benchmarks pyproject.toml package.xml'.split()
# Processor time of the tests of one mutant [s]: several times what the slowest of them need.
LIMIT = 400
# Run last, for every module.
END_TO_END = [f'test/core/pipeline/test_{name}.py' for name in ('identification', 'invariances')]
ALLOWED = 0.05  # share that may survive
SURVIVED, OUT_OF_TIME = 'SURVIVED', 'no end'
# Processes that begin with what takes long to import, and nothing of the package.
WORKERS = multiprocessing.get_context('forkserver')
WORKERS.set_forkserver_preload(
    ['hypothesis', 'pinocchio', 'pytest', 'scipy.interpolate', 'scipy.optimize', 'scipy.signal',
     'scipy.stats', 'yaml']
)  # fmt: skip


class Result(NamedTuple):
    """A mutation and the test that noticed it."""

    mutation: Mutation
    killer: str

    def line(self) -> str:
        """Format a row of the table."""
        reason = EQUIVALENT.get(self.mutation.name, '')
        killer = f'equivalent: {reason}' if reason and self.killer == SURVIVED else self.killer
        return f'{self.mutation.name}\n    {killer}'


def named() -> list[Mutation]:
    """Return the mistakes of the list, which name the text that they replace."""
    found = []
    listed = ((module, *entry) for module, entries in NAMED.items() for entry in entries)
    for module, what, old, new in listed:
        source = (ROOT / CORE / f'{module}.py').read_text().encode()
        if source.count(old.encode()) != 1:
            raise SystemExit(f'{module}: {what}: its text is not there once, write it anew: {old}')
        start = source.index(old.encode())
        line = source[:start].count(b'\n') + 1
        found.append(Mutation(module, line, what, old, new, start, start + len(old.encode())))
    return found


def drawn(seed: int, count: int) -> list[Mutation]:
    """Draw mutations, from each module in turn."""
    rng = random.Random(seed)
    pools = []
    for module in MODULES:
        pool = mutations(module, (ROOT / CORE / f'{module}.py').read_text())
        rng.shuffle(pool)
        pools.append(pool)
    rng.shuffle(pools)
    found: list[Mutation] = []
    while len(found) < count and any(pools):
        found += [pool.pop() for pool in pools if pool]
    return found[:count]


def tests_of(module: str, tree: Path) -> list[str]:
    """Return the test files in a tree that know a module: those that name it first."""
    folder, stem = tree / 'test/core' / module.split('/')[0], module.split('/')[-1]
    word = re.compile(rf'\.{stem}\b|import .*\b{stem}\b')
    files = [path for path in (tree / 'test/core').rglob('test_*.py')]
    names = {path: bool(word.search(path.read_text())) for path in files}
    chosen = [path for path in files if names[path] or path.is_relative_to(folder)]
    chosen.sort(
        key=lambda path: (
            stem not in path.stem, not names[path], not path.is_relative_to(folder), path.name
        )
    )  # fmt: skip
    return list(dict.fromkeys([*(str(path.relative_to(tree)) for path in chosen), *END_TO_END]))


def run_tests(tree: Path, files: list[str]) -> str:
    """Run tests in a tree until one fails; return which, or that none did."""
    output = tree / 'output.txt'
    process = WORKERS.Process(target=_run_pytest, args=(str(tree), files, str(output)))
    process.start()
    process.join()
    if (process.exitcode or 0) < 0:
        return OUT_OF_TIME
    text = output.read_text()
    failed = re.search(r'^(?:FAILED|ERROR) (\S+)', text, re.MULTILINE)
    if process.exitcode and not failed:
        raise SystemExit(f'the tests did not run:\n{text[-2000:]}')
    return failed.group(1).removeprefix('test/core/') if failed else SURVIVED


def _run_pytest(tree: str, files: list[str], output: str) -> None:
    """Run in a process of its own, in which nothing of the package was imported yet."""
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    os.chdir(tree)
    sys.path.insert(0, tree)
    with open(output, 'w') as stream:
        for descriptor in (1, 2):
            os.dup2(stream.fileno(), descriptor)
    sys.exit(pytest.main(['-x', '-q', '--tb=no', '-p', 'no:cacheprovider', *files]))


def copy_of_tree(folder: Path) -> Path:
    """Copy what the tests need."""
    folder.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns('__pycache__', '.hypothesis')
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    return folder


def try_mutation(tree: Path, mutation: Mutation) -> str:
    """Apply one mutation in a tree, run the tests, and undo it."""
    path = tree / CORE / f'{mutation.module}.py'
    source = path.read_text()
    path.write_text(mutation.apply(source))
    # A cached module is known by its second and size, which a mutation may share.
    cached = Path(importlib.util.cache_from_source(str(path)))
    cached.unlink(missing_ok=True)
    try:
        return run_tests(tree, tests_of(mutation.module, tree))
    finally:
        path.write_text(source)
        cached.unlink(missing_ok=True)


def try_all(chosen: list[Mutation], workers: int) -> Iterator[Result]:
    """Try mutations, in a tree of its own each worker; yield what is noticed, as they end."""
    with tempfile.TemporaryDirectory(prefix='mutants-') as folder:
        trees: queue.Queue[Path] = queue.Queue()
        for number in range(workers):
            trees.put(copy_of_tree(Path(folder) / str(number)))
        tree = trees.get()
        files = sorted({name for each in chosen for name in tests_of(each.module, tree)})
        if (failed := run_tests(tree, files)) != SURVIVED:
            raise SystemExit(f'without any mutation {failed} fails')
        trees.put(tree)

        def attempt(mutation: Mutation) -> Result:
            own = trees.get()
            try:
                return Result(mutation, try_mutation(own, mutation))
            finally:
                trees.put(own)

        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(attempt, chosen)


def choose(arguments: argparse.Namespace) -> list[Mutation]:
    """Return the mutations to try."""
    listed = named()
    chosen = [*listed, *drawn(arguments.seed, max(arguments.count - len(listed), 0))]
    if arguments.only:
        chosen = [each for each in chosen if arguments.only in each.name]
    return chosen


def main() -> int:
    """Try them, print the table."""
    parser = command_line(__doc__)
    parser.add_argument('--count', type=int, default=120, help='named ones included')
    parser.add_argument('--seed', type=int, default=0, help='of those drawn')
    parser.add_argument('--only', metavar='TEXT', help='those whose row in the table has it')
    parser.add_argument('--workers', type=int, default=2, choices=(1, 2))
    parser.add_argument('--list', action='store_true', help='print them and try none')
    arguments = parser.parse_args()
    chosen = choose(arguments)
    if arguments.list:
        print('\n'.join(each.name for each in chosen))
        return 0
    results = []
    for result in try_all(chosen, arguments.workers):
        print(result.line(), flush=True)
        results.append(result)
    return summary(results, arguments.check)


def summary(results: list[Result], check: bool) -> int:
    """Print how many each folder's tests notice; fail where too many survive."""
    folders = defaultdict[str, list[bool]](list)
    survivors = []
    for mutation, killer in results:
        folders[mutation.module.split('/')[0]].append(killer != SURVIVED)
        if killer == SURVIVED and mutation.name not in EQUIVALENT:
            survivors.append(mutation.name)
    for folder, seen in sorted(folders.items()):
        print(f'{folder}: {sum(seen)} of {len(seen)}')
    print(f'{len(results)} mutations, {len(survivors)} survive that are no equivalents')
    many = len(survivors) > ALLOWED * len(results)
    return verdict([f'{name} survived' for name in survivors] if many else [], check)


if __name__ == '__main__':
    sys.exit(main())
