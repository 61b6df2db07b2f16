"""Editing a robot description as text, so that all that is not edited stays byte for byte."""

from collections.abc import Mapping
from dataclasses import dataclass
import re
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from ...exceptions import ModelError

Edit = tuple[int, int, str]
_COMMENT = re.compile(rb'<!--.*?-->', re.DOTALL)
_TAG = re.compile(rb'<(?:[^>"\']|"[^"]*"|\'[^\']*\')*>')


@dataclass
class Element:
    """
    One link or joint in the text of a robot description; offsets are in bytes.

    Attributes
    ----------
    name : its `name`
    content_start : end of its start tag
    empty : whether it is written `<link …/>`
    child : name of a joint's child link
    span : where its `<inertial>` or `<dynamics>` lies, None without
    parent : name of a joint's parent link

    """

    name: str
    start: int
    content_start: int
    empty: bool = False
    parent: str = ''
    child: str = ''
    span: tuple[int, int] | None = None


class Scanner:
    """Finds links and joints directly below `<robot>`."""

    def __init__(self, data: bytes):
        self.data = data
        self.links: dict[str, Element] = {}
        self.joints: dict[str, Element] = {}
        self._path: list[tuple[str, int]] = []
        self._current: Element | None = None
        self._parser = expat.ParserCreate('utf-8')
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = self._end
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            raise ModelError(f'the robot description is not valid XML: {error}') from error

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        start = self._parser.CurrentByteIndex
        self._path.append((tag, start))
        names = [name for name, _ in self._path]
        if len(names) == 2 and tag in ('link', 'joint') and 'name' in attributes:
            self._current = Element(attributes['name'], start, self._tag_end(start))
            (self.links if tag == 'link' else self.joints)[attributes['name']] = self._current
        elif len(names) == 3 and names[1] == 'joint' and self._current and 'link' in attributes:
            if tag in ('parent', 'child'):
                setattr(self._current, tag, attributes['link'])

    def _end(self, tag: str) -> None:
        _, start = self._path.pop()
        head = self._tag_end(start)
        empty = self.data[head - 2 : head] == b'/>'
        depth = len(self._path)
        if self._current is None:
            return
        if depth == 1:
            self._current.empty = empty
            self._current = None
        elif depth == 2 and tag in ('inertial', 'dynamics'):
            self._current.span = (
                start,
                head if empty else self._tag_end(self._parser.CurrentByteIndex),
            )

    def _tag_end(self, start: int) -> int:
        found = _TAG.match(self.data, start)
        assert found is not None  # expat has accepted the tag already
        return found.end()


def placement_edit(element: Element, text: str, tag: str) -> Edit:
    """Return the edit that puts a text over the old element, else just inside the start tag."""
    if element.span is not None:
        return (*element.span, text)
    if not element.empty:
        return (element.content_start, element.content_start, f'\n    {text}')
    attributes = f'<{tag} name={quoteattr(element.name)}>'
    return (element.start, element.content_start, f'{attributes}\n    {text}\n  </{tag}>')


def child_span(data: bytes, span: tuple[int, int], tag: str) -> tuple[int, int]:
    """Return where the start tag of the first `tag` inside an element lies; comments do not."""
    start, stop = span
    plain = _COMMENT.sub(lambda found: b' ' * len(found.group()), data[start:stop])
    begin = re.search(rf'<{tag}\b'.encode(), plain)
    assert begin is not None
    head = _TAG.match(plain, begin.start())
    assert head is not None
    return start + head.start(), start + head.end()


def with_attributes(element: str, values: Mapping[str, str]) -> str:
    """Return an element's text with attributes of its start tag changed or added."""
    found = _TAG.match(element.encode())
    assert found is not None
    head = found.group().decode()
    tail = element[len(head) :]
    for name, value in values.items():
        text = f'{name}={quoteattr(value)}'
        old = re.compile(rf'(?<=\s){name}\s*=\s*("[^"]*"|\'[^\']*\')')
        if old.search(head):
            head = old.sub(lambda _, text=text: text, head, count=1)  # type: ignore[misc]
        else:
            end = len(head) - (2 if head.endswith('/>') else 1)
            head = f'{head[:end].rstrip()} {text}{head[end:]}'
    return head + tail


def apply_edits(data: bytes, edits: list[Edit]) -> str:
    """Make the edits; none of them may overlap."""
    for start, stop, text in sorted(edits, reverse=True):
        data = data[:start] + text.encode() + data[stop:]
    return data.decode()
