"""The page on a fleet: what is wrong, the robots by type, what they share, data quality."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from ...core.finding_codes import CODES, render as text_of
from ...core.findings import Finding
from ...core.regression.random_effects import random_effects
from ...exceptions import FileError
from ...files.atomic import write_text
from ...files.report.drawing import Plots
from ...files.report.templates import render
from ..findings import find_all
from ..fleet_table import factors_of_robots, read_robots, Robots
from ..friction_changes import temperature_slopes
from ..pooling import pool
from ..session import IDENTIFIED
from ..store import Store

QUALITY = ('source', 'status', 'reason', 'warnings', 'robot', 'type')
WIDTH, HEIGHT = 360, 150  # of a chart
COLOURS = ('#c0392b', '#2471a3', '#1e8449', '#b7950b', '#7d3c98', '#566573')


def write_fleet_report(folder: str | Path, target: str | Path) -> list[Finding]:
    """Write the page on a store; return what is wrong, in its order."""
    store = Store.open(folder)
    pooled = pool(store)
    types = [read_robots(store, name, pooled) for name in store.names()]
    every = [robots for robots in types if robots is not None]
    quality = store.current(QUALITY)
    if not quality:
        raise FileError(f"'{folder}' holds no sessions yet: fleet run adds some")
    found = find_all([(robots, factors_of_robots(store, robots)) for robots in every])
    title = f'Fleet of {sum(len(r.names) for r in every)} robots'
    statuses = sorted(Counter(each['status'] for each in quality).items())
    bad = [each for each in quality if each['status'] != IDENTIFIED or each['warnings']]
    page = render(
        'fleet.html',
        folder=Path(__file__).parent,
        plots=Plots(),
        title=title,
        heading=title,
        subtitle=', '.join(f'{n} session{"s" * (n != 1)} {status}' for status, n in statuses),
        found=[(f.values['robot'], f.values['type'], _name(f), text_of(f)) for f in found],
        types=[
            _type(robots, [f for f in found if f.values['type'] == robots.type])
            for robots in every
        ],
        bad=sorted(bad, key=lambda each: (each['status'] == IDENTIFIED, each['source'])),
        count=len(quality),
    )
    write_text(target, page)
    return found


def _name(found: Finding) -> str:
    return CODES[found.code].name.replace('_', ' ')


def _type(robots: Robots, own: Sequence[Finding]) -> dict[str, Any]:
    return {
        'name': robots.type,
        'robots': [
            {
                'name': name,
                'sessions': len(robots.of(place)),
                'agreement': float(robots.agreement[place]),
                'kinds': ', '.join(sorted({_name(f) for f in own if f.values['robot'] == name})),
            }
            for place, name in enumerate(robots.names)
        ],
        'parameters': list(_parameters(robots, {f.values['robot'] for f in own})),
        'charts': list(_charts(robots, own)),
    }


def _parameters(robots: Robots, accused: set[str]) -> Iterator[tuple[Any, ...]]:
    """Yield name, unit, mean, σ, spread between and within robots, slope over temperature."""
    kept = [k for k, name in enumerate(robots.names) if name not in accused]
    if len(kept) < 2:
        return
    found = random_effects(robots.values[kept], robots.sigmas[kept])
    columns = (found.mean, found.sigma, found.between, _within(robots, kept))
    slopes = temperature_slopes(robots)
    yield from zip(robots.base.names, robots.base.units, *columns, slopes, strict=True)


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


def _charts(robots: Robots, own: Sequence[Finding]) -> Iterator[dict[str, Any]]:
    """Yield a chart of each friction parameter of all robots over time, as polylines."""
    dated = [k for k, time in enumerate(robots.times) if time is not None]
    if not dated:
        return
    times = np.array([time.timestamp() for time in robots.times if time is not None])
    owner = robots.owner[dated]
    for parameter in np.flatnonzero(robots.friction):
        title, values = robots.base.names[parameter], robots.sessions[dated, parameter]
        accused = sorted({f.values['robot'] for f in own if f.values.get('parameter') == title})
        x, y = (
            np.interp(each, (each.min(), each.max() if np.ptp(each) else each.min() + 1.0), to)
            for each, to in ((times, (0.0, WIDTH)), (values, (HEIGHT, 0.0)))
        )
        lines = []
        for name in sorted(robots.names, key=lambda name: (name in accused, name)):
            place = owner == robots.names.index(name)
            pairs = zip(x[place], y[place], strict=True)
            points = ' '.join(f'{a:.1f},{b:.1f}' for a, b in pairs)
            colour = COLOURS[accused.index(name) % len(COLOURS)] if name in accused else ''
            lines.append({'name': name, 'colour': colour, 'points': points})
        first, last = (f'{datetime.fromtimestamp(t):%Y-%m-%d}' for t in (times.min(), times.max()))
        yield {
            'title': title,
            'unit': robots.base.units[parameter],
            'least': values.min(),
            'most': values.max(),
            'width': WIDTH,
            'height': HEIGHT,
            'lines': lines,
            'first': first,
            'last': last,
        }
