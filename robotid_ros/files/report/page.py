"""`report.html`: one self-contained page from the results."""

from html import escape
import math
from pathlib import Path

from ..atomic import write_text
from ..results import count_within_sigma, Residual, Results, total_residual
from . import figures
from .convergence_section import comparison, convergence
from .html import section, table
from .parameter_sections import base, standard
from .selection_section import selection
from .verification_section import verification

_CSS = Path(__file__).with_name('report.css')
# Relative residual of a joint up to which its fit is shown as good and as fair [%].
GOOD, FAIR = 5.0, 15.0


def write_report(results: Results, path: str | Path) -> Path:
    """
    Write the report of an identification.

    Parameters
    ----------
    results : what was identified; figures of torques need its `torques`
    path : of the page

    Returns
    -------
    The path.

    """
    return write_text(path, render(results))


def render(results: Results) -> str:
    """Compose the page; it refers to nothing outside of itself."""
    sections = (
        _headline_figures(results),
        _warnings(results),
        _residuals(results),
        *_torques(results),
        verification(results),
        selection(results),
        base(results),
        comparison(results),
        convergence(results),
        standard(results),
        _origin(results),
    )
    title = f'{results.robot or "robot"}: identified dynamic parameters'
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><style>\n{_CSS.read_text()}</style></head><body>\n'
        f'<header><div><h1>{escape(results.robot or "robot")}</h1><p>{escape(_subtitle(results))}'
        f'</p></div></header>\n<main>\n{"".join(sections)}\n</main></body></html>\n'
    )


def _subtitle(results: Results) -> str:
    logs = results.data.get('logs', (results.data,))
    source = ', '.join(Path(str(log.get('source', ''))).name for log in logs)
    parts = ('dynamic parameters by', results.method.upper(), 'from', source, '·', results.created)
    return ' '.join(part for part in parts if part)


def _headline_figures(results: Results) -> str:
    tiles = []
    for name, rows in (('validation', results.validation), ('fit', results.identification)):
        if rows:
            worst = max(rows, key=lambda row: row.reported)
            text = f'largest residual, {name}: {worst.joint}'
            tiles.append((f'{100 * worst.reported:.2f} %', text, _residual_class(worst.reported)))
    precise = sum(entry.percent <= figures.GOOD_PERCENT for entry in results.base)
    tiles.append((f'{precise} of {len(results.base)}', 'base parameters with %σ ≤ 10', ''))
    if math.isfinite(results.condition_number):
        tiles.append((f'{results.condition_number:.1f}', 'condition number', ''))
    inside, known = count_within_sigma(results.base)
    if known:
        tiles.append((f'{inside} of {known}', 'true values within ±3σ', ''))
    body = ''.join(
        f'<div class="tile"><b class="{css}">{escape(value)}</b><span>{escape(text)}</span></div>'
        for value, text, css in tiles
    )
    return f'<div class="tiles">{body}</div>'


def _residual_class(share: float) -> str:
    percent = 100 * share
    return 'good' if percent <= GOOD else 'fair' if percent <= FAIR else 'poor'


def _warnings(results: Results) -> str:
    if not results.warnings:
        return ''
    items = ''.join(f'<li>{escape(text)}</li>' for text in results.warnings)
    return f'<section class="warn"><h2>Warnings</h2><ul>{items}</ul></section>'


def _residuals(results: Results) -> str:
    validation = {row.joint: row for row in results.validation}
    body = []
    for row in results.identification:
        same = validation.get(row.joint)
        cells = [f'<td>{escape(row.joint)}</td>', *_residual_cells(row)]
        if validation:
            cells += _residual_cells(same) if same else ['<td class="n c" colspan="4">—</td>']
        body.append(f'<tr>{"".join(cells)}</tr>')
    if len(body) > 1:
        sums = [
            f'<td></td><td class="n">{_percent(total_residual(rows))}</td><td></td><td></td>'
            for rows in (results.identification, results.validation)
            if rows
        ]
        body.append(f'<tr class="sum"><td>all joints</td>{"".join(sums)}</tr>')
    columns = ('at all times', 'R²', 'RMS')
    other = ('validation', *columns) if validation else ()
    head = ('joint', 'fit', *columns, *other)
    return section(
        'Residual per joint',
        'Norm of measured minus predicted torque, relative to the norm of the measured torque, '
        'while the joint moves and at all times: at standstill friction may be anything.',
        table(head, body, numeric=range(1, len(head))),
    )


def _percent(value: float) -> str:
    return f'{100 * value:.2f} %' if math.isfinite(value) else '—'


def _residual_cells(row: Residual) -> list[str]:
    css = _residual_class(row.reported)
    bar = f'<i class="bar" style="width:{min(100 * row.reported, 30.0) * 2.2:.0f}px"></i>'
    torque = f'of {row.torque:.4g} {row.unit}'
    return [
        f'<td class="n {css}">{bar} {100 * row.reported:.2f} %</td>',
        f'<td class="n c">{_percent(row.relative)}</td>',
        f'<td class="n">{row.r2:.4f}</td>',
        f'<td class="n" title="{escape(torque)}">{row.rms:.4g} {escape(row.unit)}</td>',
    ]


def _torques(results: Results) -> list[str]:
    units = {row.joint: row.unit for row in results.identification}
    texts = {
        'validation': ('Validation', 'Data that the identification has not seen.'),
        'identification': ('Fit', 'The data that the parameters were identified from.'),
    }
    sections = []
    for name, (title, text) in texts.items():
        data = results.torques.get(name)
        if data is None:
            continue
        drawn, count = figures.first_segment(data)
        if count > 1:
            text += f' The first of {count} segments sampled from a long recording.'
        figure = figures.torques(drawn, [units.get(joint, '') for joint in data.joints])
        sections.append(section(f'{title}: torques', text, figure))
    return sections


def _origin(results: Results) -> str:
    data = results.data
    facts = {
        'recording': data.get('source'),
        'from': _measure(data.get('from'), 's'),
        'to': _measure(data.get('to'), 's'),
        'joint states': data.get('messages'),
        'rate': _measure(data.get('rate'), 'Hz'),
        'rows of each joint after decimation': ', '.join(map(str, data.get('rows', ()))),
        'residual of the base parameters, moving rows': _share(data.get('relative_residual')),
        'residual of the standard parameters': _share(data.get('consistent_residual')),
        **results.versions,
    }
    rows = [
        f'<tr><td>{escape(key)}</td><td class="c">{escape(str(value))}</td></tr>'
        for key, value in facts.items()
        if value not in (None, '')
    ]
    return section('Data and versions', '', table((), rows))


def _measure(value: float | None, unit: str) -> str:
    return '' if value is None else f'{value:.6g} {unit}'


def _share(value: float | None) -> str:
    return '' if value is None else _percent(value)
