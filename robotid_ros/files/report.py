"""`report.html`: one self-contained page from the results."""

from html import escape
import math
from pathlib import Path

from . import figures
from .atomic import write_text
from .course import comparison, convergence
from .html import section, table
from .results import Entry, Residual, Results, total

_CSS = Path(__file__).with_name('report.css')
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
        _tiles(results),
        _warnings(results),
        _residuals(results),
        *_torques(results),
        _base(results),
        comparison(results),
        convergence(results),
        _standard(results),
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
    source = Path(str(results.data.get('source', ''))).name
    parts = ('dynamic parameters by', results.method.upper(), 'from', source, '·', results.created)
    return ' '.join(part for part in parts if part)


def _tiles(results: Results) -> str:
    tiles = []
    for name, rows in (('validation', results.validation), ('fit', results.identification)):
        if rows:
            worst = max(rows, key=lambda row: row.relative)
            text = f'largest residual, {name}: {worst.joint}'
            tiles.append((f'{100 * worst.relative:.2f} %', text, _grade(worst)))
    sharp = sum(entry.percent <= 10.0 for entry in results.base)
    tiles.append((f'{sharp} of {len(results.base)}', 'base parameters within σ ≤ 10 %', ''))
    if math.isfinite(results.condition_number):
        tiles.append((f'{results.condition_number:.1f}', 'condition number', ''))
    known = [e for e in results.base if e.true is not None]
    if known:
        inside = sum(abs(e.true - e.value) <= 3 * e.sigma for e in known if e.true is not None)
        tiles.append((f'{inside} of {len(known)}', 'true values within ±3σ', ''))
    body = ''.join(
        f'<div class="tile"><b class="{css}">{escape(value)}</b><span>{escape(text)}</span></div>'
        for value, text, css in tiles
    )
    return f'<div class="tiles">{body}</div>'


def _grade(row: Residual) -> str:
    percent = 100 * row.relative
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
        other = validation.get(row.joint)
        cells = [f'<td>{escape(row.joint)}</td>', *_residual_cells(row)]
        cells += _residual_cells(other) if other else ['<td class="n c" colspan="4">—</td>']
        body.append(f'<tr>{"".join(cells)}</tr>')
    if len(body) > 1:
        sums = [
            f'<td class="n">{_percent(total(rows))}</td><td></td><td></td><td></td>'
            for rows in (results.identification, results.validation)
            if rows
        ]
        body.append(f'<tr class="sum"><td>all joints</td>{"".join(sums)}</tr>')
    columns = ('R²', 'residual RMS', 'torque RMS')
    head = ('joint', 'fit', *columns, 'validation', *columns)
    return section(
        'Residual per joint',
        'Norm of measured minus predicted torque, relative to the norm of the measured torque.',
        table(head, body, numeric=range(1, 9)),
    )


def _percent(value: float) -> str:
    return f'{100 * value:.2f} %' if math.isfinite(value) else '—'


def _residual_cells(row: Residual) -> list[str]:
    percent = 100 * row.relative
    bar = f'<i class="bar" style="width:{min(percent, 30.0) * 2.2:.0f}px"></i>'
    return [
        f'<td class="n {_grade(row)}" title="while moving: {_percent(row.moving)}">'
        f'{bar} {percent:.2f} %</td>',
        f'<td class="n">{_shown(row.r2, 4)}</td>',
        f'<td class="n">{row.rms:.4g} {escape(row.unit)}</td>',
        f'<td class="n c">{row.torque:.4g}</td>',
    ]


def _torques(results: Results) -> list[str]:
    units = {row.joint: row.unit for row in results.identification}
    texts = {
        'validation': ('Validation', 'Data that the identification has not seen.'),
        'identification': ('Fit', 'The data that the parameters were identified from.'),
    }
    return [
        section(
            f'{texts[name][0]}: torques',
            texts[name][1],
            figures.torques(data, [units.get(joint, '') for joint in data.joints]),
        )
        for name in texts
        if (data := results.torques.get(name)) is not None
    ]


def _base(results: Results) -> str:
    if not results.base:
        return ''
    known = any(entry.true is not None for entry in results.base)
    head = [
        'parameter',
        'value',
        'σ',
        '%σ',
        *(['true', 'error / σ'] if known else []),
        'unit',
        '',
        '=',
    ]
    body = [_base_row(entry, known) for entry in results.base]
    numbers = range(1, 6 if known else 4)
    return section(
        'Base parameters',
        'What the motion identifies: each is a combination of standard parameters.'
        + _essentials(results),
        figures.confidence(results.base)
        + f'<details><summary>Table</summary>{table(head, body, numeric=numbers)}</details>',
    )


