"""
The file of a payload: what was identified, what was set, or what hangs at a sensor.

A body is `CENTRAL`, (10,): mass, centre of mass, and inertia at it in the axes of the frame.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
import math
from pathlib import Path
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.findings import as_data, Finding, MISREAD
from ...core.payload.force_torque import SensorModel
from ...core.payload.payload import obstacle, Payload, SIGNIFICANT
from ...exceptions import FileError, RecordingError
from ..atomic import read_text, write_text
from ..bounded import damage_errors
from ..provenance import versions
from ..yaml import dump_yaml, parse_yaml
from .makers import maker_lines

FORMAT = 1
AXES = ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')


def determined(payload: Payload) -> Array:
    """Return mass, centre and inertia (10,), NaN where the data do not determine it."""
    return np.where(np.isfinite(payload.central_sigma), payload.central, np.nan)


def write_payload(
    path: str | Path,
    payload: Payload,
    facts: Mapping[str, Any],
    findings: Sequence[Finding],
    *,
    overwrite: bool = True,
) -> Path:
    """Write a payload; null where the data leave it open."""
    sigma, body = payload.sigma, determined(payload)
    values = np.where(np.isfinite(sigma), payload.value, np.nan).tolist()
    known = (None if math.isnan(value) else value for value in values)
    columns = payload.names, known, sigma.tolist(), payload.units
    content = {
        'format': FORMAT,
        'created': datetime.now(timezone.utc).isoformat(timespec='seconds'),
        **facts,
        'frame': payload.frame,
        **_central(body),
        'sigma': _central(payload.central_sigma, unknown=np.inf),
        'possible': payload.consistent,
        'parameters': {
            name: {'value': value, 'sigma': sigma, 'unit': unit}
            for name, value, sigma, unit in zip(*columns, strict=True)
        },
        'lines': {} if obstacle(payload, findings) else maker_lines(body),
        'findings': [as_data(found) for found in findings],
        'versions': versions(),
    }
    return write_text(path, dump_yaml(content), overwrite=overwrite)


def write_body(path: Path, frame: str, body: Array | None, facts: Mapping[str, Any]) -> Path:
    """Write a body (10,) that is set somewhere, None: unknown, likewise, under a new name."""
    values = _central(np.full(10, np.nan) if body is None else body)
    content = {'format': FORMAT, 'frame': frame, **values, **facts}
    return write_text(path, dump_yaml(content), overwrite=False)


def read_body(path: str | Path) -> tuple[str, Array, Mapping[str, Any]]:
    """
    Read frame, body (10,) and all of a payload file; RecordingError: no mass.

    An inertia that is known in part is none, as nobody can set that. Where nothing was carried,
    all is 0.
    """
    content = parse_yaml(read_text(path), str(path))
    what = 'is no file of a payload'
    with damage_errors(path, 'give one of robotid payload', FileError, what):
        inertia = content['inertia_at_centre']
        values = [content['mass'], *content['centre_of_mass'], *(inertia[axes] for axes in AXES)]
        body = np.array([np.nan if value is None else float(value) for value in values])
        if content['format'] != FORMAT or body.shape != (10,):
            raise ValueError('another format')
        sigma, frame = float(content.get('sigma', {'mass': 0.0})['mass']), str(content['frame'])
        doubts = {*MISREAD} & {each['name'] for each in content.get('findings', ())}
    if doubts or body[0] < SIGNIFICANT * sigma:
        why = 'does not stand out of its σ'
        why = 'comes from recordings that are read wrongly' if doubts else why
        raise RecordingError(f"the mass in '{path}' {why}: identify the payload again")
    if not np.isfinite(body).all():
        body[4:] = np.nan
    return frame, body, content


def read_sensor(path: str | Path) -> tuple[str, SensorModel]:
    """Read frame and `sensor` that `write_payload` wrote; FileError: missing, or none."""
    content = parse_yaml(read_text(path), str(path))
    with damage_errors(path, 'identify it', FileError, 'is no file of a force-torque sensor'):
        sensor = content['sensor']
        value, offset, gravity = (np.array(sensor[k], float) for k in SensorModel._fields[:3])
        known = np.isfinite(np.concatenate([value, offset, gravity])).all()
        if (len(value), len(offset), len(gravity), known) != (10, 6, 3, True):
            raise ValueError('other numbers')
        model = SensorModel(value, offset, gravity, float(sensor['sign']))
        return str(content['frame']), model


def _central(values: Array, unknown: float | None = None) -> dict[str, Any]:
    """Name mass, centre of mass and inertia at it, (10,)."""
    mass, x, y, z, *inertia = (v if np.isfinite(v) else unknown for v in values.tolist())
    return {
        'mass': mass,
        'centre_of_mass': [x, y, z],
        'inertia_at_centre': dict(zip(AXES, inertia, strict=True)),
    }
