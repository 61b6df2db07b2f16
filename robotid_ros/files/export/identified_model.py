"""The model that an identification leaves, read from its files; and what others cannot be told."""

from collections.abc import Mapping, Set
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...core.model import build_robot, Robot
from ...core.parameters.plain_friction import plain_friction, PlainFriction
from ...exceptions import shortened
from ..configuration import from_mapping
from ..results import read_results, Results, results_folder, URDF
from ..robot_description import read_description


@dataclass(frozen=True)
class Servo:
    """A position actuator in SI, its limit infinite where none shows, and how late it acts [s]."""

    stiffness: float
    damping: float
    bias: float
    limit: float
    delay: float


@dataclass(frozen=True)
class ServoEstimate:
    """What commands and positions told of servos, of all that was free."""

    names: tuple[tuple[str, str], ...]  # (m,), symbol and joint, '' of all
    value: np.ndarray  # (m,)
    covariance: np.ndarray  # (m, m)
    determined: frozenset[tuple[str, str]]  # names of those that the log determines


@dataclass(frozen=True)
class IdentifiedModel:
    """
    What was found, the robot with its identified description, and χ (p,) of it.

    Joints with `servos` follow positions; their `notes` stand for those on what a format loses,
    and their `estimate` gives draws.
    """

    results: Results
    robot: Robot
    chi: np.ndarray
    servos: Mapping[str, Servo] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    estimate: ServoEstimate | None = None

    @property
    def plain_friction(self) -> Mapping[str, PlainFriction]:
        """What stands for the friction of each joint and coupling; the results hold it."""
        robot, known = self.robot, self.results.plain_friction
        names = {joint for joint in robot.links if joint in robot.joints}
        names |= {coupling.name for coupling in robot.couplings}
        return known if known.keys() == names else plain_friction(robot, self.chi)

    @property
    def for_simulation(self) -> 'IdentifiedModel':
        """The model with the plain friction that is for simulators."""
        plain = {name: each.simulated or each for name, each in self.plain_friction.items()}
        return dataclasses.replace(
            self, results=dataclasses.replace(self.results, plain_friction=plain)
        )


def read_identified_model(path: str | Path) -> IdentifiedModel:
    """Read parameters.yaml, or its folder, and identified.urdf beside it; or a RobotIdError."""
    results = read_results(path)
    values = dict(results.model)
    if not values:  # of results that do not hold their own
        values = {k: v for k, v in results.settings.get('robot', {}).items() if k != 'urdf'}
        # The motors of elastic joints come last, and are no joints of the description.
        elastic = (values.get('elastic') or {}).get('joints') or ()
        values['joints'] = list(results.joints[: len(results.joints) - len(elastic)])
    settings = from_mapping({'robot': {'name': results.robot, **values}}).robot
    robot = build_robot(read_description(results_folder(path) / URDF), settings)
    robot = robot.elastic or robot
    chi = np.zeros(robot.p)
    for entry in results.standard:
        chi[robot.column(entry.name)] = entry.value
    return IdentifiedModel(results, robot, chi)


def model_settings(robot: Robot) -> dict[str, Any]:
    """Return the keys of `robot` in a configuration with which its description is this model."""
    rigid, elastic = robot.rigid, [robot.joints[j] for j in robot.elastic_joints]
    terms = {joint: robot.friction[m] for joint, m in zip(rigid.joints, robot.motors, strict=True)}
    sides = {joint: robot.friction[robot.joints.index(joint)] for joint in elastic}
    constants = {
        joint: {k: v for term in (*own, *sides.get(joint, ())) for k, v in term.constants.items()}
        for joint, own in terms.items()
    }
    values: dict[str, Any] = {
        'joints': list(rigid.joints),
        'locked': dict(rigid.locked),
        'gravity': rigid.gravity.tolist(),
        'rotor_inertia': rigid.rotor_inertia,
        'effort_kind': rigid.effort_kind,
        'drive_gain': rigid.drive_gain.tolist(),
        'friction': {joint: [term.name for term in each] for joint, each in terms.items()},
        'friction_constants': constants,
        'couplings': {c.name: {'ratios': c.ratios.tolist()} for c in rigid.couplings},
    }
    for field in dataclasses.fields(rigid.limits):
        values[field.name] = getattr(rigid.limits, field.name).tolist()
    if elastic:
        values['elastic'] = {
            'joints': elastic,
            'motors': list(robot.joints[rigid.n :]),
            'link_friction': {joint: [t.name for t in each] for joint, each in sides.items()},
        }
    return values


# Parts of the model that a format may hold.
OFFSETS, SPRINGS = 'offsets', 'springs'
ROTORS, COUPLINGS, GRAVITY, SERVOS = 'rotors', 'couplings', 'gravity', 'servos'
EVERYTHING = frozenset({OFFSETS, SPRINGS, ROTORS, COUPLINGS, GRAVITY, SERVOS})


