"""Configurations with comments: one for a new robot, and the reference of every key."""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import itertools
import os
from pathlib import Path
import textwrap
from types import MappingProxyType
import typing
from typing import Any

import numpy as np

from ..core.findings import render
from ..core.setup.joint_choice import left_out_sentences
from ..core.setup.robot_setup import RobotSetup
from ..settings import MISSING
from ..simulation_settings import SimulationSettings
from .configuration import Configuration
from .yaml import dump_flow

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
# Shares of the tracking error that stops a session: at the goal, and beyond a limit of position.
AT_GOAL, BEYOND_LIMITS = 0.5, 0.2
# Keys that are written as they were chosen.
MOTION = ('period', 'order', 'periods', 'start', 'time_limit')
WORKSPACE = ('frame', 'ground', 'self_collision', 'distance', 'ignored_pairs')
DRIVES = ('rotor_inertia', 'viscous', 'coulomb', 'offset')


def configuration_text(setup: RobotSetup, urdf: str, mesh_folders: Iterable[str] = ()) -> str:
    """Write the configuration with this `robot.urdf`; `mesh_folders`: where meshes are, too."""
    robot, limits, drives, facts = setup.robot, setup.limits, setup.drives, setup.facts
    excitation, workspace = setup.excitation, setup.excitation.workspace
    head = [
        f"{robot.name}: by 'robotid init'; 'robotid init --keys' explains every key.",
        'Units: rad, m, s, N·m, N, kg.',
        f'The {len(setup.arm.joints)} joints of the arm: {", ".join(setup.arm.joints)}.',
        *(f'{text[:1].upper()}{text[1:]}.' for text in left_out_sentences(setup.arm)),
        *(f'Note: {render(found)}' for found in setup.notes),
    ]
    free = ~(np.isfinite(limits.lower) & np.isfinite(limits.upper))
    unlimited = ', '.join(itertools.compress(robot.joints, free))
    scale = np.where(robot.prismatic, PRISMATIC_NOISE, 1.0)
    scale = np.minimum(scale, limits.velocity / NOISY_SPEED)
    guessed = zip(robot.joints, _rounded(drives.p), _rounded(drives.d), strict=True)
    gains = {joint: dict(facts.gains.get(joint, {'p': p, 'd': d})) for joint, p, d in guessed}
    error = setup.tracking_error
    values: dict[str, dict[str, Any]] = {
        'robot': {
            'name': robot.name,
            'urdf': urdf,
            'joints': setup.arm.joints,
            'mass': facts.mass if robot.assumed_inertials else None,
            'locked': setup.locked,
            'effort_kind': facts.effort_kind,
            **{name: _rounded(getattr(limits, name)) for name in setup.rules},
        },
        'excitation': {
            'controller': facts.controller,
            **{name: getattr(excitation, name) for name in MOTION},
            'amplitude': round(excitation.amplitude, DIGITS) if unlimited else None,
            'margins': {'effort': excitation.margins.effort},
            'tracking_error': _alike(error),
            'goal_tolerance': _alike(AT_GOAL * error),
            'position_tolerance': _alike(BEYOND_LIMITS * error),
            'workspace': {name: getattr(workspace, name) for name in WORKSPACE}
            | {'mesh_folders': [*mesh_folders]},
        },
        'simulation': {
            'controller': facts.controller,
            'command_interface': facts.command_interface,
            'update_rate': facts.update_rate,
            'state_rate': min(SimulationSettings.state_rate, facts.update_rate),
            'initial_positions': excitation.start,
            'gains': gains if facts.command_interface == 'effort' or facts.gains else {},
            'inertial_error': INERTIAL_ERROR,
            **{name: _rounded(getattr(drives, name)) for name in DRIVES},
            'noise': {
                'position': _alike(POSITION_NOISE * scale),
                'velocity': _alike(VELOCITY_NOISE * scale),
                'effort': _alike(drives.noise),
            },
        },
    }
    lacks = ' '.join(map(render, setup.unchecked.values()))
    accept = (
        f'{lacks} A real robot moves only after you have accepted that:\n'
        f'accept_unchecked: [{", ".join(setup.unchecked)}]'
    )
    notes = {
        **{f'robot.{name}': rule for name, rule in setup.rules.items()},
        'excitation.start': 'Free of collisions, with room to move: see that it is on your robot '
        'too.',
        'excitation.amplitude': f'How far {unlimited} may turn, which have no position limits.',
        'excitation.workspace': accept if setup.unchecked else '',
        'excitation.workspace.ignored_pairs': 'Shapes that overlap in many poses: see that these '
        'links cannot touch.',
        'simulation': 'Guesses that fit the size of the arm. A real robot is not affected.',
    }
    return settings_text(Configuration, '\n'.join(head), values, notes)


def urdf_setting(urdf: Path, output: Path) -> str:
    """Return the description's path: relative to the configuration where it is below it."""
    urdf, folder = urdf.absolute(), output.absolute().parent
    inside = urdf.is_relative_to(folder)
    return os.path.relpath(urdf, folder) if inside else str(urdf)


def _rounded(values: Iterable[float]) -> list[float]:
    return [float(f'{value:.{DIGITS}g}') for value in values]


def _alike(values: Iterable[float]) -> list[float]:
    """Round values, and leave one where all are the same."""
    found = _rounded(values)
    return found[:1] if len({*found}) == 1 else found


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


def settings_text(
    cls: type,
    head: str,
    values: Mapping[str, Any] | None = None,
    notes: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """
    Write a parameter file of the groups of a class, a text above them.

    Of given `values`, {group: {key: value}}, no other keys and no empty ones are written; None:
    every key at its default. `notes` by dotted names stand above the description of a key.
    """
    groups = ['/**:', f'{INDENT}ros__parameters:', *_keys(cls, 2 * INDENT, values, notes)]
    return '\n'.join([*_comment(head, ''), *groups]) + '\n'


def _keys(
    cls: type,
    indent: str,
    values: Mapping[str, Any] | None,
    notes: Mapping[str, str],
    prefix: str = '',
) -> Iterator[str]:
    types = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        kind, key, name = types[field.name], f'{indent}{field.name}:', f'{prefix}{field.name}'
        default = field.default if field.default is not MISSING else {}
        value = default if values is None else values.get(field.name)
        if values is not None and value in (None, {}, (), []):
            continue
        yield from _comment(notes.get(name, ''), indent)
        yield from _comment(_described(field, kind), indent)
        if dataclasses.is_dataclass(kind):
            inner = None if values is None else value
            yield key
            yield from _keys(typing.cast(type, kind), indent + INDENT, inner, notes, f'{name}.')
        elif values is not None and _free(kind):
            yield key
            yield from (
                f'{indent}{INDENT}{dump_flow(k)}: {dump_flow(v)}' for k, v in (value or {}).items()
            )
        else:
            yield from _wrapped(f'{key} ', value)
        if values is None and _free(kind) and dataclasses.is_dataclass(typing.get_args(kind)[1]):
            # What is below a free name, as a comment.
            inside = _keys(typing.get_args(kind)[1], indent + 2 * INDENT, None, notes)
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
