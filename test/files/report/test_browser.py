"""The page in a real browser: plots, linked axes, accessibility."""

import contextlib
from importlib.util import find_spec

from browser_pages import (
    BROWSERS,
    drag_over_first_effort,
    find_browser,
    launch,
    opened as in_browser,
    serious_findings,
)
import pinocchio as pin
import pytest

from robotid_ros.files.report.design import design_page, motions_of, moving_arm
from robotid_ros.files.report.page import identification_page

from . import results as made
from .designs import designed, OBSTACLES

pytestmark = [  # not imported here, by every process that collects tests
    pytest.mark.skipif(not find_spec(name), reason=f'no {name} is installed')
    for name in ('playwright', 'axe_playwright_python')
]

SURROUNDINGS = {'obstacles': OBSTACLES, 'lower': (-1.5, -1.5, 0.0), 'upper': (1.5, 1.5, 2.0)}
JOINTS = tuple(f'joint_{k}' for k in range(1, 7))


@pytest.fixture(scope='module')
def browser():
    path = find_browser()
    if path is None:
        pytest.skip(f'none of {", ".join(BROWSERS)} is installed')
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = launch(playwright, path)
        yield running
        running.close()


@pytest.fixture(scope='module')
def pages(tmp_path_factory):
    """Write pages: two joints with awkward names, six with all that there is, others."""
    folder = tmp_path_factory.mktemp('pages')
    texts = {
        'two': identification_page(made.results()),
        'six': identification_page(made.results(JOINTS, 45_000, 1000.0)),
        'design': design_page(*designed(**SURROUNDINGS)),
    }
    for name, text in texts.items():
        (folder / f'{name}.html').write_text(text)
    return folder


@pytest.fixture
def opened(browser, pages):
    """Open a page, with what the console complains of in a list; every request is refused."""
    with contextlib.ExitStack() as stack:

        def open_page(name, **options):
            page = in_browser(browser, pages / f'{name}.html', **options)
            return stack.enter_context(page)

        yield open_page


@pytest.mark.parametrize('name', ['two', 'six', 'design'])
def test_a_page_opens_without_complaint_and_fits_a_phone(opened, name):
    page, complaints = opened(name, width=390)
    assert complaints == []
    assert page.evaluate('document.documentElement.scrollWidth') <= 390


@pytest.mark.slow
@pytest.mark.parametrize('name', ['two', 'design'])
def test_axe_finds_nothing_serious(opened, name):
    page, _ = opened(name)
    assert serious_findings(page) == []


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
    assert count == 2  # effort and residual of the chosen joint
    drag_over_first_effort(page)
    page.wait_for_function(f"plots.get_model_by_name('time').end < {end}")
    _, low, high = time_ranges(page)
    assert start < low < high < end
    page.locator('#plot-0').dblclick()
    page.wait_for_function(f"plots.get_model_by_name('time').end === {end}")
    assert time_ranges(page)[1:] == pytest.approx([start, end])


def test_all_plots_follow_the_chosen_joint(opened):
    page, complaints = opened('two')
    first = 'plots.roots()[0].renderers[0].data_source'
    shown = f'Array.from({first}.data.m)'
    span = '[plots.roots()[0].y_range.start, plots.roots()[0].y_range.end]'
    before, range_before = page.evaluate(shown), page.evaluate(span)
    page.locator('.choose select').select_option('1')
    page.wait_for_function(f'JSON.stringify({span}) !== JSON.stringify({range_before})')
    assert page.evaluate(shown) == page.evaluate(f'Array.from({first}.tags[0].data.m1)') != before
    low, high = page.evaluate(span)
    assert low <= min(page.evaluate(shown)) < max(page.evaluate(shown)) <= high
    assert complaints == []


