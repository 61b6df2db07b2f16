"""Where the result comes from: recording, versions, configuration, the command to repeat it."""

from collections.abc import Mapping
from html import escape
from typing import Any

from ...results import Results
from ...yaml import dump_yaml
from ..html import details, percent, row, section, table, text


def provenance(results: Results) -> str:
    """Show it."""
    data = results.data
    facts = {
        'recording': data.get('source'),
        'SHA-256 of the recording': data.get('sha256'),
        'from': _measure(data.get('from'), 's'),
        'to': _measure(data.get('to'), 's'),
        'joint states': data.get('messages'),
        'rate': _measure(data.get('rate'), 'Hz'),
        'rows of each joint after decimation': ', '.join(map(str, data.get('rows', ()))),
        'residual of the base parameters, moving rows': _share(data.get('relative_residual')),
        'residual of the standard parameters': _share(data.get('consistent_residual')),
        'identified at': results.created,
        **{f'version of {name}': number for name, number in results.versions.items()},
    }
    for log in data.get('logs', ()):
        facts[f'SHA-256 of {log.get("source")}'] = log.get('sha256')
    command = str(data.get('command') or '')
    return origin('Recording and versions', facts, command, results.settings)


def origin(
    caption: str, facts: Mapping[str, Any], command: str, settings: Mapping[str, Any]
) -> str:
    """Show facts, but for missing ones, the command that repeats it, and the configuration."""
    rows = [
        row(key, text(value, 'wrap')) for key, value in facts.items() if value not in (None, '')
    ]
    parts = [table((), rows, caption=caption)]
    if command:
        parts.append(f'<h3>To repeat it</h3><pre tabindex="0">{escape(command)}</pre>')
    if settings:
        listing = escape(dump_yaml(dict(settings)))
        parts.append(details('Configuration in full', f'<pre tabindex="0">{listing}</pre>'))
    return section('Provenance', '', ''.join(parts), anchor='provenance')


def _measure(value: float | None, unit: str) -> str:
    return '' if value is None else f'{value:.6g} {unit}'


def _share(value: float | None) -> str:
    return '' if value is None else percent(value)
