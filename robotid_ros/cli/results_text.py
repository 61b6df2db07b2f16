"""An identification as a terminal shows it: parameters, residuals, and the verdict."""

from collections.abc import Sequence
import math
from pathlib import Path
from typing import Any

from ..files.results import (
    differences,
    Entry,
    prediction_text,
    Results,
    total_residual,
    verdict_of,
)
from ..files.verdict_text import next_step, sentences, verdict_data
from .terminal import (
    format_measured,
    format_number,
    format_percent,
    print_findings,
    print_paragraph,
    print_table,
    SHORT,
    show,
)

# What a verdict's level looks like.
STYLES = {'good': 'good', 'fair': 'doubtful', 'poor': 'bad', 'unusable': 'bad'}
# σ that a summary counts as well known [%]; so many parameters are shown unasked.
WELL_KNOWN, FEW_PARAMETERS = 10.0, 12


def results_data(results: Results) -> dict[str, Any]:
    """Return what was found as an object of JSON."""
    names = ('robot', 'method', 'joints', 'identification', 'validation')
    judged = results.validation or results.identification
    return {
        **{name: getattr(results, name) for name in names},
        'findings': results.findings,
        'parameters': results.base,
        'condition_number': results.condition_number,
        'total_residual': total_residual(judged),
        'selection': results.selection.get('summary'),
        'verdict': verdict_data(results),
    }


def print_results(results: Results, folder: Path, files: Sequence[str], *, every: bool) -> None:
    """Print what was found, the model, findings, the verdict, what to do next and the files."""
    print_found(results, every=every)
    if model := results.selection.get('summary'):
        print_paragraph(str(model), 'model')
    if every and (text := prediction_text(results)):
        print_paragraph(text, 'URDF')
    print_findings(results.findings, every=every)
    print_verdict(results, folder, brief=True)
    print_paragraph(f'{folder}: {", ".join(files)}', 'written')


def print_verdict(results: Results, folder: str | Path, *, brief: bool = False) -> None:
    """Print the verdict and what to do next; `brief`: what explains it stands above."""
    verdict = verdict_of(results)
    texts = ' '.join(sentences(results, brief=brief))
    print_paragraph(f'{verdict.level}. {texts}', 'verdict', STYLES[verdict.level])
    # Shorter, where it is below: what is printed can be typed here.
    folder = Path(folder)
    here = folder.is_relative_to(Path.cwd())
    if step := next_step(results, folder.relative_to(Path.cwd()) if here else folder):
        print_paragraph(step, 'next')


def print_found(results: Results, *, every: bool) -> None:
    """Print what was identified, the joints, and parameters that are few or asked for."""
    data, name = results.data, str(results.data.get('source', results.robot))
    parts = [part for part in data.get('logs', [data]) if 'to' in part]
    known = sum(entry.percent <= WELL_KNOWN for entry in results.base)
    counts = [f'{sum(part["to"] - part["from"] for part in parts):.1f} s'] if parts else []
    counts.append(f'{len(results.joints)} joints')
    if 'messages' in data:
        counts.append(f'{data["messages"]:,} samples')
    counts.append(f'{len(results.base)} base parameters ({known} known to {WELL_KNOWN:g} %)')
    print_paragraph(f'{name.rsplit("/", 1)[-1]}: {", ".join(counts)}')
    show()
    short = every or len(results.base) <= FEW_PARAMETERS
    if short:
        print_parameters(results)
    if results.compared and short:
        other = results.compared
        names = results.method.upper(), other.method.upper()
        print_differences(names, results.base, other.base)
    print_joints(results, every=every)


def print_joints(results: Results, *, every: bool = False) -> None:
    """
    Print effort, residual and expected error of each joint, and the residual of all.

    `every`: residual in motion, R² and RMS of the last recording, and both parts of the error.
    """
    groups = {'residual': results.identification, 'validation': results.validation}
    groups = {name: rows for name, rows in groups.items() if rows}
    if len(groups) == 1:
        groups = {'residual': next(iter(groups.values()))}
    errors = {joint.joint: joint for joint in verdict_of(results).joints}
    expected = any(not math.isnan(joint.from_parameters) for joint in errors.values())
    rows = [
        [
            same[0].joint,
            f'{format_number(same[0].torque, 3)} {same[0].unit}',
            *(format_percent(row.relative) for row in same),
            *([format_percent(errors[same[0].joint].expected)] if expected else []),
        ]
        for same in zip(*groups.values(), strict=True)
    ]
    totals = [total_residual(group) for group in groups.values()]
    if len(rows) > 1 and not math.isnan(totals[-1]):  # not of N and N·m together
        rows.append(['all', '', *map(format_percent, totals), *[''] * expected])
    head = ('joint', 'RMS effort', *groups, *['error on other motions'] * expected)
    print_table(head, rows, '<' + '>' * (len(head) - 1))
    if every:
        last = next(reversed(groups.values()))
        cells = [
            (
                row.joint,
                *(format_percent(row.moving), f'{row.r2:.4f}', format_number(row.rms, 3)),
                row.unit,
                format_percent(errors[row.joint].from_parameters),
                format_percent(errors[row.joint].from_model),
            )
            for row in last
        ]
        head = ('joint', 'moving', 'R²', 'RMS', 'unit', 'error: parameters', 'model')
        print_table(head, cells, '<>>><>>')


def print_differences(
    names: Sequence[str], first: Sequence[Entry], second: Sequence[Entry], *, every: bool = True
) -> None:
    """Print the base parameters of two results; of many, unless `every`, those that differ."""
    found = differences(first, second)
    large = [each for each in found if each.large]
    shown = found if every or len(found) <= SHORT else large
    rows = [
        (
            *(each.name, format_number(each.first, 5), format_number(each.second, 5)),
            format_number(each.difference, 3),
            '' if each.normalised is None else f'{each.normalised:+.2f}',
            each.unit,
        )
        for each in sorted(shown, key=lambda each: not each.large)
    ]
    if rows:
        head = ('parameter', *names, 'difference', 'over its σ', 'unit')
        print_table(head, rows, '<>>>><')
    if rest := len(found) - len(shown):
        print_paragraph(f'{rest} differ by 3 σ or less, or have no σ: --all shows them', 'more')
        show()
    if not found:
        print_paragraph(f'{names[0]} and {names[1]} have no base parameter in common')


def print_parameters(results: Results) -> None:
    """Print the base parameters, with the true values where there are any."""
    known = any(entry.true is not None for entry in results.base)
    head = ['parameter', 'value', 'σ', '%σ', *(['true', 'error/σ'] if known else []), 'unit']
    rows = []
    for entry in results.base:
        percent = f'{entry.percent:{".0f" if entry.percent >= 100.0 else ".2g"}}'
        figures = [*format_measured(entry.value, entry.sigma), percent]
        if known:
            true = math.nan if entry.true is None else entry.true
            error = format_number(entry.error, 2)
            figures += [format_measured(true, entry.sigma)[0], error]
        rows.append([entry.name, *figures, entry.unit])
    print_table(head, rows, '<' + '>' * (len(head) - 2) + '<')
