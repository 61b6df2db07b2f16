"""What was chosen by cross-validation, and what it was compared with."""

from collections.abc import Mapping
from html import escape
from typing import Any

from ..results import Results
from . import figures
from .html import section, table


def selection(results: Results) -> str:
    """Show the choice and its candidates; empty where nothing was open."""
    found = results.selection
    if not found:
        return ''
    joints = [
        f'<tr><td>{escape(joint)}</td><td>{escape(row["friction"])}</td>'
        f'<td class="n">{100 * row["residual"]:.2f} %</td>'
        f'<td class="n">{100 * row["plain_residual"]:.2f} %</td></tr>'
        for joint, row in found['joints'].items()
    ]
    head = ('joint', 'friction', 'residual', 'of plain least squares')
    others = [
        f'<details><summary>{escape(each["subject"])}: {escape(each["chosen"])}</summary>'
        f'{_candidates(each)}</details>'
        for each in found['comparisons'][1:]
    ]
    pictures = [figures.candidates(each) for each in found['comparisons'][:1]]
    return section(
        'Choice of the model',
        f'{found["summary"]}. Blocks of the recording are predicted in turn by what the others '
        'gave; of the candidates within one standard error of the best, the one with the fewest '
        'friction parameters was taken. The configuration kept in parameters.yaml makes the same '
        'choice again.',
        ''.join([table(head, joints, numeric=(2, 3)), *pictures, *others]),
    )


def _candidates(comparison: Mapping[str, Any]) -> str:
    rows = [
        f'<tr><td>{escape(name)}</td><td class="n">{100 * value:.3f} %</td></tr>'
        for name, value in sorted(comparison['residuals'].items(), key=lambda item: item[1])
    ]
    return table(('candidate', 'residual'), rows, numeric=(1,))
