"""Run tests on a copy of the package: which fail, what each file of them runs and takes."""

import ast
import json
import multiprocessing
import os
from pathlib import Path
import re
import resource
import shutil
import sys
import types
from typing import NamedTuple

from common import ROOT

CORE = 'robotid_ros/core'
COPIED = 'robotid_ros test urdf config launch benchmarks docs pyproject.toml package.xml'.split()
# Processor time of the tests of one mutant [s]: several times what the slowest of them need.
LIMIT = 400
SURVIVED, OUT_OF_TIME = 'SURVIVED', 'no end'
# Processes that begin with what takes long to import, and nothing of the package.
WORKERS = multiprocessing.get_context('forkserver')
WORKERS.set_forkserver_preload(
    ['hypothesis', 'pinocchio', 'pytest', 'scipy.interpolate', 'scipy.optimize', 'scipy.signal',
     'scipy.stats', 'yaml']
)  # fmt: skip


class Run(NamedTuple):
    """
    What tests did: first failure, processor time [s], and what they called of the core.

    `called`: first line of each function, 0 of an import, by the module's path without its suffix.
    """

    killer: str
    seconds: float
    called: dict[str, list[int]]


def function_around(source: str, line: int) -> int:
    """Return the first line of the innermost function around a line, as in `Run`."""
    found = 0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            decorators = getattr(node, 'decorator_list', [])
            first = min(each.lineno for each in [node, *decorators])
            if first <= line <= (node.end_lineno or line):
                found = max(found, first)
    return found


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


def run_tests(tree: Path, files: list[str], *, traced: bool = False) -> Run:
    """Run tests in a tree until one fails."""
    output, report = tree / 'output.txt', tree / 'report.json'
    report.unlink(missing_ok=True)
    arguments = str(tree), files, str(output), str(report), traced
    process = WORKERS.Process(target=_run_pytest, args=arguments)
    process.start()
    process.join()
    if (process.exitcode or 0) < 0 or not report.exists():
        return Run(OUT_OF_TIME, LIMIT, {})
    text, (seconds, called) = output.read_text(), json.loads(report.read_text())
    failed = re.search(r'^(?:FAILED|ERROR) (\S+)', text, re.MULTILINE)
    if process.exitcode and not failed:
        raise SystemExit(f'the tests did not run:\n{text[-2000:]}')
    killer = failed.group(1).removeprefix('test/core/') if failed else SURVIVED
    return Run(killer, seconds, called)


def _run_pytest(tree: str, files: list[str], output: str, report: str, traced: bool) -> None:
    """Run in a process of its own, in which nothing of the package was imported yet."""
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    os.chdir(tree)
    sys.path.insert(0, tree)
    with open(output, 'w') as stream:
        for descriptor in (1, 2):
            os.dup2(stream.fileno(), descriptor)
    seen = set[types.CodeType]()
    if traced:
        sys.settrace(lambda frame, *_: seen.add(frame.f_code))
    code = pytest.main(['-x', '-q', '--tb=no', '-p', 'no:cacheprovider', *files])
    sys.settrace(None)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    Path(report).write_text(
        json.dumps((usage.ru_utime + usage.ru_stime, _functions(seen, f'{tree}/{CORE}/')))
    )
    sys.exit(code)


def _functions(seen: set[types.CodeType], core: str) -> dict[str, list[int]]:
    called: dict[str, list[int]] = {}
    for code in seen:
        if code.co_filename.startswith(core):
            module = code.co_filename.removeprefix(core).removesuffix('.py')
            first = 0 if code.co_name == '<module>' else code.co_firstlineno
            called.setdefault(module, []).append(first)
    return called
