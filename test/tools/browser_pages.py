"""Pages in a real browser, as tests and benchmarks open and use them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
import shutil
from typing import Any

BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')


def find_browser() -> str | None:
    """Return the path of a Chromium, None where there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def launch(playwright: Any, path: str) -> Any:
    """Start the browser."""
    return playwright.chromium.launch(executable_path=path, args=['--no-sandbox'])


@contextmanager
def opened(
    browser: Any,
    page: Path,
    width: int = 1400,
    motion: str = 'reduce',
    patience: float = 240_000.0,
) -> Iterator[tuple[Any, list[str]]]:
    """Open a page without a network until its plots stand [ms]; with it what it complains of."""
    context = browser.new_context(
        viewport={'width': width, 'height': 900},
        reduced_motion=motion,
        offline=True,
    )
    tab, said = context.new_page(), list[str]()
    tab.set_default_timeout(patience)
    tab.on('console', lambda m: said.append(m.text) if m.type == 'error' else None)
    tab.on('pageerror', lambda error: said.append(str(error)))
    tab.on('request', lambda r: said.append(r.url) if r.url.startswith('http') else None)
    try:
        tab.goto(page.as_uri())
        tab.wait_for_function('plots && plots.is_idle')
        yield tab, said
    finally:
        context.close()


def drag_over_first_effort(tab: Any) -> None:
    """Choose the middle fifth of the first plot, as a reader who zooms and thinks does."""
    place = tab.locator('#plot-0')
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    middle = box['y'] + box['height'] / 2
    tab.mouse.move(box['x'] + 0.4 * box['width'], middle)
    tab.mouse.down()
    tab.wait_for_timeout(400)
    tab.mouse.move(box['x'] + 0.6 * box['width'], middle, steps=5)
    tab.mouse.up()


def serious_findings(tab: Any) -> list[str]:
    """Return what axe-core finds that is serious, with the element that it is about."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(tab).response
    assert found['passes']
    bad = [each for each in found['violations'] if each['impact'] in ('serious', 'critical')]
    return [f'axe: {each["id"]}: {each["nodes"][0]["html"][:200]}' for each in bad]
