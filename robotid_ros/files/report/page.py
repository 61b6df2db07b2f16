"""Self-contained pages of results, and of a session that runs; where they are written."""

from collections.abc import Mapping, Sequence
import functools
from importlib import import_module
import math
from pathlib import Path
import re
from typing import Any, NamedTuple

from jinja2 import Environment, UndefinedError
from markupsafe import escape, Markup

from ...core.findings import formatted, seen_and_remedy
from ...core.verdict import FAIR, GOOD, THRESHOLDS
from ...exceptions import FileError, MissingPackageError
from ..atomic import write_text
from ..results import (
    BASE,
    count_within_sigma,
    PRIOR,
    Results,
    STANDARD,
    total_residual,
    verdict_of,
)
from ..text_template import text_templates
from ..verdict_text import next_step, sentences, TITLES
from ..yaml import dump_yaml
from . import plots
from .plots import Model, Plot, Plots, plotting_library

HERE = Path(__file__).parent
MISSING = '—'
# %σ up to which an estimate is shown as good and as fair [%]; 10 is also the default of
# `essential_sigma`.
GOOD_PERCENT, FAIR_PERCENT = 10.0, 30.0


def save_page(kind: str, path: str | Path, *subject: Any, overwrite: bool = True) -> Path:
    """
    Write a page, and return its path.

    Of the kinds 'identification' shows `Results` and their folder, 'validation' those of
    `check_parameters`, 'design' what `design_page` takes.
    MissingPackageError: Bokeh is not installed; FileError: the page cannot be written;
    TrajectoryError: the design is for other joints.
    """
    plotting_library()
    if Path(path).suffix != '.html':  # it may replace a page, and nothing else
        raise FileError(f"'{path}' will be a page: let its name end in .html")
    # What a design needs, other pages need not import.
    module = import_module(f'.{"design" if kind == "design" else "page"}', __package__)
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


SETS = {PRIOR: 'robot description', STANDARD: 'identified.urdf', BASE: 'base parameters'}
# What a row of a live page's data holds of each joint, in this order, after the time, see
# `live.js`; latest time that is drawn [s].
LIVE = ('position', 'reference', 'error', 'effort', 'residual')
SHOWN = 60.0


class FirstScreen(NamedTuple):
    """What a reader sees first: 'good', 'fair' or 'poor', what it can be used for, what to do."""

    level: str
    sentence: str
    next_step: str


def identification_page(results: Results, folder: object = 'FOLDER') -> str:
    """Compose the page of an identification; it refers to nothing outside of itself."""
    source = ', '.join(map(_file_name, results.data.get('logs', (results.data,))))
    method, created = results.method.upper(), minute(results.created)
    return render(
        'identification.html',
        title=f'{results.robot or "robot"}: identified dynamic parameters',
        subtitle=f'dynamic parameters by {method} from {source} · {created}',
        **_shown(results, folder),
    )


def validation_page(results: Results) -> str:
    """Compose the page of description, identified and base parameters on one recording."""
    source = _file_name(results.data)
    return render(
        'validation.html',
        title=f'{results.robot or "robot"}: validation',
        subtitle=f'validation of identified parameters on {source} · {minute(results.created)}',
        sets={SETS[name]: results.sets[name] for name in SETS if name in results.sets},
        **_shown(results),
    )


def _file_name(log: Mapping[str, Any]) -> str:
    return Path(str(log.get('source', ''))).name


def _shown(results: Results, folder: object = 'FOLDER') -> dict[str, Any]:
    """Return what the template of an identification shows."""
    moves, verdict = plots.phases(results.torques), verdict_of(results)
    known = any(math.isfinite(joint.from_parameters) for joint in verdict.joints)
    units = {line.joint: line.unit for line in results.identification}
    moved = results.quality.joints if results.quality else {}
    lengths = {joint: line.unit for joint, line in moved.items()}
    both = {j: (lengths.get(j, 'rad'), units.get(j, 'N·m')) for j in results.joints}
    return {
        'heading': results.robot or 'robot',
        'plots': Plots(both),
        'draw': plots,
        'results': results,
        'joints': results.joints if moves or results.verification else (),
        'validation': {line.joint: line for line in results.validation},
        'total_residual': total_residual,
        'verdict_title': TITLES[verdict.level],
        'first': first_screen(results, folder),
        'within_sigma': count_within_sigma(results.base),
        'good_percent': GOOD_PERCENT,
        'expected': verdict.joints if known else (),
        'found': results.findings,
        'phases': moves,
        'units': units,
        'lengths': lengths,
    }


def first_screen(results: Results, folder: object = 'FOLDER') -> FirstScreen:
    """Say the verdict, and what to do next."""
    found = verdict_of(results)
    css = found.level if found.level in ('good', 'fair') else 'poor'
    return FirstScreen(css, ' '.join(sentences(results)), next_step(results, folder))


def live_page(
    name: str,
    joints: Sequence[str],
    units: Sequence[tuple[str, str]],
    limits: Sequence[tuple[float, float]],
    actions: Sequence[str],
) -> str:
    """
    Compose the page of a session that runs: what a browser shows until it is told more.

    `units` are of each joint's position and effort, `limits` the tracking error and the effort of
    each that stop the motion, 0: none; `actions` what buttons ask the robot for, besides the one
    that stops it.
    """
    drawn = []
    source = plots.source_of({key: [] for key in ('time', *LIVE)}, name='series')
    time = Model('DataRange1d', follow='end', follow_interval=SHOWN, range_padding=0.0)
    curves = {
        'position [{length}]': {'position': plots.MEASURED, 'reference': plots.PREDICTED},
        'tracking error [{length}]': {'error': plots.RESIDUAL},
        'effort [{effort}]': {'effort': plots.MEASURED, 'residual': plots.RESIDUAL},
    }
    for label, lines in curves.items():
        look: dict[str, Any] = {'min_border_left': 66, 'toolbar_location': None}
        plot = Plot('time [s]', label, 200, '', x_range=time, **look)
        plot.left[0].formatter = Model('BasicTickFormatter', use_scientific=False)
        for key, color in lines.items():
            plot.draw('Line', source, color, key, {'x': 'time', 'y': key}, line_width=1.8)
        drawn.append((plot, label.split(' [')[0]))
    return render(
        'live.html', behaviours=('report', 'live'), title=f'{name}: live', heading=name,
        subtitle='', joints=joints, units=units, limits=limits, actions=actions,
        plots=Plots(dict(zip(joints, units, strict=True))), drawn=drawn,
    )  # fmt: skip
