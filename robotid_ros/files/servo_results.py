"""Files of an identification from commands: parameters.yaml, and a MuJoCo model with servos."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from ..core.finding_codes import as_data
from ..core.findings import Finding, in_order
from ..core.model import Robot
from ..core.parameters.plain_friction import plain_friction
from ..core.replay.commanded import Commanded, ServoParameter
from .atomic import write_text
from .export.identified_model import IdentifiedModel, Servo
from .export.identified_urdf import identified_urdf
from .export.mjcf import mjcf
from .identification_input import AnyRecording
from .provenance import hash_of_recording, versions
from .results import Results
from .results_file import PARAMETERS, SERVO_FORMAT
from .yaml import dump_yaml, to_plain

MODEL, DESCRIPTION = 'identified.xml', 'description.urdf'
SERVO_FILES = (PARAMETERS, MODEL, DESCRIPTION)
# Standard parameters that stand for those of a servo.
_SYMBOLS = {'armature': 'Ia', 'Fc': 'Fc', 'Fst': 'Fst', 'Fl': 'Fl'}


def servo_data(
    found: Commanded, recordings: Sequence[AnyRecording], notes: Sequence[Finding], command: str
) -> dict[str, Any]:
    """Return what `parameters.yaml` holds, as plain values."""
    robot = found.robot
    return {
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
        'simulations': found.simulations,
        'free': {'names': list(found.names), 'values': found.estimate.tolist()},
        'covariance': found.covariance.tolist(),
        'findings': [to_plain(as_data(note)) for note in in_order((*found.findings, *notes))],
        'versions': versions(),
    }


def save_servos(
    found: Commanded,
    recordings: Sequence[AnyRecording],
    folder: str | Path,
    notes: Sequence[Finding] = (),
    command: str = '',
) -> dict[str, Any]:
    """
    Write `parameters.yaml`, `identified.xml` and the description; return what the first holds.

    Raises FileError where the folder cannot be written.
    """
    data = servo_data(found, recordings, notes, command)
    model = servo_model(found.robot, found.parameters)
    write_text(Path(folder) / MODEL, mjcf(model)[0])
    write_text(Path(folder) / DESCRIPTION, found.robot.urdf)
    write_text(Path(folder) / PARAMETERS, dump_yaml(data))
    return data


def servo_model(robot: Robot, parameters: Sequence[ServoParameter]) -> IdentifiedModel:
    """Return a robot with the servos, rotors, friction and bodies that were identified."""
    known = {(p.symbol, p.joint): p.value for p in parameters if p.value is not None}
    of_all = known.get(('bodies', ''), 1.0)
    scales = np.array([known.get(('bodies', joint), of_all) for joint in robot.joints])
    chi = np.zeros(robot.p)
    chi[robot.body_columns] = robot.prior[robot.body_columns] * scales[:, None]
    columns = {(p.joint, p.symbol): k for k, p in enumerate(robot.parameters)}
    for (symbol, joint), value in known.items():
        column = columns.get((joint, _SYMBOLS.get(symbol, '')))
        if column is not None:
            chi[column] = value
    servos = {
        joint: Servo(
            known['stiffness', joint],
            known['damping', joint],
            known.get(('bias', joint), 0.0),
            known.get(('limit', joint), np.inf),
        )
        for joint in robot.joints
        if {('stiffness', joint), ('damping', joint)} <= known.keys()
    }
    friction = plain_friction(robot, chi)
    if (scales != 1.0).any():
        robot = dataclasses.replace(robot, urdf=identified_urdf(robot, chi, friction))
    results = Results(
        robot.name, 'commands', '', robot.joints, (), (), (), plain_friction=friction
    )  # fmt: skip
    return IdentifiedModel(results, robot, chi, servos, tuple(_notes(robot, known, servos)))


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
