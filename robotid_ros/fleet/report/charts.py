"""Charts of a fleet's page as inline SVG: values of sessions over time."""

from collections.abc import Sequence
import dataclasses
from datetime import datetime
from html import escape

import numpy as np

WIDTH, HEIGHT, MARGIN = 360, 150, 12
COLOURS = ('#c0392b', '#2471a3', '#1e8449', '#b7950b', '#7d3c98', '#566573')


@dataclasses.dataclass(frozen=True)
class Line:
    """Values over time of one robot."""

    name: str
    times: Sequence[datetime]
    values: Sequence[float]


def time_chart(title: str, unit: str, lines: Sequence[Line], accused: Sequence[str]) -> str:
    """Draw values over time, the robots that are accused in colour and by name."""
    times = [time.timestamp() for line in lines for time in line.times]
    values = [value for line in lines for value in line.values]
    if not values:
        return ''
    t, v = _span(times), _span(values)
    parts = [
        f'<text x="0" y="-6">{escape(title)} [{escape(unit)}], {min(values):.3g} to '
        f'{max(values):.3g}</text>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#aaa"/>',
    ]
    for line in sorted(lines, key=lambda each: each.name in accused):
        known = line.name in accused
        colour = COLOURS[list(accused).index(line.name) % len(COLOURS)] if known else '#bbb'
        x = np.interp([time.timestamp() for time in line.times], t, [0.0, WIDTH])
        y = np.interp(line.values, v, [HEIGHT, 0.0])
        points = ' '.join(f'{a:.1f},{b:.1f}' for a, b in zip(x, y, strict=True))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" '
            f'stroke-width="{2 if known else 1}"><title>{escape(line.name)}</title></polyline>'
        )
    first, last = (
        datetime.fromtimestamp(x).strftime('%Y-%m-%d') for x in (min(times), max(times))
    )
    below = HEIGHT + 14
    parts.append(f'<text x="0" y="{below}">{first}</text>')
    parts.append(f'<text x="{WIDTH}" y="{below}" text-anchor="end">{last}</text>')
    for place, name in enumerate(accused):
        colour = COLOURS[place % len(COLOURS)]
        parts.append(
            f'<rect x="{WIDTH + 6}" y="{14 * place + 4}" width="8" height="8" fill="{colour}"/>'
            f'<text x="{WIDTH + 18}" y="{14 * place + 12}">{escape(name)}</text>'
        )
    box = f'{-MARGIN} {-2 * MARGIN} {WIDTH + 120} {HEIGHT + 4 * MARGIN}'
    head = f'class="chart" viewBox="{box}" width="{WIDTH + 120}" font-size="11"'
    label = escape(f'{title} over time', quote=True)
    return f'<svg {head} role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _span(values: Sequence[float]) -> list[float]:
    """Return the ends of the range of values, of one value some length behind it."""
    first, last = min(values), max(values)
    return [first, last if last > first else first + 1.0]
