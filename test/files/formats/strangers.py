"""Logs of other people's loggers, of the small arm of `tables.py`."""

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
