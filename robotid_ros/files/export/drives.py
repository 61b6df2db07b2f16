"""What other programs can be told of the drives, and sentences on what they cannot."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...core.model.friction import LINK_SIDE_SUFFIX as SIDE
from ...core.model.robot import ElasticRobot, Robot
from ...exceptions import shortened

if TYPE_CHECKING:
    from .identified_model import IdentifiedModel

# Sums of symbols with a factor; of several the first whose symbols are all there.
Choices = tuple[tuple[tuple[str, ...], float], ...]
# What stands for damping and constant dry friction: the mean of both directions of motion, the
# friction at speed of stiction.
DAMPING: Choices = ((('Fv',), 1.0), (('Fvp', 'Fvm'), 0.5))
FRICTION: Choices = ((('Fc',), 1.0), (('Fcp', 'Fcm'), 0.5), (('Fs', 'Fsc'), 1.0))
ARMATURE: Choices = ((('Ia',), 1.0),)
# Parts of the model that a format may hold, besides terms of friction.
ROTORS, COUPLINGS, GRAVITY = 'rotors', 'couplings', 'gravity'


@dataclass(frozen=True)
class Drive:
    """
    A joint's drive as simulators have it, τ = I ddq + D dq + F sign(dq) + K q + offset.

    Attributes
    ----------
    inertia : of the rotor, on the joint's side [kg·m² or kg]
    damping, friction, stiffness, offset : SI, on the joint's side

    """

    inertia: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    offset: float = 0.0


def values_by_joint(robot: Robot, chi: np.ndarray) -> dict[str, dict[str, float]]:
    """Return the standard parameters of each joint and coupling by their symbols."""
    values: dict[str, dict[str, float]] = {}
    for parameter, value in zip(robot.parameters, chi, strict=True):
        values.setdefault(parameter.joint, {})[parameter.symbol] = float(value)
    return values


def choose(choices: Choices, values: Mapping[str, float]) -> tuple[float, tuple[str, ...]] | None:
    """Return the first sum whose symbols were identified, at least 0, and these symbols."""
    for symbols, factor in choices:
        if all(symbol in values for symbol in symbols):
            return max(factor * sum(values[symbol] for symbol in symbols), 0.0), symbols
    return None


def drives_of(robot: Robot, chi: np.ndarray) -> dict[str, Drive]:
    """
    Return the drives of the identified joints, of the couplings, and of joints that mimic.

    What drags at a joint that mimics an identified one is part of that one's friction.
    """
    found = {name: _drive(values) for name, values in values_by_joint(robot, chi).items()}
    return found | {follower.name: Drive() for follower in robot.followers}


def _drive(values: Mapping[str, float]) -> Drive:
    """Return a drive by its parameters."""
    link_side = {k.removesuffix(SIDE): v for k, v in values.items() if k.endswith(SIDE)}
    damping, friction = (
        sum(found[0] for found in (choose(choices, values), choose(choices, link_side)) if found)
        for choices in (DAMPING, FRICTION)
    )
    return Drive(
        max(values.get('Ia', 0.0), 0.0),
        damping,
        friction,
        max(values.get('Kq', 0.0), 0.0),
        values.get('off', 0.0),
    )


def explain_losses(model: 'IdentifiedModel', kept: Set[str]) -> list[str]:
    """
    Say in sentences what of a model has no place in a format.

    Parameters
    ----------
    model : what was identified
    kept : terms of friction that the format holds as they are, and of ROTORS, COUPLINGS, GRAVITY

    """
    robot = model.robot
    found = [*_inertia_losses(robot, kept), *_friction_losses(robot, kept)]
    if GRAVITY not in kept and not np.allclose(robot.gravity, (0.0, 0.0, -9.81)):
        found.append(f'gravity was {robot.gravity.tolist()} m/s² in the base frame: set it there')
    if not robot.gravity.any():
        found.append('the efforts contained no gravity: predicted ones contain none either')
    count = len(model.results.base)
    found.append(
        f'masses and inertias are one choice of many with the same efforts: {count} combinations '
        f'of {robot.p} parameters were identified, see parameters.yaml'
    )
    return found


def _inertia_losses(robot: Robot, kept: Set[str]) -> list[str]:
    found = []
    if isinstance(robot, ElasticRobot):
        joints = shortened([robot.joints[j] for j in robot.elastic_joints])
        found.append(f'springs between motor and link of {joints} are left out: they are rigid')
    if robot.rotor_inertia and ROTORS not in kept:
        found.append(
            'rotor inertias (Ia in parameters.yaml) are left out: without them the robot '
            'accelerates more easily than it does'
        )
    if robot.couplings and COUPLINGS not in kept:
        names = shortened([coupling.name for coupling in robot.couplings])
        found.append(f'motors that drive several joints ({names}) are left out')
    return found


def _friction_losses(robot: Robot, kept: Set[str]) -> list[str]:
    joints: dict[str, list[str]] = {}
    for joint, terms in zip(robot.joints, robot.friction, strict=True):
        for term in terms:
            if term.name not in kept:
                joints.setdefault(term.name, []).append(joint)
    if not joints:
        return []
    text = '; '.join(
        term if len(names) == robot.n else f'{term} of {shortened(names)}'
        for term, names in joints.items()
    )
    if 'viscous' not in kept:
        return [f'friction and other torques of the joints are left out: {text}']
    return [f'of friction, damping and a constant dry part are written; left out: {text}']
