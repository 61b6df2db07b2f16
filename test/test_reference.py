"""The reference says all that there is: commands, settings, public names; the site builds."""

import importlib.util
import os
from pathlib import Path
import re
import subprocess
import sys

import pytest
import yaml

import robotid_ros as rid
from robotid_ros.cli.main import build_parser, VERBS
from robotid_ros.core.findings import CODES
from robotid_ros.files.configuration_text import settings_reference

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope='module')
def reference():
    spec = importlib.util.spec_from_file_location('reference', ROOT / '.ci' / 'reference.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sections(text: str) -> dict[str, str]:
    """Parts of a page by their headings of the second level."""
    parts = re.split(r'^## (.*)$', text, flags=re.MULTILINE)
    return {k.replace('\\_', '_'): v for k, v in zip(parts[1::2], parts[2::2], strict=True)}


def test_every_command_is_there_with_every_option(reference):
    shown = sections(reference.commands())
    assert {f'robotid {verb}' for verb in VERBS} <= set(shown)
    for words, parser in reference.subparsers(build_parser()).items():
        text = shown[f'robotid {words}']
        options = set(re.findall(r'^ +(?:-\w[\w ,]*, )?(--[a-z-]+)', parser.format_help(), re.M))
        assert options - {'--help'} and all(f'{x}' in text for x in options - {'--help'}), words


def test_every_setting_is_there(reference):
    def leaves(values, path=''):
        for name, value in values.items():
            inner = f'{path}.{name}' if path else name
            if isinstance(value, dict) and value:
                yield from leaves(value, inner)
            else:
                yield inner

    page = reference.settings()
    keys = yaml.safe_load(settings_reference())['/**']['ros__parameters']
    known = list(leaves(keys))
    assert len(known) > 150
    assert [key for key in known if f'| `{key}` |' not in page] == []


def test_every_public_name_is_there(reference):
    shown = sections(reference.library())
    assert set(shown) == set(rid.__all__)
    for name in rid.__all__:
        value = getattr(rid, name)
        if isinstance(value, type) and not issubclass(value, Exception):
            own = [x for x in vars(value) if not x.startswith('_') and callable(vars(value)[x])]
            assert all(f'### {name}.{x}\n' in shown[name] for x in own), name
        if callable(value):
            assert len(shown[name]) > 40, name


def test_every_finding_is_there(reference):
    shown = sections(reference.findings())
    assert set(shown) == {f'{code.code} {code.name}' for code in CODES.values()}
    assert all('Why: ' in text for text in shown.values())


def test_docstrings_become_markdown(reference):
    text = sections(reference.library())['from_arrays']
    assert '**Parameters**' in text and '- `time`: (N,) stamps [s]' in text and '-----' not in text


def test_every_page_is_in_the_navigation(reference):
    def entries(nav):
        for entry in nav:
            value = next(iter(entry.values())) if isinstance(entry, dict) else entry
            yield from entries(value) if isinstance(value, list) else [value]

    configuration = yaml.safe_load((ROOT / 'mkdocs.yml').read_text())
    linked = set(entries(configuration['nav']))
    pages = {str(f.relative_to(ROOT / 'docs')) for f in (ROOT / 'docs').rglob('*.md')}
    own = {page for page in pages if not page.startswith('decisions/0')}
    assert linked == own | set(reference.pages()) | {
        'contributing.md',
        'changelog.md',
        'benchmarks.md',
    }


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_asks_nobody(tmp_path: Path):
    pytest.importorskip('material')
    command = [sys.executable, '-m', 'mkdocs', 'build', '--strict', '-q', '-d', str(tmp_path)]
    quiet = {**os.environ, 'NO_MKDOCS_2_WARNING': '1'}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=quiet)
    assert (done.returncode, done.stderr) == (0, '')
    asked = re.compile(r'<(?:script|link|img|iframe)[^>]*(?:src|href)=["\']?https?:')
    pages = list(tmp_path.rglob('*.html'))
    assert len(pages) > 30
    assert [page.name for page in pages if asked.search(page.read_text())] == []
    index = (tmp_path / 'search' / 'search_index.json').read_text()
    assert 'excitation.tracking_error' in index and 'InverseDynamics' in index
