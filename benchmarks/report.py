"""
Measure the report: size, CPU time to write, time to open in a browser, and what works there.

    python benchmarks/report.py [FOLDER …] [--pictures DIR] [--check]

FOLDER holds what `robotid identify` wrote. Without one, results are made up: two joints, six
joints with 45,000 rows by two methods, seven joints with an hour at 1 kHz; and a simulated UR10 is
identified. A browser is used where Chromium and playwright are installed: `report_reader.py`
zooms, prints and runs axe-core.
"""

import argparse
from collections.abc import Iterator
import dataclasses
from pathlib import Path
import sys
import tempfile
import time
from typing import Any

from common import ROOT, verdict
from measure import measure
import numpy as np
from report_reader import open_browser, opened, shortcomings

from robotid_ros.core.regression.validation import PARTS, Validation
from robotid_ros.files.report.page import save_page
from robotid_ros.files.results import Comparison, Entry, read_results, Residual, Results

# Joints and rows of the made-up results.
CASES = {'two joints': (2, 4000), '45,000 rows': (6, 45_000), 'an hour at 1 kHz': (7, 3_600_000)}
BOTH = '45,000 rows'  # with a second method
MOST_MEGABYTES = 3.0
WIDTHS = (1400, 768, 390)
# Largest share of the CPU time of `robotid identify`, its imports included, that the page and its
# libraries take.
MOST_OF_IDENTIFY = 0.25
IDENTIFY = """
import sys, time
import robotid_ros as rid
from robotid_ros.files.trajectory_file import read_design
begin = time.process_time()
log = rid.simulate(sys.argv[1], read_design(sys.argv[2]))
simulated = time.process_time() - begin
found = rid.identify(log)
begin = time.process_time()
import robotid_ros.files.report.page
from robotid_ros.core.regression.validation import PARTS, Validation
from robotid_ros.files.report.page import save_page
imported = time.process_time() - begin
results = rid.save(found, log, sys.argv[3])
whole = time.process_time() - simulated
begin = time.process_time()
save_page('identification', sys.argv[3] + '/again.html', results)
print((imported + time.process_time() - begin) / whole)
"""


def made_up(joints: int, rows: int) -> Results:
    """Return results with efforts and their parts, all that grows with a recording."""
    rng = np.random.default_rng(1)
    names = tuple(f'joint_{k + 1}' for k in range(joints))
    time_ = np.arange(rows) * 1e-3
    angle = np.outer(time_, 1.0 + np.arange(joints))
    parts = [-np.sin(angle), 2.0 * np.sin(angle), 0.5 * np.sign(np.cos(angle)), 0.1 + 0.0 * angle]
    predicted = sum(parts)
    measured = predicted + 0.05 * rng.normal(size=angle.shape)
    known = {'position': np.sin(angle), 'velocity': np.cos(angle)}
    known |= dict(zip(PARTS, parts, strict=True))
    data = Validation(names, time_, measured, predicted, **known)
    lines = tuple(Residual(name, 0.03, 0.05, 1.6, 'N·m', 0.03, 0.99) for name in names)
    values = rng.normal(size=8 * joints)
    base = tuple(
        Entry(f'P{k}', v, 0.1, 10.0 / abs(v), 'kg·m²', names[k % joints], 'essential', f'P{k}')
        for k, v in enumerate(values.tolist())
    )
    torques = {'identification': data}
    return Results('robot', 'wls', '', names, base, (), lines, lines, torques=torques)


def by_both(results: Results) -> Results:
    """Add what a second method, which simulates, leaves besides."""
    history = tuple({'iteration': float(k), 'torque_error': 0.5**k} for k in range(5))
    other = Comparison('didim', results.base[1:], results.identification)
    return dataclasses.replace(results, compared=other, history=history)


def cases(folders: list[str]) -> Iterator[tuple[str, Results]]:
    """Yield names and results."""
    for folder in folders:
        yield Path(folder).name, read_results(folder)
    if not folders:
        for name, (joints, rows) in CASES.items():
            results = made_up(joints, rows)
            yield name, by_both(results) if name == BOTH else results


def look(browser: Any, page: Path, pictures: Path | None) -> float:
    """Open a page; return the seconds until all of its plots stand. Pictures of all widths."""
    began = time.monotonic()
    with opened(browser, page):
        seconds = time.monotonic() - began
    for width in WIDTHS if pictures else ():
        with opened(browser, page, width) as (tab, _):
            tab.screenshot(path=pictures / f'{page.stem}_{width}.png', full_page=True)
    return seconds


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('folder', nargs='*')
    parser.add_argument('--pictures', type=Path, help='folder of screenshots, three widths')
    parser.add_argument(
        '--check', action='store_true', help='fail where one is too large or fails'
    )
    arguments = parser.parse_args()
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    browser, short = open_browser(), []
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.folder:
            files = ROOT / 'config/ur10.yaml', ROOT / 'config/trajectories/ur10.yaml'
            share = float(measure(['-c', IDENTIFY, *files, Path(folder) / 'ur10']).output)
            print(f'ur10: the page takes {share:.0%} of the CPU time of an identification')
            if share > MOST_OF_IDENTIFY:
                short.append(f'ur10: the page takes {share:.0%} of the CPU time')
        for name, results in cases(arguments.folder):
            began = time.process_time()
            path = Path(folder) / f'{name.replace(" ", "_")}.html'
            page = save_page('identification', path, results)
            wrote, size = time.process_time() - began, page.stat().st_size / 1e6
            print(f'{name:20s} {size:.2f} MB, written in {wrote:.1f} s of CPU', end='')
            if browser is not None:
                print(f', opened in {look(browser, page, arguments.pictures):.1f} s', end='')
                short += [f'{name}: {text}' for text in shortcomings(browser, page)]
            print(flush=True)
            if size > MOST_MEGABYTES:
                short.append(f'{name}: {size:.2f} MB')
    if browser is not None:
        browser.close()
    return verdict(short, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
