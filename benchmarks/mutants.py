"""
Do the tests see mistakes? Mutations of the core, and which test notices each.

    python benchmarks/mutants.py [--count 100] [--seed 0] [--workers 2] [--only TEXT] [--check]

Each is applied in a copy of the package, never in the tree, and tests run until the first fails:
of those that name the module or are of its folder the files that call the function that is
changed, first what is named after the module, then what takes least. To the scientific mistakes of
`named_mutants.py` come as many as are wanted, drawn from all that `mutation_operators.py` makes of
the modules below: so many of each, so that a long one counts no more than a short one.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
import importlib.util
from pathlib import Path
import queue
import random
import re
import sys
import tempfile
from typing import NamedTuple, TypeVar

from common import command_line, ROOT, verdict
from mutation_operators import Mutation, mutations
from mutation_tests import copy_of_tree, CORE, function_around, Run, run_tests, SURVIVED
from named_mutants import EQUIVALENT, NAMED

T = TypeVar('T')
# Where formulas are; searches, settings and texts are not.
MODULES = tuple(
    """
    model/base_parameters model/dynamics model/friction model/inertial_columns
    parameters/carried_body parameters/essential parameters/physical_consistency
    parameters/standard
    payload/payload
    regression/covariance regression/estimators regression/goodness_of_fit
    regression/least_squares regression/model_error regression/observation_system
    replay/simulation replay/didim replay/replay_problem
    replay/simulated_observation replay/simulation
    mixed/variances regression/delays regression/validation
    signals/filters signals/preparation
    """.split()
)
# Run for every module.
END_TO_END = [f'test/core/pipeline/test_{name}.py' for name in ('identification', 'invariances')]
ALLOWED = 0.05  # share that may survive


class Result(NamedTuple):
    """A mutation and the test that noticed it."""

    mutation: Mutation
    killer: str

    def line(self) -> str:
        """Format a row of the table."""
        reason = EQUIVALENT.get((self.mutation.module, self.mutation.change), '')
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
    """Draw mutations, from each module in turn; a change in one leaves those of the others."""
    pools = []
    for module in MODULES:
        pool = mutations(module, (ROOT / CORE / f'{module}.py').read_text())
        random.Random(f'{seed} {module}').shuffle(pool)
        pools.append(pool)
    random.Random(seed).shuffle(pools)
    found: list[Mutation] = []
    while len(found) < count and any(pools):
        found += [pool.pop() for pool in pools if pool]
    return found[:count]


def tests_of(module: str, tree: Path) -> list[str]:
    """Return the test files in a tree that know a module."""
    folder, stem = tree / 'test/core' / module.split('/')[0], module.split('/')[-1]
    word = re.compile(rf'\.{stem}\b|import .*\b{stem}\b')
    files = [path for path in (tree / 'test/core').rglob('test_*.py')]
    chosen = (
        path for path in files if path.is_relative_to(folder) or word.search(path.read_text())
    )
    return sorted({*(str(path.relative_to(tree)) for path in chosen), *END_TO_END})


def try_mutation(tree: Path, mutation: Mutation, clean: dict[str, Run]) -> str:
    """Apply one mutation in a tree, run the tests that call its function, and undo it."""
    path = tree / CORE / f'{mutation.module}.py'
    source = path.read_text()
    function = function_around(source, mutation.line)
    files = [
        name
        for name in tests_of(mutation.module, tree)
        if function in clean[name].called.get(mutation.module, ())
    ]
    files.sort(key=lambda name: (path.stem not in Path(name).stem, clean[name].seconds))
    path.write_text(mutation.apply(source))
    # A cached module is known by its second and size, which a mutation may share.
    cached = Path(importlib.util.cache_from_source(str(path)))
    cached.unlink(missing_ok=True)
    try:
        return run_tests(tree, files).killer if files else SURVIVED
    finally:
        path.write_text(source)
        cached.unlink(missing_ok=True)


def try_all(chosen: list[Mutation], workers: int) -> Iterator[Result]:
    """Try mutations, in a tree of its own each worker; yield what is noticed, as they end."""
    trees: queue.Queue[Path] = queue.Queue()

    def in_tree(work: Callable[[Path], T]) -> T:
        tree = trees.get()
        try:
            return work(tree)
        finally:
            trees.put(tree)

    files = sorted({name for each in chosen for name in tests_of(each.module, ROOT)})
    with (
        tempfile.TemporaryDirectory(prefix='mutants-') as folder,
        ThreadPoolExecutor(workers) as pool,
    ):
        for number in range(workers):
            trees.put(copy_of_tree(Path(folder) / str(number)))
        runs = pool.map(lambda name: in_tree(lambda t: run_tests(t, [name], traced=True)), files)
        clean = dict(zip(files, runs, strict=True))
        if failed := [run.killer for run in clean.values() if run.killer != SURVIVED]:
            raise SystemExit(f'without any mutation {failed[0]} fails')
        print(f'{sum(run.seconds for run in clean.values()):.0f} s of tests', flush=True)
        yield from pool.map(
            lambda each: Result(each, in_tree(lambda t: try_mutation(t, each, clean))), chosen
        )


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
        if killer == SURVIVED and (mutation.module, mutation.change) not in EQUIVALENT:
            survivors.append(mutation.name)
    for folder, seen in sorted(folders.items()):
        print(f'{folder}: {sum(seen)} of {len(seen)}')
    print(f'{len(results)} mutations, {len(survivors)} survive that are no equivalents')
    many = len(survivors) > ALLOWED * len(results)
    return verdict([f'{name} survived' for name in survivors] if many else [], check)


if __name__ == '__main__':
    sys.exit(main())
