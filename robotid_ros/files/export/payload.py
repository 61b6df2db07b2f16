"""Payloads: what one is identified from, and its YAML file, URDF link and lines of makers."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from string import digits
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.excitation.collision_scene import body_frame, BodyFrame
from ...core.finding_codes import as_data
from ...core.findings import Finding
from ...core.identification_settings import IdentificationSettings
from ...core.model import Robot
from ...core.model.friction import SHRUNK
from ...core.payload import KnownArm
from ...core.payload.force_torque import SensorModel
from ...core.payload.payload import Payload, SIGNIFICANT
from ...exceptions import FileError, RecordingError
from ...plant.urdf_reading import MOMENTS
from ..atomic import read_text, write_text
from ..configuration import Configuration
from ..formats.read_options import DEFAULTS, ReadOptions
from ..identification_input import AnyRecording, open_input, split
from ..provenance import versions
from ..results import PARAMETERS, read_results, results_folder, URDF
from ..yaml import dump_yaml, parse_yaml
from .bodies import render_description
from .makers import determined, maker_lines

FORMAT = 1
AXES = ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')


def write_payload(
    path: str | Path,
    payload: Payload,
    facts: Mapping[str, Any],
    findings: Iterable[Finding],
    link: str = '',
    *,
    overwrite: bool = True,
) -> Path:
    """
    Write a payload; what the data do not determine is null, its σ infinite.

    Facts are plain values: robot, recordings. `link` is the one whose frame that of the payload
    is; '': it has its name. FileError: the file cannot be written.
    """
    columns = (payload.names, payload.value, payload.sigma, payload.units)
    body = determined(payload)
    content = {
        'format': FORMAT,
        'created': datetime.now(timezone.utc).isoformat(timespec='seconds'),
        **facts,
        'frame': payload.frame,
        **_central(body),
        'sigma': _central(payload.central_sigma, unknown=np.inf),
        'possible': payload.consistent,
        'parameters': {
            name: {
                'value': float(value) if np.isfinite(sigma) else None,
                'sigma': float(sigma),
                'unit': unit,
            }
            for name, value, sigma, unit in zip(*columns, strict=True)
        },
        'lines': maker_lines(body),
        'urdf': payload_urdf(payload, link or payload.frame),
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
    Read frame and body (10,) of a payload file, NaN where they are unknown, and all it holds.

    FileError: it is missing, or no such file; RecordingError: the mass does not stand out of its
    σ.
    """
    content = parse_yaml(read_text(path), str(path))
    try:
        inertia = content['inertia_at_centre']
        values = [content['mass'], *content['centre_of_mass'], *(inertia[axes] for axes in AXES)]
        body = np.array([np.nan if value is None else float(value) for value in values])
        if content['format'] != FORMAT or body.shape != (10,):
            raise ValueError('another format')
        sigma, frame = float(content.get('sigma', {'mass': 0.0})['mass']), str(content['frame'])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"'{path}' is no file of a payload: give one of robotid payload"
        ) from error
    if body[0] <= SIGNIFICANT * sigma:
        raise RecordingError(
            f"the mass in '{path}' does not stand out of its σ: identify the payload again"
        )
    return frame, body, content


def read_sensor(path: str | Path) -> SensorModel:
    """Read the `sensor` that `write_payload` wrote; FileError: missing, or no such file."""
    content = parse_yaml(read_text(path), str(path))
    try:
        sensor = content['sensor']
        value, offset, gravity = (np.array(sensor[k], float) for k in SensorModel._fields[:3])
        known = np.isfinite(np.concatenate([value, offset, gravity])).all()
        if (len(value), len(offset), len(gravity), known) != (10, 6, 3, True):
            raise ValueError('other numbers')
        return SensorModel(value, offset, gravity, float(sensor['sign']))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileError(f"'{path}' is no file of a force-torque sensor: identify it") from error


def payload_urdf(payload: Payload, link: str) -> str | None:
    """Return a link and the joint that fixes it to `link`; None where it has no inertia."""
    if not np.isfinite(payload.central_sigma).all():
        return None
    inertia = dict(zip(MOMENTS, payload.central[4:], strict=True))
    values = {'link': link, 'mass': payload.mass, 'centre': payload.centre_of_mass}
    return render_description('payload.xml', {**values, 'inertia': inertia})


def _central(values: Array, unknown: float | None = None) -> dict[str, Any]:
    """Name mass, centre of mass and inertia at it, (10,)."""
    mass, x, y, z, *inertia = (v if np.isfinite(v) else unknown for v in values.tolist())
    return {
        'mass': mass,
        'centre_of_mass': [x, y, z],
        'inertia_at_centre': dict(zip(AXES, inertia, strict=True)),
    }


TOOL = 'tool0'


class PayloadInput(NamedTuple):
    """The model and how it is identified, the arm without and with a payload, and its frame."""

    robot: Robot
    settings: IdentificationSettings
    empty: AnyRecording | KnownArm
    loaded: AnyRecording
    frame: BodyFrame


def open_payload(
    empty: str,
    loaded: str,
    frame: str = '',
    config: str | Configuration | None = None,
    progress: Callable[[float], None] | None = None,
    urdf: str | None = None,
    options: ReadOptions = DEFAULTS,
    fallback: str = '',
) -> PayloadInput:
    """
    Read what a payload is identified from.

    Parameters
    ----------
    empty : recording without the payload, or the results of an identification: their folder or
        `parameters.yaml`
    loaded : recording with it
    frame : of the description; '': that of the configuration's workspace, else `tool0`, else of
        the last joint
    config, urdf, options, fallback, progress : of `open_input`, and what it raises

    """
    reference: AnyRecording | KnownArm
    results = read_results(empty) if is_results(empty) else None
    settings: str | Configuration | Mapping[str, Any] | None = config
    if results is not None:
        # With the friction that was chosen, and the joints that moved.
        settings, options = config or results.settings, replace(options, joints=results.joints)
        identified = results_folder(empty) / URDF
        fallback = identified.read_text() if identified.exists() else fallback
    session = open_input(
        [empty if results is None else loaded], settings, urdf,
        options=options, fallback=fallback, progress=progress,
    )  # fmt: skip
    if results is None:
        reference, recording = split(session.recording)[0], session.read(loaded, progress)
    else:
        # Without base parameters that are shrunk: a payload is found without. Files keep no more
        # of their covariance than σ.
        plain = [entry for entry in results.base if entry.name.rstrip(digits) not in SHRUNK]
        value, sigma = np.array([(entry.value, entry.sigma) for entry in plain]).T
        names, covariance = tuple(entry.name for entry in plain), np.diag(sigma**2)
        reference, recording = KnownArm(names, value, covariance, covariance), session.recording
    robot, configuration = session.robot, session.configuration
    tool = TOOL if robot.model.existFrame(TOOL) else ''
    frame = frame or configuration.excitation.workspace.frame or tool
    part, carrier = split(recording)[0], body_frame(robot, frame)
    return PayloadInput(robot, configuration.identification, reference, part, carrier)


def is_results(path: str) -> bool:
    """Whether a path leads to the results of an identification."""
    return path.endswith('.yaml') or (Path(path) / PARAMETERS).exists()
