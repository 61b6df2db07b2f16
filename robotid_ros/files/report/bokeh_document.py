"""
Documents of Bokeh, written without importing it: its Python classes take half a second.

A `Model` has a name of Bokeh's reference and the properties that differ from the defaults, which
are the same in the browser. `test_bokeh_document.py` has Bokeh read and check each of them.
"""

import base64
import importlib.metadata
import importlib.util
import math
from pathlib import Path
import sys
from typing import Any

import numpy as np

from ...exceptions import MissingPackageError

# What the colour, opacity and dash of a glyph are of.
VISUALS = {
    'Line': ('line',), 'MultiLine': ('line',), 'Segment': ('line',), 'VArea': ('fill',),
    'Scatter': ('line', 'fill'), 'VBar': ('line', 'fill'),
}  # fmt: skip
# Glyphs of one shape: their look is one value. That of others is a value or a column.
SHAPES = ('Line', 'VArea')


class Model:
    """A model of Bokeh: its kind, and properties as attributes."""

    def __init__(self, kind: str, **properties: Any) -> None:
        self.kind, self.properties = kind, properties

    def __getattr__(self, name: str) -> Any:
        """Return a property that was given."""
        try:
            return self.__dict__['properties'][name]
        except KeyError:
            raise AttributeError(f'{self.kind} was given no {name}') from None

    def set(self, **properties: Any) -> None:
        """Give it more properties."""
        self.properties |= properties


class Figure(Model):
    """
    A plot with an axis below, `x`, one on the left, `y`, and its legend above.

    Parameters
    ----------
    x_range : a model; a list of names; None: as far as the data reach
    x_type, y_type : 'Linear', 'Log', 'Datetime'
    tools : names of tools, separated by commas; one that begins with x acts along x

    """

    def __init__(
        self,
        tools: str = '',
        x_type: str = 'Linear',
        y_type: str = 'Linear',
        x_range: Any = None,
        **properties: Any,
    ) -> None:
        if isinstance(x_range, list):
            x_range, x_type = Model('FactorRange', factors=x_range), 'Categorical'
        self.x, self.y = (Model(f'{kind}Axis') for kind in (x_type, y_type))
        self.legend = Model('Legend', items=[])
        kinds = [_tool(name) for name in filter(None, tools.split(','))]
        zoom = next((tool for tool in kinds if tool.kind == 'BoxZoomTool'), None)
        ends = {
            'x_range': x_range or Model('DataRange1d'),
            'y_range': Model('DataRange1d'),
            'x_scale': Model('LinearScale' if x_type == 'Datetime' else f'{x_type}Scale'),
            'y_scale': Model(f'{y_type}Scale'),
        }
        super().__init__(
            'Figure',
            **(ends | properties),
            renderers=[],
            toolbar=Model('Toolbar', tools=kinds, active_drag=zoom, logo=None, autohide=True),
            below=[self.x],
            left=[self.y],
            above=[],
            center=[Model('Grid', axis=self.x), Model('Grid', axis=self.y, dimension=1)],
        )

    def draw(self, kind: str, source: Model, legend: str = '', **look: Any) -> Model:
        """
        Draw a glyph of a kind in `VISUALS`, and return its renderer.

        `look` are its properties: a text that names a column of `source` is that column. `color`,
        `alpha` and `dash` are those of all its `VISUALS`.
        """
        for key in ('color', 'alpha', 'dash'):
            if key in look:
                value = look.pop(key)
                look = {f'{part}_{key}': value for part in VISUALS[kind]} | look
        columns = source.data
        for key, value in look.items():
            if isinstance(value, str) and value in columns:
                look[key] = {'type': 'field', 'field': value}
            elif kind not in SHAPES:
                look[key] = {'type': 'value', 'value': value}
        renderer = Model('GlyphRenderer', data_source=source, glyph=Model(kind, **look))
        self.renderers.append(renderer)
        if legend:
            self._entry(legend).append(renderer)
        return renderer

    def _entry(self, label: str) -> list[Model]:
        """Return the renderers of an entry of the legend."""
        for item in self.legend.items:
            if item.label['value'] == label:
                return item.renderers
        self.legend.items.append(
            Model('LegendItem', label={'type': 'value', 'value': label}, renderers=[])
        )
        return self.legend.items[-1].renderers


def _tool(name: str) -> Model:
    """Return a tool by the name that `bokeh.plotting` gives it."""
    along = {'dimensions': 'width'} if name.startswith('x') else {}
    return Model(name.removeprefix('x').title().replace('_', '') + 'Tool', **along)


def document(roots: list[Any]) -> tuple[dict[str, Any], list[str]]:
    """Describe plots as `Document.to_json` does; return the identities of the plots besides."""
    known = dict[int, str]()

    def described(value: Any) -> Any:
        if isinstance(value, Model):
            if id(value) in known:
                return {'id': known[id(value)]}
            known[id(value)] = identity = f'p{len(known)}'
            attributes = {key: described(each) for key, each in value.properties.items()}
            return {'type': 'object', 'name': value.kind, 'id': identity, 'attributes': attributes}
        if isinstance(value, dict):
            if 'type' in value:  # already as the document has it
                return value
            return {'type': 'map', 'entries': [[k, described(v)] for k, v in value.items()]}
        if isinstance(value, np.ndarray):
            data = base64.b64encode(value.tobytes()).decode()
            return {
                'type': 'ndarray', 'array': {'type': 'bytes', 'data': data},
                'shape': value.shape, 'dtype': value.dtype.name, 'order': sys.byteorder,
            }  # fmt: skip
        if isinstance(value, (list, tuple)):
            return [described(each) for each in value]
        if isinstance(value, float) and not math.isfinite(value):
            return {'type': 'number', 'value': f'{value:+}'.replace('+nan', 'nan')}
        return value

    version, described_roots = importlib.metadata.version('bokeh'), described(roots)
    return (
        {'version': version, 'title': '', 'roots': described_roots},
        [root['id'] for root in described_roots],
    )


def library() -> Path:
    """Return the script that draws in a browser; MissingPackageError: Bokeh is not installed."""
    found = importlib.util.find_spec('bokeh')
    path = Path(found.origin if found and found.origin else '')
    path = path.parent / 'server' / 'static' / 'js' / 'bokeh.min.js'
    if not path.is_file():
        raise MissingPackageError(
            'the page needs bokeh, which is not installed: pip install bokeh and repeat the '
            'command; robotid report FOLDER writes that of an identification'
        )
    return path
