"""Configurations with comments: one for a new robot, and the reference of every key."""

from collections.abc import Iterable, Iterator
import dataclasses
import itertools
import os
from pathlib import Path
import textwrap
import typing
from typing import Any

import numpy as np

from ..core.findings import render
from ..core.setup.joint_choice import left_out_sentences
from ..core.setup.robot_setup import RobotSetup
from ..settings import MISSING
from ..simulation_settings import SimulationSettings
from .configuration import Configuration
from .text_template import text_templates
from .yaml import dump_flow

TEMPLATES = Path(__file__).parent / 'templates'
WIDTH = 99
INDENT = '  '


def _wrapped(start: str, value: Any) -> list[str]:
    """Write a value behind its key, a long list over several lines."""
    text = start + dump_flow(value)
    if len(text) <= WIDTH or not isinstance(value, list | tuple):
        return [text]
    deeper = ' ' * (len(start) - len(start.lstrip()) + 2 * len(INDENT))
    return [start.rstrip(), *_wrap(dump_flow(value), deeper, f'{deeper} ')]


def _wrap(text: str, first: str, others: str) -> list[str]:
    """Break a text between its words, into lines behind an indent."""
    plain: Any = {'break_long_words': False, 'break_on_hyphens': False}
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=others, **plain)


def _comment(text: str, indent: str) -> list[str]:
    lines = (_wrap(paragraph, f'{indent}# ', f'{indent}# ') for paragraph in text.splitlines())
    return [*itertools.chain(*lines)]


# Digits of a guess.
DIGITS = 3
# Noise of positions and velocities [rad, rad/s]; of prismatic joints a tenth of it [m, m/s]. A
# joint slower than this [rad/s] has more gear behind its encoder, and so much less noise.
POSITION_NOISE, VELOCITY_NOISE, PRISMATIC_NOISE, NOISY_SPEED = 2e-5, 2e-4, 0.1, 3.0
# Deviation of the simulated links from the description's, which an identification has to find.
INERTIAL_ERROR = 0.1


def configuration_text(setup: RobotSetup, urdf: str, mesh_folders: Iterable[str] = ()) -> str:
    """Write the configuration with this `robot.urdf`; `mesh_folders`: where meshes are, too."""
    limits, drives, facts = setup.limits, setup.drives, setup.facts
    head = [
        f"{setup.robot.name}: by 'robotid init'; 'robotid init --keys' explains every key.",
        'Units: rad, m, s, N·m, N, kg.',
        f'The {len(setup.arm.joints)} joints of the arm: {", ".join(setup.arm.joints)}.',
        *(f'{text[:1].upper()}{text[1:]}.' for text in left_out_sentences(setup.arm)),
        *(f'Note: {render(found)}' for found in setup.notes),
    ]
    free = ~(np.isfinite(limits.lower) & np.isfinite(limits.upper))
    scale = np.where(setup.robot.prismatic, PRISMATIC_NOISE, 1.0)
    scale = np.minimum(scale, limits.velocity / NOISY_SPEED)
    noise = {'position': POSITION_NOISE * scale, 'velocity': VELOCITY_NOISE * scale}
    shown = {name: _rounded(x) for name, x in (noise | {'effort': drives.noise}).items()}
    guessed = zip(setup.robot.joints, _rounded(drives.p), _rounded(drives.d), strict=True)
    values = {
        'head': '\n'.join(head),
        'setup': setup,
        'urdf': urdf,
        'excitation': setup.excitation,
        'usual': SimulationSettings,
        'digits': DIGITS,
        'inertial_error': INERTIAL_ERROR,
        'mesh_folders': list(mesh_folders),
        'unlimited': ', '.join(itertools.compress(setup.robot.joints, free)),
        'unchecked': ' '.join(map(render, setup.unchecked.values())),
        'gains': {
            joint: dict(facts.gains.get(joint, {'p': p, 'd': d})) for joint, p, d in guessed
        },
        'noise': {name: x[:1] if len({*x}) == 1 else x for name, x in shown.items()},
    }
    templates = text_templates(
        TEMPLATES,
        comment=lambda text, indent=6: '\n'.join(_comment(text, ' ' * indent)),
        entry=lambda key, value, indent=6: '\n'.join(
            _wrapped(f'{" " * indent}{dump_flow(key)}: ', value)
        ),
        rounded=_rounded,
    )
    return templates.get_template('configuration.yaml').render(values)


