"""
Measure the report: size, time to write, time to open in a browser; screenshots on demand.

    python benchmarks/report.py [FOLDER …] [--pictures DIR] [--check]

FOLDER holds what `robotid identify` wrote. Without one, results are made up: two joints, six
joints with 45,000 rows, seven joints with an hour at 1 kHz. A browser is used where Chromium and
playwright are installed.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
import shutil
import sys
import tempfile
import time
from typing import Any

from common import verdict
import numpy as np

from robotid_ros.files.report.page import write_report
from robotid_ros.files.results import Residual, Results
from robotid_ros.files.results_file import read_results
from robotid_ros.files.torques_file import Torques

# Joints and rows of the made-up results.
CASES = {'two joints': (2, 4000), '45,000 rows': (6, 45_000), 'an hour at 1 kHz': (7, 3_600_000)}
MOST_MEGABYTES = 3.0
WIDTHS = (1400, 768, 390)
SECONDS = 300.0  # a browser that has not drawn a page by then has failed


def made_up(joints: int, rows: int) -> Results:
    """Return results with efforts and their parts, all that grows with a recording."""
    rng = np.random.default_rng(1)
    names = tuple(f'joint_{k + 1}' for k in range(joints))
    time_ = np.arange(rows) * 1e-3
    angle = np.outer(time_, 1.0 + np.arange(joints))
    parts = [-np.sin(angle), 2.0 * np.sin(angle), 0.5 * np.sign(np.cos(angle)), 0.1 + 0.0 * angle]
    predicted = sum(parts)
    measured = predicted + 0.05 * rng.normal(size=angle.shape)
    data = Torques(names, time_, measured, predicted, np.sin(angle), np.cos(angle), *parts)
    lines = tuple(Residual(name, 0.03, 0.05, 1.6, 'N·m', 0.03, 0.99) for name in names)
    return Results(
        'robot', 'wls', '', names, (), (), lines, lines, torques={'identification': data}
    )


def cases(folders: list[str]) -> Iterator[tuple[str, Results]]:
    """Yield names and results."""
    for folder in folders:
        yield Path(folder).name, read_results(folder)
    if not folders:
        for name, (joints, rows) in CASES.items():
            yield name, made_up(joints, rows)


def open_browser() -> Any | None:
    """Start Chromium by playwright; None where either is missing."""
    path = next(filter(None, map(shutil.which, ('chromium', 'google-chrome'))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        print('no browser: install Chromium and playwright to measure it')
        return None
    playwright = sync_playwright().start()
    return playwright.chromium.launch(executable_path=path, args=['--no-sandbox'])


def show(browser: Any, page: Path, pictures: Path | None) -> float:
    """Open a page in a browser; return the seconds until all of its plots stand."""
    seconds = 0.0
    for scheme in ('light', 'dark'):
        for width in WIDTHS if pictures else WIDTHS[:1]:
            context = browser.new_context(
                viewport={'width': width, 'height': 900}, color_scheme=scheme, offline=True
            )
            tab = context.new_page()
            began = time.monotonic()
            tab.goto(page.as_uri())
            tab.wait_for_function('plots && plots.is_idle', timeout=1e3 * SECONDS)
            seconds = seconds or time.monotonic() - began
            if pictures:
                name = f'{page.stem}_{width}_{scheme}.png'
                tab.screenshot(path=pictures / name, full_page=True)
            context.close()
    return seconds


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('folder', nargs='*')
    parser.add_argument('--pictures', type=Path, help='folder of screenshots, three widths')
    parser.add_argument('--check', action='store_true', help='fail where a page is too large')
    arguments = parser.parse_args()
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    browser, short = open_browser(), []
    with tempfile.TemporaryDirectory() as folder:
        for name, results in cases(arguments.folder):
            began = time.process_time()
            page = write_report(results, Path(folder) / f'{name.replace(" ", "_")}.html')
            wrote, size = time.process_time() - began, page.stat().st_size / 1e6
            print(f'{name:20s} {size:.2f} MB, written in {wrote:.1f} s of CPU', end='')
            if browser is not None:
                print(f', opened in {show(browser, page, arguments.pictures):.1f} s', end='')
            print(flush=True)
            if size > MOST_MEGABYTES:
                short.append(f'{name}: {size:.2f} MB')
    if browser is not None:
        browser.close()
    return verdict(short, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
