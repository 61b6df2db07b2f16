"""`robotid fleet`: run on workers of this machine, report, and what goes wrong in one sentence."""

import builtins
from html import unescape
from importlib.util import find_spec
import re
from urllib.parse import unquote

import pytest
from small_fleet import CONFIG, write_bag

from .conftest import unwrapped

pytestmark = pytest.mark.skipif(not find_spec('distributed'), reason='no Dask is installed')


@pytest.mark.slow
def test_a_fleet_is_run_and_reported(run, tmp_path):
    for session in range(2):
        write_bag(tmp_path / 'bags' / 'r0', f's{session}', seed=session, day=session)
    (tmp_path / 'bags' / 'r0' / 'bad.mcap').write_bytes(b'no')
    store = tmp_path / 'store'
    arguments = ('fleet', 'run', tmp_path / 'bags', '-c', CONFIG, '-o', store, '--workers', '1')
    code, out, err = run(*arguments)
    assert (code, err) == (0, ''), err
    assert 'identified      2' in out and 'failed          1' in out
    told = unwrapped(out)
    assert 'bad.mcap: ' in told and '2 pooled estimates' in told
    code, out, err = run('fleet', 'report', store)
    assert (code, err) == (0, ''), err
    page = unescape((store / 'report.html').read_text())
    for text in ('Type scara: 1 robots', 'bad.mcap', '2 sessions identified', 'r0'):
        assert text in page


@pytest.mark.slow
def test_an_outlier_leads_to_its_sessions_and_reports(run, tmp_path):
    for k in range(5):
        change = [('Fc2', 0.2)] if k == 3 else []
        write_bag(tmp_path / f'press_{k}', 's 0', seed=k, day=k, change=change)
    report = tmp_path / 'press_3' / 's 0_identified' / 'report.html'
    report.parent.mkdir()
    report.write_text('a report')
    store, bags = tmp_path / 'store', [tmp_path / f'press_{k}' for k in range(5)]
    arguments = ('fleet', 'run', *bags, '-c', CONFIG, '-o', store, '--workers', '1')
    assert run(*arguments)[0] == 0
    code, out, _ = run('fleet', 'report', store)
    assert code == 0 and 'press_3' in out
    page = unescape((store / 'report.html').read_text())
    anchor = 'robot-scara-press_3'
    # From the finding to the robot, from there to the report.
    assert f'href="#{anchor}"' in page and f'id="{anchor}"' in page
    (link,) = re.findall(r'<a href="([^"]*)">report</a>', page)
    assert (store / unquote(link)).read_text() == 'a report'
    # Of the parameter that is found: ± 2 σ of each robot, and the value of each session.
    robots, sessions = (page[page.index(caption) :] for caption in ('Robots of', 'Sessions of'))
    assert 'Fc2 ± 2 σ [N·m]' in robots and robots.count(' ± ') >= 6
    assert re.search(r'<th[^>]*>Fc2</th>', sessions)
    report.unlink()
    run('fleet', 'report', store)
    assert 'robotid identify &#39;' in (store / 'report.html').read_text()


def test_what_is_missing_is_one_sentence(run, tmp_path, monkeypatch):
    bag = write_bag(tmp_path / 'r0', 's0', seconds=2.0)
    out = ('-o', tmp_path / 'store')
    for arguments, text in (
        (('run', tmp_path / 'none', '-c', CONFIG, *out), 'no recording'),
        (('run', bag, '-c', tmp_path / 'none.yaml', *out), 'none.yaml'),
        (('report', tmp_path), 'no fleet'),
    ):
        code, _, err = run('fleet', *arguments)
        assert code == 1 and text in err and err.count('\n') == 1, err
    importing = builtins.__import__

    def without_dask(name, *rest):
        if name.split('.')[0] in ('dask', 'distributed'):
            raise ImportError(f"No module named '{name}'")
        return importing(name, *rest)

    monkeypatch.setattr(builtins, '__import__', without_dask)
    code, _, err = run('fleet', 'run', bag, '-c', CONFIG, *out)
    assert code == 1 and "pip install 'robotid_ros[fleet]'" in err
