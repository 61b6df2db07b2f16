"""What the mixed model opened, and what it gains on parts of the motion that were not fitted."""

from ...results import Results
from ..html import number, row, section, table


def selection(results: Results) -> str:
    """Show what was chosen, joint by joint; empty where nothing was open."""
    found = results.selection
    if not found:
        return ''
    joints = [
        row(
            joint,
            number(100 * line['residual'], '.2f', ' %'),
            number(100 * line['plain_residual'], '.2f', ' %'),
        )
        for joint, line in found['joints'].items()
    ]
    head = ('joint', 'residual', 'of plain friction')
    summary = found['summary']
    return section(
        'Choice of the model',
        f'{summary[:1].upper()}{summary[1:]}. Parts of the motion are predicted in turn by what '
        'the others gave: blocks of time, the fastest and the slowest quarter, and the outer '
        'quarters of the positions. The residuals are those of these parts.',
        table(head, joints, numeric=(1, 2), caption='Parts that were not fitted, by joint'),
        anchor='choice',
    )
