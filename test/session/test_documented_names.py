"""Topics and services of the nodes, as a graph shows them, are those of the documents."""

from pathlib import Path
import re

import pytest

from .conftest import Session

pytestmark = pytest.mark.ros

NODES = ('simulated_robot', 'excitation', 'recorder', 'identification')
DOCS = Path(__file__).resolve().parents[2] / 'docs'
PAGES = DOCS / 'interface.md', DOCS / 'guide' / 'monitoring.md'
# What every node of ROS has.
OF_ROS = re.compile(
    r'parameter|type_description|get_loggers|logger_levels|transition_event|_action/'
)


def test_every_topic_and_service_is_in_the_documents(config: Path, tmp_path: Path):
    with Session(config, tmp_path) as session:
        session.start(*NODES)
        session.robot.wait()
        session.ready('excitation', 'recorder', 'identification')
        node = session.client.node
        shown = {name for name, _ in node.get_topic_names_and_types()}
        shown |= {name for name, _ in node.get_service_names_and_types()}
    own = {
        name.removeprefix('/')
        for name in shown
        if name.startswith(tuple(f'/{node}/' for node in NODES)) and not OF_ROS.search(name)
    }
    assert len(own) > 30
    assert sorted(own - documented()) == []


def documented() -> set[str]:
    """Names in the first column of the tables; '…/sigma' goes on where the one before ends."""
    found: set[str] = set()
    text = '\n'.join(page.read_text() for page in PAGES)
    for row in re.findall(r'^\| (`.*?) \|', text, re.MULTILINE):
        first, *others = re.findall(r'`([^`]+)`', row)
        found |= {first, *others}
        folder = first.rpartition('/')[0]
        for name in others:
            found |= {f'{folder}/{name}', f'{folder}{name.removeprefix("…")}'}
            found.add(f'{first}{name.removeprefix("…")}')
    return found
