"""Layouts of PlotJuggler and Foxglove for the topics of a session, and the joints of a robot."""

from collections.abc import Sequence
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
    topics = (*LIVE, *VALIDATION, RESIDUAL)
    return _rendered('plotjuggler.xml', namespace, tabs=tabs, topics=topics)


def foxglove_layout(joints: Sequence[str], controller: str, namespace: str = '') -> str:
    """
    Lay out states, diagnostics, motion, efforts, residual and validation of a session.

    Foxglove names elements of arrays by their index: that of the joint in the configuration, which
    the controller is taken to share. `joint_states` has an order of its own, and is left out.
    Returns JSON for 'Import from file' of its menu of layouts; the namespace is the session's.
    """
    return _rendered('foxglove.json', namespace, joints=joints, controller=controller)


def _rendered(name: str, namespace: str, **values: Any) -> str:
    page, place = text_templates(TEMPLATES).get_template(name), normal_namespace(namespace)
    return page.render(place=place, colours=COLOURS, **values)


def normal_namespace(namespace: str) -> str:
    """Return a namespace with a leading slash and none at its end, '' for the root."""
    return f'/{namespace.strip("/")}' if namespace.strip('/') else ''
