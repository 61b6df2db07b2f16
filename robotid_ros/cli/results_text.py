"""An identification as a terminal shows it: parameters, residuals, and the verdict."""

import math
from typing import Any, TYPE_CHECKING

from .terminal import format_number, print_findings, print_paragraph, print_table, SHORT, show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..files.results import Entry, Residual, Results

# What a verdict's level looks like.
STYLES = {'good': 'good', 'fair': 'doubtful', 'poor': 'bad', 'unusable': 'bad'}
# σ that a summary counts as well known [%].
WELL_KNOWN = 10.0


def results_data(results: 'Results') -> dict[str, Any]:
    """Return what was found as an object of JSON."""
    from ..core.finding_codes import as_data
    from ..files.results import total_residual
    from ..files.verdict_text import verdict_data

    names = ('robot', 'method', 'joints', 'identification', 'validation')
    judged = results.validation or results.identification
    return {
        **{name: getattr(results, name) for name in names},
        'findings': [as_data(found) for found in results.findings],
        'parameters': results.base,
        'condition_number': results.condition_number,
        'total_residual': total_residual(judged),
        'selection': results.selection.get('summary'),
        'verdict': verdict_data(results),
    }


def print_results(results: 'Results', written: 'Sequence[str]', *, every: bool) -> None:
    """Print what was found, why it was chosen so, findings and, last, the verdict."""
    from ..files.results import prediction_text

    print_found(results, every=every)
    for text in (prediction_text(results), str(results.selection.get('summary', ''))):
        if text:
            print_paragraph(text)
    print_findings(results.findings)
    for text in written:
        print_paragraph(text, 'written')
    print_verdict(results)


def print_verdict(results: 'Results') -> None:
    """Print what is expected of other motions, and the verdict."""
    from ..files.results import verdict_of
    from ..files.verdict_text import next_step, sentences, TITLES

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
        show()
        print_table(head, rows, '<>>>')
    style = STYLES[verdict.level]
    print_paragraph(f'{TITLES[verdict.level]}. {" ".join(sentences(results))}', style=style)
    if step := next_step(verdict):
        print_paragraph(step, 'next')


def print_found(results: 'Results', *, every: bool) -> None:
    """Print parameters and residuals; long tables where every line is asked for."""
    short = every or len(results.base) <= SHORT
    if short:
        print_parameters(results)
    else:
        known = sum(entry.percent <= WELL_KNOWN for entry in results.base)
        print_paragraph(
            f'{len(results.base)} base parameters, {known} of them with σ up to {WELL_KNOWN:g} % '
            'of their value: --all and parameters.yaml show them'
        )
        show()
    if results.compared and short:
        other = results.compared
        names = results.method.upper(), other.method.upper()
        print_differences(names, results.base, other.base)
    groups = {'fit [%]': results.identification, 'validation [%]': results.validation}
    groups = {name: rows for name, rows in groups.items() if rows}
    for each in [{name: rows} for name, rows in groups.items()] if every else [groups]:
        print_residuals(each, every=every)


def print_differences(
    names: tuple[str, str], first: 'Sequence[Entry]', second: 'Sequence[Entry]'
) -> None:
    """Print the base parameters of two results side by side."""
    from ..files.comparison import differences

    rows = [
        (
            *(each.name, format_number(each.first, 5), format_number(each.second, 5)),
            format_number(each.difference, 3),
            '' if each.normalised is None else f'{each.normalised:+.2f}',
            each.unit,
        )
        for each in differences(first, second)
    ]
    if rows:
        head = ('parameter', *names, 'difference', 'over its σ', 'unit')
        print_table(head, rows, '<>>>><')
    else:
        print_paragraph(f'{names[0]} and {names[1]} have no base parameter in common')


def print_parameters(results: 'Results') -> None:
    """Print the base parameters, with the true values where there are any."""
    known = any(entry.true is not None for entry in results.base)
    head = ['parameter', 'value', 'σ', '%σ', *(['true', 'error/σ'] if known else []), 'unit']
    rows = []
    for entry in results.base:
        figures = [(entry.value, 5), (entry.sigma, 3), (entry.percent, 3)]
        if known:
            figures += [(math.nan if entry.true is None else entry.true, 5), (entry.error, 3)]
        rows.append([entry.name, *(format_number(*each) for each in figures), entry.unit])
    print_table(head, rows, '<' + '>' * (len(head) - 2) + '<')


def print_residuals(groups: 'Mapping[str, Sequence[Residual]]', *, every: bool = False) -> None:
    """
    Print the residuals of each joint, and of all where they add up.

    Parameters
    ----------
    groups : residuals of the same joints by the header of their column; of the last one there are
        further figures
    every : the measured torque, too

    """
    from ..files.results import total_residual

    rows = [
        [
            last.joint,
            *(f'{100 * row.relative:.2f}' for row in same),
            *(f'{100 * last.moving:.2f}', f'{last.r2:.4f}', format_number(last.rms, 3)),
            *([format_number(last.torque, 3)] if every else []),
            last.unit,
        ]
        for *same, last in ((*each, each[-1]) for each in zip(*groups.values(), strict=True))
    ]
    totals = [total_residual(group) for group in groups.values()]
    if len(rows) > 1 and not math.isnan(totals[-1]):  # not of N and N·m together
        rows.append(['all', *(f'{100 * total:.2f}' for total in totals), *[''] * (4 + every)])
    figures = ('moving [%]', 'R²', 'RMS', *(['torque RMS'] if every else []), 'unit')
    head = ('joint', *groups, *figures)
    print_table(head, rows, '<' + '>' * (len(head) - 2) + '<')
