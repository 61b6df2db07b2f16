"""Results come back bit for bit, and the report shows them on one self-contained page."""

import base64
import dataclasses
import gzip
from html.parser import HTMLParser
import json
import logging
import re
import sys

from bokeh.core.serialization import Deserializer
from bokeh.models import Plot as BokehPlot
import numpy as np
import pytest
import yaml

from robotid_ros.core.findings import render, Severity
from robotid_ros.core.parameters.plain_friction import PlainFriction
from robotid_ros.exceptions import FileError, MissingPackageError
from robotid_ros.files.report.page import (
    first_screen,
    identification_page,
    save_page,
    save_page_if_possible,
)
from robotid_ros.files.report.plots import efforts, friction_curve, phases, Plot, source_of
from robotid_ros.files.results import (
    read_results,
    Residual,
    Results,
    total_residual,
    write_results,
)
from robotid_ros.files.yaml import dump_yaml, parse_yaml

from . import results as made

# A page must be sent by mail.
MOST_BYTES = 3_000_000


@pytest.fixture
def results():
    return made.results()


def test_write_then_read_is_the_identity(tmp_path, results):
    path = write_results(results, tmp_path / 'out')
    back = read_results(path.parent)
    for field in dataclasses.fields(Results):
        if field.name != 'torques':
            assert getattr(back, field.name) == getattr(results, field.name), field.name
    for name, series in results.torques.items():
        for field in dataclasses.fields(series):
            read = getattr(back.torques[name], field.name)
            np.testing.assert_array_equal(read, getattr(series, field.name))
    (tmp_path / 'out' / 'torques.npz').unlink()
    assert read_results(path).torques == {}


def test_a_page_replaces_pages_only(tmp_path, results):
    (tmp_path / 'arm.urdf').write_text('kept')
    with pytest.raises(FileError, match='let its name end in'):
        save_page('identification', tmp_path / 'arm.urdf', results)
    assert (tmp_path / 'arm.urdf').read_text() == 'kept'


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


@pytest.mark.parametrize(
    'damage',
    [
        lambda values: values['quality'].update(rate='fast'),
        lambda values: values['quality'].pop('gaps'),
        lambda values: values['quality']['correlation'][3].append('much'),
        lambda values: values['quality']['joints']['shoulder'].update(delay='long'),
        lambda values: values['quality']['joints'].update({'el<bow': 3}),
        lambda values: values['base'][0].update(value=float('nan')),
    ],
)
def test_figures_that_are_none_are_refused(tmp_path, results, damage):
    path = write_results(results, tmp_path)
    values = parse_yaml(path.read_text(), str(path))
    damage(values)
    path.write_text(dump_yaml(values))
    with pytest.raises(FileError, match=r'is damaged .*identify again'):
        read_results(tmp_path)


def test_files_of_earlier_versions_are_read(tmp_path, results):
    """They do not say where joints move, and may not know the quality of their data, or more."""
    path = write_results(results, tmp_path)
    values = parse_yaml(path.read_text(), str(path))
    values['quality']['joints']['shoulder']['rows_used'] = 90
    path.write_text(dump_yaml(values))
    assert read_results(tmp_path).quality == results.quality
    path.write_text(dump_yaml({**values, 'quality': {}}))
    with np.load(tmp_path / 'torques.npz') as arrays:
        known = {name: arrays[name] for name in arrays if not name.endswith('.valid')}
    np.savez(tmp_path / 'torques.npz', **known)
    read = read_results(tmp_path)
    assert read.quality is None and read.torques.keys() == results.torques.keys()
    for each in read.torques.values():
        assert each.valid.shape == each.measured.shape and each.valid.all() and each.parts


def test_damaged_torques_are_refused(tmp_path, results):
    write_results(results, tmp_path)
    (tmp_path / 'torques.npz').write_bytes(b'PK\3\4nonsense')
    with pytest.raises(FileError, match='is damaged'):
        read_results(tmp_path)


