"""Results come back bit for bit, and the report shows them on one self-contained page."""

import dataclasses
from html.parser import HTMLParser
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from robotid_ros.exceptions import FileError
from robotid_ros.files.report.figures import (
    confidence,
    convergence,
    envelope,
    first_segment,
    torques,
)
from robotid_ros.files.report.page import render, write_report
from robotid_ros.files.results import Entry, Residual, Results, total_residual
from robotid_ros.files.results_file import read_results, write_results
from robotid_ros.files.torques_file import Torques


@pytest.fixture
def results():
    rng = np.random.default_rng(3)
    joints = ('shoulder', 'el<bow')
    time = np.arange(3000) * 0.002
    data = Torques(joints, time, *rng.normal(size=(2, 3000, 2)))
    values = rng.normal(size=8) * 10.0 ** rng.uniform(-8, 3, 8)
    base = tuple(
        Entry(f'ZZ{k}R', float(v), abs(v) / 30, 100 / 30, 'kg·m²', joints[0], 'essential',
              'ZZ1 + Ia1', 'ZZ1', None, float(v) * 1.01)
        for k, v in enumerate(values)
    )  # fmt: skip
    rows = (
        Residual('shoulder', 1 / 3, 0.1, 0.3, 'N·m', 0.2, 0.9),
        Residual('el<bow', 0.02, 1e-3, 2.0, 'N', 0.02, 0.99),
    )
    history = ({'iteration': 0, 'residual': 0.5}, {'iteration': 1, 'residual': 0.1})
    return Results(
        'arm & tool', 'didim', '2025-01-31T12:00:00+00:00', joints, base, base[:4], rows, rows,
        33.3, {'source': '/tmp/<bag>'}, {'shoulder': True, 'el<bow': False},
        ('effort of <el<bow> is noisy',), history, {'robot': {'gravity': [0, 0, -9.81]}},
        {'robotid_ros': '0.1'}, {'identification': data, 'validation': data},
    )  # fmt: skip


def test_write_then_read_is_the_identity(tmp_path, results):
    path = write_results(results, tmp_path / 'out')
    back = read_results(path.parent)
    for field in dataclasses.fields(Results):
        if field.name != 'torques':
            assert getattr(back, field.name) == getattr(results, field.name)
    for name, series in results.torques.items():
        np.testing.assert_array_equal(back.torques[name].measured, series.measured)
        assert back.torques[name].joints == series.joints
    (tmp_path / 'out' / 'torques.npz').unlink()
    assert read_results(path).torques == {}


@pytest.mark.parametrize(
    ('text', 'sentence'),
    [
        ('', 'holds no identified parameters'),
        ('a: 1', 'holds no identified parameters'),
        ('format: 1', 'is damaged'),
        ('format: 1\nbase: [{name: x}]', 'is damaged'),
    ],
)
def test_other_files_are_refused(tmp_path, text, sentence):
    (tmp_path / 'parameters.yaml').write_text(text)
    with pytest.raises(FileError, match=sentence):
        read_results(tmp_path)


def test_damaged_torques_are_refused(tmp_path, results):
    write_results(results, tmp_path)
    (tmp_path / 'torques.npz').write_bytes(b'PK\3\4nonsense')
    with pytest.raises(FileError, match='is damaged'):
        read_results(tmp_path)


class Page(HTMLParser):
    """Collects what a browser would fetch, and checks that tags close."""

    VOID = ('meta', 'br')

    def __init__(self):
        super().__init__()
        self.open, self.fetched = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name in ('src', 'href', 'data') and not value.startswith('#'):
                self.fetched.append(value)
        if tag in ('script', 'link', 'iframe'):
            self.fetched.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_is_one_page_that_needs_nothing_else(tmp_path, results):
    text = write_report(results, tmp_path / 'report.html').read_text()
    page = Page()
    page.feed(text)
    assert page.open == [] and page.fetched == []
    assert '@import' not in text and 'url(http' not in text
    for shown in ('33.33 %', 'el&lt;bow', 'arm &amp; tool', 'ZZ1 + Ia1', 'noisy', '2 iterations'):
        assert shown in text
    assert '<el<bow>' not in text


def test_a_report_without_extras_still_renders(results):
    bare = Results('', 'ols', '', results.joints, (), (), results.identification)
    assert 'Residual per joint' in render(bare)


def test_residuals_of_all_joints_add_up():
    rng = np.random.default_rng(0)
    error, torque = rng.normal(size=(2, 50, 3))
    rms = np.sqrt(np.mean(error**2, axis=0))
    size = np.sqrt(np.mean(torque**2, axis=0))
    rows = [Residual(f'j{k}', a / b, a, b) for k, (a, b) in enumerate(zip(rms, size, strict=True))]
    assert total_residual(rows) == pytest.approx(np.linalg.norm(error) / np.linalg.norm(torque))
    assert np.isnan(total_residual([*rows, Residual('slide', 0.1, 1.0, 10.0, 'N')]))
    assert np.isnan(total_residual([]))


def test_figures_are_svg_of_their_own(results):
    data = results.torques['validation']
    for text in (
        torques(data, ['N·m', 'N']),
        confidence(results.base),
        convergence(results.history),
    ):
        root = ElementTree.fromstring(text)
        assert root.tag.endswith('svg') and root.get('width') == '100%'


def test_thinning_keeps_peaks_and_breaks():
    time = np.arange(100_000) * 1e-3
    time[50_000:] += 5.0
    values = np.zeros(100_000)
    values[[123, 77_777]] = 4.0, -7.0
    t, y = envelope(time, values)
    assert len(t) < 3000
    assert np.nanmax(y) == 4.0 and np.nanmin(y) == -7.0
    assert np.isnan(t).sum() == np.isnan(y).sum() == 1
    assert t[0] == time[0] and t[-1] == time[-1]


def test_of_stretches_far_apart_the_first_is_drawn(results):
    whole = results.torques['validation']
    assert first_segment(whole) == (whole, 1)
    time = whole.time + 600.0 * (np.arange(3000) // 1000)
    data = Torques(whole.joints, time, whole.measured, whole.predicted)
    first, count = first_segment(data)
    assert count == 3 and first.time[-1] == time[999]
    page = render(dataclasses.replace(results, torques={'identification': data}))
    assert 'The first of 3 segments sampled from a long recording' in page


def test_without_validation_there_are_no_columns_of_it(results):
    page = render(dataclasses.replace(results, validation=(), torques={}))
    assert '>validation<' not in page and '>R²<' in page
    assert page.count('<th class=n>R²</th>') == 1
    assert render(results).count('<th class=n>R²</th>') == 2
