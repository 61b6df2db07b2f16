"""Pages are templates, which escape what they show; Python code holds a plot's place alone."""

import errno
from pathlib import Path
import re
import sys

from jinja2 import Environment
import pytest

import robotid_ros
from robotid_ros.files.report.page import breakable, number, percent, render, residual_class
from robotid_ros.files.text_template import text_templates

PACKAGE = Path(robotid_ros.__file__).parent
# A plot's element, and the scripts that fill it.
PLOTS = PACKAGE / 'files' / 'report' / 'plots.py'


def test_values_are_escaped_and_have_to_be_there(tmp_path, monkeypatch):
    (tmp_path / 'x.html').write_text(
        '<p title="{{ value }}">{{ value }} {{ value|breakable }}</p>'
    )
    name = '<b>"a_b"&\''
    templates = text_templates(tmp_path, breakable=breakable)
    monkeypatch.setattr('robotid_ros.files.report.page._environment', lambda: templates)
    text = render('x.html', value=name)
    assert '<b>' not in text and text.count('&lt;b&gt;') == 3 and 'a_<wbr>b' in text
    with pytest.raises(KeyError, match='value'):
        render('x.html')


@pytest.mark.parametrize('folder', ['files/report', 'fleet'])
def test_elements_are_in_templates_alone(folder):
    modules = [path for path in (PACKAGE / folder).glob('**/*.py') if path != PLOTS]
    assert len(modules) > 1
    for path in modules:
        assert not re.findall(r'</\w+>', path.read_text()), path


def test_templates_turn_nothing_off():
    templates = [*PACKAGE.glob('files/report/**/*.html')]
    assert len(templates) > 5
    for path in templates:
        assert not re.findall(r'autoescape|\|\s*safe|Markup', path.read_text()), path


def test_numbers_that_are_none_are_a_dash():
    assert [number(value) for value in (None, float('nan'), float('inf'))] == ['—'] * 3
    assert number(1.5, '.2f', ' N') == '1.50 N' and number(None, '.2f', ' N') == '—'
    assert percent(0.0123) == '1.23 %' and percent(None) == '—'
    assert residual_class(float('nan')) == ''


@pytest.mark.parametrize('writes', [True, False])
def test_a_template_is_compiled_once_for_all_processes(tmp_path, monkeypatch, writes):
    """A changed one is compiled anew; Python that keeps no bytecode keeps none of templates."""
    monkeypatch.setattr(sys, 'dont_write_bytecode', not writes)
    compiled, compile_template = [], Environment.compile
    monkeypatch.setattr(
        Environment,
        'compile',
        lambda self, source, *rest: (
            compiled.append(source) or compile_template(self, source, *rest)
        ),
    )
    for text in ('one', 'one', 'other'):
        (tmp_path / 'page.html').write_text(text)
        assert text_templates(tmp_path).get_template('page.html').render() == text
    assert compiled == (['one', 'other'] if writes else ['one', 'one', 'other'])
    assert len([*tmp_path.iterdir()]) == 1 + writes


def test_a_page_needs_no_place_for_its_compiled_templates(tmp_path, monkeypatch):
    """As where the disk of the package is full."""
    monkeypatch.setattr(sys, 'dont_write_bytecode', False)

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, 'no space left')

    monkeypatch.setattr('tempfile.NamedTemporaryFile', fail)
    (tmp_path / 'page.html').write_text('text')
    assert text_templates(tmp_path).get_template('page.html').render() == 'text'
