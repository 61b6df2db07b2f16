"""Sheets of Excel."""

import datetime
import io
from pathlib import Path
from typing import Any
import zipfile

from ...exceptions import RecordingError
from ..atomic import open_regular
from ..bounded import check_unpacked
from .table import optional_package, Table
from .text_table import read_text


def is_workbook(path: Path) -> bool:
    """Return whether an archive is a workbook of Excel."""
    with open_regular(path) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                return 'xl/workbook.xml' in archive.namelist()
        except zipfile.BadZipFile:
            return False


def read_xlsx(path: Path) -> Table:
    """
    Read the sheet with most rows, as a text of the same cells is read.

    Raises
    ------
    FileError : openpyxl is not installed
    RecordingError : it has no sheets, or holds no table

    """
    openpyxl = optional_package('openpyxl', str(path), ', or save the sheet as CSV')
    with open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
        check_unpacked(path, sum(info.file_size for info in archive.infolist()))
    workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
    texts = []
    for sheet in workbook.worksheets:
        rows = sheet.iter_rows(values_only=True)
        texts.append(['\t'.join(map(_cell, row)) for row in rows])
    workbook.close()
    if not texts:
        raise RecordingError(f"'{path}' has no sheets: export it again")
    text = '\n'.join(max(texts, key=len))
    return read_text(str(path), lambda _: io.StringIO(text))


def _cell(value: Any) -> str:
    if value is None:
        return ''
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=' ', timespec='microseconds')
    if isinstance(value, datetime.time):
        return value.isoformat(timespec='microseconds')
    return ' '.join(str(value).split())