@pytest.fixture(scope='module')
def shown():
    """Draw the page of these results once."""
    return identification_page(made.results())


class Page(HTMLParser):
    """Collects what a browser would fetch, and checks that tags close."""

    VOID = ('meta', 'br', 'input', 'link', 'wbr')

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.headings = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        self.headings += [int(tag[1])] if re.fullmatch('h[1-6]', tag) else []
        for name, value in attributes:
            if name in ('src', 'href', 'data') and not value.startswith(('#', 'data:')):
                self.fetched.append(value)
        if tag == 'iframe':
            self.fetched.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_is_one_page_that_needs_nothing_else(tmp_path, results):
    text = save_page('identification', tmp_path / 'report.html', results).read_text()
    page = Page()
    page.feed(text)
    assert page.open == [] and page.fetched == []
    assert '@import' not in text and 'url(http' not in text
    # One title, and no level of headings left out.
    assert page.headings[0] == 1 and page.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:], strict=False))
    for shown in (
        '20.00\u00a0%',
        'el&lt;bow',
        'arm &amp; tool',
        'ZZ1 + Ia1',
        'opposite sign',
        '3 iterations',
    ):
        assert shown in text
    assert '<el<bow>' not in text and '&lt;bag&gt;' in text


def test_a_name_cannot_end_the_data_of_the_plots(results):
    name = '</script><!--x'
    page = identification_page(made.results(joints=(name, 'b')))
    packed = re.search(r'id="plots">([^<]+)<', page)[1]
    content = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert content['data']['joints'][0]['name'] == name and name not in page


def test_a_report_without_extras_still_renders(results):
    bare = Results('', 'ols', '', results.joints, (), (), results.identification)
    page = identification_page(bare)
    assert 'Residual per joint' in page and 'id="plots"' not in page


def test_without_the_plotting_library_there_is_a_sentence(tmp_path, results, monkeypatch):
    monkeypatch.setitem(sys.modules, 'bokeh', None)
    with pytest.raises(MissingPackageError, match='pip install bokeh'):
        save_page('identification', tmp_path / 'r.html', results)
    assert 'pip install bokeh' in save_page_if_possible(
        'identification', tmp_path / 'r.html', results
    )
    assert not list(tmp_path.iterdir())


def test_residuals_of_all_joints_add_up():
    rng = np.random.default_rng(0)
    error, torque = rng.normal(size=(2, 50, 3))
    rms = np.sqrt(np.mean(error**2, axis=0))
    size = np.sqrt(np.mean(torque**2, axis=0))
    rows = [Residual(f'j{k}', a / b, a, b) for k, (a, b) in enumerate(zip(rms, size, strict=True))]
    assert total_residual(rows) == pytest.approx(np.linalg.norm(error) / np.linalg.norm(torque))
    assert np.isnan(total_residual([*rows, Residual('slide', 0.1, 1.0, 10.0, 'N')]))
    assert np.isnan(total_residual([]))


def test_the_verdict_follows_validation_and_findings(results):
    def judged(residual, **changes):
        rows = tuple(dataclasses.replace(row, moving=residual) for row in results.validation)
        return first_screen(
            dataclasses.replace(results, validation=rows, identification=rows, **changes)
        )

    assert judged(0.3).level == 'poor' and 'Not to be relied on' in judged(0.3).sentence
    assert 'cannot be used' in judged(0.6).sentence
    quiet = {'findings': ()}
    assert (
        judged(0.02, **quiet).level == 'good' and 'feed-forward' in judged(0.02, **quiet).sentence
    )
    serious = judged(0.02)
    assert serious.level == 'poor' and 'Set robot.drive_gain' in serious.next_step
    good = tuple(dataclasses.replace(row, moving=0.02) for row in results.identification)
    fit = dataclasses.replace(results, identification=good, validation=(), **quiet)
    assert 'Record another motion' in first_screen(fit).next_step


