"""An identification as a terminal shows it: parameters, residuals, and the verdict."""

import math
from typing import Any, TYPE_CHECKING

from .tables import format_table, SHORT
from .text import format_number, print_paragraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...files.results import Residual, Results

# What a verdict's level and a finding's severity look like.
STYLES = {'good': 'good', 'fair': 'doubtful', 'poor': 'bad', 'unusable': 'bad'}
SEVERITIES = {'serious': 'error', 'warning': 'warning', 'note': 'note'}
# σ that a summary counts as well known [%].
TOLD = 10.0


def results_data(results: 'Results') -> dict[str, Any]:
    """Return what was found as an object of JSON."""
    from ...files.results import total_residual
    from ...files.verdict_text import verdict_data

    names = (
        *('robot', 'method', 'joints', 'identification', 'validation', 'warnings'),
        'severities',
    )
    judged = results.validation or results.identification
    return {
        **{name: getattr(results, name) for name in names},
        'parameters': results.base,
        'condition_number': results.condition_number,
        'total_residual': total_residual(judged),
        'selection': results.selection.get('summary'),
        'verdict': verdict_data(results),
    }


def print_results(results: 'Results', written: 'Sequence[str]', *, every: bool) -> None:
    """Print what was found, why it was chosen so, warnings and, last, the verdict."""
    from ...files.results import prediction_text

    print_found(results, every=every)
    for text in (prediction_text(results), str(results.selection.get('summary', ''))):
        if text:
            print_paragraph(text)
    print_findings(results)
    for text in written:
        print_paragraph(text, 'written')
    print_verdict(results)


def print_findings(results: 'Results') -> None:
    """Print the findings with their severities."""
    known = results.severities
    if len(known) != len(results.warnings):
        known = ('warning',) * len(results.warnings)
    for text, severity in zip(results.warnings, known, strict=True):
        print_paragraph(text, SEVERITIES.get(severity, 'warning'))


def print_verdict(results: 'Results') -> None:
    """Print what is expected of other motions, and the verdict."""
    from ...files.results import verdict_of
    from ...files.verdict_text import next_step, sentences, TITLES

    verdict = verdict_of(results)
    if any(not math.isnan(joint.from_parameters) for joint in verdict.joints):
        rows = [
            (
                joint.joint,
                *(
                    format_number(100.0 * value, 3)
                    for value in (joint.from_parameters, joint.from_model, joint.expected)
                ),
            )
            for joint in verdict.joints
        ]
        head = ('expected on other motions [%]', 'parameters', 'model', 'together')
        print(f'\n{format_table(head, rows, "<>>>")}\n')
    style = STYLES[verdict.level]
    print_paragraph(f'{TITLES[verdict.level]}. {" ".join(sentences(results))}', style=style)
    if step := next_step(verdict):
        print_paragraph(step, 'next')


def print_found(results: 'Results', *, every: bool) -> None:
    """Print parameters and residuals; long tables where every line is asked for."""
    short = every or len(results.base) <= SHORT
    if short:
        print(f'{base_table(results)}\n')
    else:
        told = sum(entry.percent <= TOLD for entry in results.base)
        print_paragraph(
            f'{len(results.base)} base parameters, {told} of them with σ up to {TOLD:g} % of '
            'their value: --all and parameters.yaml show them'
        )
        print()
    if results.compared and short:
        print(f'{comparison_table(results)}\n')
    print(f'{residual_tables(results) if every else residual_table(results)}\n')


def comparison_table(results: 'Results') -> str:
    """Lay out the base parameters of two methods side by side."""
    from ...files.comparison.differences import differences

    other = results.compared
    assert other is not None
    first, second = results.method.upper(), other.method.upper()
    rows = [
        [
            each.name,
            format_number(each.first, 5),
            format_number(each.second, 5),
            format_number(math.nan if each.normalised is None else each.normalised, 3),
            each.unit,
        ]
        for each in differences(results.base, other.base)
    ]
    return format_table(['parameter', first, second, 'difference/σ', 'unit'], rows, '<>>><')


def base_table(results: 'Results') -> str:
    """Lay out the base parameters, with the true values where there are any."""
    known = any(entry.true is not None for entry in results.base)
    headers = ['parameter', 'value', 'σ', '%σ', *(['true', 'error/σ'] if known else []), 'unit']
    rows = []
    for entry in results.base:
        row = [entry.name, format_number(entry.value, 5), format_number(entry.sigma, 3)]
        row.append(format_number(entry.percent, 3))
        if known:
            row.append(format_number(float('nan') if entry.true is None else entry.true, 5))
            row.append(format_number(entry.error, 3))
        rows.append([*row, entry.unit])
    return format_table(headers, rows, '<' + '>' * (len(headers) - 2) + '<')


def residual_table(results: 'Results') -> str:
    """Lay out what is left of each joint's effort by the fit and on the other motion."""
    from ...files.results import total_residual

    groups = [group for group in (results.identification, results.validation) if group]
    judged = groups[-1]
    rows = [
        [
            last.joint,
            *(f'{100 * row.relative:.2f}' for row in same),
            *(f'{100 * last.moving:.2f}', f'{last.r2:.4f}', format_number(last.rms, 3)),
            last.unit,
        ]
        for same, last in zip(zip(*groups, strict=True), judged, strict=True)
    ]
    totals = [total_residual(group) for group in groups]
    if len(rows) > 1 and not math.isnan(totals[-1]):  # not of N and N·m together
        rows.append(['all', *(f'{100 * total:.2f}' for total in totals), *[''] * 4])
    names = ['fit [%]', 'validation [%]'][: len(groups)]
    headers = ['joint', *names, 'moving [%]', 'R²', 'RMS', 'unit']
    return format_table(headers, rows, '<' + '>' * (len(headers) - 2) + '<')


def residual_tables(results: 'Results') -> str:
    """Lay out all figures of the fit, then those of the validation."""
    names = ('fit', 'validation')
    groups = (results.identification, results.validation)
    return '\n\n'.join(
        rows_table(rows, f'{name} [%]') for name, rows in zip(names, groups, strict=True) if rows
    )


def rows_table(rows: 'Sequence[Residual]', name: str) -> str:
    """Lay out the residuals of each joint and of all together, for `name` in the header."""
    from ...files.results import total_residual

    lines: list[tuple[str, ...]] = [
        (
            *(r.joint, f'{100 * r.relative:.2f}', f'{100 * r.moving:.2f}', f'{r.r2:.4f}'),
            *(format_number(r.rms, 3), format_number(r.torque, 3), r.unit),
        )
        for r in rows
    ]
    total = total_residual(rows)
    if len(rows) > 1 and not math.isnan(total):
        lines.append(('all', f'{100 * total:.2f}', *[''] * 5))
    head = ('joint', name, 'moving', 'R²', 'RMS', 'torque RMS', 'unit')
    return format_table(head, lines, '<>>>>><')
