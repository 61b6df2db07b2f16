"""An identified payload as a YAML file."""

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from ...core.payload.payload import Payload
from ..atomic import write_text
from ..provenance import versions
from ..yaml import dump_yaml

FORMAT = 1
AXES = ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')


def write_payload(
    path: str | Path, payload: Payload, facts: Mapping[str, Any], warnings: tuple[str, ...]
) -> Path:
    """
    Write a payload.

    Parameters
    ----------
    path : of the file; one of this name is replaced
    payload : what was found
    facts : robot, frame, recordings: plain values
    warnings : in words

    Raises
    ------
    FileError : it cannot be written

    """
    columns = (payload.names, payload.value, payload.sigma, payload.units)
    parameters = {
        name: {'value': float(value), 'sigma': float(sigma), 'unit': unit}
        for name, value, sigma, unit in zip(*columns, strict=True)
    }
    moments = payload.inertia[np.triu_indices(3)]
    content = {
        'format': FORMAT,
        'created': datetime.now(timezone.utc).isoformat(timespec='seconds'),
        **facts,
        'mass': payload.mass,
        'centre_of_mass': payload.centre_of_mass.tolist(),
        'inertia_at_centre': dict(zip(AXES, moments.tolist(), strict=True)),
        'possible': payload.consistent,
        'parameters': parameters,
        'warnings': list(warnings),
        'versions': versions(),
    }
    return write_text(path, dump_yaml(content))
