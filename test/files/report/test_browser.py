"""The page in a real browser: plots, linked axes, sorting, themes, print, accessibility."""

import shutil

import pytest

from robotid_ros.files.report.comparison_page import render as render_comparison
from robotid_ros.files.report.identification_page import render

from . import results as made

sync_api = pytest.importorskip('playwright.sync_api', reason='no playwright is installed')
Axe = pytest.importorskip(
    'axe_playwright_python.sync_playwright', reason='no axe-playwright-python is installed'
).Axe

BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')
# Against hangs only: an idle machine draws a page within seconds [ms].
PATIENCE = 240_000
JOINTS = tuple(f'joint_{k}' for k in range(1, 7))


@pytest.fixture(scope='module')
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f'none of {", ".join(BROWSERS)} is installed')
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=['--no-sandbox'])
        yield running
        running.close()


@pytest.fixture(scope='module')
def pages(tmp_path_factory):
    """Write the pages: two joints with awkward names, six with all that there is, a comparison."""
    folder = tmp_path_factory.mktemp('pages')
    texts = {
        'two': render(made.results()),
        'six': render(made.results(JOINTS, 45_000, 1000.0)),
        'comparison': render_comparison({'a': made.results(), 'b <c>': made.results()}),
    }
    for name, text in texts.items():
        (folder / f'{name}.html').write_text(text)
    return folder


@pytest.fixture
def opened(browser, pages):
    """Open a page, with what the console complains of in a list; every request is refused."""
    contexts = []

    def open_page(name, width=1400, scheme='light'):
        context = browser.new_context(
            viewport={'width': width, 'height': 900}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page, complaints = context.new_page(), []
        page.set_default_timeout(PATIENCE)
        page.on('console', lambda m: complaints.append(m.text) if m.type == 'error' else None)
        page.on('pageerror', lambda error: complaints.append(str(error)))
        page.on('request', lambda r: complaints.append(r.url) if 'http' in r.url[:4] else None)
        page.goto((pages / f'{name}.html').as_uri())
        page.wait_for_function('plots && plots.is_idle')
        return page, complaints

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize('name', ['two', 'six', 'comparison'])
def test_a_page_opens_without_complaint_and_fits_a_phone(opened, name):
    page, complaints = opened(name, width=390)
    canvases = page.evaluate('plots.roots().length')
    assert complaints == [] and canvases >= 1
    assert page.evaluate('document.documentElement.scrollWidth') <= 390


@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_axe_finds_nothing_serious(opened, scheme):
    for name in ('two', 'comparison'):
        page, _ = opened(name, scheme=scheme)
        found = Axe().run(page).response
        assert found['passes']
        bad = [v for v in found['violations'] if v['impact'] in ('serious', 'critical')]
        assert [(v['id'], v['nodes'][0]['html'][:200]) for v in bad] == []


def time_ranges(page):
    return page.evaluate(
        """() => {
          const time = plots.get_model_by_name('time');
          const linked = plots.roots().filter((plot) => plot.x_range === time);
          return [linked.length, time.start, time.end];
        }"""
    )


def test_dragging_over_an_effort_zooms_all_joints(opened):
    page, _ = opened('two')
    count, start, end = time_ranges(page)
    assert count == 4  # effort and residual of both joints
    place = page.locator('#plot-0')
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    middle = box['y'] + box['height'] / 2
    page.mouse.move(box['x'] + 0.4 * box['width'], middle)
    page.mouse.down()
    page.mouse.move(box['x'] + 0.6 * box['width'], middle, steps=5)
    page.mouse.up()
    page.wait_for_function(f"plots.get_model_by_name('time').end < {end}")
    _, low, high = time_ranges(page)
    assert start < low < high < end
    # Fields say the same, and set it without a mouse.
    fields = page.locator('.window input')
    assert float(fields.nth(0).input_value()) == pytest.approx(low, abs=0.01)
    fields.nth(0).fill('1.5')
    fields.nth(0).press('Tab')
    assert time_ranges(page)[1] == pytest.approx(1.5)
    page.locator('.window button').click()
    assert time_ranges(page)[1:] == pytest.approx([start, end])


def test_tables_sort_and_can_be_searched(opened):
    page, _ = opened('two')
    section = page.locator('#base')

    def column():
        cells = section.locator('table.sortable tbody td:nth-child(2)')
        return [float(v) for v in cells.evaluate_all('all => all.map((c) => c.dataset.v)')]

    button = section.locator('thead button', has_text='value')
    values = column()
    button.click()
    assert column() == sorted(values) != values
    button.press('Enter')
    assert column() == sorted(values, reverse=True)
    assert section.locator('th[aria-sort="descending"]').count() == 1
    section.locator('input[type=search]').fill('ZZ3R')
    assert section.locator('.sortable tbody tr:visible').count() < len(values)


def test_dark_mode_and_print_change_what_is_drawn(opened):
    page, complaints = opened('two')
    color = 'plots.roots()[0].below[0].major_label_text_color'
    light = page.evaluate(color)
    page.locator('#theme').click()
    assert page.locator('#theme').get_attribute('aria-pressed') == 'true'
    dark = page.evaluate(color)
    assert dark != light
    page.emulate_media(media='print')
    page.wait_for_function(f"{color} === '{light}'")  # paper is white
    assert page.locator('details:not([open])').count() == 0
    pdf = page.pdf(format='A4', print_background=True)
    assert pdf.startswith(b'%PDF') and len(pdf) > 20_000
    page.emulate_media(media='screen')
    page.wait_for_function(f"{color} === '{dark}'")
    assert complaints == []


def test_the_arm_can_be_turned(opened):
    page, _ = opened('two')
    assert page.locator('.bodies ellipse.found').count() == 2
    before = page.locator('.bodies svg').inner_html()
    slider = page.locator('.turn input').nth(0)
    slider.focus()
    slider.press('End')
    assert page.locator('.bodies svg').inner_html() != before
