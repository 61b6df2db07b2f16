"""First screen: whether the result can be used, five figures, what to do next; warnings."""

from collections.abc import Iterable, Sequence
from html import escape
import math
import re
from typing import NamedTuple, TypeAlias

from ...results import count_within_sigma, Residual, Results, total_residual
from ..html import percent, section

# Relative residual of a joint up to which its fit is shown as good and as fair.
GOOD, FAIR = 0.05, 0.15
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


class Verdict(NamedTuple):
    """
    What a result can be used for.

    Attributes
    ----------
    level : 'good', 'fair' or 'poor'
    sentence : for what
    next_step : the one thing to do

    """

    level: str
    sentence: str
    next_step: str


def residual_class(share: float) -> str:
    """Return whether a relative residual is 'good', 'fair' or 'poor'."""
    return 'good' if share <= GOOD else 'fair' if share <= FAIR else 'poor'


def precision_class(percent_sigma: float) -> str:
    """Return whether a %σ is 'good', 'fair' or 'poor'."""
    if percent_sigma <= GOOD_PERCENT:
        return 'good'
    return 'fair' if percent_sigma <= FAIR_PERCENT else 'poor'


def verdict_of(results: Results) -> Verdict:
    """Judge a result by its validation, or its fit where there is none, and by its warnings."""
    rows = results.validation or results.identification
    if not rows:
        return Verdict('poor', 'No joint was identified.', 'Record a motion and identify again.')
    worst = max(rows, key=lambda row: row.reported)
    left = f'{percent(worst.reported, 1)} of the effort of {worst.joint}'
    severe = [w for w, s in _ranked(results) if s == SERIOUS]
    level = residual_class(worst.reported)
    if level == 'good' and (severe or not results.validation):
        level = 'fair'
    return Verdict(
        level, _sentence(results, level, left, len(severe)), _next(results, severe, worst)
    )


def _sentence(results: Results, level: str, left: str, severe: int) -> str:
    where = 'on a motion that the fit has not seen' if results.validation else 'of its own data'
    if level == 'poor':
        return (
            f'Not to be relied on yet: {left} is left {where}. Other joints may be used for '
            'simulation; none for contact detection or payloads.'
        )
    if not results.validation:
        return (
            f'It fits its own data ({left} is left at most), but nothing says yet how well it '
            'predicts another motion: for simulation, not yet for control.'
        )
    if severe:
        return (
            f'It predicts well enough for simulation and feed-forward (at most {left} is left '
            f'{where}), but {severe} finding{"s" if severe > 1 else ""} below may make parameters '
            'wrong: look there first.'
        )
    if level == 'fair':
        return (
            f'It can be used for simulation and for feed-forward; at most {left} is left {where}, '
            'too much for contact detection and payloads with that joint.'
        )
    return (
        f'It can be used for feed-forward, simulation and monitoring: at most {left} is left '
        f'{where}.'
    )


def _next(results: Results, severe: Sequence[str], worst: Residual) -> str:
    if severe:
        finding, remedy = split_remedy(severe[0])
        return f'{remedy or finding} (the first finding below).'
    if not results.validation:
        return (
            'Record another motion and validate: robotid validate LOG --parameters FOLDER, or '
            'identify a session, whose second motion validates.'
        )
    if worst.reported > FAIR:
        return f'Look at the residual of {worst.joint} below: its spectrum and its friction curve.'
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
        what, clear = 'of this log', consistent > COSTLY * max(base, GOOD)
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
    names = {'good': 'Can be used', 'fair': 'Can be used with care', 'poor': 'Not yet'}
    found = verdict_of(results)
    return first_screen(names[found.level], found, _figures(results))


def first_screen(title: str, found: Verdict, figures: Iterable[Figure]) -> str:
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
