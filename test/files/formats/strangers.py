"""Logs of other people's loggers, of the small arm of `tables.py`."""

import zipfile

import numpy as np

from robotid_ros.files.formats.open_table import open_table
from robotid_ros.files.formats.read_options import parse_assignments, ReadOptions

from .tables import DQ, Q, TAU, TIME, urdf

JOINTS = ('base', 'elbow')


def check(path, units='', stamps=TIME, velocity=True, resolution=2e-6, rows=None):
    """Read a log and compare it with the truth; return its notes."""
    given = parse_assignments(units, '') if units else ()
    found = open_table(path, ReadOptions(urdf=urdf(*JOINTS), units=given))
    order = [found.joints.index(joint) for joint in JOINTS]
    np.testing.assert_allclose((found.stamp - found.stamp[0]) * 1e-9, stamps, atol=resolution)
    rows = np.searchsorted(TIME, (stamps if rows is None else rows) - 1e-6)
    np.testing.assert_allclose(found.position[:, order], Q[rows], atol=1e-6)
    np.testing.assert_allclose(found.effort[:, order], TAU[rows], atol=1e-5)
    if velocity:
        np.testing.assert_allclose(found.velocity[:, order], DQ[rows], atol=1e-5)
    return found.notes


def columns(*parts):
    """Split matrices into columns."""
    return [c for part in parts for c in (part.T if np.ndim(part) == 2 else [part])]


def text(header, values, delimiter=',', decimal='.', above=()):
    """Write columns of numbers or words under a header."""
    rows = [*above, delimiter.join(header)] if header else [*above]
    for row in zip(*values, strict=True):
        cells = (x if isinstance(x, str) else f'{x:.15g}'.replace('.', decimal) for x in row)
        rows.append(delimiter.join(cells))
    return '\n'.join(rows) + '\n'


def workbook(path, sheets):
    """Write sheets of words and numbers, words shared, as Excel does."""
    words, parts = [], {}
    for number, rows in enumerate(sheets, 1):
        lines = []
        for k, row in enumerate(rows, 1):
            cells = []
            for place, value in enumerate(row):
                if isinstance(value, str):
                    kind, content = ' t="s"', len(words)
                    words.append(value)
                else:
                    kind, content = '', repr(float(value))
                cells.append(f'<c r="{chr(65 + place)}{k}"{kind}><v>{content}</v></c>')
            lines.append(f'<row r="{k}">{"".join(cells)}</row>')
        parts[f'worksheets/sheet{number}.xml'] = f'<sheetData>{"".join(lines)}</sheetData>'
    parts['sharedStrings.xml'] = ''.join(f'<si><t>{word}</t></si>' for word in words)
    parts['workbook.xml'] = ''
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    with zipfile.ZipFile(path, 'w') as archive:
        for name, content in parts.items():
            archive.writestr(f'xl/{name}', f'<part {main}>{content}</part>')
