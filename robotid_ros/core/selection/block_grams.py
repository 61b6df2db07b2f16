"""Products WᵀW and WᵀY of successive blocks of a recording, for every column to choose from."""

from collections.abc import Iterator
import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.ndimage import uniform_filter1d

from ..arrays import Array
from ..model.base_parameters import BaseParameters
from ..model.dynamics import regressor
from ..model.friction import FrictionTerm
from ..model.robot import Robot
from ..regression.observation_system import decimate
from ..signals.filters import lowpass, with_derivatives
from ..signals.preparation import decimation_of
from ..signals.samples import SignalSettings
from ..signals.uniform_recording import UniformRecording
from ..signals.usable_rows import Rows, usable_rows
from .candidates import PLAIN
from .ripple_orders import JointRows

# Rows that are to be decimated are computed at so many times the band, to save time; the samples
# whose whole regressor is in memory at once.
OVERSAMPLING, BLOCK_SAMPLES = 16.0, 4096
# Contiguous parts of the recording that are predicted in turn from the others.
BLOCKS = 8


@dataclasses.dataclass(frozen=True)
class Columns:
    """
    The columns of all candidates: base parameters of links and drives, then friction terms.

    Attributes
    ----------
    robot : without friction
    base : its base parameters
    terms : friction terms to choose from, each once
    load : (b,) base parameters whose torque loads the joints, or None

    """

    robot: Robot
    base: BaseParameters
    terms: tuple[FrictionTerm, ...]
    load: Array | None = None

    def places(self, terms: tuple[FrictionTerm, ...]) -> npt.NDArray[np.intp]:
        """Return the columns of the base parameters and of some friction terms."""
        widths = [len(term.kind.symbols) for term in self.terms]
        first = self.base.rank + np.concatenate([[0], np.cumsum(widths)])
        chosen = [
            np.arange(first[k], first[k + 1]) for k, term in enumerate(self.terms) if term in terms
        ]
        return np.concatenate([np.arange(self.base.rank), *chosen]).astype(np.intp)

    def wanted_positive(self, terms: tuple[FrictionTerm, ...]) -> Rows:
        """Tell of each parameter of some friction terms whether it is to be positive."""
        chosen = [term for term in self.terms if term in terms]
        return np.array(
            [positive and term not in PLAIN for term in chosen for positive in term.kind.positive],
            dtype=bool,
        )

    def rows(
        self,
        q: Array,
        dq: Array,
        ddq: Array,
        tau: Array,
        step: int,
        temperature: Array | None = None,
    ) -> list[Array]:
        """
        Return [W F Y] of each joint, one row in `step`, (N / step, b + f + 1).

        W is smooth; friction, which is not, and the torque are means over the samples of a row.
        """
        b, width = self.base.rank, sum(len(term.kind.symbols) for term in self.terms)
        samples = np.arange(len(q))
        kept = samples[::step]
        result = [np.empty((len(kept), b + width + 1)) for _ in range(self.robot.n)]
        for first in range(0, len(kept), BLOCK_SAMPLES):
            part = kept[first : first + BLOCK_SAMPLES]
            W = regressor(self.robot, q[part], dq[part], ddq[part], columns=self.base.columns)
            for own, columns in zip(result, W, strict=True):
                own[first : first + BLOCK_SAMPLES, :b] = columns
        for j, own in enumerate(result):
            load = None
            if self.load is not None:
                load = np.interp(samples, kept, own[:, :b] @ self.load)
            motion = q[:, j], dq[:, j], load, True
            warmth = None if temperature is None else temperature[:, j]
            friction = [f for term in self.terms for f in term.columns(*motion, warmth)]
            for place, column in enumerate([*friction, tau[:, j]], start=b):
                own[:, place] = _means(column, step)[::step]
        return result


@dataclasses.dataclass(frozen=True)
class BlockGrams:
    """
    [W F Y]ᵀ [W F Y] of the rows of each block and joint.

    Attributes
    ----------
    products : (K, n, c, c)
    counts : (K, n) rows
    clear : the same of the rows for friction that has a step, None: the same rows

    """

    products: Array
    counts: Array
    clear: 'BlockGrams | None' = None

    def of(self, joint: int, terms: tuple[FrictionTerm, ...]) -> tuple[Array, Array]:
        """Return products (K, c, c) and counts (K,) of the rows of a joint with some friction."""
        stepped = self.clear is not None and any(term.has_step for term in terms)
        rows = self.clear if stepped and self.clear is not None else self
        return rows.products[:, joint], rows.counts[:, joint]


