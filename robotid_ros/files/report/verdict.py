"""First screen: whether the result can be used, five figures, what to do next; warnings."""

from collections.abc import Iterable, Sequence
from html import escape
import math
import re
from typing import NamedTuple, TypeAlias

from ....core.verdict import FAIR, GOOD, THRESHOLDS, Verdict
from ...results import count_within_sigma, Results, total_residual, verdict_of
from ...verdict_text import cause, next_step, sentences, TITLES
from ..html import number, percent, row, section, table

# %σ up to which an estimate is shown as good and as fair [%]; 10 is also the default of
# `essential_sigma`.
GOOD_PERCENT, FAIR_PERCENT = 10.0, 30.0
# The standard parameters cost so much prediction that the base parameters should be used [times].
COSTLY = 1.5
SERIOUS = 'serious'
# What a remedy begins with: our sentences end with one, behind a colon or a semicolon.
REMEDIES = (
    *('add', 'average', 'check', 'choose', 'compare', 'do', 'excite', 'fit', 'give', 'identify'),
    *('if', 'leave', 'lengthen', 'load', 'look', 'move', 'name', 'pip', 'raise', 'read', 'record'),
    *('remove', 'repair', 'run', 'send', 'set', 'start', 'state', 'stop', 'try', 'use'),
    *('validate', 'where', 'write'),
)
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


def residual_class(share: float) -> str:
    """Return whether a relative residual is 'good', 'fair' or 'poor'."""
    good, fair = (THRESHOLDS[level].value for level in (GOOD, FAIR))
    return 'good' if share <= good else 'fair' if share <= fair else 'poor'


def precision_class(percent_sigma: float) -> str:
    """Return whether a %σ is 'good', 'fair' or 'poor'."""
    if percent_sigma <= GOOD_PERCENT:
        return 'good'
    return 'fair' if percent_sigma <= FAIR_PERCENT else 'poor'


def first_words(results: Results) -> FirstScreen:
    """Say the verdict, and what to do next."""
    found = verdict_of(results)
    severe = [w for w, s in _ranked(results) if s == SERIOUS]
    css = found.level if found.level in ('good', 'fair') else 'poor'
    return FirstScreen(css, ' '.join(sentences(results)), _next(results, found, severe))


def _next(results: Results, found: Verdict, severe: Sequence[str]) -> str:
    if severe:
        finding, remedy = split_remedy(cause(results) or severe[0])
        return f'{remedy or finding} (see the findings below).'
    if found.level != GOOD and (step := next_step(found)):
        return step
    if better := _better_base(results):
        return better
    if results.verification is None:
        return (
            'Export it (robotid export), or try it on the robot: ros2 service call '
            '/excitation/verify std_srvs/srv/Trigger.'
        )
    return 'Export it: robotid export.'


def _better_base(results: Results) -> str:
    """Advise base parameters where they left less of motion that was not fitted, else ''."""
    if results.identification:
        tried = results.data.get('better_base', {})
        base, consistent = (float(tried.get(name, math.nan)) for name in ('base', 'consistent'))
        what, clear = f'of the effort of {tried.get("joint")}', bool(tried)
    else:  # another recording than that of the fit
        base, consistent = (
            float(results.data.get(f'{name}_residual', math.nan))
            for name in ('base', 'consistent')
        )
        what, clear = 'of this log', consistent > COSTLY * max(base, THRESHOLDS[GOOD].value)
    if not clear:
        return ''
    return (
        f'Use the base parameters (robotid export regressor) where prediction counts: {what} they '
        f'leave {percent(base)}, the physically consistent bodies of identified.urdf '
        f'{percent(consistent)}, on motion that was not fitted.'
    )


def _ranked(results: Results) -> list[tuple[str, str]]:
    """Return warnings with their severities; 'warning' where an older file does not say them."""
    known = results.severities
    if len(known) != len(results.warnings):
        known = ('warning',) * len(results.warnings)
    return list(zip(results.warnings, known, strict=True))


def verdict(results: Results) -> str:
    """Show verdict, figures and next step."""
    title = TITLES[verdict_of(results).level]
    return first_screen(title, first_words(results), _figures(results)) + expected_errors(results)


