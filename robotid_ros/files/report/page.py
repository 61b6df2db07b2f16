"""Self-contained pages: what they are made of, and where they are written."""

import functools
from importlib import import_module
from importlib.util import find_spec
import math
from pathlib import Path
import re
from typing import Any

from jinja2 import Environment, UndefinedError
from markupsafe import escape, Markup

from ...core.findings import formatted, seen_and_remedy
from ...core.verdict import FAIR, GOOD, THRESHOLDS
from ...exceptions import FileError, MissingPackageError
from ..atomic import write_text
from ..text_template import text_templates
from ..yaml import dump_yaml

HERE = Path(__file__).parent
MISSING = '—'
# %σ up to which an estimate is shown as good and as fair [%]; 10 is also the default of
# `essential_sigma`.
GOOD_PERCENT, FAIR_PERCENT = 10.0, 30.0


def save_page(kind: str, path: str | Path, *subject: Any, overwrite: bool = True) -> Path:
    """
    Write a page, and return its path.

    Of the kinds 'identification' shows `Results` and their folder, 'validation'
    `CheckedParameters`, 'design' what `design_page` takes.
    MissingPackageError: Bokeh is not installed; FileError: the page cannot be written;
    TrajectoryError: the design is for other joints.
    """
    plotting_library()
    if Path(path).suffix != '.html':  # it may replace a page, and nothing else
        raise FileError(f"'{path}' will be a page: let its name end in .html")
    # What a design needs, other pages need not import.
    module = import_module(f'.{"design" if kind == "design" else "pages"}', __package__)
    return write_text(path, getattr(module, f'{kind}_page')(*subject), overwrite=overwrite)


def save_page_if_possible(
    kind: str, path: str | Path, *subject: Any, overwrite: bool = True
) -> str:
    """Write a page where Bokeh is installed; return why there is none, and the remedy."""
    try:
        save_page(kind, path, *subject, overwrite=overwrite)
    except MissingPackageError as error:
        return str(error)
    return ''


def page_beside(path: str | Path) -> Path:
    """Return where the page of a file goes: beside it; FileError: it has no name, or this one."""
    if not Path(path).name.strip('.'):
        raise FileError(f"'{path}' is a folder: name a file in it")
    page = Path(path).with_suffix('.html')
    if page == Path(path):
        raise FileError(f"'{path}' would be its own page: let the name of the file end in .yaml")
    return page


def plotting_library() -> Path:
    """Return the script of Bokeh; MissingPackageError where it is not installed."""
    found = find_spec('bokeh')
    places = found and found.submodule_search_locations
    if not places:
        raise MissingPackageError(
            'the page needs bokeh: pip install bokeh and repeat the command; robotid report '
            'FOLDER writes that of an identification'
        )
    return Path(places[0]) / 'server/static/js/bokeh.min.js'


def render(template: str, *, behaviours: tuple[str, ...] = ('report',), **values: Any) -> str:
    """
    Compose a page that refers to nothing outside of itself.

    Behaviours are scripts of our own, by the names of their files; all values are escaped.
    KeyError: one that the template shows is not there.
    """
    scripts = Markup('\n'.join((HERE / f'{name}.js').read_text() for name in behaviours))
    style = Markup((HERE / 'report.css').read_text())
    page = _environment().get_template(template)
    try:
        text = page.render(style=style, behaviour=scripts, **values)
        return re.sub(r'(?<=\d) (?=%)', '\u00a0', text)  # no line begins with it
    except UndefinedError as error:
        raise KeyError(str(error)) from error


@functools.cache
def _environment() -> Environment:
    return text_templates(
        HERE / 'templates',
        number=number,
        percent=percent,
        breakable=breakable,
        residual_class=residual_class,
        precision_class=precision_class,
        seen_and_remedy=seen_and_remedy,
        minute=minute,
        sentence=lambda text: text[:1].upper() + text[1:],
        yaml=lambda values: dump_yaml(dict(values)),
    )


def number(value: float | None, form: str = '.4g', unit: str = '', missing: str = MISSING) -> str:
    """Write a number with its unit, `missing` where there is none."""
    if value is None or not math.isfinite(value):
        return missing
    return formatted(value, form) + unit


def percent(value: float | None, digits: int = 2) -> str:
    """Write a share in per cent."""
    return MISSING if value is None else number(100.0 * value, f'.{digits}f', ' %')


def minute(stamp: str) -> str:
    """Shorten a time of ISO 8601 to its minute."""
    return stamp[:16].replace('T', ' ') + stamp[19:].replace('+00:00', ' UTC')


def breakable(text: object) -> Markup:
    """Escape a text whose names may go on in another line behind underscores; joint_1 stays."""
    return Markup(re.sub(r'_(?=\D)', '_<wbr>', escape(str(text))))


def grade(value: float, good: float, fair: float) -> str:
    """Return 'good', 'fair' or 'poor'; '' where a value is unknown."""
    if not math.isfinite(value):
        return ''
    return 'good' if value <= good else 'fair' if value <= fair else 'poor'


# Of a relative residual, and of a %σ.
residual_class = functools.partial(grade, good=THRESHOLDS[GOOD], fair=THRESHOLDS[FAIR])
precision_class = functools.partial(grade, good=GOOD_PERCENT, fair=FAIR_PERCENT)