def test_the_arm_can_be_turned(opened):
    """By a slider, by the pointer."""
    page, complaints = opened('design')
    view, slider = page.locator('.player svg'), page.locator('.turn input').nth(0)
    pictures = [view.inner_html()]
    slider.focus()
    slider.press('Home')
    pictures.append(view.inner_html())
    place = view.bounding_box()
    x, y = (place[a] + place[b] / 2 for a, b in (('x', 'width'), ('y', 'height')))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y + 10, steps=3)
    page.mouse.up()
    page.mouse.move(x + 90, y)  # the button is up: nothing turns
    assert float(slider.input_value()) == 150.0  # past −180° to the other end
    pictures.append(view.inner_html())
    assert len(set(pictures)) == 3 and complaints == []


CURSORS = """plots.roots().flatMap((plot) => plot.center).filter((r) => r.name === 'cursor')
  .map((r) => r.location)"""


def time_of(page):
    return float(page.locator('.player [aria-label=Time]').input_value())


def test_playing_moves_slider_arm_and_cursors(opened):
    page, complaints = opened('design', motion='no-preference')
    button = page.locator('.player button')
    assert button.inner_text() == 'Pause'  # it has begun by itself
    slider = page.locator('.player [aria-label=Time]')
    slider.scroll_into_view_if_needed()
    joints = page.locator('.player circle').last
    before, start = joints.get_attribute('cx'), time_of(page)
    page.wait_for_function(
        f"document.querySelector('.player [aria-label=Time]').value > {start} + 0.3"
    )
    assert joints.get_attribute('cx') != before
    button.click()
    assert button.inner_text() == 'Play'
    stopped, places = time_of(page), page.evaluate(CURSORS)
    assert max(places) == pytest.approx(stopped, abs=0.02)
    page.evaluate(
        'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))'
    )
    assert time_of(page) == stopped and complaints == []


def test_nothing_moves_by_itself_for_who_does_not_want_it(opened):
    page, _ = opened('design')
    page.evaluate(
        'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))'
    )
    assert time_of(page) == 0.0
    button = page.locator('.player button')
    button.focus()
    button.press('Enter')
    page.wait_for_function("document.querySelector('.player [aria-label=Time]').value > 0")
    button.press('Enter')
    assert button.inner_text() == 'Play'


@pytest.mark.parametrize('name', ['excitation', 'validation'])
def test_the_arm_stands_where_the_motion_puts_it(opened, name):
    """Joints in the picture against frames of Pinocchio's, seen from the front."""
    design, robot, configuration = designed(**SURROUNDINGS)
    motions = motions_of(design)
    arm = moving_arm(robot, motions, configuration.excitation.workspace)
    page, _ = opened('design')
    page.locator(f'.player [value={name}]').check()
    for index, degrees in enumerate((0, 0)):
        page.locator('.player .turn input').nth(index).fill(str(degrees))
    page.locator('.player [aria-label=Time]').fill('3.33')
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, motions[name].sample(3.33).q[0][robot.order])
    scale = 280.0 / arm['reach']
    for j in range(1, robot.model.njoints):
        circle = page.locator('.player circle').nth(j)
        shown = [float(circle.get_attribute(key)) for key in ('cx', 'cy')]
        _, y, z = data.oMi[j].translation - arm['centre']
        # From the front x points to the reader; between 25 frames a second the way is straight.
        assert shown == pytest.approx([scale * y, -scale * z], abs=0.5), j
    said = page.locator('.player [aria-label=Time]').get_attribute('aria-valuetext')
    assert said == '3.3 of 10 s'
    curves = 'plots.roots().flatMap((plot) => plot.renderers).filter((r) => r.visible && r.name)'
    assert set(page.evaluate(f'{curves}.map((r) => r.name)')) == {name}


def test_surroundings_are_drawn(opened):
    page, _ = opened('design')
    assert page.locator('.player .obstacle').count() == len(OBSTACLES)
    assert page.locator('.player .box').count() == 12
    assert page.locator('.player .ground').count() > 10
    assert 'squares of' in page.locator('.player svg').inner_html()
