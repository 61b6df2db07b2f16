"""What was chosen by cross-validation, and what it was compared with."""

from collections.abc import Mapping
from typing import Any

from ...results import Results
from ..html import details, number, row, section, table, text
from ..plots import curves
from ..plots.canvas import Plots


def selection(results: Results, plots: Plots) -> str:
    """Show the choice and its candidates; empty where nothing was open."""
    found = results.selection
    if not found:
        return ''
    joints = [
        row(
            joint,
            text(line['friction']),
            number(100 * line['residual'], '.2f', ' %'),
            number(100 * line['plain_residual'], '.2f', ' %'),
        )
        for joint, line in found['joints'].items()
    ]
    head = ('joint', 'friction', 'residual', 'of plain least squares')
    listed = table(head, joints, numeric=(2, 3), caption='What was chosen for each joint')
    others = [
        details(f'{each["subject"]}: {each["chosen"]}', _candidates(each))
        for each in found['comparisons'][1:]
    ]
    pictures = [
        plots.place(
            curves.candidates(each), f'{each["subject"]}: candidates, taken: {each["chosen"]}',
            wide=True,
        )
        for each in found['comparisons'][:1]
    ]  # fmt: skip
    return section(
        'Choice of the model',
        f'{found["summary"]}. Blocks of the recording are predicted in turn by what the others '
        'gave; of the candidates within one standard error of the best, the one with the fewest '
        'friction parameters was taken. The configuration kept in parameters.yaml makes the same '
        'choice again.',
        ''.join([listed, *pictures, *others]),
        anchor='choice',
    )


def _candidates(comparison: Mapping[str, Any]) -> str:
    rows = [
        row(name, number(100 * value, '.3f', ' %'))
        for name, value in sorted(comparison['residuals'].items(), key=lambda item: item[1])
    ]
    caption = f'{comparison["subject"]}: residuals of the candidates'
    return table(('candidate', 'residual'), rows, numeric=(1,), caption=caption)
