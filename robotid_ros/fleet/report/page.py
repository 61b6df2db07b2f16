"""The page on a fleet: what is wrong, the robots by type, what they share, data quality."""

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ...core.regression.random_effects import random_effects
from ...exceptions import FileError
from ...files.atomic import write_text
from ...files.report.html import format_number, section, table
from ..findings import find_all, Finding
from ..fleet_table import factors_of_robots, read_robots, Robots
from ..friction_changes import temperature_slopes
from ..pooling import pool
from ..session import IDENTIFIED
from ..store import Store
from .charts import Line, time_chart

STYLE = """
body{font:14px/1.45 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:.6em 0}
td,th{padding:.15em .6em;border-bottom:1px solid #ddd;text-align:left}
.n{text-align:right}svg{font:11px sans-serif;margin:.4em .8em .4em 0}h2{margin-top:1.6em}
"""
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
    head = f'<meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    write_text(
        target,
        f'<!doctype html><html><head>{head}</head><body><h1>{title}</h1>'
        f'{"".join(sections)}</body></html>\n',
    )
    return found


def _row(cells: Iterable[str], numeric: Iterable[int] = ()) -> str:
    numbers = set(numeric)
    return (
        '<tr>'
        + ''.join(
            f'<td{" class=n" if k in numbers else ""}>{escape(cell)}</td>'
            for k, cell in enumerate(cells)
        )
        + '</tr>'
    )


def _findings(found: Sequence[Finding]) -> str:
    text = (
        'Tests at 1 % for each kind, all robots and parameters counted (Holm).'
        if found
        else 'No robot differs from the others of its type, and none changes.'
    )
    rows = [_row((f.type, f.robot, f.kind, f.text, f'{f.p:.1g}'), (4,)) for f in found]
    return section('Findings', text, table(('type', 'robot', 'kind', 'what', 'p'), rows, (4,)))


def _type(robots: Robots, found: Sequence[Finding]) -> str:
    own = [finding for finding in found if finding.type == robots.type]
    content = _robots_table(robots, own) + _parameter_table(robots, own) + _charts(robots, own)
    return section(f'Type {robots.type}: {len(robots.names)} robots', RANDOM_EFFECTS, content)


def _robots_table(robots: Robots, own: Sequence[Finding]) -> str:
    rows = []
    for place, name in enumerate(robots.names):
        kinds = ', '.join(sorted({f.kind for f in own if f.robot == name}))
        p = format_number(float(robots.agreement[place]), 2)
        rows.append(_row((name, str(len(robots.of(place))), p, kinds), (1, 2)))
    return table(('robot', 'sessions', 'p of their agreement', 'findings'), rows, (1, 2))


def _parameter_table(robots: Robots, own: Sequence[Finding]) -> str:
    accused = {finding.robot for finding in own}
    kept = [k for k, name in enumerate(robots.names) if name not in accused]
    if len(kept) < 2:
        return ''
    found = random_effects(robots.values[kept], robots.sigmas[kept])
    columns = (found.mean, found.sigma, found.between, _within(robots, kept))
    rows = [
        _row((name, *(format_number(float(x), 4) for x in values), unit), range(1, 6))
        for name, unit, *values in zip(
            robots.base.names, robots.base.units, *columns, temperature_slopes(robots), strict=True
        )
    ]
    head = ('parameter', 'mean', 'σ', 'between robots', 'within', 'per kelvin', 'unit')
    return table(head, rows, range(1, 6))


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
    return f'<details open><summary>Friction over time</summary>{"".join(pictures)}</details>'


def _quality(rows: Sequence[dict[str, Any]]) -> str:
    counts = Counter(row['status'] for row in rows)
    text = ', '.join(f'{count} sessions {status}' for status, count in sorted(counts.items()))
    bad = [row for row in rows if row['status'] != IDENTIFIED or row['warnings']]
    bad.sort(key=lambda row: (row['status'] == IDENTIFIED, row['source']))
    lines = [
        _row((row['type'], row['robot'], row['status'], row['source'],
              '; '.join([row['reason'] or '', *(row['warnings'] or ())]).strip('; ')))
        for row in bad[:MOST_ROWS]
    ]  # fmt: skip
    more = f'; {len(bad) - MOST_ROWS} more in the store' if len(bad) > MOST_ROWS else ''
    head = ('type', 'robot', 'status', 'source', 'reason, warnings')
    return section('Data quality', f'{text}.{more}', table(head, lines))
