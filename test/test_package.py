"""The architecture holds: imports run one way, the core knows no ROS, rosdep knows the rest."""

import ast
from collections.abc import Iterator
import importlib
from importlib import resources
from pathlib import Path
import re
import xml.etree.ElementTree as ElementTree

import pytest

PACKAGE = 'robotid_ros'
ROOT = Path(str(resources.files(PACKAGE)))
REPOSITORY = Path(__file__).resolve().parents[1]
MODULES = sorted({*ROOT.rglob('*.py')} - {ROOT / '__init__.py'})
ROS = re.compile(
    r'(rclpy|rosidl_\w+|ament_\w+|launch\w*|\w+_msgs|\w+_interfaces|std_srvs|rosbags)$'
)

# What each part of the package may import from the others, besides itself and the declarations
# in any part's settings.py, which the configuration file brings together.
BASE = {'settings', 'exceptions'}
ALLOWED = {
    'exceptions': set(),
    'settings': {'exceptions'},
    'threads': set(),
    'entry': set(),
    'core': BASE,
    'files': BASE | {'core'},
    'plant': BASE | {'files'},
    'nodes': BASE | {'core', 'entry', 'files', 'plant', 'threads'},
    'cli': BASE | {'core', 'entry', 'files', 'nodes', 'plant', 'threads'},
}


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of every import, wherever it stands in the file."""
    parents = path.relative_to(ROOT.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else ()
            stem = '.'.join([*base, *filter(None, [node.module])])
            yield from ((node.lineno, f'{stem}.{alias.name}') for alias in node.names)


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix('').parts[0]


@pytest.mark.parametrize('path', MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    part = part_of(path)
    for line, name in imported(path):
        parts = name.split('.')
        if parts[0] != PACKAGE or len(parts) < 2 or parts[1] == part or 'settings' in parts[2:]:
            continue
        assert parts[1] in ALLOWED[part], f'{path.name}:{line}: {part} must not import {name}'


@pytest.mark.parametrize(
    'path', sorted(ROOT.glob('*/**/settings.py')), ids=lambda p: p.parent.name
)
def test_settings_are_only_declarations(path: Path) -> None:
    ours = [name.split('.')[1:] for _, name in imported(path) if name.startswith(PACKAGE)]
    assert [n for n in ours if n[0] not in BASE and not n[-1].endswith('Settings')] == []


@pytest.mark.parametrize('part', ['core', 'settings', 'exceptions'])
def test_core_knows_no_ros(part: str) -> None:
    found = [
        f'{path.relative_to(ROOT)}:{line}: {name}'
        for path in MODULES
        if part_of(path) == part
        for line, name in imported(path)
        if ROS.match(name.split('.')[0])
    ]
    assert not found


def test_only_nodes_and_demo_start_ros() -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in MODULES
        for _, name in imported(path)
        if name.split('.')[0] == 'rclpy' and part_of(path) not in ('nodes', 'plant')
    }
    assert found <= {'cli/demo.py'}


def test_plant_shares_nothing_with_the_identified_model() -> None:
    found = [
        name
        for path in MODULES
        if part_of(path) == 'plant'
        for _, name in imported(path)
        if name.startswith((f'{PACKAGE}.core', 'pinocchio'))
    ]
    assert not found


def test_import_scanner_sees_relative_imports(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(globals(), 'ROOT', tmp_path / PACKAGE)
    module = tmp_path / PACKAGE / 'core' / 'model' / 'x.py'
    module.parent.mkdir(parents=True)
    module.write_text('def f():\n    from ...files import bags\n    from .robot import Robot\n')
    assert [name for _, name in imported(module)] == [
        f'{PACKAGE}.files.bags',
        f'{PACKAGE}.core.model.robot.Robot',
    ]


@pytest.mark.parametrize(
    'path', sorted((REPOSITORY / 'launch').glob('*.launch.py')), ids=lambda p: p.name
)
def test_launch_files_import_what_exists(path: Path) -> None:
    compile(path.read_text(), path, 'exec')
    ours = [name.rpartition('.') for _, name in imported(path) if name.startswith(f'{PACKAGE}.')]
    for module, _, name in ours:
        assert hasattr(importlib.import_module(module), name), name


def test_dependencies_are_declared_for_rosdep() -> None:
    manifest = ElementTree.parse(REPOSITORY / 'package.xml').getroot()
    declared = {d.text for d in manifest.findall('exec_depend')}
    used = {name.split('.')[0] for path in MODULES for _, name in imported(path)}
    ros = {name for name in used if ROS.match(name)} - {'rosbags'}
    assert ros <= declared
