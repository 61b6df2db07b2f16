"""The page on a fleet: what is wrong, the robots by type, what they share, data quality."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
import os
from pathlib import Path
import shlex
from typing import Any
from urllib.parse import quote

import numpy as np

from ...core.finding_codes import CODES, render as text_of
from ...core.findings import Finding
from ...core.regression.random_effects import random_effects
from ...exceptions import FileError
from ...files.atomic import write_text
from ...files.report.drawing import Plots
from ...files.report.page import render
from ...files.results_file import REPORT
from ..findings import find_all
from ..fleet_table import factors_of_robots, read_robots, Robots
from ..friction_changes import temperature_slopes
from ..pooling import pool
from ..session import IDENTIFIED, Row
from ..store import Store

QUALITY = ('source', 'status', 'reason', 'warnings', 'robot', 'type', 'time', 'residual', 'joints')
WIDTH, HEIGHT, PAD = 360, 150, 6  # of a chart [px]
# Robots whose names fit below a chart; of more, those with findings are named.
MOST_NAMES = 30
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
    accused = {(f.values['type'], f.values['robot']) for f in found}
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
        accused=[
            {
                'name': name,
                'type': type_,
                'sessions': list(_sessions(quality, type_, name, Path(target).absolute().parent)),
            }
            for type_, name in sorted(accused)
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


def _sessions(
    quality: Sequence[Row], type_: str, robot: str, folder: Path
) -> Iterator[dict[str, Any]]:
    """Yield the sessions of a robot, with the report of each, or the command that writes it."""
    own = [each for each in quality if (each['type'], each['robot']) == (type_, robot)]
    for each in sorted(own, key=lambda row: (row['time'] is None, row['time'] or 0)):
        source = Path(each['source'])
        name = source.stem if source.is_file() else source.name
        report = source.absolute().with_name(f'{name}_identified') / REPORT
        joints = [joint for joint in each['joints'] or () if joint['residual'] is not None]
        worst = max(joints, key=lambda joint: joint['residual'], default=None)
        yield {
            **each,
            'date': f'{each["time"]:%Y-%m-%d}' if each['time'] else '',
            'worst': f'{worst["name"]} {100 * worst["residual"]:.2g} %' if worst else '',
            'link': quote(os.path.relpath(report, folder)) if report.is_file() else '',
            'command': shlex.join(['robotid', 'identify', str(source)]),
        }


def _charts(robots: Robots, own: Sequence[Finding]) -> Iterator[dict[str, Any]]:
    """Yield a chart of each parameter that a finding names over the robots, then over time."""
    colours = [_colours(own, name) for name in robots.base.names]
    x = np.linspace(0.0, WIDTH, 2 * len(robots.names) + 1)[1::2]
    for k, accused in enumerate(colours):
        if not accused:
            continue
        low, high = (robots.values[:, k] + sign * 2.0 * robots.sigmas[:, k] for sign in (-1, 1))
        chart, y = _chart(robots, k, 'robot', np.concatenate([low, high]))
        shown = [n in accused or len(x) <= MOST_NAMES for n in robots.names]
        ticks = [(a, n) for a, n, named in zip(x, robots.names, shown, strict=True) if named]
        bars = [
            {'name': n, 'colour': accused.get(n, ''), 'points': _points([a, a], y([b, c])),
             'dot': (a, float(y(v)))}
            for a, b, c, v, n in zip(x, low, high, robots.values[:, k], robots.names, strict=True)
        ]  # fmt: skip
        yield {**chart, 'ticks': ticks, 'lines': bars, 'tilted': True}
    dated = [k for k, time in enumerate(robots.times) if time is not None]
    if not dated:
        return
    times = np.array([time.timestamp() for time in robots.times if time is not None])
    first, last = times.min(), times.max()
    owner = robots.owner[dated]
    x = np.interp(times, (first, max(last, first + 1.0)), (0.0, WIDTH))
    for k in np.flatnonzero(robots.friction).tolist():
        values = robots.sessions[dated, k]
        accused, (chart, y) = colours[k], _chart(robots, k, 'date', values)
        lines = []
        for name in sorted(robots.names, key=lambda name: (name in accused, name)):
            place = owner == robots.names.index(name)
            points = _points(x[place], y(values[place]))
            colour = accused.get(name, '')
            lines.append({'name': name, 'colour': colour, 'points': points, 'dot': None})
        dates = np.linspace(first, last, 3) if last > first else [first]
        ticks = [
            (WIDTH * i / 2, f'{datetime.fromtimestamp(t):%Y-%m-%d}') for i, t in enumerate(dates)
        ]
        yield {**chart, 'ticks': ticks, 'lines': lines, 'tilted': False}


def _colours(own: Sequence[Finding], parameter: str) -> dict[str, str]:
    """Return the robots with findings on a parameter, each with its colour."""
    accused = sorted({f.values['robot'] for f in own if f.values.get('parameter') == parameter})
    return {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(accused)}


def _points(x: Iterable[float], y: Iterable[float]) -> str:
    return ' '.join(f'{a:.1f},{b:.1f}' for a, b in zip(x, y, strict=True))


def _chart(
    robots: Robots, k: int, across: str, values: np.ndarray
) -> tuple[dict[str, Any], Callable[[Any], np.ndarray]]:
    """Return the frame of a chart of a parameter's values, and what places values in it [px]."""
    least, most = float(np.min(values)), float(np.max(values))

    def y(values: Any) -> np.ndarray:
        span = least, most if most > least else least + 1.0
        return np.interp(values, span, (HEIGHT - PAD, PAD))

    marks = np.linspace(least, most, 3)
    frame = {
        'title': robots.base.names[k],
        'unit': robots.base.units[k],
        'across': across,
        'width': WIDTH,
        'height': HEIGHT,
        'marks': list(zip(y(marks), marks, strict=True)),
    }
    return frame, y
