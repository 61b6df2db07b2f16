"""Layouts of PlotJuggler and Foxglove for the topics of a session, and the joints of a robot."""

from collections.abc import Sequence
import itertools
import json
from pathlib import Path
from typing import Any

from .text_template import text_templates

TEMPLATES = Path(__file__).parent / 'templates'
# Colours that differ for every kind of eyes (Okabe and Ito), in this order.
COLOURS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000')
RESIDUAL, STATES = 'identification/residual', 'joint_states'
# Efforts side by side, by what publishes them.
LIVE = (STATES, 'identification/predicted_effort')
VALIDATION = ('identification/validation/measured', 'identification/validation/predicted')


def plotjuggler_layout(joints: Sequence[str], namespace: str = '') -> str:
    """Lay out motion, efforts and residual of a session as XML for `plotjuggler --layout`."""

    def every(topic: str, field: str) -> list[str]:
        return [f'{topic}/{joint}/{field}' for joint in joints]

    def compared(topics: Sequence[str]) -> dict[str, list[str]]:
        return {joint: [f'{topic}/{joint}/effort' for topic in topics] for joint in joints}

    fields = ('position', 'velocity', 'effort')
    tabs = {
        'motion': {f'{field} of every joint': every(STATES, field) for field in fields},
        'efforts': compared(LIVE),
        'validation': compared(VALIDATION),
        'residual': {'residual of every joint': every(RESIDUAL, 'effort')},
    }
    template = text_templates(TEMPLATES).get_template('plotjuggler.xml')
    names = {'place': normal_namespace(namespace), 'topics': (*LIVE, *VALIDATION, RESIDUAL)}
    return template.render(tabs=tabs, colours=COLOURS, **names)


def foxglove_layout(joints: Sequence[str], controller: str, namespace: str = '') -> str:
    """
    Lay out states, diagnostics, motion, efforts, residual and validation of a session.

    Foxglove names elements of arrays by their index: that of the joint in the configuration, which
    the controller is taken to share. `joint_states` has an order of its own, and is left out.
    Returns JSON for 'Import from file' of its menu of layouts; the namespace is the session's.
    """
    place, state = normal_namespace(namespace), f'{controller}/controller_state'
    nodes = ('excitation/state', 'recorder/state', 'identification/state')

    def path(label: str, value: str, number: int, time: str = 'headerStamp') -> dict[str, Any]:
        color = COLOURS[number % len(COLOURS)]
        shown = {'value': f'{place}/{value}', 'label': label.strip(), 'enabled': True}
        return {**shown, 'timestampMethod': time, 'color': color}

    def plot(title: str, **arrays: str) -> dict[str, Any]:
        """Draw a curve of each joint and source of arrays; '_' is a source without a name."""
        curves = itertools.product(enumerate(joints), arrays.items())
        paths = [
            path(f'{joint} {kind.strip("_")}', f'{array}[{j}]', number)
            for number, ((j, joint), (kind, array)) in enumerate(curves)
        ]
        look = {'showLegend': True, 'legendDisplay': 'floating', 'xAxisVal': 'timestamp'}
        look |= {'showXAxisLabels': True, 'showYAxisLabels': True}
        return {'foxglovePanelTitle': title, 'isSynced': True, 'paths': paths, **look}

    def split(direction: str, share: float, first: Any, second: Any) -> dict[str, Any]:
        ends = {'first': first, 'second': second}
        return {'direction': direction, 'splitPercentage': share, **ends}

    transitions = [
        path(name, f'{name}.values[:]{{key=="state"}}.value', k, 'receiveTime')
        for k, name in enumerate(nodes)
    ]
    states = {'foxglovePanelTitle': 'states', 'isSynced': True, 'paths': transitions}
    reference, feedback = (f'{state}.{part}.positions' for part in ('reference', 'feedback'))
    # A validation is published at once, long after it was measured.
    measured, predicted = (f'{topic}.effort' for topic in VALIDATION)
    panels = {
        'StateTransitions!states': states,
        'DiagnosticSummary!nodes': {'topicToRender': '/diagnostics', 'minLevel': 0},
        'Plot!motion': plot('positions', reference=reference, feedback=feedback),
        'Plot!error': plot('error', _=f'{state}.error.positions'),
        'Plot!effort': plot('predicted efforts', _=f'{LIVE[1]}.effort'),
        'Plot!residual': plot('residual', _=f'{RESIDUAL}.effort'),
        'Plot!validation': plot('validation', measured=measured, predicted=predicted),
    }
    top, summary, motion, error, effort, residual, validation = panels
    left = split('column', 33.0, summary, split('column', 50, motion, error))
    right = split('column', 33.0, effort, split('column', 50, residual, validation))
    layout = split('row', 50, split('column', 25, top, left), right)
    content = {'configById': panels, 'globalVariables': {}, 'userNodes': {}, 'layout': layout}
    return json.dumps({**content, 'playbackConfig': {'speed': 1}})


def normal_namespace(namespace: str) -> str:
    """Return a namespace with a leading slash and none at its end, '' for the root."""
    return f'/{namespace.strip("/")}' if namespace.strip('/') else ''
