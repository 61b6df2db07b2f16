"""Files of an identification from commands: parameters.yaml, and a MuJoCo model with servos."""

from collections.abc import Mapping, Sequence
import dataclasses
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from ..core.finding_codes import as_data
from ..core.findings import Finding, in_order
from ..core.parameters.plain_friction import plain_friction
from ..core.replay.commanded import Commanded
from .atomic import write_text
from .export.identified_model import IdentifiedModel
from .export.mjcf import mjcf
from .identification_input import AnyRecording
from .provenance import hash_of_recording, versions
from .results import Results
from .results_file import PARAMETERS, SERVO_FORMAT
from .yaml import dump_yaml, to_plain

MODEL = 'identified.xml'
SERVO_FILES = (PARAMETERS, MODEL)
# Standard parameters that stand for those of a servo.
_SYMBOLS = {'armature': 'Ia', 'Fc': 'Fc', 'Fst': 'Fst', 'Fl': 'Fl'}


@dataclasses.dataclass(frozen=True)
class Servo:
    """A position actuator in SI, its limit infinite where none shows."""

    stiffness: float
    damping: float
    bias: float
    limit: float


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
    Write `parameters.yaml` and `identified.xml`; return what the former holds.

    Raises FileError where the folder cannot be written.
    """
    data = servo_data(found, recordings, notes, command)
    write_text(Path(folder) / MODEL, servo_model(found))
    write_text(Path(folder) / PARAMETERS, dump_yaml(data))
    return data


def servo_model(found: Commanded) -> str:
    """Return the robot as MJCF: joints with armature and dry friction, servos as actuators."""
    robot, chi = found.robot, np.zeros(found.robot.p)
    links, scale = robot.body_columns.ravel(), found.value('bodies')
    chi[links] = robot.prior[links] * (1.0 if scale is None else scale)
    columns = {(p.joint, p.symbol): k for k, p in enumerate(robot.parameters)}
    for parameter in found.parameters:
        column = columns.get((parameter.joint, _SYMBOLS.get(parameter.symbol, '')))
        if column is not None and parameter.value is not None:
            chi[column] = parameter.value
    results = Results(
        robot.name, 'commands', '', robot.joints, (), (), (),
        plain_friction=plain_friction(robot, chi),
    )  # fmt: skip
    return mjcf(
        IdentifiedModel(results, robot, chi), servos=servos_of(found), notes=_notes(found)
    )[0]


def servos_of(found: Commanded) -> Mapping[str, Servo]:
    """Return the servos of the joints whose stiffness and damping are determined."""
    servos = {}
    for joint in found.robot.joints:
        stiffness, damping = (found.value(symbol, joint) for symbol in ('stiffness', 'damping'))
        if stiffness is not None and damping is not None:
            limit = found.value('limit', joint)
            limit = np.inf if limit is None else limit
            servos[joint] = Servo(stiffness, damping, found.value('bias', joint) or 0.0, limit)
    return servos


def _notes(found: Commanded) -> list[str]:
    notes = ['identified from commands and positions: torques are in proportion to the bodies']
    delay = found.value('delay')
    if delay is not None:
        notes.append(f'commands act {delay:.4g} s late, which is not in this file: hold them back')
    servos = servos_of(found)
    if open_joints := [joint for joint in found.robot.joints if joint not in servos]:
        notes.append(
            f'stiffness or damping of {", ".join(open_joints)} is not determined: these are motors'
        )
    shaped = [p for p in found.parameters if p.symbol in ('Fst', 'Fl') and p.value]
    if shaped:
        notes.append('plain friction stands for stribeck and load_coulomb, see parameters.yaml')
    if any(p.symbol == 'bodies' and p.joint for p in found.parameters):
        notes.append(
            'the bodies are those of the description; see parameters.yaml for their scales'
        )
    return notes
