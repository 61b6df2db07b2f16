"""The page on a fleet: what is wrong, the robots by type, what they share, data quality."""

from collections import Counter
from collections.abc import Iterator, Sequence
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
from ..files.report.plots import Plots
from ..files.results import REPORT
from .pooling import find_all, pool, read_robots, Robots
from .session import IDENTIFIED, Row
from .store import Store

QUALITY = ('source', 'status', 'reason', 'warnings', 'robot', 'type', 'time', 'residual', 'joints')


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
            _accused(store, whose, [f for f in found if _whose(f) == whose], beside)
            for whose in sorted(set(map(_whose, found)))
        ],
        bad=sorted(bad, key=lambda each: (each['status'] == IDENTIFIED, each['source'])),
        count=len(quality),
    )
    write_text(target, page)
    return found


def _whose(found: Finding) -> tuple[str, str]:
    return found.values['type'], found.values['robot']


def _name(found: Finding) -> str:
    return CODES[found.code].name.replace('_', ' ')


def _type(robots: Robots, own: Sequence[Finding]) -> dict[str, Any]:
    kinds = [{_name(f) for f in own if f.values['robot'] == name} for name in robots.names]
    base, named = robots.base, {f.values.get('parameter') for f in own}
    shown = [k for k, name in enumerate(base.names) if name in named]
    rows = [
        {
            'name': name,
            'sessions': len(robots.of(place)),
            'agreement': float(robots.agreement[place]),
            'kinds': ', '.join(sorted(kinds[place])),
            'values': [
                f'{robots.values[place, k]:.4g} ± {2.0 * robots.sigmas[place, k]:.2g}'
                for k in shown
            ],
        }
        for place, name in enumerate(robots.names)
    ]
    kept = [k for k, kind in enumerate(kinds) if not kind]
    return {
        'name': robots.type,
        'robots': rows,
        'parameters': list(_parameters(robots, kept)) if len(kept) > 1 else [],
        'shown': [f'{base.names[k]} ± 2 σ [{base.units[k]}]' for k in shown],
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


def _accused(
    store: Store, whose: tuple[str, str], found: Sequence[Finding], folder: Path
) -> dict[str, Any]:
    """Return a robot with findings, and its sessions with what these are about."""
    named = [*dict.fromkeys(f.values['parameter'] for f in found if 'parameter' in f.values)]
    rows = store.current((*QUALITY, 'parameters'), whose)
    sessions = list(_sessions(rows, named, folder))
    return {'type': whose[0], 'name': whose[1], 'named': named, 'sessions': sessions}


def _sessions(own: Sequence[Row], named: Sequence[str], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the sessions of a robot, with the report of each, or the command that writes it."""
    for each in sorted(own, key=lambda row: (row['time'] is None, row['time'] or 0)):
        values = {p['name']: p['value'] for p in each['parameters'] or ()}
        source = Path(each['source'])
        report = beside_recording(source, 'identified') / REPORT
        joints = [joint for joint in each['joints'] or () if joint['residual'] is not None]
        worst = max(joints, key=lambda joint: joint['residual'], default=None)
        yield {
            **each,
            'date': f'{each["time"]:%Y-%m-%d}' if each['time'] else '',
            'values': [values.get(name) for name in named],
            'worst': f'{worst["name"]} {100 * worst["residual"]:.2g} %' if worst else '',
            'link': quote(os.path.relpath(report, folder)) if report.is_file() else '',
            'command': f'robotid identify {shlex.quote(str(source))} -c CONFIG',
        }