def _essentials(results: Results) -> str:
    if not results.essential:
        return ''
    path = results.essential['path']
    growth = path[-1]['growth'] if path else 1.0
    return (
        f' {results.essential["count"]} of {len(results.base)} are essential: without the others '
        f'the weighted residual is {growth:.3f} times as large.'
    )


def _base_row(entry: Entry, known: bool) -> str:
    cells = _value_cells(entry)
    if known:
        cells += _true_cells(entry)
    cells.append(f'<td>{escape(entry.unit)}</td><td class="c">{escape(entry.kind)}</td>')
    return f'<tr>{"".join(cells)}<td class="c">{escape(entry.combination)}</td></tr>'


def _true_cells(entry: Entry) -> list[str]:
    if entry.true is None:
        return ['<td class="n c">—</td>'] * 2
    error = (entry.value - entry.true) / entry.sigma if entry.sigma else math.nan
    css = 'good' if abs(error) <= 3 else 'poor'
    return [f'<td class="n">{entry.true:.5g}</td>', f'<td class="n {css}">{error:+.2f}</td>']


def _value_cells(entry: Entry) -> list[str]:
    css = {figures.GOOD: 'good', figures.FAIR: 'fair'}.get(figures.grade(entry.percent), 'poor')
    low, high = entry.interval
    percent = f'{entry.percent:.2f}' if entry.percent < 1e4 else '> 10⁴'
    return [
        f'<td>{escape(entry.name)}</td>',
        f'<td class="n" title="95 %: {low:.5g} … {high:.5g}">{entry.value:.6g}</td>',
        f'<td class="n">{_shown(entry.sigma, 3)}</td>',
        f'<td class="n {css}">{percent if math.isfinite(entry.percent) else "—"}</td>',
    ]


def _shown(value: float | None, digits: int) -> str:
    return '—' if value is None or not math.isfinite(value) else f'{value:.{digits}g}'


def _standard(results: Results) -> str:
    body = []
    for entry in results.standard:
        cells = [
            f'<td>{escape(entry.name)}</td><td class="n">{entry.value:.6g}</td>',
            f'<td class="n c">{_shown(entry.prior, 6)}</td><td>{escape(entry.unit)}</td>',
            f'<td>{escape(entry.joint)}</td><td class="c">{escape(entry.kind)}</td>',
        ]
        body.append(f'<tr>{"".join(cells)}</tr>')
    head = ('parameter', 'value', 'before', 'unit', 'joint', 'class')
    bad = [joint for joint, good in results.consistent.items() if not good]
    note = 'One set of standard parameters that agrees with the base parameters.'
    if bad:
        note += f' Not the parameters of physical bodies: {", ".join(bad)}.'
    elif results.consistent:
        note += ' All links are physically consistent.'
    listed = table(head, body, numeric=(1, 2))
    return section(
        'Standard parameters',
        note,
        f'{_definite(results)}<details><summary>Table</summary>{listed}</details>',
    )


def _definite(results: Results) -> str:
    """Count possible links at each tolerance of the Cholesky factorisation (STD table III)."""
    titles = {
        'prior': 'before',
        'cad': 'closest to it',
        'cad_essential': 'closest, essential parameters only',
        'value': 'physically consistent',
    }
    sets = [name for name in titles if name in results.definite]
    if not sets:
        return ''
    rows = (
        f'<tr><td class="n">{tolerance:g}</td>'
        + ''.join(f'<td class="n">{results.definite[name][k]}</td>' for name in sets)
        + '</tr>'
        for k, tolerance in enumerate(results.definite['tolerances'])
    )
    head = ('tolerance', *(titles[name] for name in sets))
    return (
        '<p>Links with a positive definite inertia at the centre of mass, by tolerance:</p>'
        + table(head, rows, numeric=range(len(head)))
    )


def _origin(results: Results) -> str:
    rows = [
        f'<tr><td>{escape(str(key))}</td><td class="c">{escape(str(value))}</td></tr>'
        for key, value in (*results.data.items(), *results.versions.items())
    ]
    return section('Data and versions', '', table((), rows))
