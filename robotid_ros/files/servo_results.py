"""Files of an identification from commands: parameters.yaml, a MuJoCo model, the description."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from ..core.finding_codes import as_data
from ..core.findings import Finding, in_order
from ..core.model import build_robot, RobotSettings
from ..core.replay.commanded import Commanded
from ..exceptions import FileError
from .atomic import read_text, write_text
from .export.identified_model import IdentifiedModel, ServoEstimate
from .export.mjcf import mjcf
from .export.ranges import servo_model
from .identification_input import AnyRecording
from .provenance import hash_of_recording, versions
from .results_file import DESCRIPTION, MODEL, PARAMETERS, results_folder, SERVO_FORMAT
from .robot_description import read_description
from .yaml import dump_yaml, parse_yaml, to_plain


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
        'simulations': found.simulations,
        'free': {'names': list(found.names), 'values': found.estimate.tolist()},
        'covariance': found.covariance.tolist(),
        'findings': [to_plain(as_data(note)) for note in in_order((*found.findings, *notes))],
        'versions': versions(),
    }
    known = {(p.symbol, p.joint): p.value for p in found.parameters if p.value is not None}
    model = servo_model(robot, known)
    write_text(Path(folder) / MODEL, mjcf(model)[0])
    write_text(Path(folder) / DESCRIPTION, robot.urdf)
    write_text(Path(folder) / PARAMETERS, dump_yaml(data))
    return data


def read_servos(path: str | Path) -> IdentifiedModel | None:
    """
    Read what `--method commands` wrote; None where results are of another method.

    Raises FileError where a file is missing or damaged.
    """
    folder = results_folder(path)
    file = folder / PARAMETERS
    content = parse_yaml(read_text(file), str(file)) if file.exists() else None
    if not isinstance(content, Mapping) or content.get('format') != SERVO_FORMAT:
        return None
    try:
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
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"results in '{folder}' are damaged ({error}): identify again") from error
