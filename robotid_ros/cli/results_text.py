"""An identification as a terminal shows it: parameters, residuals, and the verdict."""

from collections.abc import Sequence
import math
from pathlib import Path
from typing import Any

from ..files.results import differences, Entry, Results, total_residual, verdict_of
from ..files.verdict_text import next_step, sentences, verdict_data
from . import terminal
from .terminal import format_measured, format_number, format_percent, print_paragraph, print_table

# What a verdict's level looks like.
STYLES = {'good': 'good', 'fair': 'doubtful', 'poor': 'bad', 'unusable': 'bad'}
# σ that a summary counts as well known [%]; so many parameters are shown unasked.
WELL_KNOWN, FEW_PARAMETERS = 10.0, 12


def results_data(results: Results) -> dict[str, Any]:
    """Return what was found as an object of JSON."""
    names = ('robot', 'method', 'joints', 'identification', 'validation', 'findings')
    return {
        **{name: getattr(results, name) for name in names},
        'parameters': results.base,
        'condition_number': results.condition_number,
        'total_residual': total_residual(results.validation or results.identification),
        'selection': results.selection.get('summary'),
        'verdict': verdict_data(results),
    }


def print_results(results: Results, folder: Path, files: Sequence[str], *, every: bool) -> None:
    """Print what was found, the model, findings, the verdict, what to do next and the files."""
    print_found(results, every=every)
    if model := results.selection.get('summary'):
        print_paragraph(str(model), 'model')
    terminal.print_findings(results.findings, every=every)
    # Shorter, where it is below: what is printed can be typed here.
    if folder.absolute().is_relative_to(Path.cwd()):
        folder = folder.absolute().relative_to(Path.cwd())
    print_verdict(results, folder, brief=True)
    print_paragraph(f'{folder}: {", ".join(files)}', 'written')


def print_verdict(results: Results, folder: str | Path, *, brief: bool = False) -> None:
    """Print the verdict and what to do next; `brief`: what explains it stands above."""
    verdict = verdict_of(results)
    texts = ' '.join(sentences(results, brief=brief))
    print_paragraph(f'{verdict.level}. {texts}', 'verdict', STYLES[verdict.level])
    if step := next_step(results, folder, brief=brief):
        print_paragraph(step, 'next')


def print_found(results: Results, *, every: bool) -> None:
    """Print what was identified, the joints, and parameters that are few or asked for."""
    data, name = results.data, str(results.data.get('source', results.robot))
    parts = [part for part in data.get('logs', [data]) if 'to' in part]
    known = sum(entry.percent <= WELL_KNOWN for entry in results.base)
    counts = [f'{sum(part["to"] - part["from"] for part in parts):.1f} s'] if parts else []
    counts.append(f'{len(results.joints)} joint{"s" * (len(results.joints) > 1)}')
    if 'messages' in data:
        counts.append(f'{data["messages"]:,} samples')
    counts.append(f'{known} of {len(results.base)} parameters known to {WELL_KNOWN:g} %')
    print_paragraph(f'{name.rsplit("/", 1)[-1]}: {", ".join(counts)}')
    terminal.show()
    if every or len(results.base) <= FEW_PARAMETERS:
        print_parameters(results.base)
        if other := results.compared:
            names = results.method.upper(), other.method.upper()
            print_differences(names, results.base, other.base)
    print_joints(results, every=every)


def print_joints(results: Results, *, every: bool = False) -> None:
    """Print effort, residuals and expected error of each joint; `every`: in motion, R², RMS."""
    groups = [rows for rows in (results.identification, results.validation) if rows]
    errors = {joint.joint: joint for joint in verdict_of(results).joints}
    expected = any(not math.isnan(joint.from_parameters) for joint in errors.values())
    rows = []
    for first, *other in zip(*groups, strict=True):
        shares = [format_percent(row.relative) for row in (first, *other)]
        if expected:
            shares.append(format_percent(errors[first.joint].expected))
        rows.append([first.joint, f'{format_number(first.torque, 3)} {first.unit}', *shares])
    totals = [total_residual(group) for group in groups]
    if len(rows) > 1 and not math.isnan(totals[-1]):  # not of N and N·m together
        rows.append(['all', '', *map(format_percent, totals), *[''] * expected])
    names = ('residual', 'validation')[: len(groups)]
    head = ('joint', 'RMS effort', *names, *['error on other motions'] * expected)
    print_table(head, rows, '<' + '>' * (len(head) - 1))
    if every:
        cells = []
        for row in groups[-1]:
            error, rms = errors[row.joint], format_number(row.rms, 3)
            parts = map(format_percent, (error.from_parameters, error.from_model))
            moving = format_percent(row.moving)
            cells.append((row.joint, moving, f'{row.r2:.4f}', rms, row.unit, *parts))
        head = ('joint', 'moving', 'R²', 'RMS', 'unit', 'error: parameters', 'model')
        print_table(head, cells, '<>>><>>')


def print_differences(
    names: Sequence[str], first: Sequence[Entry], second: Sequence[Entry], *, every: bool = True
) -> None:
    """Print the base parameters of two results; of many, unless `every`, those that differ."""
    found = differences(first, second)
    short, rows = every or len(found) <= terminal.SHORT, []
    for each in sorted(found, key=lambda each: not each.large):
        if short or each.large:
            values = format_number(each.first, 5), format_number(each.second, 5)
            times = '' if each.normalised is None else f'{each.normalised:+.2f}'
            difference = format_number(each.difference, 3)
            rows.append((each.name, *values, difference, times, each.unit))
    if rows:
        head = ('parameter', *names, 'difference', 'in σ', 'unit')
        print_table(head, rows, '<>>>><')
    if rest := len(found) - len(rows):
        print_paragraph(f'{rest} differ by 3 σ or less, or have no σ: --all shows them', 'more')
        terminal.show()
    if not found:
        print_paragraph(f'{names[0]} and {names[1]} have no base parameter in common')


def print_parameters(base: Sequence[Entry]) -> None:
    """Print the base parameters, with the true values where there are any."""
    known = any(entry.true is not None for entry in base)
    head = ['parameter', 'value', 'σ', '%σ', *(['true', 'error/σ'] if known else []), 'unit']
    rows = []
    for entry in base:
        percent = f'{entry.percent:{".0f" if entry.percent >= 100.0 else ".2g"}}'
        figures = [*format_measured(entry.value, entry.sigma), percent]
        if known:
            true = math.nan if entry.true is None else entry.true
            figures += [format_measured(true, entry.sigma)[0], format_number(entry.error, 2)]
        rows.append([entry.name, *figures, entry.unit])
    print_table(head, rows, '<' + '>' * (len(head) - 2) + '<')
