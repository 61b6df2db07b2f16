"""The configuration of a robot that was set up from its description, as a commented file."""

from collections.abc import Iterable
import math
import os
from pathlib import Path

import numpy as np

from ...core.setup.arm_choice import left_out_sentences
from ...core.setup.robot_setup import RobotSetup
from ...simulation_settings import SimulationSettings
from .commented_yaml import Entry, parameter_file

# Digits of a guess.
DIGITS = 3
# Noise of positions and velocities [rad, rad/s]; of prismatic joints a tenth of it [m, m/s].
POSITION_NOISE, VELOCITY_NOISE, PRISMATIC_NOISE = 2e-5, 2e-4, 0.1
# Deviation of the simulated links from the description's, which an identification has to find.
INERTIAL_ERROR = 0.1


def configuration_text(setup: RobotSetup, urdf: str) -> str:
    """
    Write the configuration.

    Parameters
    ----------
    setup : what was chosen
    urdf : what the key `robot.urdf` shall say

    """
    groups = (
        Entry('robot', tuple(_robot(setup, urdf)), 'The robot and its model.'),
        Entry('excitation', tuple(_excitation(setup)), 'The motion, and when to stop it.'),
        Entry(
            'simulation',
            tuple(_simulation(setup)),
            "The simulated robot of 'robotid demo': guesses that fit the size of the arm. A real "
            'robot is not affected.',
        ),
    )
    return parameter_file(groups, _head(setup))


def urdf_setting(urdf: Path, output: Path) -> str:
    """Return the description's path: relative to the configuration where it is below it."""
    urdf, folder = urdf.absolute(), output.absolute().parent
    inside = urdf.is_relative_to(folder)
    return os.path.relpath(urdf, folder) if inside else str(urdf)


def _head(setup: RobotSetup) -> str:
    names = ', '.join(setup.arm.joints)
    lines = [
        f"{setup.robot.name}: by 'robotid init'; 'robotid init --keys' explains every key.",
        'Units: rad, m, s, N·m, N, kg.',
        f'The {len(setup.arm.joints)} joints of the arm: {names}.',
        *(f'{text[:1].upper()}{text[1:]}.' for text in left_out_sentences(setup.arm)),
        *(f'Note: {text}.' for text in setup.notes),
    ]
    return '\n'.join(lines)


def _robot(setup: RobotSetup, urdf: str) -> Iterable[Entry]:
    yield Entry('name', setup.robot.name)
    yield Entry('urdf', urdf)
    yield Entry('joints', list(setup.arm.joints), 'All others stand still, at 0 or as locked.')
    if setup.robot.assumed_inertials:
        text = 'By the data sheet: shared out between links, which have no inertials.'
        yield Entry('mass', setup.facts.mass, text)
    if setup.locked:
        yield Entry(
            'locked', setup.locked, 'Joints that cannot stand at 0, or that would follow others.'
        )
    yield Entry(
        'friction',
        {'default': ['viscous', 'coulomb', 'offset']},
        'Friction is chosen from the data; set it where you know the terms:',
        hidden=True,
    )
    kind = setup.facts.effort_kind
    yield Entry(
        'effort_kind',
        kind,
        'What the published efforts are; auto: found out from the data, see docs/efforts.md.',
    )
    for name, rule in setup.rules.items():
        remedy = ' The data sheet may allow more.' if name == 'acceleration' else ''
        yield Entry(name, _rounded(getattr(setup.limits, name)), f'{rule}{remedy}')


def _excitation(setup: RobotSetup) -> Iterable[Entry]:
    settings = setup.excitation
    yield Entry(
        'controller',
        setup.facts.controller,
        "The robot's joint trajectory controller, by its name.",
    )
    for name in ('period', 'order', 'periods'):
        yield Entry(name, getattr(settings, name))
    yield Entry(
        'start',
        list(settings.start),
        'Free of collisions, with room to move: see that it is on your robot too.',
    )
    unlimited = [
        joint
        for joint, low, high in zip(
            setup.robot.joints, setup.limits.lower, setup.limits.upper, strict=True
        )
        if not (math.isfinite(low) and math.isfinite(high))
    ]
    if unlimited:
        text = f'How far {", ".join(unlimited)} may turn, which have no position limits.'
        yield Entry('amplitude', round(settings.amplitude, DIGITS), text)
    yield Entry('time_limit', settings.time_limit, 'Longest search for the motion.')
    yield Entry(
        'margins',
        {'effort': settings.margins.effort},
        'Share of the effort limits left to what the description does not know: friction, rotors.',
    )
    if setup.robot.prismatic.any():
        errors = setup.tracking_error
        yield Entry('tracking_error', _rounded(errors), 'Farthest from the reference.')
        yield Entry('goal_tolerance', _rounded(0.5 * errors))
        yield Entry('position_tolerance', _rounded(0.2 * errors))
    if setup.unchecked:
        reasons = '; '.join(setup.unchecked.values())
        text = f'Not checked: {reasons}. A real robot moves only after you have accepted that:'
        yield Entry('accept_unchecked', list(setup.unchecked), text, hidden=True)
    yield Entry('workspace', tuple(_workspace(setup)))


def _workspace(setup: RobotSetup) -> Iterable[Entry]:
    settings = setup.excitation.workspace
    yield Entry('frame', settings.frame, 'The tool.')
    yield Entry('ground', settings.ground, 'Height of the table or the floor in the root frame.')
    yield Entry('self_collision', settings.self_collision)
    yield Entry('distance', settings.distance, 'Smallest distance between bodies.')
    if settings.ignored_pairs:
        text = 'Shapes that overlap in many poses: see that these links cannot touch.'
        yield Entry('ignored_pairs', list(settings.ignored_pairs), text)


def _simulation(setup: RobotSetup) -> Iterable[Entry]:
    drives, facts = setup.drives, setup.facts
    yield Entry('controller', facts.controller)
    if facts.command_interface != SimulationSettings.command_interface:
        yield Entry('command_interface', facts.command_interface)
    yield Entry('update_rate', facts.update_rate)
    if facts.update_rate < SimulationSettings.state_rate:
        yield Entry('state_rate', facts.update_rate)
    yield Entry('initial_positions', list(setup.excitation.start))
    guessed = {
        joint: {'p': p, 'd': d}
        for joint, p, d in zip(
            setup.robot.joints, _rounded(drives.p), _rounded(drives.d), strict=True
        )
    }
    gains = {joint: dict(facts.gains.get(joint, own)) for joint, own in guessed.items()}
    if facts.command_interface == 'effort' or facts.gains:
        yield Entry('gains', tuple(Entry(*item) for item in gains.items()))
    yield Entry('inertial_error', INERTIAL_ERROR, "How far its links are from the description's.")
    for name in ('rotor_inertia', 'viscous', 'coulomb', 'offset'):
        yield Entry(name, _rounded(getattr(drives, name)))
    scale = np.where(setup.robot.prismatic, PRISMATIC_NOISE, 1.0)
    noise = {
        'position': POSITION_NOISE * scale,
        'velocity': VELOCITY_NOISE * scale,
        'effort': drives.noise,
    }
    shown = {name: _rounded(values) for name, values in noise.items()}
    short = {name: [*dict.fromkeys(x)] if len({*x}) == 1 else x for name, x in shown.items()}
    yield Entry('noise', tuple(Entry(*item) for item in short.items()))


def _rounded(values: Iterable[float]) -> list[float]:
    return [float(f'{value:.{DIGITS}g}') for value in values]
