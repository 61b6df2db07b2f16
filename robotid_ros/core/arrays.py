"""Arrays of values that are read-only once they are made."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def frozen(array: npt.ArrayLike) -> Array:
    """Return a read-only float array; a copy, unless it is read-only already."""
    result = np.asarray(array, dtype=float)
    if result.flags.writeable:
        result = result.copy()
        result.flags.writeable = False
    return result


def freeze_fields(instance: object, *fields: str) -> None:
    """Make arrays of a frozen dataclass read-only; those that are None stay so."""
    for field in fields:
        value = getattr(instance, field)
        if value is not None:
            object.__setattr__(instance, field, frozen(value))
