"""
Workbooks of Excel (.xlsx): zipped XML.

Ours, since two cells far apart end the process with python-calamine, which fills all between them,
and keep openpyxl counting rows for ever.
"""

from collections.abc import Iterator
import io
from pathlib import Path
import re
from typing import IO
from xml.etree import ElementTree
import zipfile

from ....exceptions import RecordingError
from ...atomic import open_regular
from ...bounded import check_unpacked
from ..table import Table
from .text_table import read_text

_WORKBOOK, _SHARED = 'xl/workbook.xml', 'xl/sharedStrings.xml'
_SHEETS = re.compile(r'xl/worksheets/[^/]+\.xml$')
_MAIN = '{http://schemas.openxmlformats.org/spreadsheetml/2006/main}'
_LARGEST = 16384  # columns of a sheet


def is_workbook(path: Path) -> bool:
    """Return whether an archive is a workbook of Excel."""
    with open_regular(path) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                return _WORKBOOK in archive.namelist()
        except zipfile.BadZipFile:
            return False


def read_xlsx(path: Path) -> Table:
    """
    Read the sheet with most cells, as a text of the same cells is read; dates are days.

    Raises
    ------
    RecordingError : it has no sheets, or holds no table

    """
    with open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
        check_unpacked(path, sum(info.file_size for info in archive.infolist()))
        sheets = [info for info in archive.infolist() if _SHEETS.match(info.filename)]
        if not sheets:
            raise RecordingError(f"'{path}' has no sheets: export it again, or as CSV")
        words = []
        if _SHARED in archive.namelist():
            with archive.open(_SHARED) as part:
                words = [_text(item) for item in _elements(part, 'si')]
        with archive.open(max(sheets, key=lambda info: info.file_size)) as part:
            rows = ['\t'.join(_cells(row, words)) for row in _elements(part, 'row')]
    text = '\n'.join(rows)
    return read_text(str(path), lambda _: io.StringIO(text))


def _elements(stream: IO[bytes], name: str) -> Iterator[ElementTree.Element]:
    """Yield the elements of a name, each of which is forgotten afterwards."""
    for _, element in ElementTree.iterparse(stream):
        if element.tag == _MAIN + name:
            yield element
            element.clear()


def _cells(row: ElementTree.Element, words: list[str]) -> list[str]:
    cells: list[str] = []
    for cell in row.iterfind(f'{_MAIN}c'):
        place = _column(cell.get('r', ''), len(cells))
        cells += [''] * (place - len(cells))
        value = cell.findtext(f'{_MAIN}v', '')
        kind = cell.get('t', 'n')
        if kind == 's':
            value = words[int(value)]
        elif kind == 'inlineStr':
            value = _text(cell)
        elif kind == 'e':  # an error
            value = ''
        cells.append(' '.join(value.split()))
    return cells


def _column(reference: str, following: int) -> int:
    """Return the number of a column, from 0: 27 of AB12; cells may leave their place out."""
    letters = reference.rstrip('0123456789')
    number = 0
    for letter in letters:
        number = 26 * number + int(letter, 36) - 9
    return max(following, number - 1) if 0 < number <= _LARGEST else following


def _text(element: ElementTree.Element) -> str:
    return ''.join(part.text or '' for part in element.iter(f'{_MAIN}t'))
