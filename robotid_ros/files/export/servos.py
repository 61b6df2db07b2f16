"""Servos that were identified from commands, as a model for the formats; and draws of them."""

from collections.abc import Iterator, Mapping
import dataclasses

import numpy as np

from ...core.model.robot import Robot
from ...core.parameters.plain_friction import plain_friction
from ..results import Results
from .identified_model import IdentifiedModel, Servo, ServoEstimate
from .identified_urdf import identified_urdf

# Standard parameters that stand for those of a servo.
STANDARD = {'armature': 'Ia', 'Fc': 'Fc', 'Fst': 'Fst', 'Fl': 'Fl'}
# Least stiffness, limit and scale of bodies in a draw, over the identified one.
LEAST = {'stiffness': 0.05, 'limit': 0.05, 'bodies': 0.05}


def servo_model(
    robot: Robot, known: Mapping[tuple[str, str], float], estimate: ServoEstimate | None = None
) -> IdentifiedModel:
    """Return a robot with servos, rotors, friction and bodies of known symbols and joints."""
    of_all = known.get(('bodies', ''), 1.0)
    scales = np.array([known.get(('bodies', joint), of_all) for joint in robot.joints])
    chi = np.zeros(robot.p)
    chi[robot.body_columns] = robot.prior[robot.body_columns] * scales[:, None]
    columns = {(p.joint, p.symbol): k for k, p in enumerate(robot.parameters)}
    for (symbol, joint), value in known.items():
        column = columns.get((joint, STANDARD.get(symbol, '')))
        if column is not None:
            chi[column] = value
    servos = {
        joint: Servo(
            known['stiffness', joint],
            known['damping', joint],
            known.get(('bias', joint), 0.0),
            known.get(('limit', joint), np.inf),
            known.get(('delay', ''), 0.0),
        )
        for joint in robot.joints
        if {('stiffness', joint), ('damping', joint)} <= known.keys()
    }
    friction = plain_friction(robot, chi)
    if any(symbol == 'bodies' for symbol, _ in known):
        robot = dataclasses.replace(robot, urdf=identified_urdf(robot, chi, friction))
    results = Results(
        robot.name, 'commands', '', robot.joints, (), (), (), plain_friction=friction
    )  # fmt: skip
    notes = tuple(_notes(robot, known, servos))
    return IdentifiedModel(results, robot, chi, servos, notes, estimate)


def _notes(
    robot: Robot, known: Mapping[tuple[str, str], float], servos: Mapping[str, Servo]
) -> Iterator[str]:
    yield 'identified from commands and positions: torques are in proportion to the bodies'
    if ('delay', '') in known:
        yield (
            f'commands act {known["delay", ""]:.4g} s late, which is not in this file: hold them '
            'back'
        )
    if open_joints := [joint for joint in robot.joints if joint not in servos]:
        names = ', '.join(open_joints)
        yield f'stiffness or damping of {names} is not determined: these are motors'
    if any(symbol in ('Fst', 'Fl') and value for (symbol, _), value in known.items()):
        yield 'plain friction stands for stribeck and load_coulomb, see parameters.yaml'


def possible_servos(
    model: IdentifiedModel, count: int, seed: int = 0
) -> Iterator[IdentifiedModel]:
    """
    Yield the identified servos, and draws of them: normal by the covariance, none below zero.

    What is not determined keeps its fitted value in all: its ratios may be known well.
    """
    found, rng = model.estimate, np.random.default_rng(seed)
    assert found is not None
    kept = np.array([name in found.determined for name in found.names], dtype=bool)
    covariance = found.covariance * np.outer(kept, kept)
    changes = rng.multivariate_normal(0.0 * found.value, covariance, count, method='eigh')
    floor = [
        -np.inf if symbol == 'bias' else LEAST.get(symbol, 0.0) * value
        for (symbol, _), value in zip(found.names, found.value, strict=True)
    ]
    for change in (0.0 * found.value, *changes):
        values = np.maximum(found.value + change, floor).tolist()
        yield servo_model(model.robot, dict(zip(found.names, values, strict=True)))
