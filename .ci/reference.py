"""
Pages of the reference, from the code: every command, setting, public name and finding.

Read by `.ci/mkdocs_hook.py` for the site, and by the tests, which compare them with the code.
"""

import argparse
from collections.abc import Iterator
import dataclasses
import inspect
import re
import textwrap
import typing
from typing import Any

# Sections of numpydoc, and attributes of a class.
_UNDERLINED = re.compile(r'^(\w[\w ]*)\n-{3,}$', re.MULTILINE)
_ENTRY = re.compile(r'^(\S.*?) : (.*)$')


def pages() -> dict[str, str]:
    """Return all pages, by their path below docs/."""
    return {
        'reference/commands.md': commands(),
        'reference/settings.md': settings(),
        'reference/library.md': library(),
        'reference/findings.md': findings(),
    }


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a parser's commands and of theirs, by their words."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                found[name] = inner
                found |= {f'{name} {words}': deeper for words, deeper in subparsers(inner).items()}
    return found


def commands() -> str:
    """Return every command with its options and examples."""
    from robotid_ros.cli.main import build_parser

    parser = build_parser()
    lines = ['# Commands', '', parser.description or '', '']
    lines += ['Every command takes `--help`, `--debug` (the traceback of an error) and `--json`;']
    lines += ['it returns 0 on success, 1 on an error, 2 on wrong usage, 130 after Ctrl-C.', '']
    for words, inner in subparsers(parser).items():
        lines += [f'## robotid {words}', '', inner.description or '', '']
        lines += ['```text', _usage(inner), '```', '', *_options(inner)]
        lines += _examples(inner)
    return '\n'.join(lines)


def _usage(parser: argparse.ArgumentParser) -> str:
    return ' '.join(parser.format_usage().removeprefix('usage: ').split())


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    rows = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or '--help' in action.option_strings:
            continue
        name = ', '.join(action.option_strings) or action.dest
        value = action.metavar or (action.choices and ', '.join(map(str, action.choices)))
        if action.option_strings and value and action.nargs != 0:
            name = f'{name} {value}'
        rows.append((f'`{_cell(name)}`', _cell(action.help or '')))
    if rows:
        yield from ('| argument | meaning |', '| --- | --- |')
        yield from (f'| {name} | {text} |' for name, text in rows)
        yield ''


def _examples(parser: argparse.ArgumentParser) -> list[str]:
    text = (parser.epilog or '').removeprefix('examples:\n')
    return ['```sh', textwrap.dedent(text).rstrip(), '```', ''] if text else []


def _cell(text: str) -> str:
    """Put a text into a table's cell."""
    return ' '.join(text.split()).replace('|', '\\|').replace('<', '&lt;')


def settings() -> str:
    """Return every key of a configuration with default, unit, bounds and meaning."""
    from robotid_ros.files.configuration import Configuration

    lines = ['# Settings', '']
    lines += [
        'Keys of a configuration, which are the parameters of the nodes, too: `robot` of all of '
        'them, `excitation`, `recorder`, `identification` and `simulation` of the node of that '
        'name. The same as a file with comments: [configuration.md](../configuration.md).',
        '',
    ]
    for field in dataclasses.fields(Configuration):
        kind = typing.get_type_hints(Configuration)[field.name]
        lines += [f'## {field.name}', '', _sentence(field.metadata['description']), '']
        lines += ['| key | default | unit, bounds | meaning |', '| --- | --- | --- | --- |']
        lines += [_row(*entry) for entry in keys(kind, field.name)]
        lines.append('')
    return '\n'.join(lines)


def keys(cls: Any, path: str) -> Iterator[tuple[str, 'dataclasses.Field[Any]', Any]]:
    """Give path, field and type of every key of a settings class; NAME stands for a free name."""
    types = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        kind, name = types[field.name], f'{path}.{field.name}'
        if dataclasses.is_dataclass(kind):
            yield from keys(kind, name)
            continue
        yield name, field, kind
        inner = typing.get_args(kind)[1] if typing.get_origin(kind) is dict else None
        if dataclasses.is_dataclass(inner):
            yield from keys(inner, f'{name}.NAME')


