"""The page on a fleet: what is wrong, the robots by type, what they share, data quality."""

from collections import Counter
from collections.abc import Iterator, Sequence
import itertools
import os
from pathlib import Path
import shlex
from typing import Any
from urllib.parse import quote

import numpy as np

from ..core.findings import CODES, Finding, render as text_of
from ..core.regression.estimate import random_effects
from ..exceptions import FileError
from ..files.atomic import beside_recording, write_text
from ..files.report.page import render
from ..files.report.plots import COLOURS, Field, Model, NEUTRAL, Plot, Plots, source_of
from ..files.results import REPORT
from .pooling import find_all, pool, read_robots, Robots
from .session import IDENTIFIED, Row
from .store import Store

QUALITY = ('source', 'status', 'reason', 'warnings', 'robot', 'type', 'time', 'residual', 'joints')
MOST_NAMES = 30  # robots whose names fit below a plot; of more, the pointer tells them


def write_fleet_report(folder: str | Path, target: str | Path) -> list[Finding]:
    """Write the page on a store; return what is wrong, in its order."""
    store = Store.open(folder)
    pooled = pool(store)
    types = [read_robots(store, name, pooled) for name in store.names()]
    every = [robots for robots in types if robots is not None]
    quality = store.current(QUALITY)
    if not quality:
        raise FileError(f"'{folder}' holds no sessions yet: fleet run adds some")
    found = find_all(store, every)
    count = sum(len(r.names) for r in every)
    title = f'Fleet of {count} {"robot" if count == 1 else "robots"}'
    accused = sorted({(f.values['type'], f.values['robot']) for f in found})
    own = [[row for row in quality if (row['type'], row['robot']) == whose] for whose in accused]
    beside = Path(target).absolute().parent
    statuses = sorted(Counter(each['status'] for each in quality).items())
    bad = [each for each in quality if each['status'] != IDENTIFIED or each['warnings']]
    page = render(
        'fleet.html',
        plots=Plots(),
        title=title,
        heading=title,
        subtitle=', '.join(f'{n} session{"s" * (n != 1)} {status}' for status, n in statuses),
        found=[(f.values['robot'], f.values['type'], _name(f), text_of(f)) for f in found],
        types=[_type(r, [f for f in found if f.values['type'] == r.type]) for r in every],
        accused=[
            {'name': name, 'type': type_, 'sessions': list(_sessions(rows, beside))}
            for (type_, name), rows in zip(accused, own, strict=True)
        ],
        bad=sorted(bad, key=lambda each: (each['status'] == IDENTIFIED, each['source'])),
        count=len(quality),
    )
    write_text(target, page)
    return found


def _name(found: Finding) -> str:
    return CODES[found.code].name.replace('_', ' ')


def _type(robots: Robots, own: Sequence[Finding]) -> dict[str, Any]:
    kinds = [{_name(f) for f in own if f.values['robot'] == name} for name in robots.names]
    rows = [
        {
            'name': name,
            'sessions': len(robots.of(place)),
            'agreement': float(robots.agreement[place]),
            'kinds': ', '.join(sorted(kinds[place])),
        }
        for place, name in enumerate(robots.names)
    ]
    kept = [k for k, kind in enumerate(kinds) if not kind]
    return {
        'name': robots.type,
        'robots': rows,
        'parameters': list(_parameters(robots, kept)) if len(kept) > 1 else [],
        'charts': list(_over_robots(robots, own)),
        'over_time': list(_over_time(robots, own)),
    }


