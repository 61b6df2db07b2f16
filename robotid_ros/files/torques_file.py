"""`torques.npz`: measured and predicted torques behind a result."""

from collections.abc import Mapping
import dataclasses
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ..exceptions import FileError
from .atomic import file_errors, write_bytes
from .bounded import load_npz


@dataclass(frozen=True)
class Torques:
    """Measured and predicted torques, (N,) and (N, n)."""

    joints: tuple[str, ...]
    time: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray


def write_torques(path: Path, torques: Mapping[str, Torques]) -> None:
    """Write the series of several names."""
    arrays: dict[str, Any] = {
        f'{name}.{item.name}': np.asarray(getattr(torque, item.name))
        for name, torque in torques.items()
        for item in dataclasses.fields(torque)
    }
    stream = BytesIO()
    np.savez_compressed(stream, **arrays)
    write_bytes(path, stream.getvalue())


def read_torques(path: Path) -> dict[str, Torques]:
    """Read what `write_torques` wrote; nothing where there is no file."""
    if not path.exists():
        return {}
    with file_errors(path):
        try:
            with load_npz(path) as arrays:
                names = dict.fromkeys(key.split('.')[0] for key in arrays)
                return {name: _torques(name, arrays) for name in names}
        except Exception as error:  # NumPy and zlib raise whatever the bytes lead to
            raise FileError(f"'{path}' is damaged: remove it or identify again") from error


def _torques(name: str, arrays: Mapping[str, np.ndarray]) -> Torques:
    columns = (arrays[f'{name}.{key}'] for key in ('time', 'measured', 'predicted'))
    return Torques(tuple(map(str, arrays[f'{name}.joints'])), *columns)
