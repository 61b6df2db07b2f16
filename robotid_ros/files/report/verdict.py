"""First screen: whether the result can be used, five figures, what to do next; findings."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from ...core.finding_codes import seen_and_remedy
from ...core.findings import Finding
from ..results import count_within_sigma, Results, total_residual, verdict_of
from ..verdict_text import next_step, sentences
from .templates import GOOD_PERCENT, number, percent, residual_class

# Value, what it is, and class.
Figure: TypeAlias = tuple[str, str, str]


class FirstScreen(NamedTuple):
    """
    What a reader sees first.

    Attributes
    ----------
    level : 'good', 'fair' or 'poor'
    sentence : what the result, or the motion, can be used for
    next_step : the one thing to do

    """

    level: str
    sentence: str
    next_step: str


def first_words(results: Results) -> FirstScreen:
    """Say the verdict, and what to do next."""
    found = verdict_of(results)
    css = found.level if found.level in ('good', 'fair') else 'poor'
    return FirstScreen(css, ' '.join(sentences(results)), next_step(results))


def figures(results: Results) -> list[Figure]:
    """Return value, meaning and class of the five figures of the first screen."""
    rows = results.validation or results.identification
    what = 'validation' if results.validation else 'fit'
    tiles: list[Figure] = []
    if rows:
        worst = max(rows, key=lambda row: row.reported)
        text = f'largest residual of a joint, {what}: {worst.joint}'
        tiles.append((percent(worst.reported), text, residual_class(worst.reported)))
        text = f'residual of all joints at all times, {what}'
        tiles.append((percent(total_residual(rows)), text, ''))
    precise = sum(entry.percent <= GOOD_PERCENT for entry in results.base)
    text = 'base parameters with %σ ≤ 10'
    inside, known = count_within_sigma(results.base)
    if known:
        text += f'; {inside} of {known} true values within ±3σ'
    tiles.append((f'{precise} of {len(results.base)}', text, ''))
    condition = number(results.condition_number, '.1f')
    tiles.append((condition, 'condition number of the observation matrix', ''))
    base, consistent = (results.data.get(f'{name}_residual') for name in ('base', 'consistent'))
    data = 'the fit' if results.identification else 'this log'
    text = f'left of {data} by identified.urdf; {percent(base)} by the base parameters'
    return [*tiles, (percent(consistent), text, '')]


class FindingRow(NamedTuple):
    """A finding of the page: its severity in a word, what was seen, joints, what to do."""

    severity: str
    text: str
    joints: Sequence[str]
    remedy: str
    code: str = ''


def finding_rows(findings: Sequence[Finding]) -> list[FindingRow]:
    """Return the rows of findings."""
    return [
        FindingRow(each.severity.word, seen, each.joints, remedy, each.code)
        for each in findings
        for seen, remedy in [seen_and_remedy(each)]
    ]