def _parameters(robots: Robots, kept: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Yield name, unit, mean, σ, spread between robots, and of a robot's sessions."""
    found = random_effects(robots.values[kept], robots.sigmas[kept])
    sessions = [robots.sessions[robots.of(robot)] for robot in kept]
    squares = [np.sum((s - s.mean(axis=0)) ** 2, axis=0) for s in sessions if len(s)]
    freedom = sum(len(s) - 1 for s in sessions if len(s))
    within = np.sqrt(np.sum(squares, axis=0) / freedom) if freedom else np.nan
    within = np.broadcast_to(within, robots.base.rank)
    columns = found.mean, found.sigma, found.between, within
    yield from zip(robots.base.names, robots.base.units, *columns, strict=True)


def _sessions(own: Sequence[Row], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the sessions of a robot, with the report of each, or the command that writes it."""
    for each in sorted(own, key=lambda row: (row['time'] is None, row['time'] or 0)):
        source = Path(each['source'])
        report = beside_recording(source, 'identified') / REPORT
        joints = [joint for joint in each['joints'] or () if joint['residual'] is not None]
        worst = max(joints, key=lambda joint: joint['residual'], default=None)
        yield {
            **each,
            'date': f'{each["time"]:%Y-%m-%d}' if each['time'] else '',
            'worst': f'{worst["name"]} {100 * worst["residual"]:.2g} %' if worst else '',
            'link': quote(os.path.relpath(report, folder)) if report.is_file() else '',
            'command': f'robotid identify {shlex.quote(str(source))} -c CONFIG',
        }


# A plot, the parameter that it shows, and the robots with findings on it, each with its colour.
Chart = tuple[Any, str, dict[str, str]]


def _over_robots(robots: Robots, own: Sequence[Finding]) -> Iterator[Chart]:
    """Yield a plot of each parameter that a finding names: ±2 σ of each robot."""
    names = list(robots.names)
    for k, parameter in enumerate(robots.base.names):
        if not (colours := _colours(own, parameter)):
            continue
        factors = Model('FactorRange', factors=names)
        axes = 'Categorical', 'Linear'
        plot = Plot('robot', _labelled(robots, k), axes=axes, x_range=factors)
        plot.below[0].major_label_orientation = 0.6
        plot.below[0].visible = len(names) <= MOST_NAMES
        low, high = (robots.values[:, k] + sign * 2.0 * robots.sigmas[:, k] for sign in (-1, 1))
        columns = {'name': names, 'value': robots.values[:, k], 'low': low, 'high': high}
        columns['color'] = [colours.get(name, NEUTRAL) for name in names]
        source, own_color = source_of(columns), Field('color')
        ends = {'x0': 'name', 'y0': 'low', 'x1': 'name', 'y1': 'high'}
        plot.draw('Segment', source, own_color, '', ends)
        dots = {'x': 'name', 'y': 'value', 'line_color': 'color'}
        plot.show_values(
            [('', '@name @value')], plot.draw('Scatter', source, own_color, '', dots, size=6)
        )
        yield plot, parameter, colours


def _over_time(robots: Robots, own: Sequence[Finding]) -> Iterator[Chart]:
    """Yield a plot of each parameter of friction over time: a line of each robot."""
    dated = np.array([time is not None for time in robots.times])
    times = np.array([time and 1e3 * time.timestamp() for time in robots.times], dtype=float)
    for k in robots.friction if dated.any() else ():
        colours = _colours(own, robots.base.names[k])
        plot = Plot('date', _labelled(robots, k), axes=('Datetime', 'Linear'))
        names = sorted(robots.names, key=lambda name: (name in colours, name))
        rows = [robots.of(robots.names.index(name)) for name in names]
        rows = [places[dated[places]] for places in rows]
        columns = {'x': [times[places] for places in rows], 'name': names}
        columns['y'] = [robots.sessions[places, k] for places in rows]
        columns['color'] = [colours.get(name, NEUTRAL) for name in names]
        shown = {'xs': 'x', 'ys': 'y'}
        lines = plot.draw('MultiLine', source_of(columns), Field('color'), '', shown)
        plot.show_values([('', '@name')], lines, mode='mouse')
        yield plot, robots.base.names[k], colours


def _colours(own: Sequence[Finding], parameter: str) -> dict[str, str]:
    """Return the robots with findings on a parameter, each with its colour."""
    accused = sorted({f.values['robot'] for f in own if f.values.get('parameter') == parameter})
    return dict(zip(accused, itertools.cycle(COLOURS[:-1]), strict=False))


def _labelled(robots: Robots, k: int) -> str:
    return f'{robots.base.names[k]} [{robots.base.units[k]}]'
