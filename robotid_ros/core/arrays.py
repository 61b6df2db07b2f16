"""Arrays, read-only once they are made; how small a singular value may be."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..exceptions import ConfigurationError

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]


def frozen(array: npt.ArrayLike) -> Array:
    """Return a read-only float array; a copy, unless it is read-only already."""
    result = np.asarray(array, dtype=float)
    if result.flags.writeable:
        result = result.copy()
        result.flags.writeable = False
    return result


def any_effort(efforts: npt.ArrayLike) -> bool:
    """Return whether efforts were measured: drivers without sensors give none, NaN or 0 alone."""
    return bool(np.nan_to_num(efforts).any())


def all_within(valid: Mask, reach: int) -> Mask:
    """Return in which rows (N, n) all within `reach` of them are valid, without SciPy's import."""
    if valid.all():
        return np.ones_like(valid)
    count = len(valid)
    reach = min(reach, count)
    padded = np.ones((count + 2 * reach + 1, *valid.shape[1:]), dtype=bool)
    padded[reach + 1 : reach + 1 + count] = valid
    invalid = np.cumsum(~padded, axis=0, dtype=np.int32)
    return np.asarray(invalid[2 * reach + 1 :] == invalid[:count])


def expand_per_joint(values: npt.ArrayLike, count: int, name: str) -> Array:
    """Return values (n,) of a setting that has one for all joints or one for each."""
    given = np.asarray(values, dtype=float)
    if given.size not in (1, count):
        raise ConfigurationError(
            f"'{name}' has {given.size} values: give one, or one per joint ({count})"
        )
    return np.broadcast_to(given, count).copy()


def column_sizes(A: Array) -> Array:
    """
    Return norms of columns (N, b) to divide by; infinite where a column is rounding alone.

    Scaled to the length one, rounding would explain something.
    """
    norms = np.linalg.norm(A, axis=0)
    return np.where(norms > SINGULAR * norms.max(initial=0.0), norms, np.inf)


def interpolated(at: Array, time: Array, values: Array) -> Array:
    """Return signals (N, n) of times (N,) at others (K,), (K, n), linear between samples."""
    return np.column_stack([np.interp(at, time, column) for column in values.T])


def rms(x: Array) -> float:
    """Return the root mean square, 0 of nothing."""
    return float(np.sqrt(np.mean(x**2))) if x.size else 0.0


def diagonal_scale(matrix: Array) -> Array:
    """
    Return √ of the sizes of the diagonals of matrices (…, b, b), at least 10⁻²⁴ of the largest.

    A Gram or covariance matrix that is divided by it on both sides has ones there, whatever the
    units, and a condition at most b times that of any other scaling (van der Sluis 1969).
    """
    size = np.abs(np.diagonal(matrix, axis1=-2, axis2=-1))
    return np.sqrt(np.maximum(size, 1e-48 * size.max(axis=-1, keepdims=True, initial=1e-252)))


def whitening(covariance: Array) -> Array:
    """Return V (b, b) with VᵀV the inverse of a covariance whose smallest values are rounding."""
    scale = diagonal_scale(covariance)
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    return np.asarray((vectors / np.sqrt(np.maximum(values, 1e-10 * values[-1]))).T / scale)


@dataclasses.dataclass(frozen=True)
class ReadOnlyArrays:
    """Base of frozen dataclasses: fields of type `Array` or `Array | None` become read-only."""

    def __post_init__(self) -> None:
        # As text where annotations are not evaluated.
        kinds = (Array, Array | None, 'Array', 'Array | None')
        for field in dataclasses.fields(self):
            if field.type in kinds and (value := getattr(self, field.name)) is not None:
                object.__setattr__(self, field.name, frozen(value))


# A column is a combination of others, a direction of parameters is open: far above the rounding of
# W, and of base parameters (1e-7), far below what the geometry of robots gives.
DEPENDENT = 1e-6
# A system of equations is refused: what is solved with less has no correct digit left.
SINGULAR = 1e-12
# Rows predict others only along what they determine: a thousand times their noise is too much.
PREDICTED = 1e-3
