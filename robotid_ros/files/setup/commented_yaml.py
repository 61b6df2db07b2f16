"""YAML with comments, in ROS 2 parameter-file format."""

from collections.abc import Iterable
import dataclasses
import textwrap
from typing import Any

from ..yaml import dump_flow

WIDTH = 99
INDENT = '  '


@dataclasses.dataclass(frozen=True)
class Entry:
    """
    A key with what stands above it.

    Attributes
    ----------
    key : its name
    value : plain value, list or mapping, or the entries of a group
    comment : lines above it, wrapped; empty: none
    hidden : whether the key itself is a comment

    """

    key: str
    value: Any
    comment: str = ''
    hidden: bool = False


def parameter_file(groups: Iterable[Entry], head: str) -> str:
    """
    Write a parameter file for all nodes.

    Parameters
    ----------
    groups : below `ros__parameters`
    head : text above it, as comment

    """
    entries = [Entry('/**', (Entry('ros__parameters', tuple(groups)),))]
    return '\n'.join([*_comment(head, ''), *_lines(entries, '')]) + '\n'


def _lines(entries: Iterable[Entry], indent: str) -> list[str]:
    lines = []
    for entry in entries:
        lines += _comment(entry.comment, indent)
        value = entry.value
        group = isinstance(value, tuple) and value and isinstance(value[0], Entry)
        if group:
            own = [f'{indent}{entry.key}:', *_lines(value, indent + INDENT)]
        else:
            own = _wrapped(f'{indent}{entry.key}: ', value)
        hidden = f'{indent}# ' if entry.hidden else indent
        lines += [hidden + line.removeprefix(indent) for line in own]
    return lines


def _wrapped(start: str, value: Any) -> list[str]:
    """Write a value behind its key, a long list over several lines."""
    text = start + dump_flow(value)
    if len(text) <= WIDTH or not isinstance(value, list | tuple):
        return [text]
    deeper = ' ' * (len(start) - len(start.lstrip()) + 2 * len(INDENT))
    lines = [start.rstrip(), deeper + '[']
    for item in map(dump_flow, value):
        if len(lines[-1]) + len(item) > WIDTH - 2:
            lines[-1] = lines[-1].rstrip()
            lines.append(deeper + ' ')
        lines[-1] += f'{item}, '
    lines[-1] = lines[-1].removesuffix(', ') + ']'
    return lines


def _comment(text: str, indent: str) -> list[str]:
    wrapped = (
        textwrap.wrap(
            line, WIDTH - len(indent) - 2, break_long_words=False, break_on_hyphens=False
        )
        for line in text.splitlines()
    )
    return [f'{indent}# {line}' for lines in wrapped for line in lines]
