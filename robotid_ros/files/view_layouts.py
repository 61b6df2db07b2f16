"""Layouts of PlotJuggler and Foxglove for the topics of a session, and the joints of a robot."""

from collections.abc import Iterable, Sequence
from itertools import cycle
import json
from typing import Any
from xml.etree import ElementTree as ET

# Colours that differ for every kind of eyes (Okabe and Ito), in this order.
COLOURS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000')
# Seconds of a session that PlotJuggler keeps: a whole one of most robots.
BUFFER = 120
STATES = ('excitation/state', 'recorder/state', 'identification/state')
# Efforts side by side, by what publishes them.
LIVE = (('measured', 'joint_states'), ('predicted', 'identification/predicted_effort'))
VALIDATION = tuple((kind, f'identification/validation/{kind}') for kind, _ in LIVE)
RESIDUAL = 'identification/residual'


def plotjuggler_layout(joints: Sequence[str], namespace: str = '') -> str:
    """
    Lay out motion, efforts, residual and validation of a session, a plot a joint where two meet.

    Returns XML for `plotjuggler --layout`, which then offers to subscribe to the topics; the
    namespace is the session's, such as '/arm1', or none.
    """
    place = normal_namespace(namespace)
    root = ET.Element('root')
    tabs = ET.SubElement(root, 'tabbed_widget', {'name': 'Main Window', 'parent': 'main_window'})

    def curves(topic: str, field: str) -> list[str]:
        return [f'{place}/{topic}/{joint}/{field}' for joint in joints]

    motion = {f'{field} of every joint': curves('joint_states', field) for field in FIELDS}
    _add_tab(tabs, 'motion', motion)
    for name, sources in (('efforts', LIVE), ('validation', VALIDATION)):
        compared = zip(joints, *(curves(topic, 'effort') for _, topic in sources), strict=True)
        _add_tab(tabs, name, {joint: names for joint, *names in compared})
    _add_tab(tabs, 'residual', {'residual of every joint': curves(RESIDUAL, 'effort')})
    ET.SubElement(tabs, 'currentTabIndex', index='0')
    ET.SubElement(root, 'use_relative_time_offset', enabled='1')
    ET.SubElement(root, 'streaming_buffer_size', value=str(BUFFER))
    plugin = ET.SubElement(ET.SubElement(root, 'Plugins'), 'plugin', ID=STREAMER)
    topics = ['joint_states', RESIDUAL, LIVE[1][1], *(topic for _, topic in VALIDATION)]
    for key, value in {
        'use_header_stamp': 'true',
        'discard_large_arrays': 'true',
        'max_array_size': '100',
        'boolean_strings_to_number': 'true',
        'remove_suffix_from_strings': 'true',
        'selected_topics': ';'.join(f'{place}/{topic}' for topic in topics),
    }.items():
        ET.SubElement(plugin, key, value=value)
    ET.SubElement(root, 'previouslyLoaded_Streamer', name=STREAMER)
    ET.indent(root)
    return ET.tostring(root, encoding='unicode', xml_declaration=True) + '\n'


FIELDS = ('position', 'velocity', 'effort')
STREAMER = 'ROS2 Topic Subscriber'


def _add_tab(tabs: ET.Element, name: str, plots: dict[str, list[str]]) -> None:
    """Add a tab with plots one above the other, each a title and the names of its curves."""
    container = ET.SubElement(
        ET.SubElement(tabs, 'Tab', containers='1', tab_name=name), 'Container'
    )
    count, share = str(len(plots)), f'{1.0 / len(plots):.6f}'
    sizes = ';'.join([share] * len(plots))
    splitter = ET.SubElement(container, 'DockSplitter', orientation='-', count=count, sizes=sizes)
    for title, names in plots.items():
        plot = ET.SubElement(ET.SubElement(splitter, 'DockArea', name=title), 'plot')
        plot.attrib.update(style='Lines', mode='TimeSeries')
        for curve, colour in zip(names, cycle(COLOURS), strict=False):
            ET.SubElement(plot, 'curve', name=curve, color=colour)


def foxglove_layout(joints: Sequence[str], controller: str, namespace: str = '') -> str:
    """
    Lay out states, diagnostics, motion, efforts, residual and validation of a session.

    Foxglove names elements of arrays by their index: that of the joint in the configuration, which
    the controller is taken to share. `joint_states` has an order of its own, and is left out.
    Returns JSON for 'Import from file' of its menu of layouts; the namespace is the session's.
    """
    place = normal_namespace(namespace)
    state = f'{controller}/controller_state'
    followed = [(kind, f'{state}.{kind}.positions') for kind in ('reference', 'feedback')]
    panels = {
        'StateTransitions!states': _panel(
            'states',
            [(topic, f'{place}/{topic}.values[:]{{key=="state"}}.value') for topic in STATES],
        ),
        'DiagnosticSummary!nodes': {'topicToRender': '/diagnostics', 'minLevel': 0},
        'Plot!motion': _plot('positions', joints, followed, place),
        'Plot!error': _plot('error', joints, [('', f'{state}.error.positions')], place),
        'Plot!effort': _plot('predicted efforts', joints, [('', f'{LIVE[1][1]}.effort')], place),
        'Plot!residual': _plot('residual', joints, [('', f'{RESIDUAL}.effort')], place),
        'Plot!validation': _plot(
            'validation', joints, [(kind, f'{topic}.effort') for kind, topic in VALIDATION], place
        ),
    }
    left, right = list(panels)[:4], list(panels)[4:]
    layout = {
        'configById': panels,
        'globalVariables': {},
        'userNodes': {},
        'playbackConfig': {'speed': 1},
        'layout': {'direction': 'row', 'first': _column(left), 'second': _column(right)},
    }
    return json.dumps(layout, indent=2, ensure_ascii=False) + '\n'


def _plot(
    title: str, joints: Sequence[str], sources: Sequence[tuple[str, str]], place: str
) -> dict[str, Any]:
    """Plot an array of each source, a curve a joint."""
    curves = [
        (f'{joint} {kind}'.strip(), f'{place}/{path}[{index}]')
        for index, joint in enumerate(joints)
        for kind, path in sources
    ]
    more = {'showLegend': True, 'legendDisplay': 'floating', 'xAxisVal': 'timestamp'}
    # A validation is published at once, long after it was measured.
    panel = _panel(title, curves, 'headerStamp')
    return {**panel, **more, 'showXAxisLabels': True, 'showYAxisLabels': True}


def _panel(
    title: str, curves: Iterable[tuple[str, str]], time: str = 'receiveTime'
) -> dict[str, Any]:
    paths = [
        {'value': value, 'label': label, 'enabled': True, 'timestampMethod': time}
        for label, value in curves
    ]
    for path, colour in zip(paths, cycle(COLOURS), strict=False):
        path['color'] = colour
    return {'foxglovePanelTitle': title, 'isSynced': True, 'paths': paths}


def _column(names: Sequence[str]) -> Any:
    """Stack panels of the same height."""
    first, *rest = names
    if not rest:
        return first
    share = 100.0 / len(names)
    return {
        'direction': 'column',
        'first': first,
        'second': _column(rest),
        'splitPercentage': share,
    }


def normal_namespace(namespace: str) -> str:
    """Return a namespace with a leading slash and none at its end, '' for the root."""
    return f'/{namespace.strip("/")}' if namespace.strip('/') else ''
