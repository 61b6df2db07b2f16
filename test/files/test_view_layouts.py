"""Layouts name the topics and joints of a session, as PlotJuggler and Foxglove spell them."""

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import given, strategies as st
import pytest

from robotid_ros.files.view_layouts import foxglove_layout, plotjuggler_layout

JOINTS = ('joint_1', 'joint_2', 'joint_3')
# Topics with a joint's name, and the fields of each that PlotJuggler makes curves of.
SERIES = {
    'joint_states': ('position', 'velocity', 'effort'),
    'identification/predicted_effort': ('effort',),
    'identification/residual': ('effort',),
    'identification/validation/measured': ('effort',),
    'identification/validation/predicted': ('effort',),
}


def panels(layout: Any) -> list[str]:
    """Names of the panels in a Foxglove layout's tree."""
    if isinstance(layout, str):
        return [layout]
    return [*panels(layout['first']), *panels(layout['second'])]


@pytest.mark.parametrize(('namespace', 'place'), [('', ''), ('arm1', '/arm1'), ('/a/b/', '/a/b')])
def test_plotjuggler_has_every_curve_of_every_joint(namespace: str, place: str):
    root = ET.fromstring(plotjuggler_layout(JOINTS, namespace))
    expected = {
        f'{place}/{topic}/{joint}/{field}'
        for topic, fields in SERIES.items()
        for field in fields
        for joint in JOINTS
    }
    assert {curve.get('name') for curve in root.iter('curve')} == expected
    topics = root.find('Plugins/plugin/selected_topics')
    assert topics is not None
    assert set((topics.get('value') or '').split(';')) == {f'{place}/{topic}' for topic in SERIES}
    streamer = root.find('previouslyLoaded_Streamer')
    assert streamer is not None
    assert root.find(f"Plugins/plugin[@ID='{streamer.get('name')}']") is not None


def test_plotjuggler_counts_its_plots():
    for splitter in ET.fromstring(plotjuggler_layout(JOINTS)).iter('DockSplitter'):
        sizes = [float(size) for size in splitter.attrib['sizes'].split(';')]
        assert len(splitter) == len(sizes) == int(splitter.attrib['count'])
        assert sum(sizes) == pytest.approx(1.0, abs=1e-5)


def test_foxglove_names_every_joint_at_its_index():
    layout = json.loads(foxglove_layout(JOINTS, 'arm_controller', 'arm1'))
    assert sorted(panels(layout['layout'])) == sorted(layout['configById'])
    plots = [panel for name, panel in layout['configById'].items() if name.startswith('Plot!')]
    assert len(plots) == 5
    for plot in plots:
        for path in plot['paths']:
            index = int(re.fullmatch(r'/arm1/[a-z_/.]+\[(\d)\]', path['value']).group(1))
            assert path['label'].startswith(JOINTS[index])
            assert path['timestampMethod'] == 'headerStamp'
        assert len({path['color'] for path in plot['paths']}) == len(plot['paths'])


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=9, unique=True))
def test_any_name_of_a_joint_can_be_read_again(joints: list[str]):
    readable = [joint for joint in joints if joint.isprintable()]
    if readable:
        names = {
            curve.get('name')
            for curve in ET.fromstring(plotjuggler_layout(readable)).iter('curve')
        }
        assert all(f'/joint_states/{joint}/effort' in names for joint in readable)
    assert json.loads(foxglove_layout(joints, 'arm_controller'))['configById']
