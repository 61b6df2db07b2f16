"""The page of an identification."""

from pathlib import Path

from ..results import Results
from .html import contents, page
from .plots.canvas import Plots
from .sections.bodies import bodies
from .sections.convergence import comparison, convergence
from .sections.data import data
from .sections.joints import joints, residuals
from .sections.parameters import base, standard
from .sections.provenance import provenance
from .sections.selection import selection
from .sections.verdict import verdict, warnings
from .sections.verification import verification


def render(results: Results) -> str:
    """Compose the page; it refers to nothing outside of itself."""
    plots = Plots()
    sections = (
        residuals(results),
        joints(results, plots),
        verification(results, plots),
        data(results, plots),
        selection(results),
        base(results, plots),
        comparison(results),
        convergence(results, plots),
        bodies(results),
        standard(results),
        provenance(results),
    )
    shown = ''.join(sections)
    body = verdict(results) + warnings(results) + contents(shown) + shown
    name = results.robot or 'robot'
    title = f'{name}: identified dynamic parameters'
    return page(title, name, _subtitle(results), body, plots.script())


def _subtitle(results: Results) -> str:
    logs = results.data.get('logs', (results.data,))
    source = ', '.join(Path(str(log.get('source', ''))).name for log in logs)
    parts = ('dynamic parameters by', results.method.upper(), 'from', source, '·', results.created)
    return ' '.join(part for part in parts if part)
