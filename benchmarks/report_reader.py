"""What a reader does with a page in a browser, and what of it does not work."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
import shutil
from typing import Any

PHONE = 390
SECONDS = 300.0  # a browser that has not drawn a page by then has failed
COLOR = 'plots.roots()[0].below[0].major_label_text_color'
TIME = "(() => { const t = plots.get_model_by_name('time'); return [t.start, t.end]; })()"
VALUES = 'all => all.map((cell) => Number(cell.dataset.v))'


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


@contextmanager
def opened(
    browser: Any, page: Path, width: int = 1400, scheme: str = 'light'
) -> Iterator[tuple[Any, list[str]]]:
    """Open a page without a network until its plots stand; with it what the console says."""
    context = browser.new_context(
        viewport={'width': width, 'height': 900}, color_scheme=scheme, offline=True
    )
    tab, said = context.new_page(), list[str]()
    tab.set_default_timeout(1e3 * SECONDS)
    tab.on('console', lambda m: said.append(m.text) if m.type == 'error' else None)
    tab.on('pageerror', lambda error: said.append(str(error)))
    tab.goto(page.as_uri())
    tab.wait_for_function('plots && plots.is_idle')
    yield tab, said
    context.close()


def shortcomings(browser: Any, page: Path) -> list[str]:
    """Use a page as a reader would; return what does not work."""
    found = list[str]()
    with opened(browser, page) as (tab, said):
        found += [*_zoom(tab), *_sort(tab), *_dark_and_print(tab), *said]
    for scheme in ('light', 'dark'):
        with opened(browser, page, PHONE, scheme) as (tab, said):
            if tab.evaluate('document.documentElement.scrollWidth') > PHONE:
                found.append('wider than a phone')
            found += [*_serious(tab), *said]
    return found


def _zoom(tab: Any) -> Iterator[str]:
    """Drag over the first effort."""
    whole = tab.evaluate(TIME)
    place = tab.locator('#plot-0')
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    middle = box['y'] + box['height'] / 2
    tab.mouse.move(box['x'] + 0.4 * box['width'], middle)
    tab.mouse.down()
    tab.mouse.move(box['x'] + 0.6 * box['width'], middle, steps=5)
    tab.mouse.up()
    try:
        tab.wait_for_function(f'{TIME}[1] < {whole[1]}')
    except Exception as error:
        yield f'dragging does not zoom: {type(error).__name__}'


def _sort(tab: Any) -> Iterator[str]:
    """Sort the base parameters by their values."""
    button = tab.locator('#base thead button', has_text='value')
    cells = tab.locator('#base table.sortable tbody td:nth-child(2)')
    button.click()
    values = cells.evaluate_all(VALUES)
    if len(values) < 2 or values != sorted(values):
        yield 'a click on a head does not sort'


def _dark_and_print(tab: Any) -> Iterator[str]:
    light = tab.evaluate(COLOR)
    tab.locator('#theme').click()
    if tab.evaluate(COLOR) == light:
        yield 'dark mode leaves the plots'
    tab.emulate_media(media='print')
    try:
        tab.wait_for_function(f"{COLOR} === '{light}'")  # paper is white
    except Exception as error:
        yield f'print is not light: {type(error).__name__}'
    if tab.locator('details:not([open])').count():
        yield 'print leaves something folded'
    if not tab.pdf(format='A4', print_background=True).startswith(b'%PDF'):
        yield 'it does not print'


def _serious(tab: Any) -> Iterator[str]:
    """Ask axe-core, where it is installed."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        print(' (without axe-playwright-python)', end='')
        return
    for each in Axe().run(tab).response['violations']:
        if each['impact'] in ('serious', 'critical'):
            yield f'axe: {each["id"]}: {each["nodes"][0]["html"][:120]}'
