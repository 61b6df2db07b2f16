"""Series beside results: torques and motion in `torques.npz`, and others."""

from collections.abc import Mapping
import dataclasses
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ..exceptions import FileError
from .atomic import file_errors, write_bytes
from .bounded import damage_errors, load_npz


@dataclass(frozen=True)
class Torques:
    """
    Measured and predicted torques, (N,) and (N, n).

    Where they are known, also the motion [rad or m, per s], and the parts of the predicted
    torques, see `EffortParts`.
    """

    joints: tuple[str, ...]
    time: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    position: np.ndarray | None = None
    velocity: np.ndarray | None = None
    inertia: np.ndarray | None = None
    gravity: np.ndarray | None = None
    friction: np.ndarray | None = None
    offset: np.ndarray | None = None

    @property
    def parts(self) -> dict[str, np.ndarray]:
        """What the predicted torques consist of, by name; empty where it is not known."""
        names = ('inertia', 'gravity', 'friction', 'offset')
        parts = {name: getattr(self, name) for name in names}
        return {} if any(part is None for part in parts.values()) else parts


def write_series(path: Path, series: Mapping[str, Any]) -> None:
    """Write dataclasses of joints and arrays, by their names."""
    arrays: dict[str, Any] = {
        f'{name}.{item.name}': np.asarray(getattr(each, item.name))
        for name, each in series.items()
        for item in dataclasses.fields(each)
        if getattr(each, item.name) is not None
    }
    stream = BytesIO()
    np.savez_compressed(stream, **arrays)
    write_bytes(path, stream.getvalue())


def read_series(path: Path, kind: type[Any], remedy: str) -> dict[str, Any]:
    """
    Read what `write_series` wrote; nothing where there is no file.

    Raises FileError where it is damaged; says the remedy.
    """
    if not path.exists():
        return {}
    values: dict[str, dict[str, Any]] = {}
    fields = {item.name for item in dataclasses.fields(kind)}
    # NumPy and zlib raise whatever the bytes lead to.
    with file_errors(path), damage_errors(path, f'{remedy}, or remove it', FileError):
        with load_npz(path) as arrays:
            for key in arrays:
                name, _, field = key.partition('.')
                if field in fields:
                    values.setdefault(name, {})[field] = arrays[key]
        for each in values.values():
            each['joints'] = tuple(map(str, each['joints']))
        return {name: kind(**each) for name, each in values.items()}