@dataclass(frozen=True)
class Drive:
    """A joint's drive in SI on its side, τ = I ddq + D dq + F sign(dq) + K q + offset."""

    inertia: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    offset: float = 0.0


COUPLED = 'rad', 'N·m'  # units of couplings, which turn


def values_by_joint(robot: Robot, chi: np.ndarray) -> dict[str, dict[str, float]]:
    """Return the standard parameters of each joint and coupling by their symbols."""
    values: dict[str, dict[str, float]] = {}
    for parameter, value in zip(robot.parameters, chi, strict=True):
        values.setdefault(parameter.joint, {})[parameter.symbol] = float(value)
    return values


def drives_of(model: IdentifiedModel) -> dict[str, Drive]:
    """Return the drives of joints and couplings; one that mimics is part of its leader's."""
    values = values_by_joint(model.robot, model.chi)
    found = {follower.name: Drive() for follower in model.robot.followers}
    for name, plain in model.plain_friction.items():
        inertia, stiffness = (max(values[name].get(key, 0.0), 0.0) for key in ('Ia', 'Kq'))
        found[name] = Drive(inertia, plain.viscous, plain.coulomb, stiffness, plain.offset)
    return found


# Speeds at which plain friction is compared with what it stands for, by whether they are known.
_SPEEDS = {
    True: 'at the recorded speeds',
    False: 'at all speeds up to the limit, as the recorded ones are not known',
}


def explain_losses(model: IdentifiedModel, kept: Set[str]) -> list[str]:
    """Say what has no place in a format that keeps plain friction and some of EVERYTHING."""
    robot, found = model.robot, [*model.notes]
    if elastic := [robot.joints[j] for j in robot.elastic_joints]:
        names = shortened(elastic)
        found.append(f'springs between motor and link of {names} are left out: they are rigid')
    if robot.rotor_inertia and ROTORS not in kept:
        found.append(
            'rotor inertias (Ia in parameters.yaml) are left out: without them the robot '
            'accelerates more easily than it does'
        )
    if robot.couplings and COUPLINGS not in kept:
        names = shortened([coupling.name for coupling in robot.couplings])
        found.append(f'motors that drive several joints ({names}) are left out')
    if model.notes:
        if model.servos and SERVOS not in kept:
            found.append('stiffness, damping, bias and limit of servos are left out')
        elif any(servo.bias for servo in model.servos.values()) and OFFSETS not in kept:
            found.append(
                'the bias of servos is left out: add it to the positions that are commanded'
            )
        return found
    offsets, differ = list[str](), dict[bool, list[str]]()
    for name, each in model.plain_friction.items():
        if name not in robot.joints and COUPLINGS not in kept:
            continue
        if each.offset and OFFSETS not in kept:
            offsets.append(f'{name} {each.offset:.4g} {robot.units.get(name, COUPLED)[1]}')
        if not each.exact:
            differ.setdefault(each.recorded, []).append(f'{name} {_size(robot, name, each)}')
    for recorded, rows in differ.items():
        found.append(
            'viscous and Coulomb friction and offset stand for other laws of friction; RMS '
            f'difference {_SPEEDS[recorded]}: {", ".join(rows)}'
        )
    if offsets:
        found.append(f'constant torques (offset) are left out: {", ".join(offsets)}')
    pairs = zip(robot.joints, robot.friction, strict=True)
    sprung = [joint for joint, own in pairs if any(term.name == 'spring' for term in own)]
    if sprung and SPRINGS not in kept:
        found.append(f'springs of the joints (spring) are left out: {shortened(sprung)}')
    if GRAVITY not in kept and not np.allclose(robot.gravity, (0.0, 0.0, -9.81)):
        found.append(f'gravity was {robot.gravity.tolist()} m/s² in the base frame: set it there')
    if not robot.gravity.any():
        found.append('the efforts contained no gravity: predicted ones contain none either')
    found.append(
        f'masses and inertias are one choice of many with the same efforts: '
        f'{len(model.results.base)} combinations of {robot.p} parameters were identified, see '
        'parameters.yaml'
    )
    return found


def friction_terms(robot: Robot, joint: int) -> list[str]:
    """Return the terms of the friction of a joint, on both sides of its spring."""
    if joint >= robot.n:  # one that mimics another
        return []
    rows = sorted({int(robot.motors[joint]), joint})
    return [t.name for row in rows for t in robot.friction[row] if not t.kind.spring]


def _size(robot: Robot, drive: str, plain: PlainFriction) -> str:
    return f'{100 * plain.relative:.2g} % ({plain.rms:.2g} {robot.units.get(drive, COUPLED)[1]})'
