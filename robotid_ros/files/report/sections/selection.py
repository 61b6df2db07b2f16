"""What was chosen by cross-validation, and what it was compared with."""

from collections.abc import Mapping
from typing import Any

from ...results import Results
from ..html import bar, details, number, row, section, table, text


def selection(results: Results) -> str:
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
    first = [_candidates(each) for each in found['comparisons'][:1]]
    others = [
        details(f'{each["subject"]}: {each["chosen"]}', _candidates(each))
        for each in found['comparisons'][1:]
    ]
    summary = found['summary']
    return section(
        'Choice of the model',
        f'{summary[:1].upper()}{summary[1:]}. Blocks of the recording are predicted in turn by '
        'what the others gave; of the candidates within one standard error of the best, the one '
        'with the fewest friction parameters was taken. The configuration kept in parameters.yaml '
        'makes the same choice again.',
        ''.join([listed, *first, *others]),
        anchor='choice',
    )


def _candidates(comparison: Mapping[str, Any]) -> str:
    """List the candidates, best first, the one that was taken marked."""
    chosen, residuals = comparison['chosen'], comparison['residuals']
    largest = max(residuals.values(), default=0.0) or 1.0
    rows = [
        row(
            f'● {name}' if name == chosen else name,
            f'<td class="keep">{bar(value / largest, f"{100 * value:.3f} %")}</td>',
            css='sum' if name == chosen else 'other',
        )
        for name, value in sorted(residuals.items(), key=lambda item: item[1])
    ]
    head = ('candidate', 'residual on blocks that were not fitted')
    return table(head, rows, caption=f'{comparison["subject"]}: candidates; ● was taken')
