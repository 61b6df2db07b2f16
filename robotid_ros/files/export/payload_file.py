"""An identified payload as a YAML file, with what else takes it: a URDF link, makers' lines."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.payload.payload import Payload
from ..atomic import write_text
from ..provenance import versions
from ..yaml import dump_yaml
from .link_bodies import MOMENTS
from .payload_lines import maker_lines

FORMAT = 1
AXES = ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')


def write_payload(
    path: str | Path,
    payload: Payload,
    facts: Mapping[str, Any],
    warnings: Sequence[str],
    link: str = '',
    *,
    overwrite: bool = True,
) -> Path:
    """
    Write a payload; what the data do not determine is null, its σ infinite.

    Parameters
    ----------
    path : of the file
    payload : what was found
    facts : robot, recordings: plain values
    warnings : in words
    link : whose frame that of the payload is; '': it has its name
    overwrite : False refuses to replace an existing file

    Raises
    ------
    FileError : it cannot be written

    """
    columns = (payload.names, payload.value, payload.sigma, payload.units)
    parameters = {
        name: {'value': _known(value, sigma), 'sigma': float(sigma), 'unit': unit}
        for name, value, sigma, unit in zip(*columns, strict=True)
    }
    sigma = payload.central_sigma
    values = [_known(*each) for each in zip(payload.central, sigma, strict=True)]
    content = {
        'format': FORMAT,
        'created': datetime.now(timezone.utc).isoformat(timespec='seconds'),
        **facts,
        'frame': payload.frame,
        **_central(values),
        'sigma': _central(sigma.tolist()),
        'possible': payload.consistent,
        'parameters': parameters,
        'lines': maker_lines(payload),
        'urdf': payload_urdf(payload, link or payload.frame),
        'warnings': list(warnings),
        'versions': versions(),
    }
    return write_text(path, dump_yaml(content))


def payload_urdf(payload: Payload, link: str) -> str | None:
    """Return a link and the joint that fixes it to `link`; None where it has no inertia."""
    if not np.isfinite(payload.central_sigma).all():
        return None
    moments = ' '.join(
        f'{name}="{float(x)!r}"' for name, x in zip(MOMENTS, payload.central[4:], strict=True)
    )
    xyz = ' '.join(repr(float(x)) for x in payload.centre_of_mass)
    return (
        '<link name="payload">\n'
        '  <inertial>\n'
        f'    <origin xyz="{xyz}" rpy="0 0 0"/>\n'
        f'    <mass value="{payload.mass!r}"/>\n'
        f'    <inertia {moments}/>\n'
        '  </inertial>\n'
        '</link>\n'
        '<joint name="payload_joint" type="fixed">\n'
        f'  <parent link="{link}"/>\n'
        '  <child link="payload"/>\n'
        '</joint>\n'
    )


def _known(value: float, sigma: float) -> float | None:
    return float(value) if np.isfinite(sigma) else None


def _central(values: Sequence[float | None] | Array) -> dict[str, Any]:
    """Name mass, centre of mass and inertia at it, (10,)."""
    return {
        'mass': values[0],
        'centre_of_mass': list(values[1:4]),
        'inertia_at_centre': dict(zip(AXES, values[4:], strict=True)),
    }