def urdf_setting(urdf: Path, output: Path) -> str:
    """Return the description's path: relative to the configuration where it is below it."""
    urdf, folder = urdf.absolute(), output.absolute().parent
    inside = urdf.is_relative_to(folder)
    return os.path.relpath(urdf, folder) if inside else str(urdf)


def _rounded(values: Iterable[float], share: float = 1.0) -> list[float]:
    return [float(f'{share * value:.{DIGITS}g}') for value in values]


# Stands for a name that the user chooses.
FREE_NAME = 'NAME'
HEAD = (
    "Every key of a configuration, with its default: a robot's file needs only those that differ. "
    'Above each: what it means, its type, unit and bounds. Units with rad, N·m and kg·m² are '
    'those of revolute joints; on prismatic ones they are m, N and kg. One file serves all nodes '
    'and the command line. Where a key is a group of names of your own, NAME shows what is below '
    'each.'
)


def settings_reference() -> str:
    """Return a configuration that holds every key at its default; what it says is a comment."""
    return settings_text(Configuration, HEAD)


def settings_text(cls: type, head: str) -> str:
    """Write a parameter file of the groups of a class at their defaults, a text above them."""
    groups = ['/**:', f'{INDENT}ros__parameters:', *_keys(cls, 2 * INDENT)]
    return '\n'.join([*_comment(head, ''), *groups]) + '\n'


def _keys(cls: type, indent: str) -> Iterator[str]:
    types = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        kind, key = types[field.name], f'{indent}{field.name}:'
        yield from _comment(_described(field, kind), indent)
        if dataclasses.is_dataclass(kind):
            yield from (key, *_keys(typing.cast(type, kind), indent + INDENT))
            continue
        value = field.default if field.default is not MISSING else None
        yield from _wrapped(f'{key} ', {} if value is None and _free(kind) else value)
        if _free(kind) and dataclasses.is_dataclass(group := typing.get_args(kind)[1]):
            # What is below a free name, as a comment.
            inside = _keys(typing.cast(type, group), indent + 2 * INDENT)
            for line in (key, f'{indent}{INDENT}{FREE_NAME}:', *inside):
                yield f'{indent}# {line.removeprefix(indent)}'


def _free(kind: Any) -> bool:
    """Whether a setting is a group of names that the user chooses."""
    return typing.get_origin(kind) is dict


def _described(field: 'dataclasses.Field[Any]', kind: Any) -> str:
    """Return what a setting is, its type in words, unit, bounds and choices."""
    words = {float: 'number', int: 'whole number', str: 'text', bool: 'true or false'}
    meta = field.metadata
    low, high = meta['minimum'], meta['maximum']
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        name = ''
    elif origin is tuple:
        name = f'list: {words[arguments[0]]}'
    elif _free(kind):
        name = 'by name'
    else:
        name = f'{words[arguments[0]]} or null' if type(None) in arguments else words[kind]
    bounds = f'at least {low:g}' if high is None and low is not None else ''
    if high is not None:
        bounds = f'at most {high:g}' if low is None else f'{low:g} to {high:g}'
    choices = ', '.join(filter(None, meta['choices'] or ()))
    facts = [*filter(None, (name, meta['unit'], bounds, choices and f'one of {choices}'))]
    return f'{meta["description"]} [{"; ".join(facts)}]' if facts else meta['description']