def _row(name: str, field: 'dataclasses.Field[Any]', kind: Any) -> str:
    meta = field.metadata
    default = '' if field.default is dataclasses.MISSING else field.default
    default = list(default) if isinstance(default, tuple) else default
    low, high = meta['minimum'], meta['maximum']
    bounds = [f'{sign} {end:g}' for sign, end in (('≥', low), ('≤', high)) if end is not None]
    facts = [meta['unit'], *bounds]
    facts.append(', '.join(filter(None, meta['choices'])))
    shown = f'`{_cell(str(default))}`' if str(default) else ''
    what = _cell('; '.join(filter(None, facts)))
    return f'| `{name}` | {shown} | {what} | {_cell(meta["description"])} |'


def _sentence(text: str) -> str:
    return f'{text[:1].upper()}{text[1:]}.'


def findings() -> str:
    """Return every code of a finding: what was seen, what it means, why it matters, what to do."""
    from robotid_ros.core.findings import CODES

    lines = [
        '# Findings',
        '',
        'What `identify` and other commands find, by codes that stay. Words',
    ]
    lines += ['in braces stand for values. `robotid explain CODE` prints one.', '']
    for code in CODES.values():
        lines += [f'## {code.code} {code.name}', '', f'*{code.severity.word}*', '']
        texts = code.texts()
        lines += [f'{_escaped(texts["seen"])} {_escaped(texts["means"])}'.rstrip(), '']
        lines += [f'Why: {_escaped(texts["why"])}', '']
        lines += [f'What to do: {_escaped(texts["remedy"])}', ''] if texts['remedy'] else []
    return '\n'.join(lines)


def library() -> str:
    """Return every public name with its signature and docstring."""
    import robotid_ros as rid

    lines = [
        '# Library',
        '',
        '`import robotid_ros as rid`; [library.md](../guide/library.md) shows how ',
    ]
    lines += ['the names work together.', '']
    for name in rid.__all__:
        value = getattr(rid, name)
        if isinstance(value, str):
            lines += [f'## {_escaped(name)}', '', 'Version of the package.', '']
            continue
        lines += [f'## {name}', '', *_signature(f'rid.{name}', value), *_docstring(value)]
        for member, inner in _members(value):
            lines += [f'### {name}.{member}', '', *_signature(f'.{member}', inner)]
            lines += _docstring(inner)
    return '\n'.join(lines)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """Give public methods and properties of a class that have something to say."""
    if not inspect.isclass(value) or issubclass(value, Exception):
        return
    for name, inner in inspect.getmembers(value):
        mine = callable(inner) or isinstance(inner, property)
        if not name.startswith('_') and mine and inspect.getdoc(inner):
            yield name, inner


def _signature(name: str, value: Any) -> list[str]:
    if isinstance(value, property):
        return []
    try:
        signature = inspect.signature(value)
    except ValueError:
        return []
    # Names and defaults: types of arrays fill pages, and the docstring says shapes and units.
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = f'{name}{signature.replace(parameters=bare, return_annotation=signature.empty)}'
    return ['```text', textwrap.fill(text, 100, subsequent_indent='    '), '```', '']


def _docstring(value: Any) -> list[str]:
    """Turn a docstring of numpydoc into Markdown: its sections are lists."""
    text = inspect.getdoc(value) or ''
    parts = _UNDERLINED.split(text)
    lines = [_escaped(parts[0].strip()), '']
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        lines += [f'**{title}**', '', *_entries(body.strip('\n')), '']
    return lines


def _entries(body: str) -> Iterator[str]:
    """Give the entries `name : meaning` of a section as a list, other text as it is."""
    for line in body.splitlines():
        if match := _ENTRY.match(line):
            yield f'- `{match[1]}`: {_escaped(match[2])}'
        else:
            yield _escaped(line) if not line.startswith(' ') else f'  {_escaped(line.strip())}'


def _escaped(text: str) -> str:
    return text.replace('<', '&lt;').replace('__', r'\_\_')
