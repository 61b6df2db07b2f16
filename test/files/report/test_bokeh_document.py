"""Documents of plots: Bokeh reads them, knows every property, and draws what it wrote itself."""

import base64
import dataclasses
import gzip
import json
import re

from bokeh.core.property.vectorization import Value
from bokeh.core.serialization import Buffer, Deserializer
from bokeh.core.types import ID
from bokeh.core.validation import check_integrity
import numpy as np
import pytest

from robotid_ros.core.parameters.plain_friction import PlainFriction
from robotid_ros.files.report.bokeh_document import document, Figure, Model
from robotid_ros.files.report.design import design_page
from robotid_ros.files.report.drawing import Plots, source
from robotid_ros.files.report.pages import identification_page, live_page

from . import results as made
from .designs import designed


def read(described):
    """Read a document as Bokeh does, given arrays as bytes; it refuses models that it lacks."""

    def with_bytes(value):
        if value.get('type') != 'bytes':
            return value
        return {**value, 'data': Buffer(ID('b'), base64.b64decode(value['data']))}

    roots = json.loads(json.dumps(described['roots']), object_hook=with_bytes)
    return Deserializer().deserialize(roots)


def plots_of(page):
    """Return the plots of a page."""
    packed = re.search(r'id="plots">([^<]+)<', page)[1]
    content = json.loads(gzip.decompress(base64.b64decode(packed)))
    roots = read(content['document'])
    assert [root.id for root in roots] == list(content['roots'])
    return roots


@pytest.fixture(name='pages', scope='module')
def _pages():
    plain = PlainFriction(0.25, 1.5, -0.125, 0.0625, 0.04)
    results = made.results(['a', 'b'], 300, 10.0)
    results = dataclasses.replace(
        results,
        plain_friction={'a': plain},
        history=({'iteration': 0.0, 'torque_error': 0.5}, {'iteration': 1.0, 'torque_error': 0.0}),
    )
    live = live_page('arm', ['a'], [('rad', 'N·m')], [(0.1, 10.0)], [])
    return identification_page(results), design_page(*designed('scara')), live


def test_bokeh_reads_the_plots_of_pages(pages, caplog):
    for page in pages:
        for plot in plots_of(page):
            assert plot.sizing_mode == 'stretch_width' and plot.toolbar.logo is None
            assert [axis.axis_label.text for axis in (*plot.below, *plot.left)] == plot.tags
            assert not check_integrity(plot.references()).error
    assert not caplog.records  # of properties that there are not


def test_what_bokeh_reads_is_what_its_own_figure_writes():
    """The same plot by `bokeh.plotting`: every property that it sets, defaults included."""
    from bokeh.plotting import figure

    values = np.array([1.0, np.nan, 3.0], dtype=np.float32)
    ours = Figure(tools='xbox_zoom,pan,reset', y_type='Log', height=200)
    columns = source({'x': values, 'y': 2.0 * values, 'c': ['red', 'blue', 'green']})
    ours.draw('Line', columns, 'one', x='x', y='y', color='red', line_width=2.0, dash=[6])
    ours.draw('Scatter', columns, 'one', x='x', y='y', color='c', size=3, line_color=None)
    ours.draw('VArea', columns, 'two', x='x', y1='x', y2='y', color='red', alpha=0.2).set(
        visible=False
    )
    ours.draw('VBar', columns, x='x', top='y', bottom=-1.0, width=0.6, color='red')
    ours.draw('Segment', columns, x0='x', y0='x', x1='x', y1='y', color='c').set(name='s')
    theirs = figure(tools='xbox_zoom,pan,reset', y_axis_type='log', height=200)
    given = {'source': {'x': values, 'y': 2.0 * values, 'c': ['red', 'blue', 'green']}}
    look = {'legend_label': 'one', **given}
    theirs.line('x', 'y', color='red', width=2.0, dash='dashed', **look)
    theirs.scatter('x', 'y', color='c', size=3, line_color=None, **look)
    theirs.varea('x', 'x', 'y', color='red', alpha=0.2, visible=False, legend_label='two', **given)
    theirs.vbar('x', top='y', bottom=-1.0, width=0.6, color='red', **given)
    theirs.segment('x', 'x', 'x', 'y', color='c', name='s', **given)
    ours.above.append(ours.legend)
    theirs.add_layout(theirs.legend[0], 'above')
    theirs.toolbar.logo, theirs.toolbar.autohide = None, True
    theirs.toolbar.active_drag = theirs.tools[0]
    (found,) = read(document([ours])[0])
    # What Bokeh derives in the browser, and hatches and minor ticks, which are not drawn.
    passed = {
        'name',
        'muted_glyph',
        'nonselection_glyph',
        'selection_glyph',
        'view',
        'title',
        'num_minor_ticks',
    }

    def compare(a, b, path):
        assert type(a).__name__ == type(b).__name__, path
        for name, value in b.properties_with_values().items():
            if name not in passed and not name.startswith('hatch_'):
                same(getattr(a, name), value, f'{path}.{name}')

    def same(a, b, path):
        a, b = (each.value if isinstance(each, Value) else each for each in (a, b))
        if hasattr(b, 'properties'):
            if b.id not in seen:
                seen.add(b.id)
                compare(a, b, path)
        elif isinstance(b, (list, tuple)) and not isinstance(b, str):
            assert len(a) == len(b), path
            for k, pair in enumerate(zip(a, b, strict=True)):
                same(*pair, f'{path}[{k}]')
        elif isinstance(b, dict):
            assert list(a) == list(b), path
            for key, value in b.items():
                same(a[key], value, f'{path}[{key}]')
        elif isinstance(b, np.ndarray):
            np.testing.assert_array_equal(a, b)
        else:
            assert a == b or (a != a and b != b), path

    seen = set()
    compare(found, theirs, 'figure')
    assert len(seen) > 30


def test_numbers_that_are_none_are_named():
    described, _ = document([Model('Range1d', start=float('-inf'), end=float('nan'))])
    assert described['roots'][0]['attributes'] == {
        'start': {'type': 'number', 'value': '-inf'},
        'end': {'type': 'number', 'value': 'nan'},
    }


def test_a_page_without_plots_has_no_library():
    assert Plots().script() == ''
    with pytest.raises(AttributeError, match='Range1d was given no end'):
        Model('Range1d', start=0.0).end  # noqa: B018
