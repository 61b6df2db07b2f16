"""A session is watched and stopped in a real browser."""

from collections.abc import Iterator
from importlib.util import find_spec
import os
from pathlib import Path
import signal
import subprocess
import sys

from browser_pages import find_browser, launch, serious_findings
from live_session import Session
import pytest
from waiting import wait_until

from robotid_ros.nodes.common.processes import child_environment, ENDS_WITH

from .conftest import LONG, SLOW

pytestmark = [
    pytest.mark.ros,
    pytest.mark.skipif(not find_spec('playwright'), reason='no playwright is installed'),
]

Watched = tuple[Session, 'subprocess.Popen[str]', str]


@pytest.fixture
def watched(
    config: Path, tmp_path: Path
) -> Iterator[tuple[Session, 'subprocess.Popen[str]', str]]:
    """Start a robot, a session's nodes and the page; with them its address."""
    (tmp_path / 'monday').mkdir()
    (tmp_path / 'monday' / 'report.html').write_text('<title>of monday</title>')
    with Session(config, tmp_path, pages=True) as session:
        command = [
            *(sys.executable, '-m', 'robotid_ros.nodes', 'live', '--ros-args'),
            *('--params-file', str(config), '-p', 'live.port:=0'),
            *('-p', f'recorder.folder:={tmp_path}', '-r', '/clock:=clock'),
        ]
        environment = child_environment(**os.environ, **{ENDS_WITH: str(os.getpid())})
        page = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert page.stdout is not None
        try:
            said = next(line for line in page.stdout if 'token=' in line)
            yield session, page, said.split()[-1]
        finally:
            page.kill()
            page.wait()


@pytest.mark.slow
def test_a_session_is_watched_and_stopped(watched, trajectory: Path):
    session, page_process, address = watched
    path = find_browser()
    if path is None:
        pytest.skip('no Chromium is installed')
    session.start(
        *('simulated_robot', 'excitation'),
        simulated_robot=SLOW,
        excitation={'excitation.trajectory': str(trajectory), 'excitation.periods': LONG},
    )
    session.robot.wait()
    session.ready('excitation')
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright, path)
        tabs, complaints = [], list[str]()
        for width in (1400, 390):
            tab = browser.new_context(viewport={'width': width, 'height': 900}).new_page()
            tab.set_default_timeout(120_000)
            tab.on('pageerror', lambda error: complaints.append(str(error)))
            tab.on('dialog', lambda dialog: dialog.accept())
            tab.goto(address)
            tab.wait_for_function('plots !== null')
            tabs.append(tab)
        wide, narrow = tabs
        assert 'token' not in wide.url
        wide.get_by_role('button', name='Start').click()
        for tab in tabs:
            tab.wait_for_function(
                "document.getElementById('state').textContent.startsWith('exciting')"
            )
        # What is seen: numbers, curves, time left, an earlier session; nothing wider than a phone.
        wide.wait_for_function("plots.get_model_by_name('series').data.time.length > 5")
        # No model is there to leave a residual; all else is known.
        known = "document.querySelector('tr[data-joint=\"0\"]').innerText.split('—').length === 2"
        wide.wait_for_function(known)
        wide.wait_for_function("document.getElementById('state').textContent.includes('s left')")
        assert wide.get_by_role('link', name='monday').count() == 1
        assert narrow.evaluate('document.documentElement.scrollWidth') <= 390
        for tab in tabs:
            assert serious_findings(tab) == []
        # A second viewer starts nothing while the session runs.
        narrow.get_by_role('button', name='Start').click()
        narrow.wait_for_function("document.getElementById('answer').textContent.includes('busy')")
        session.robot.wait_moving(0.1)
        narrow.get_by_role('button', name='Stop').click()
        pressed = session.robot.now  # the browser's own way to the button is not counted
        assert session.robot.rest_after(pressed) < 0.5
        wide.wait_for_function("document.getElementById('state').textContent.startsWith('failed')")
        # The page is closed, and then dies: a session does not depend on it.
        narrow.close()
        page_process.send_signal(signal.SIGKILL)
        wide.wait_for_function("document.getElementById('state').textContent === 'not connected'")
        assert complaints == []
        browser.close()
    assert session.client.state('excitation') == 'failed'
    assert 'stop' in session.client.message('excitation')


def test_the_page_ends_by_itself(watched):
    _, page, _ = watched
    page.send_signal(signal.SIGINT)
    wait_until(lambda: page.poll() is not None, 'the node ends')
    assert page.returncode == 0
