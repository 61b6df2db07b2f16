"""The model that an identification leaves: its robot and parameters, read from its files."""

from collections.abc import Mapping
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...core.model import build_robot, Robot
from ...core.model.friction import FrictionTerm
from ...core.model.robot import ElasticRobot
from ...core.parameters.plain_friction import plain_friction, PlainFriction
from ..configuration import from_mapping
from ..results import Results, URDF
from ..results_file import read_results, results_folder
from ..robot_description import read_description


@dataclass(frozen=True)
class Servo:
    """A position actuator in SI, its limit infinite where none shows."""

    stiffness: float
    damping: float
    bias: float
    limit: float


@dataclass(frozen=True)
class IdentifiedModel:
    """
    What was found, the robot with its identified description, and χ (p,) of it.

    Joints with `servos` follow positions; their `notes` stand for those on what a format loses.
    """

    results: Results
    robot: Robot
    chi: np.ndarray
    servos: Mapping[str, Servo] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def plain_friction(self) -> Mapping[str, PlainFriction]:
        """What stands for the friction of each joint and coupling; the results hold it."""
        robot, known = self.robot, self.results.plain_friction
        names = {joint for joint in robot.links if joint in robot.joints}
        names |= {coupling.name for coupling in robot.couplings}
        return known if known.keys() == names else plain_friction(robot, self.chi)


def read_identified_model(path: str | Path) -> IdentifiedModel:
    """
    Read what an identification has written: parameters.yaml with identified.urdf beside it.

    `path` is that file or the folder; RobotIdError: one is missing or cannot be read.
    """
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
    rigid = robot.rigid if isinstance(robot, ElasticRobot) else robot
    motors = robot.motors if isinstance(robot, ElasticRobot) else range(robot.n)
    terms = {joint: robot.friction[m] for joint, m in zip(rigid.joints, motors, strict=True)}
    constants = {joint: _constants(each) for joint, each in terms.items()}
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
    if isinstance(robot, ElasticRobot):
        elastic = [rigid.joints[j] for j in robot.elastic_joints]
        sides = {joint: robot.friction[robot.joints.index(joint)] for joint in elastic}
        for joint, each in sides.items():
            constants[joint] |= _constants(each)
        values['elastic'] = {
            'joints': elastic,
            'motors': list(robot.joints[rigid.n :]),
            'link_friction': {joint: [t.name for t in each] for joint, each in sides.items()},
        }
    return values


def _constants(terms: tuple[FrictionTerm, ...]) -> dict[str, float]:
    return {name: value for term in terms for name, value in term.constants.items()}
