"""A design: its verdict, what it uses of the limits, the moving arm, and how it was found."""

from html import escape

from ....core.excitation import Design, ExcitationSettings
from ....core.excitation.constraints.motion_limits import QUANTITIES
from ....core.model import Robot
from ..html import bar, format_number, percent, row, section, table, time_window, turn_sliders
from ..moving_arm import moving_arm
from ..plots import motion
from ..plots.canvas import Plots
from ..plots.curves import singular_values
from .verdict import Figure, findings, first_screen, FirstScreen, SERIOUS, split_remedy

TITLES = {'good': 'Can be run', 'fair': 'Can be run with care', 'poor': 'Not to be run'}
CLASSES = {'excitation': '', 'validation': ' other'}


def verdict(design: Design, settings: ExcitationSettings) -> str:
    """Show whether the motion is worth running, five figures, and what to do next."""
    found = verdict_of(design, settings)
    return first_screen(TITLES[found.level], found, _figures(design, settings))


def verdict_of(design: Design, settings: ExcitationSettings) -> FirstScreen:
    """Judge a design by its shortcomings, and by what nobody has checked."""
    columns = f'{len(design.columns)} columns of the model'
    if design.shortcomings:
        finding, remedy = split_remedy(design.shortcomings[0])
        return FirstScreen(
            'poor',
            f'The node excitation does not run it: {finding}.',
            f'{remedy or "Design again"}.',
        )
    if design.unchecked:
        finding, remedy = split_remedy(design.unchecked[0])
        action = remedy or 'Complete the robot description'
        return FirstScreen(
            'fair',
            f'It keeps every limit that is checked and excites all {columns}, but {finding}.',
            f'{action}, or accept it by name in excitation.accept_unchecked.',
        )
    apart = f'; bodies stay at least {settings.workspace.distance:g} m apart'
    return FirstScreen(
        'good',
        f'It keeps every limit at all times and excites all {columns}'
        f'{"" if design.usage.distance is None else apart}.',
        'Watch it below for what no configuration knows, such as cables, then run it: '
        'excitation.trajectory names the file.',
    )


def _figures(design: Design, settings: ExcitationSettings) -> list[Figure]:
    """Return value, text and class of the five figures."""
    condition, bound = design.condition_numbers['normalised'], settings.largest_condition
    share, quantity, joint = max(
        (value, name, joint)
        for name in QUANTITIES
        for value, joint in zip(getattr(design.usage, name), design.trajectory.joints, strict=True)
    )
    distance = design.usage.distance
    apart = 'smallest distance between bodies'
    other = f'; validation {design.validation.period:g} s' if design.validation else ''
    return [
        (
            format_number(condition, 3),
            f'condition number, normalised; at most {bound:g}. Raw: '
            f'{format_number(design.condition_numbers["raw"], 3)}',
            'good' if condition <= bound else 'poor',
        ),
        (
            f'{settings.periods} × {design.trajectory.period:g} s',
            f'periods that are run{other}',
            '',
        ),
        (percent(share, 0), f'largest share of a limit: {quantity} of {joint}', ''),
        (
            '—' if distance is None else f'{1e3 * distance:.0f} mm',
            'no bodies to keep apart'
            if distance is None
            else f'{apart}; at least {1e3 * settings.workspace.distance:g} mm',
            '',
        ),
        (
            f'{design.evaluations}',
            f'evaluations of the search by {design.solver}, seed {design.seed}',
            '',
        ),
    ]


def remarks(design: Design) -> str:
    """List shortcomings, what is unchecked, and notes."""
    ranked = [
        (text, severity)
        for severity, texts in (
            (SERIOUS, design.shortcomings),
            ('warning', design.unchecked),
            ('note', design.notes),
        )
        for text in texts
    ]
    meaning = (
        'A design with serious ones is not run, one with warnings only where the configuration '
        'accepts them; notes say what was done.'
    )
    return findings(meaning, ranked, design.trajectory.joints)


def moving(design: Design, robot: Robot, settings: ExcitationSettings, plots: Plots) -> str:
    """Show the arm along its motion, and beside it the joints' curves within their limits."""
    motions = motion.motions_of(design)
    plots.data['arm'] = moving_arm(robot, motions, settings.workspace)
    series = motion.motion_series(design, robot)
    curves = ''.join(
        f'<h3>{escape(joint)}</h3>'
        + ''.join(
            plots.place(plot, caption, wide=True)
            for plot, caption in motion.joint_curves(series, design, j, bool(robot.prismatic[j]))
        )
        for j, joint in enumerate(robot.joints)
    )
    return section(
        'Motion',
        'Collision bodies, tool path, and the joints’ curves between their limits (dashed); '
        'efforts are those of the prior model. Drag over a curve to zoom in time, over the arm to '
        'turn it.',
        f'<div class="motion">{_player(list(motions))}<div>{time_window()}{curves}</div></div>',
        anchor='motion',
    )


def _player(names: list[str]) -> str:
    choices = ''.join(
        f'<label><input type="radio" name="motion" value="{name}"{" checked" if not k else ""}>'
        f'<i class="line{CLASSES[name]}"></i>{name}</label>'
        for k, name in enumerate(names)
    )
    return (
        '<div class="player"><svg viewBox="-300 -300 600 600" role="img" tabindex="0" aria-label='
        '"The arm along its motion, as its collision bodies; arrow keys turn it, space plays">'
        '</svg><div class="controls play"><button type="button">Play</button>'
        '<input type="range" min="0" step="0.01" value="0" aria-label="Time"><output></output>'
        '</div>'
        f'<div class="controls" role="radiogroup" aria-label="Motion">{choices}</div>'
        f'{turn_sliders()}</div>'
    )


def shares(design: Design) -> str:
    """Show which share of each limit each joint uses."""
    usage = zip(*(getattr(design.usage, name) for name in QUANTITIES), strict=True)
    rows = [
        row(
            joint,
            *(f'<td class="keep" data-v="{v:.9g}">{bar(v, percent(v, 0))}</td>' for v in values),
        )
        for joint, values in zip(design.trajectory.joints, usage, strict=True)
    ]
    return section(
        'Shares of the limits',
        'The largest that the excitation uses at any time; positions count from the middle of '
        'their range.',
        table(('joint', *QUANTITIES), rows, caption='Share of limit', sortable=True),
        anchor='shares',
    )


def search(design: Design, plots: Plots) -> str:
    """Show how the criterion came down, and the singular values it ended with."""
    found = motion.search(design)
    name = design.criterion.replace('_', ' ')
    parts = [] if found is None else [plots.place(found, f'Best {name} over the evaluations')]
    parts.append(plots.place(singular_values(design.singular_values), 'Singular values of W/√N'))
    return section(
        'Search',
        f'{design.solver}, {design.evaluations} evaluations, seed {design.seed}: {name} '
        f'{format_number(design.value, 4)}. In the search friction is smoothed at standstill.',
        f'<div class="grid">{"".join(parts)}</div>',
        anchor='search',
    )
