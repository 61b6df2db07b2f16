"""Results of identifications that nobody made: parameters drawn around the description's."""

from pathlib import Path

import numpy as np

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.robot import INERTIAL
from robotid_ros.core.parameters.physical_consistency import link_coordinates, UPPER
from robotid_ros.files.atomic import write_text
from robotid_ros.files.configuration import from_mapping, read_mapping, read_urdf
from robotid_ros.files.export.identified_model import (
    identified_urdf,
    model_settings,
    read_identified_model,
)
from robotid_ros.files.results import Entry, Results, URDF, write_results

ROOT = Path(__file__).resolve().parents[2]


def drawn(robot, rng, spread=0.1):
    """Draw standard parameters: bodies that can exist, drives that weigh as much as these."""
    chi = np.array([rng.uniform(0.1, 1.0) for _ in robot.parameters])
    for start in robot.first_columns:
        root = np.eye(4) + spread * rng.normal(size=(4, 4))
        S = root @ root.T
        svec = [S[i, j] * (1.0 if i == j else np.sqrt(2.0)) for i, j in UPPER]
        chi[start : start + 10] = link_coordinates(robot.prior[start : start + 10]) @ svec
    return chi


def saved(folder, robot, chi, settings=None):
    """Write what an identification leaves; returns its folder."""
    entries = tuple(
        Entry(p.name, float(v), 0.1, 1.0, p.unit, p.joint, 'identifiable', prior=0.0)
        for p, v in zip(robot.parameters, chi, strict=True)
    )
    base = tuple(Entry(f'{e.name}R', e.value, 0.1, 1.0, column=e.name) for e in entries[5:8])
    named = {'robot': robot.name, 'method': 'wls', 'created': '2026-01-01', 'base': base}
    results = Results(
        **named,
        joints=robot.joints,
        standard=entries,
        identification=(),
        settings=settings or {},
        model=model_settings(robot),
    )
    write_results(results, folder)
    write_text(folder / URDF, identified_urdf(robot, chi))
    return folder


def of_configuration(folder, name, **changes):
    """Return the model of a robot of `config/`, read from its files."""
    values = read_mapping(ROOT / 'config' / f'{name}.yaml')
    values['robot'] = {**values['robot'], **changes}
    configuration = from_mapping(values, ROOT / 'config')
    robot = build_robot(read_urdf(configuration), configuration.robot)
    robot = robot.elastic or robot
    chi = drawn(robot, np.random.default_rng(3))
    return read_identified_model(saved(folder, robot, chi, values))


def of_description(folder, text, **settings):
    """Return the model of a URDF, read from its files."""
    robot = build_robot(text, RobotSettings(**settings))
    return read_identified_model(saved(folder, robot, drawn(robot, np.random.default_rng(4))))


def without(robot, chi, *symbols):
    """Return parameters without friction, or with these symbols kept besides the bodies."""
    kept = (*INERTIAL, *symbols)
    return np.where([p.symbol in kept for p in robot.parameters], chi, 0.0)
