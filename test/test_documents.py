"""Documents say what is there: links, paths, and the names and imports that they show."""

import ast
import importlib
from pathlib import Path
import re

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob('*.md'), *ROOT.glob('docs/**/*.md'), ROOT / 'benchmarks/README.md'])
# Words of README and docs/, and of a page of the guide: two screens.
WORDS, PAGE_WORDS = 30_000, 600
# A picture takes the place of so many words.
PICTURE = 100
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


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as MkDocs makes them."""
    text = re.sub(r'^```.*?^```', '', page.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r'^#+ (.*)$', text, re.MULTILINE)
    return {re.sub(r'[\s-]+', '-', re.sub(r'[^\w\s-]', '', x).strip().lower()) for x in titles}


@EVERY
def test_links_into_a_page_lead_to_a_heading(path: Path) -> None:
    links = re.findall(r'\]\(([^)#:]*\.md)?#([^)]+)\)', path.read_text())
    missing = [
        (page, anchor)
        for page, anchor in links
        if anchor not in anchors(path.parent / page if page else path)
    ]
    assert not missing


def test_documents_that_the_code_names_exist() -> None:
    """Messages send users to pages, comments send readers to pages and benchmarks."""
    folders = ('robotid_ros', 'benchmarks', 'config', '.ci', 'launch')
    files = [path for top in folders for path in ROOT.glob(f'{top}/**/*') if path.is_file()]
    named = re.compile(r'\b((?:docs|benchmarks)/[\w/]+\.(?:md|py))\b')
    missing = {
        (str(path.relative_to(ROOT)), name)
        for path in files
        if path.suffix in ('.py', '.xml', '.yaml', '.html', '.md')
        for name in named.findall(path.read_text())
        if not (ROOT / name).exists()
    }
    assert not missing


@EVERY
def test_the_paths_that_a_document_names_exist(path: Path) -> None:
    named = re.findall(r'\b((?:benchmarks|test|config|docs)/[\w/]+\.\w+)\b', path.read_text())
    own = {'test/integration_test_joint_efforts.py'}  # of another repository
    assert sorted({x for x in named if not (ROOT / x).exists()} - own) == []


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


def count_words(path: Path) -> int:
    """Count as `wc -w`; `robotid init --keys` in the page of the configuration is generated."""
    return len(
        re.sub(r'^```yaml\n# Every key.*?^```', '', path.read_text(), flags=re.M | re.S).split()
    )


def test_the_documentation_stays_short():
    pages = [ROOT / 'README.md', *ROOT.glob('docs/**/*.md')]
    assert sum(map(count_words, pages)) <= WORDS


@pytest.mark.parametrize('path', sorted(ROOT.glob('docs/guide/*.md')), ids=lambda p: p.stem)
def test_a_page_of_the_guide_is_two_screens(path: Path) -> None:
    pictures = path.read_text().count('](../pictures/')
    assert count_words(path) + PICTURE * pictures <= PAGE_WORDS
