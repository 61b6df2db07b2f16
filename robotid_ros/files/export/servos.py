"""Servos that were identified from commands: a model of a robot with them, draws, and files."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from ...core.findings import as_data, Finding, in_order
from ...core.model import build_robot, Robot, RobotSettings
from ...core.parameters.plain_friction import plain_friction
from ...core.replay.commanded import Commanded
from ...exceptions import FileError
from ..atomic import read_text, write_text
from ..bounded import damage_errors
from ..identification_input import AnyRecording
from ..provenance import hash_of_recording, versions
from ..results import DESCRIPTION, MODEL, PARAMETERS, Results, results_folder, SERVO_FORMAT
from ..robot_description import read_description
from ..yaml import dump_yaml, parse_yaml, to_plain
from .identified_model import (
    identified_urdf,
    IdentifiedModel,
    read_identified_model,
    Servo,
    ServoEstimate,
)
from .simulators import mjcf

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
        if (column := columns.get((joint, STANDARD.get(symbol, '')))) is not None:
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
    notes = ['identified from commands and positions: torques scale with the masses']
    if ('delay', '') in known:
        notes.append(
            f'commands act {known["delay", ""]:.4g} s late, which is not in this file: hold them '
            'back'
        )
    if motors := ', '.join(joint for joint in robot.joints if joint not in servos):
        notes.append(f'stiffness or damping of {motors} is not determined: these are motors')
    if any(symbol in ('Fst', 'Fl') and value for (symbol, _), value in known.items()):
        notes.append('plain friction stands for stribeck and load_coulomb, see parameters.yaml')
    return IdentifiedModel(results, robot, chi, servos, tuple(notes), estimate)


def possible_servos(model: IdentifiedModel, count: int) -> Iterator[IdentifiedModel]:
    """Yield the identified servos, and normal draws of what is determined, none below zero."""
    found, rng = model.estimate, np.random.default_rng(0)
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


def save_servos(
    found: Commanded,
    recordings: Sequence[AnyRecording],
    folder: str | Path,
    notes: Sequence[Finding] = (),
    command: str = '',
) -> dict[str, Any]:
    """Write `parameters.yaml`, which is returned, `identified.xml` and the description."""
    robot = found.robot
    data = {
        'format': SERVO_FORMAT,
        'robot': robot.name,
        'method': 'commands',
        'created': datetime.now(timezone.utc).isoformat(timespec='seconds'),
        'joints': list(robot.joints),
        'locked': dict(robot.locked),
        'data': [
            {'source': r.source, 'duration': r.duration, 'sha256': hash_of_recording(r.source)}
            for r in recordings
        ],
        'command': command,
        'parameters': [to_plain(parameter) for parameter in found.parameters],
        'residual': dict(zip(robot.joints, found.residual.tolist(), strict=True)),
        'tracking_error': dict(zip(robot.joints, found.tracking.tolist(), strict=True)),
        'windows': found.windows,
        'free': {'names': list(found.names), 'values': found.estimate.tolist()},
        'covariance': found.covariance.tolist(),
        'findings': [to_plain(as_data(note)) for note in in_order((*found.findings, *notes))],
        'versions': versions(),
    }
    known = {(p.symbol, p.joint): p.value for p in found.parameters if p.value is not None}
    write_text(Path(folder) / MODEL, mjcf(servo_model(robot, known))[0])
    write_text(Path(folder) / DESCRIPTION, robot.urdf)
    write_text(Path(folder) / PARAMETERS, dump_yaml(data))
    return data


def read_model(path: str | Path) -> IdentifiedModel:
    """Read what any method wrote, as `read_identified_model`; FileError: servos are damaged."""
    folder = results_folder(path)
    file = folder / PARAMETERS
    content = parse_yaml(read_text(file), str(file)) if file.exists() else None
    if not isinstance(content, Mapping) or content.get('format') != SERVO_FORMAT:
        return read_identified_model(path)
    with damage_errors(file, 'identify again', FileError):
        parts = [f'{name} '.split(' ') for name in content['free']['names']]
        names = tuple((symbol, joint) for symbol, joint, *_ in parts)
        value = np.array(content['free']['values'], dtype=float)
        covariance = np.array(content['covariance'], dtype=float).reshape(len(names), len(value))
        settings = RobotSettings(joints=tuple(content['joints']), locked=content['locked'])
        robot = build_robot(read_description(folder / DESCRIPTION), settings)
        known = {
            (p['symbol'], p['joint']): float(p['value'])
            for p in content['parameters']
            if p['value'] is not None
        }
        estimate = ServoEstimate(names, value, covariance, frozenset(known))
        return servo_model(robot, known, estimate)