def block_edges(even: UniformRecording) -> Array:
    """Cut the measured samples into blocks of as many: their limits in time (K + 1,) [s]."""
    used = even.recording.time[even.measured]
    inner = used[np.linspace(0, len(used) - 1, BLOCKS + 1).astype(int)][1:-1]
    return np.concatenate([[-np.inf], inner, [np.inf]])


def block_grams(
    even: UniformRecording,
    columns: Columns,
    signals: SignalSettings,
    cutoff: float,
    band: float,
    edges: Array,
) -> dict[str, BlockGrams]:
    """
    Return the products of rows as `prepare` and `observe` make them, by the setting `rows`.

    Parameters
    ----------
    even : the recording
    columns : to choose from
    signals : what is not chosen
    cutoff : of the positions [Hz]
    band : of the filter that W and the torque share [Hz]
    edges : (K + 1,) limits of the blocks in time [s]

    """
    motion, step = _motion(even, cutoff, signals), _first_step(even, band, signals)
    tau = even.recording.effort * columns.robot.drive_gain
    rows = columns.rows(*motion, tau, step, even.recording.temperature)
    second = (signals.decimation or decimation_of(even.rate, band)) // step
    if second > 1:
        rows = [decimate(part[None], second)[0] for part in rows]
    keep = step * second
    time = even.recording.time[::keep]
    usable = usable_rows(even, columns.robot, motion[1], band, keep, signals)
    grams, of_clear, of_moving = (_products(rows, mask[::keep], time, edges) for mask in usable)
    return {'all': dataclasses.replace(grams, clear=of_clear), 'moving': of_moving}


def rows_of_joints(
    even: UniformRecording,
    columns: Columns,
    signals: SignalSettings,
    cutoff: float,
    band: float,
    values: Array,
) -> Iterator[JointRows]:
    """
    Yield the rows of each joint before they are filtered to the band, and what a model leaves.

    Parameters
    ----------
    even, columns, signals, cutoff, band : as of `block_grams`
    values : (n, b + f) parameters of each joint's columns; those that are zero are left out

    """
    (q, dq, ddq), step = _motion(even, cutoff, signals), _first_step(even, band, signals)
    tau = even.recording.effort * columns.robot.drive_gain
    moving = usable_rows(even, columns.robot, dq, band, step, signals).moving
    temperature = even.recording.temperature
    for j, own in enumerate(columns.rows(q, dq, ddq, tau, step, temperature)):
        W, Y = own[:, :-1], own[:, -1]
        motion, used = (q[::step, j], dq[::step, j]), np.flatnonzero(values[j])
        residual = Y - W @ values[j]
        yield JointRows(*motion, W[:, used], Y, residual, moving[::step, j], even.rate / step)


def _motion(
    even: UniformRecording, cutoff: float, signals: SignalSettings
) -> tuple[Array, Array, Array]:
    q = lowpass(even.recording.position, cutoff, even.rate, signals.order)
    return with_derivatives(q, even.rate)


def _first_step(even: UniformRecording, band: float, signals: SignalSettings) -> int:
    """
    Return one row in how many is computed of those that are to be decimated.

    To save time, they are computed at `OVERSAMPLING` only; means over an odd number of samples are
    of the one in their middle.
    """
    decimation = signals.decimation or decimation_of(even.rate, band)
    step = max(1, min(decimation, int(even.rate / (OVERSAMPLING * band))))
    return step - (step + 1) % 2


def _means(column: Array, step: int) -> Array:
    """
    Return means over `step` samples, sharpened: 2 m − m² instead of m (Kaiser and Hamming 1977).

    A mean alone loses half a per cent of what is at the end of the band, which W keeps.
    """
    mean = uniform_filter1d(column, step)
    return np.asarray(2.0 * mean - uniform_filter1d(mean, step))


def _products(rows: list[Array], used: Rows, time: Array, edges: Array) -> BlockGrams:
    block = np.searchsorted(edges, time, side='right') - 1
    count, size = len(edges) - 1, rows[0].shape[1]
    products = np.zeros((count, len(rows), size, size))
    counts = np.zeros((count, len(rows)))
    for j, part in enumerate(rows):
        for k in range(count):
            own = part[(block == k) & used[:, j]]
            products[k, j], counts[k, j] = own.T @ own, len(own)
    return BlockGrams(products, counts)
