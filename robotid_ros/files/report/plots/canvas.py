"""Interactive plots of a page: what all of them look like, and how they get into the page."""

import base64
from collections.abc import Sequence
import gzip
from html import escape
from typing import Any

from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from bokeh.models import BasicTicker, BoxZoomTool, HoverTool, LogTicker, PlainText, Range1d
from bokeh.plotting import figure
from bokeh.resources import Resources
import numpy as np

# Seen on light and on dark ground alike (at least 3 to 1 on both).
MEASURED, PREDICTED, RESIDUAL, TRUE = '#d9730d', '#2f7de1', '#d6455d', '#8b5cf6'
NEUTRAL, GOOD, FAIR = '#7b8794', '#1a8f4c', '#b7791f'
FONT = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
SINGLE = np.float32


class Plots:
    """
    The plots of one page; ranges that they share link them.

    `place` returns the element of a plot, `script` what fills all of them: their description,
    packed, as it repeats itself, and the library. `data` are plain values by name that the page's
    own script needs beside them.
    """

    def __init__(self) -> None:
        self._plots: list[Any] = []
        self.data: dict[str, Any] = {}

    def place(self, plot: Any, caption: str, *, wide: bool = False, least_width: int = 0) -> str:
        """
        Add a plot.

        Parameters
        ----------
        plot : of Bokeh
        caption : what it shows, also for those who do not see it
        wide : over the width of the page
        least_width : below which it is scrolled, but for print [px]

        """
        name = f'plot-{len(self._plots)}'
        self._plots.append(plot)
        css = 'plot wide' if wide else 'plot'
        focus = ' tabindex="0"' if least_width else ''  # to be scrolled by the keyboard
        least = f';min-width:{least_width}px' if least_width else ''
        return (
            f'<figure class="{css}"{focus}><figcaption>{escape(caption)}</figcaption>'
            f'<div id="{name}" style="min-height:{plot.height}px{least}"></div></figure>'
        )

    def script(self) -> str:
        """Return the plotting library and the plots as elements of a page; '' without plots."""
        if not self._plots:
            return ''
        document = Document()
        with document.models.freeze():  # else all of it is looked through with every plot
            for plot in self._plots:
                document.add_root(plot)
        roots = {plot.id: f'plot-{k}' for k, plot in enumerate(self._plots)}
        described = document.to_json(deferred=False)
        content = {'document': described, 'roots': roots, 'data': self.data}
        packed = gzip.compress(serialize_json(content).encode(), mtime=0)
        text = base64.b64encode(packed).decode()
        library = Resources(mode='inline', components=['bokeh']).js_raw
        scripts = ''.join(f'<script>{part}</script>' for part in library)
        return f'<script type="text/plain" id="plots">{text}</script>{scripts}'


def single(values: np.ndarray) -> np.ndarray:
    """Return what is drawn, in as few digits as a screen shows."""
    return np.ascontiguousarray(values, dtype=SINGLE)


def new_plot(
    x: str, y: str, height: int = 240, tools: str = 'xbox_zoom,xpan,xwheel_zoom,reset', **more: Any
) -> Any:
    """Return an empty plot with labelled axes; `more` arguments of `figure`."""
    plot = figure(
        height=height,
        sizing_mode='stretch_width',
        tools=tools,
        toolbar_location='right',
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        output_backend='canvas',
        min_border_right=12,
        **more,
    )
    zooms = [tool for tool in plot.tools if isinstance(tool, BoxZoomTool)]
    plot.toolbar.active_drag = zooms[0] if zooms else None
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    for axis, text in ((plot.xaxis, x), (plot.yaxis, y)):
        axis.axis_label = PlainText(text)
        axis.axis_label_text_font_style = 'normal'
        axis.axis_label_text_font_size = axis.major_label_text_font_size = '12px'
        axis.axis_label_text_font = axis.major_label_text_font = FONT
        axis.minor_tick_line_color = None
    if isinstance(plot.yaxis.ticker, BasicTicker):
        plot.yaxis.ticker.desired_num_ticks = 5
    elif isinstance(plot.yaxis.ticker, LogTicker):
        plot.yaxis.ticker.desired_num_ticks = 3  # below two decades they are linear, and crowd
    return plot


def finish(plot: Any, tooltips: Sequence[tuple[str, str]] = (), renderers: Any = None) -> Any:
    """Give a plot its legend's style, and values under the pointer."""
    for legend in plot.legend:
        legend.location, legend.click_policy = 'top_right', 'hide'
        legend.orientation, legend.padding, legend.margin = 'horizontal', 2, 2
        legend.label_text_font, legend.label_text_font_size = FONT, '12px'
        legend.border_line_color = None
        legend.background_fill_alpha = 0.0
        plot.add_layout(legend, 'above')
    if tooltips:
        hover = HoverTool(tooltips=list(tooltips), mode='vline')
        if renderers is not None:
            hover.renderers = renderers
        plot.add_tools(hover)
    return plot


def span_of(values: np.ndarray, **named: str) -> Any:
    """Return a range over values, which reset returns to; it may have a `name`."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return Range1d(low, high, bounds='auto', **named)
