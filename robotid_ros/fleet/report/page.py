"""The page on a fleet: what is wrong, the robots by type, what they share, data quality."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.regression.random_effects import random_effects
from ...exceptions import FileError
from ...files.atomic import write_text
from ...files.report import html
from ...files.report.html import page, row, section, table
from ..findings import find_all, Finding
from ..fleet_table import factors_of_robots, read_robots, Robots
from ..friction_changes import temperature_slopes
from ..pooling import pool
from ..session import IDENTIFIED
from ..store import Store
from .charts import Line, time_chart

QUALITY = ('source', 'status', 'reason', 'warnings', 'robot', 'type')
RANDOM_EFFECTS = (
    'Mean over the robots and spread between them by random effects (DerSimonian and Laird 1986, '
    'standard error of Hartung and Knapp, robots that are accused left out); within: from one '
    'session of a robot to the next, of all; per kelvin: the median slope of friction.'
)
# Failed bags that are listed; of charts, those of friction.
MOST_ROWS = 200


def write_fleet_report(folder: str | Path, target: str | Path) -> list[Finding]:
    """
    Write the page on a store.

    Parameters
    ----------
    folder : of the store
    target : the page

    Returns
    -------
    What is wrong, in the order of the page

    Raises
    ------
    FileError : the store cannot be read, there is nothing in it, or the page cannot be written

    """
    store = Store.open(folder)
    pooled = pool(store)
    types = [read_robots(store, name, pooled) for name in store.names()]
    every = [robots for robots in types if robots is not None]
    quality = store.current(QUALITY)
    if not quality:
        raise FileError(f"'{folder}' holds no sessions yet: fleet run adds some")
    found = find_all([(robots, factors_of_robots(store, robots)) for robots in every])
    sections = [_findings(found), *(_type(robots, found) for robots in every), _quality(quality)]
    title = f'Fleet of {sum(len(r.names) for r in every)} robots'
    every_status = Counter(each['status'] for each in quality)
    told = ', '.join(
        f'{count} session{"s" * (count != 1)} {status}'
        for status, count in sorted(every_status.items())
    )
    write_text(target, page(title, title, told, ''.join(sections), ''))
    return found


def _findings(found: Sequence[Finding]) -> str:
    text = (
        'Tests at 1 % for each kind, all robots and parameters counted (Holm).'
        if found
        else 'No robot differs from the others of its type, and none changes.'
    )
    rows = [
        row(
            *(f.robot, html.text(f.type), html.text(f.kind)),
            *(html.text(f.text, 'wrap'), html.number(f.p, '.1g')),
        )
        for f in found
    ]
    head = ('robot', 'type', 'kind', 'what', 'p')
    found_table = table(head, rows, (4,), caption='Findings', sortable=True) if rows else ''
    return section('Findings', text, found_table)


def _type(robots: Robots, found: Sequence[Finding]) -> str:
    own = [finding for finding in found if finding.type == robots.type]
    content = _robots_table(robots, own) + _parameter_table(robots, own) + _charts(robots, own)
    return section(f'Type {robots.type}: {len(robots.names)} robots', RANDOM_EFFECTS, content)


def _robots_table(robots: Robots, own: Sequence[Finding]) -> str:
    rows = []
    for place, name in enumerate(robots.names):
        kinds = ', '.join(sorted({f.kind for f in own if f.robot == name}))
        sessions = html.number(len(robots.of(place)), 'd')
        p = html.number(float(robots.agreement[place]), '.2g')
        rows.append(row(name, sessions, p, html.text(kinds)))
    head = ('robot', 'sessions', 'p of their agreement', 'findings')
    caption = f'Robots of type {robots.type}'
    return table(head, rows, (1, 2), caption=caption, sortable=True)


def _parameter_table(robots: Robots, own: Sequence[Finding]) -> str:
    accused = {finding.robot for finding in own}
    kept = [k for k, name in enumerate(robots.names) if name not in accused]
    if len(kept) < 2:
        return ''
    found = random_effects(robots.values[kept], robots.sigmas[kept])
    columns = (found.mean, found.sigma, found.between, _within(robots, kept))
    rows = [
        row(name, *(html.number(float(x)) for x in values), html.text(unit))
        for name, unit, *values in zip(
            robots.base.names, robots.base.units, *columns, temperature_slopes(robots), strict=True
        )
    ]
    head = ('parameter', 'mean', 'σ', 'between robots', 'within', 'per kelvin', 'unit')
    caption = f'Parameters that robots of type {robots.type} share'
    return table(head, rows, range(1, 6), caption=caption, sortable=True)


def _within(robots: Robots, kept: Sequence[int]) -> np.ndarray:
    """Return σ (b,) of the sessions of one robot about its mean."""
    places = [robots.of(robot) for robot in kept]
    squares = [
        np.sum((robots.sessions[p] - robots.sessions[p].mean(axis=0)) ** 2, axis=0)
        for p in places
        if len(p) > 1
    ]
    freedom = sum(len(p) - 1 for p in places if len(p) > 1)
    if not freedom:
        return np.full(robots.base.rank, np.nan)
    return np.asarray(np.sqrt(np.sum(squares, axis=0) / freedom))


def _charts(robots: Robots, own: Sequence[Finding]) -> str:
    """Draw the friction of all robots over time."""
    pictures = []
    for parameter in np.flatnonzero(robots.friction):
        name = robots.base.names[parameter]
        accused = sorted({f.robot for f in own if f.where == name})
        lines = []
        for place, robot in enumerate(robots.names):
            dated = [k for k in robots.of(place) if robots.times[k] is not None]
            times = [time for k in dated if (time := robots.times[k]) is not None]
            lines.append(Line(robot, times, robots.sessions[dated, parameter].tolist()))
        unit = robots.base.units[parameter]
        pictures.append(time_chart(name, unit, lines, accused))
    return html.details('Friction over time', ''.join(pictures))


def _quality(rows: Sequence[dict[str, Any]]) -> str:
    bad = [each for each in rows if each['status'] != IDENTIFIED or each['warnings']]
    bad.sort(key=lambda each: (each['status'] == IDENTIFIED, each['source']))
    lines = []
    for each in bad[:MOST_ROWS]:
        reasons = '; '.join([each['reason'] or '', *(each['warnings'] or ())]).strip('; ')
        cells = [html.text(each[key]) for key in ('robot', 'type', 'status')]
        lines.append(row(each['source'], *cells, html.text(reasons, 'wrap')))
    if not lines:
        return section('Data quality', 'Every recording was identified without a warning.', '')
    told = f'{len(bad)} of {len(rows)} recordings failed or have warnings'
    told += f', {MOST_ROWS} of them here.' if len(bad) > MOST_ROWS else '.'
    head = ('source', 'robot', 'type', 'status', 'reason, warnings')
    found = table(head, lines, caption='Recordings to look at', sortable=True)
    return section('Data quality', told, found)
