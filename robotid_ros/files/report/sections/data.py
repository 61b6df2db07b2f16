"""The data: excitation within limits, stamps, noise, delay, rows; how well they tell."""

from collections.abc import Mapping
from html import escape
import math
from typing import Any

from ...results import Results
from ..html import bar, number, row, section, table
from ..plots import curves
from ..plots.canvas import Plots

REASONS = ('total', 'used', 'standstill', 'beside', 'bridged')
# Scatter of steps between stamps, over their mean, that is nothing but rounding.
EVEN = 1e-6
HEADS = ('rows', 'used', 'at standstill', 'beside it, at ends and gaps', 'made up in gaps')


def data(results: Results, plots: Plots) -> str:
    """Show what the identification had to work with; empty for files that do not say."""
    found = results.quality
    if not found:
        return ''
    joints = found['joints']
    singular = found.get('singular_values', ())
    efforts = {line.joint: line.unit for line in results.identification}
    parts = [f'<p>{escape(_stamps(found))}</p>', _excitation(joints, efforts), _rows(joints)]
    if singular:
        condition = results.condition_number
        shown = f'{condition:.4g}' if math.isfinite(condition) else '—'
        parts.append(
            plots.place(
                curves.singular_values(singular),
                f'Singular values of the weighted observation matrix, columns scaled to length '
                f'one; condition number {shown}',
                wide=True,
            )
        )
    note = '' if found.get('whole', True) else 'What follows is of the first part of a long log.'
    return section('Data', note, ''.join(parts), anchor='data')


def _stamps(found: Mapping[str, Any]) -> str:
    gaps = f'{found["gaps"]} gaps' if found['gaps'] else 'no gaps'
    scatter = f'scatter by {100 * found["jitter"]:.2g} %' if found['jitter'] > EVEN else 'are even'
    return (
        f'{found["rate"]:.5g} Hz, steps between stamps {scatter}, '
        f'{gaps}, the longest step takes {1e3 * found["longest_gap"]:.4g} ms. Positions are '
        f'filtered at {found["cutoff"]:.3g} Hz, one row in {found["decimation"]} is kept.'
    )


def _excitation(joints: Mapping[str, Any], efforts: Mapping[str, str]) -> str:
    body = []
    for joint, line in joints.items():
        unit = line['unit']
        reach = line['highest'] - line['lowest']
        allowed = line['upper'] - line['lower']
        speed = line['fastest'] / line['velocity'] if line['velocity'] else math.nan
        body.append(
            row(
                joint,
                number(line['lowest'], '.3g'),
                number(line['highest'], '.3g', f' {unit}'),
                _share(reach / allowed if allowed else math.nan),
                number(line['fastest'], '.3g', f' {unit}/s'),
                _share(speed),
                number(line['noise'], '.3g', f' {efforts.get(joint, "N·m")}'),
                number(1e3 * line['delay'], '.3g', ' ms'),
            )
        )
    head = ('joint', 'from', 'to', 'of its range', 'fastest', 'of its limit', 'noise of effort',
            'delay')  # fmt: skip
    return table(
        head,
        body,
        numeric=(1, 2, 4, 6, 7),
        caption='Excitation within the limits of the description; white noise of the effort (σ); '
        'delay of the efforts behind the positions that was removed',
    )


def _share(value: float) -> str:
    if not math.isfinite(value) or value <= 0.0:
        return '<td>no limit</td>'
    return f'<td class="keep" data-v="{value:.6g}">{bar(value, f"{100 * value:.0f} %")}</td>'


def _rows(joints: Mapping[str, Any]) -> str:
    body = [
        row(joint, *(number(line[f'rows_{name}'], 'd') for name in REASONS))
        for joint, line in joints.items()
    ]
    return table(
        ('joint', *HEADS),
        body,
        numeric=range(1, 6),
        caption='Rows after decimation: used, and why others are not',
    )