def expected_errors(results: Results) -> str:
    """Show what is expected of other motions, joint by joint; empty where nothing is known."""
    found = verdict_of(results)
    if all(math.isnan(joint.from_parameters) for joint in found.joints):
        return ''
    rows = [
        row(joint.joint, *(_error_cell(value) for value in values))
        for joint in found.joints
        for values in [(joint.from_parameters, joint.from_model, joint.expected, joint.measured)]
    ]
    head = ('joint', 'parameters', 'model', 'together', 'measured on another motion')
    listed = table(head, rows, numeric=range(1, 5), caption='Expected errors')
    return section(
        'Other motions of this robot',
        'Expected error over the effort of a joint while it moves, on random moves within the '
        'limits of the robot, noise of the efforts apart: by the covariance of the parameters, '
        'which more motion reduces, and by the model, which it does not.',
        listed,
        anchor='expected',
    )


def _error_cell(value: float) -> str:
    css = residual_class(value) if math.isfinite(value) else ''
    return number(100.0 * value, '.3g', ' %', css)


def first_screen(title: str, found: FirstScreen, figures: Iterable[Figure]) -> str:
    """Compose what a reader sees first: verdict, figures, next step."""
    tiles = ''.join(
        f'<div><dt>{escape(text)}</dt><dd class="{css}">{escape(value)}</dd></div>'
        for value, text, css in figures
    )
    content = (
        f'<p>{escape(found.sentence)}</p><dl class="tiles">{tiles}</dl>'
        f'<p class="next"><b>Next:</b> {escape(found.next_step)}</p>'
    )
    return section(title, '', content, anchor='verdict', css=f'verdict {found.level}')


def _figures(results: Results) -> list[Figure]:
    rows = results.validation or results.identification
    what = 'validation' if results.validation else 'fit'
    tiles = []
    if rows:
        worst = max(rows, key=lambda row: row.reported)
        text = f'largest residual of a joint, {what}: {worst.joint}'
        tiles.append((percent(worst.reported), text, residual_class(worst.reported)))
        total = total_residual(rows)
        shown = percent(total)
        tiles.append((shown, f'residual of all joints at all times, {what}', ''))
    precise = sum(entry.percent <= GOOD_PERCENT for entry in results.base)
    text = 'base parameters with %σ ≤ 10'
    inside, known = count_within_sigma(results.base)
    if known:
        text += f'; {inside} of {known} true values within ±3σ'
    tiles.append((f'{precise} of {len(results.base)}', text, ''))
    condition = results.condition_number
    shown = f'{condition:.1f}' if math.isfinite(condition) else '—'
    tiles.append((shown, 'condition number of the observation matrix', ''))
    consistent = float(results.data.get('consistent_residual', math.nan))
    base = float(results.data.get('base_residual', math.nan))
    data = 'the fit' if results.identification else 'this log'
    text = f'left of {data} by identified.urdf; {percent(base)} by the base parameters'
    tiles.append((percent(consistent), text, ''))
    return tiles


def warnings(results: Results) -> str:
    """Show the warnings in order of severity, each with the joints it names and its remedy."""
    meaning = (
        'What matters most comes first: serious ones may make the result wrong, warnings limit '
        'what it is good for, notes say what was done.'
    )
    return findings(meaning, _ranked(results), results.joints)


def findings(meaning: str, ranked: Sequence[tuple[str, str]], joints: Sequence[str]) -> str:
    """List sentences with their severities; empty without any."""
    if not ranked:
        return ''
    items = ''.join(_item(text, severity, joints) for text, severity in ranked)
    return section('Findings', meaning, f'<ul class="warnings">{items}</ul>', anchor='findings')


def _item(text: str, severity: str, joints: Sequence[str]) -> str:
    finding, remedy = split_remedy(text)
    named = [
        joint for joint in joints if re.search(rf'(?<![\w/]){re.escape(joint)}(?![\w/])', text)
    ]
    labels = ''.join(f' <span class="joint">{escape(joint)}</span>' for joint in named)
    action = f'<span class="remedy">{escape(remedy)}</span>' if remedy else ''
    return (
        f'<li class="{escape(severity, quote=True)}"><span class="tag">{escape(severity)}</span>'
        f'{escape(finding)}{labels}{action}</li>'
    )


def split_remedy(text: str) -> tuple[str, str]:
    """Split a sentence 'finding: what to do'; without a remedy the second part is empty."""
    for match in re.finditer(r'[:;] (?=(\w+))', text):
        if match[1] in REMEDIES:
            rest = text[match.end() :]
            return text[: match.start()], rest[:1].upper() + rest[1:]
    return text, ''
