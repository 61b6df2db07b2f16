"""What a reader does with a page in a browser, and what of it does not work."""

from collections.abc import Iterator
from pathlib import Path
import sys
from typing import Any

from common import ROOT

sys.path.insert(0, str(ROOT / 'test' / 'tools'))

from browser_pages import drag_over_first_effort, find_browser, launch, opened, serious_findings

PHONE = 390
TIME = "(() => { const t = plots.get_model_by_name('time'); return [t.start, t.end]; })()"


def open_browser() -> Any | None:
    """Start Chromium by playwright; None where either is missing."""
    path = find_browser()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        print('no browser: install Chromium and playwright to measure it')
        return None
    return launch(sync_playwright().start(), path)


def shortcomings(browser: Any, page: Path) -> list[str]:
    """Use a page as a reader would; return what does not work."""
    found = list[str]()
    with opened(browser, page) as (tab, said):
        found += [*_zoom(tab), *said]
    with opened(browser, page, PHONE) as (tab, said):
        if tab.evaluate('document.documentElement.scrollWidth') > PHONE:
            found.append('wider than a phone')
        found += [*_serious(tab), *said]
    return found


def _zoom(tab: Any) -> Iterator[str]:
    from playwright.sync_api import TimeoutError as NotInTime

    whole = tab.evaluate(TIME)
    drag_over_first_effort(tab)
    try:
        tab.wait_for_function(f'{TIME}[1] < {whole[1]}')
    except NotInTime:
        yield 'dragging does not zoom'


def _serious(tab: Any) -> list[str]:
    """Ask axe-core, where it is installed."""
    try:
        return serious_findings(tab)
    except ImportError:
        print(' (without axe-playwright-python)', end='')
        return []
