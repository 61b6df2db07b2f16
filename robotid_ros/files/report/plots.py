"""
Plots as BokehJS reads them: what all of them look like.

Bokeh's own models describe the same in Python, and take half a second to import and to describe.
"""

import base64
from collections.abc import Mapping, Sequence
import gzip
import json
import math
import sys
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

from markupsafe import Markup
import numpy as np

from .page import plotting_library

FONT = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
# Tools of plots that are zoomed along x alone, and both ways.
ALONG_X, BOTH_WAYS = 'xBoxZoom xPan xWheelZoom Reset', 'BoxZoom Pan WheelZoom Reset'
DASHED = [6]
LINES = ('Line', 'MultiLine', 'Segment')  # glyphs without an area


class Model(SimpleNamespace):
    """A model of BokehJS: its type, and the properties that differ from its defaults there."""

    def __init__(self, kind: str, **properties: Any) -> None:
        super().__init__(kind=kind, **properties)


class Field(NamedTuple):
    """The name of a column, where a property takes its values from."""

    name: str


class Plot(Model):
    """
    An empty plot with labelled axes, and with a legend as soon as something has a name.

    Labels may hold {effort} and {length}, for which the page puts the units of the chosen joint.
    """

    def __init__(
        self,
        x: str,
        y: str,
        height: int = 240,
        tools: str = ALONG_X,
        axes: tuple[str, str] = ('Linear', 'Linear'),
        **more: Any,
    ) -> None:
        below, left = map(_axis, axes, (x, y))
        every = [*map(_tool, tools.split())]
        drag = every[0] if 'BoxZoom' in tools else None
        # Below two decades those of logarithmic axes are linear, and crowd.
        kind, ticks = ('LogTicker', 3) if axes[1] == 'Log' else ('BasicTicker', 5)
        left.ticker = Model(kind, desired_num_ticks=ticks)
        super().__init__(
            'Plot',
            tags=[x, y],
            height=height,
            sizing_mode='stretch_width',
            x_scale=Model('LinearScale' if axes[0] == 'Datetime' else f'{axes[0]}Scale'),
            y_scale=Model(f'{axes[1]}Scale'),
            below=[below],
            left=[left],
            center=[Model('Grid', axis=below), Model('Grid', axis=left, dimension=1)],
            above=[],
            renderers=[],
            toolbar=Model('Toolbar', tools=every, active_drag=drag, logo=None, autohide=True),
            background_fill_color=None,
            border_fill_color=None,
            outline_line_color=None,
            min_border_right=12,
            **more,
        )

    def draw(
        self,
        glyph: str,
        source: Model,
        color: Any,
        legend: str = '',
        columns: Mapping[str, str] = MappingProxyType({'x': 'x', 'y': 'y'}),
        **look: Any,
    ) -> Model:
        """Draw `columns` of a source, by the properties of the glyph that they are for."""
        look |= {name: Field(column) for name, column in columns.items()}
        look['line_color' if glyph in LINES else 'fill_color'] = color
        drawn = Model('GlyphRenderer', data_source=source, glyph=Model(glyph, **look))
        self.renderers.append(drawn)
        if legend:
            self._name(legend, drawn)
        return drawn

    def _name(self, text: str, drawn: Model) -> None:
        legends: list[Model] = self.above
        if not legends:
            look = {'orientation': 'horizontal', 'padding': 2, 'margin': 2, 'click_policy': 'hide'}
            look |= {'label_text_font': FONT, 'label_text_font_size': '12px'}
            look |= {'border_line_color': None, 'background_fill_alpha': 0.0}
            legends.append(Model('Legend', items=[], **look))
        items = {item.label: item for item in legends[0].items}
        if text not in items:
            items[text] = Model('LegendItem', label=text, renderers=[])
            legends[0].items.append(items[text])
        items[text].renderers.append(drawn)

    def show_values(
        self, tooltips: Sequence[tuple[str, str]], *drawn: Model, mode: str = 'vline'
    ) -> None:
        """Show values of what is drawn above and below the pointer, by 'mouse' at it."""
        hover = Model('HoverTool', tooltips=tooltips, renderers=drawn, mode=mode)
        self.toolbar.tools.append(hover)


def _axis(kind: str, label: str) -> Model:
    look = {'axis_label_text_font_style': 'normal', 'minor_tick_line_color': None}
    for text in ('axis_label', 'major_label'):
        look |= {f'{text}_text_font_size': '12px', f'{text}_text_font': FONT}
    return Model(f'{kind}Axis', axis_label=Model('PlainText', text=label), **look)


def _tool(name: str) -> Model:
    kind = name.removeprefix('x')
    return Model(f'{kind}Tool', **({} if kind == name else {'dimensions': 'width'}))


def described(value: Any, known: dict[int, str]) -> Any:
    """Return a value as BokehJS reads it; of a model that is `known`, by its id, only the name."""
    match value:
        case Model():
            if id(value) in known:
                return {'id': known[id(value)]}
            known[id(value)] = name = f'p{len(known)}'
            attributes = {k: described(v, known) for k, v in vars(value).items() if k != 'kind'}
            return {'type': 'object', 'name': value.kind, 'id': name, 'attributes': attributes}
        case Field():
            return {'type': 'field', 'field': value.name}
        case np.ndarray():
            content = {'type': 'bytes', 'data': base64.b64encode(value.tobytes()).decode()}
            form = {'shape': value.shape, 'dtype': value.dtype.name, 'order': sys.byteorder}
            return {'type': 'ndarray', 'array': content, **form}
        case Mapping():
            entries = [(k, described(v, known)) for k, v in value.items()]
            return {'type': 'map', 'entries': entries}
        case list() | tuple():
            return [described(each, known) for each in value]
        case float() if not math.isfinite(value):
            return {'type': 'number', 'value': f'{value:+}'.replace('+nan', 'nan')}
    return value


class Plots:
    """
    The plots of one page; ranges that they share link them.

    `place` returns the element of a plot, `script` what fills all of them: their description,
    packed, as it repeats itself, and the library. `data` are plain values by name that the page's
    own script needs beside them: the joints to choose from, with their units of length and effort.
    """

    def __init__(self, units: Mapping[str, tuple[str, str]] | None = None) -> None:
        self._plots: list[Plot] = []
        joints = [
            {'name': joint, 'length': length, 'effort': effort}
            for joint, (length, effort) in (units or {}).items()
        ]
        self.data: dict[str, Any] = {'joints': joints}

    def place(self, plot: Plot, caption: str) -> Markup:
        """Add a plot with a caption, also for those who do not see it."""
        self._plots.append(plot)
        return Markup(
            '<figure class="plot"><figcaption>{}</figcaption>'
            '<div id="plot-{}" style="min-height:{}px"></div></figure>'
        ).format(caption, len(self._plots) - 1, plot.height)

    def script(self) -> Markup:
        """Return the plotting library and the plots as elements of a page; '' without plots."""
        if not self._plots:
            return Markup()
        names: dict[int, str] = {}
        roots = described(self._plots, names)
        places = {names[id(plot)]: f'plot-{k}' for k, plot in enumerate(self._plots)}
        content = {'document': {'roots': roots}, 'roots': places, 'data': self.data}
        text = json.dumps(content, allow_nan=False, separators=(',', ':'))
        packed = gzip.compress(text.encode(), mtime=0)
        text = base64.b64encode(packed).decode()
        library = plotting_library().read_text()
        return Markup(
            f'<script type="text/plain" id="plots">{text}</script><script>{library}</script>'
        )
