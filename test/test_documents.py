"""Documents say what is there: links, paths, and the names and imports that they show."""

import ast
import importlib
from pathlib import Path
import re

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob('*.md'), *ROOT.glob('docs/**/*.md')])
EVERY = pytest.mark.parametrize('path', DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))


@EVERY
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r'\]\(([^)#]+)\)', path.read_text())
    # Pages of the reference are made with the site: .ci/reference.py.
    missing = [
        x
        for x in links
        if '://' not in x and not (path.parent / x).exists() and '/reference/' not in f'/{x}'
    ]
    assert not missing


@EVERY
def test_imports_exist(path: Path) -> None:
    blocks = re.findall(r'```python\n(.*?)```', path.read_text(), re.DOTALL)
    for node in (node for block in blocks for node in ast.walk(ast.parse(block))):
        if isinstance(node, ast.ImportFrom) and (node.module or '').startswith('robotid_ros'):
            module = importlib.import_module(node.module or '')
            assert all(hasattr(module, alias.name) for alias in node.names), node.module


def test_the_architecture_names_what_is_there() -> None:
    files = [
        path
        for top in ('robotid_ros', 'test', 'benchmarks')
        for path in ROOT.glob(f'{top}/**/*.py')
    ]
    known = {word for path in files for word in re.findall(r'\w+', path.read_text())}
    known |= {word for path in files for word in (path.stem, path.parent.name)}
    shown = ' '.join(re.findall(r'`([^`\n]+)`', (ROOT / 'docs/architecture.md').read_text()))
    assert sorted({*re.findall(r'[A-Za-z_]\w{2,}', shown)} - known) == []
