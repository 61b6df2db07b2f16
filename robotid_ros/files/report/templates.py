"""Pages from the templates in `templates/`, and how these write numbers and names."""

import functools
import math
from pathlib import Path
from typing import Any

from jinja2 import Environment, UndefinedError
from markupsafe import escape, Markup

from ...core.finding_codes import seen_and_remedy
from ...core.verdict import FAIR, GOOD, THRESHOLDS
from ..text_template import text_templates
from ..yaml import dump_yaml

HERE = Path(__file__).parent
MISSING = '—'
# %σ up to which an estimate is shown as good and as fair [%]; 10 is also the default of
# `essential_sigma`.
GOOD_PERCENT, FAIR_PERCENT = 10.0, 30.0


def render(
    template: str,
    *,
    behaviours: tuple[str, ...] = ('report',),
    folder: Path | None = None,
    **values: Any,
) -> str:
    """
    Compose a page that refers to nothing outside of itself.

    Behaviours are scripts of our own, by the names of their files; `folder` is that of the
    template, where it is not here; all values are escaped. KeyError: one that the template shows
    is not there.
    """
    scripts = Markup('\n'.join((HERE / f'{name}.js').read_text() for name in behaviours))
    style = Markup((HERE / 'report.css').read_text())
    page = _environment(folder).get_template(template)
    try:
        return page.render(style=style, behaviour=scripts, **values)
    except UndefinedError as error:
        raise KeyError(str(error)) from error


@functools.cache
def _environment(folder: Path | None) -> Environment:
    return text_templates(
        HERE / 'templates',
        *([folder] if folder else []),
        number=number,
        percent=percent,
        breakable=breakable,
        sentence=lambda text: text[:1].upper() + text[1:],
        yaml=lambda values: dump_yaml(dict(values)),
        residual_class=residual_class,
        seen_and_remedy=seen_and_remedy,
        precision_class=precision_class,
    )


def number(value: float | None, form: str = '.4g', unit: str = '', missing: str = MISSING) -> str:
    """Write a number with its unit, `missing` where there is none."""
    if value is None or not math.isfinite(value):
        return missing
    return f'{value:{form}}{unit}'


def percent(value: float | None, digits: int = 2) -> str:
    """Write a share in per cent."""
    return MISSING if value is None else number(100.0 * value, f'.{digits}f', ' %')


def breakable(text: object) -> Markup:
    """Escape a text whose names may go on in another line behind each underscore."""
    return escape(str(text)).replace('_', Markup('_<wbr>'))


def residual_class(share: float) -> str:
    """Return whether a relative residual is 'good', 'fair' or 'poor'; '' where it is unknown."""
    return _class(share, THRESHOLDS[GOOD].value, THRESHOLDS[FAIR].value)


def precision_class(percent_sigma: float) -> str:
    """Return whether a %σ is 'good', 'fair' or 'poor'."""
    return _class(percent_sigma, GOOD_PERCENT, FAIR_PERCENT)


def _class(value: float, good: float, fair: float) -> str:
    if not math.isfinite(value):
        return ''
    return 'good' if value <= good else 'fair' if value <= fair else 'poor'