def test_files_of_earlier_versions_have_sentences(tmp_path, results):
    path = write_results(results, tmp_path)
    content = yaml.safe_load(path.read_text())
    del content['findings']
    content |= {'warnings': ['j2: noisy', 'a note'], 'severities': ['serious', 'note']}
    path.write_text(yaml.safe_dump(content))
    first, second = read_results(path).findings
    assert (render(first), first.severity) == ('j2: noisy.', Severity.ERROR)
    assert (render(second), second.severity) == ('a note.', Severity.INFO)
    assert first_screen(read_results(path)).level == first_screen(results).level


def columns_of(renderer):
    """Return the columns of all joints that the page chooses from."""
    (every,) = renderer.data_source.tags
    return every.data


def test_the_page_can_show_each_joint_in_the_same_plots():
    data = made.torques()
    (phase,) = phases({'identification': data})
    every = columns_of(efforts([phase])[0].renderers[0])
    for joint in range(2):
        m, p, r = (every[f'{name}{joint}'] for name in 'mpr')
        np.testing.assert_allclose(m - p, r, atol=1e-5)
        assert m.max() == pytest.approx(data.measured[:, joint].max(), rel=1e-6)


def test_a_legend_names_each_thing_once():
    plot, source = Plot('x', 'y'), source_of({'x': [0.0], 'y': [0.0]})
    for legend in ('model', 'measured', 'model'):
        plot.draw('Line', source, 'red', legend)
    (legend,) = plot.above
    assert [(i.label, len(i.renderers)) for i in legend.items] == [('model', 2), ('measured', 1)]


def test_bokeh_knows_all_that_the_plots_say(shown, caplog, monkeypatch):
    """Its Python half reads what is written for its other half, and names what no model has."""
    # Where nothing else handled messages when Bokeh was imported, it keeps its own to itself.
    monkeypatch.setattr(logging.getLogger('bokeh'), 'propagate', True)
    caplog.set_level(logging.WARNING, 'bokeh')
    packed = re.search(r'id="plots">([^<]+)<', shown)[1]

    def packed_as_bokeh_does(value):
        if value.get('type') == 'bytes':
            data = gzip.compress(base64.b64decode(value['data']))
            value['data'] = base64.b64encode(data).decode()
        return value

    text = gzip.decompress(base64.b64decode(packed))
    content = json.loads(text, object_hook=packed_as_bokeh_does)['document']
    plots = Deserializer().deserialize(content)['roots']
    assert len(plots) == len(re.findall('id="plot-', shown)) > 3
    assert all(isinstance(plot, BokehPlot) for plot in plots)
    assert not caplog.text
    wrong = json.loads(json.dumps(content).replace('"line_width"', '"line_wdith"'))
    Deserializer().deserialize(wrong)
    assert "'line_wdith'" in caplog.text


def test_the_plain_equivalent_stands_beside_the_friction_law():
    plain = PlainFriction(0.25, 1.5, -0.125, 0.0625, 0.04)
    (phase,) = phases({'identification': made.torques()})
    line = columns_of(friction_curve([phase], {'shoulder': plain}).renderers[-1])
    x, y = line['x0'], line['y0']
    used = ~np.isnan(x) & (x != 0.0)
    np.testing.assert_allclose(y[used], 0.25 * x[used] + 1.5 * np.sign(x[used]) - 0.125, rtol=1e-5)


def test_without_validation_there_are_no_columns_of_it(results, shown):
    page = identification_page(dataclasses.replace(results, validation=(), torques={}))
    assert '>validation<' not in page
    assert page.count('<th scope="col" class="n">R²</th>') == 1
    assert shown.count('<th scope="col" class="n">R²</th>') == 2


def test_a_page_is_small_whatever_is_recorded():
    names = [f'joint_{k}' for k in range(7)]
    page = identification_page(made.results(names, 200_000, 1000.0))
    assert len(page.encode()) < MOST_BYTES
