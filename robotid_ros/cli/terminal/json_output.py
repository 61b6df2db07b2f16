"""What a command found, for other programs: one JSON value on standard output."""

from collections.abc import Mapping
import dataclasses
import json
import math
import os
from typing import Any


def print_json(value: Any) -> None:
    """Print a value, for which `plain` says what becomes of it."""
    print(json.dumps(plain(value), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """
    Turn a value into those of JSON.

    Dataclasses become objects with their fields, arrays lists, paths texts; numbers that are
    none or not finite become null, since JSON has no word for them.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, 'tolist'):  # of NumPy, which is not imported for this
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    raise TypeError(f'{type(value).__name__} has no form in JSON')
