"""Comments and numbers in XML."""

from collections.abc import Iterable, Sequence
from typing import Any
from xml.etree import ElementTree as ET


def comment(notes: Sequence[str]) -> 'ET.Element[Any]':
    """Return an XML comment of sentences; two hyphens may not stand in one."""
    lines = ['identified by robotid', *notes]
    return ET.Comment('\n  '.join(['', *lines]).replace('--', '- -') + '\n')


def spaced(values: Iterable[float]) -> str:
    """Return numbers with every digit and spaces between; no minus before a zero."""
    return ' '.join(repr(float(value) + 0.0) for value in values)
