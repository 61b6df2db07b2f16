"""The observation system Y = W χ + ρ, joint by joint, filtered and decimated alike."""

from collections.abc import Mapping, Sequence
import dataclasses
from dataclasses import fields
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

import numpy as np

from ...exceptions import RecordingError
from ..arrays import Array, Indices, Mask, ReadOnlyArrays, whitening
from ..findings import Finding
from ..model.dynamics import path_columns, regressor
from ..model.friction import LINEAR, SHRUNK
from ..model.robot import BaseParameters, ElasticRobot, Robot
from ..signals.filters import filter_without_phase
from ..signals.recording import Samples
from .least_squares import Penalty


@dataclasses.dataclass(frozen=True)
class GaussianPrior(ReadOnlyArrays):
    """Parameters before any data, normally distributed: mean (b,), covariance (b, b)."""

    mean: Array
    covariance: Array

    @cached_property
    def whitening(self) -> Array:
        """V (b, b) with `‖V (χ − mean)‖² = (χ − mean)ᵀ covariance⁻¹ (χ − mean)`."""
        return whitening(self.covariance)

    @property
    def rows(self) -> tuple[Array, Array]:
        """Equations `V χ = V mean` of unit variance: (b, b) and (b,)."""
        return self.whitening, self.whitening @ self.mean


S = TypeVar('S', bound='System')
S_co = TypeVar('S_co', bound='System', covariant=True)
# Butterworth filter before decimation, forth and back; cut-off over the Nyquist frequency that is
# left, as `scipy.signal.decimate` has it.
FILTER_ORDER, FILTER_BAND = 4, 0.8
# Band of as much white noise as it leaves: ∫ dx/(1 + x⁸)² = ⅞ (π/8)/sin(π/8) of the cut-off.
NOISE_BAND = 0.898 * FILTER_BAND
# Decimated rows after which the filter's response has decayed to 1e-7, the samples whose base
# columns are in memory at once, and random states that show which columns are zero.
DECAY_ROWS, BLOCK_SAMPLES, STATES = 16, 8192, 32
# Fields of `Rows` by the axis of the rows.
ROW_FIELDS = ('time', 'measured', 'q', 'dq'), ('W', 'Y', 'valid', 'Z', 'moving', 'D')


@dataclasses.dataclass(frozen=True)
class System(ReadOnlyArrays):
    """Equations of all joints, joint-major (DIDIM eq. 11-14): `Rows`, or `Factors` of many."""

    names: tuple[str, ...]  # of the b columns
    units: tuple[str, ...]  # likewise
    joints: tuple[str, ...]  # of the n blocks of rows
    W: Array  # (n, N, b)
    Y: Array  # (n, N)
    valid: Mask  # (n, N) rows that may be used
    _: dataclasses.KW_ONLY
    # (n, N, d) columns of what the model may leave out, which the covariance counts, or None.
    D: Array | None = None
    # Share of the rows' Nyquist frequency that white noise has left after decimation.
    band: float = 1.0
    prior: GaussianPrior | None = None  # what is known of the parameters besides, or None
    # (b,) how far errors of the samples' times move the parameters together, or None: not at all.
    timing: Array | None = None
    penalty: Penalty | None = None  # of a mixed model, or None
    # (n,) relative standard deviation of the scale of each joint's Y, or None.
    gain_spread: Array | None = None

    @property
    def equations(self) -> Indices:
        """Number of equations of each joint (n,)."""
        return self.valid.sum(axis=1)

    def select(self: S, kept: list[int]) -> S:
        """Return the system of some parameters, the others zero, without prior or penalty."""
        names, units = (tuple(each[k] for k in kept) for each in (self.names, self.units))
        changed: dict[str, Any] = {'prior': None, 'timing': None, 'penalty': None}
        for field, columns in (('W', kept), ('Z', kept), ('batches', [*kept, -1])):
            if getattr(self, field, None) is not None:
                changed[field] = read_only(getattr(self, field)[..., columns])
        return dataclasses.replace(self, names=names, units=units, **changed)

    def without(self: S, gone: Mask, value: Array) -> S:
        """Return the system of the other parameters, less what these (b,) explain with a value."""
        changed = dict[str, Any](D=None)
        changed['Y'] = read_only(self.Y - self.W[:, :, gone] @ value[gone])
        if isinstance(self, Factors):
            changed['batches'] = self.batches.copy()
            changed['batches'][..., -1] -= self.batches[..., :-1][..., gone] @ value[gone]
        return dataclasses.replace(self, **changed).select(np.flatnonzero(~gone).tolist())

    def rows(self, joint: int) -> tuple[Array, Array]:
        """Return the usable rows of a joint, W_j (N_j, b) and Y_j (N_j,)."""
        used = self.valid[joint]
        return self.W[joint][used], self.Y[joint][used]

    @property
    def blocks(self) -> list[tuple[Array, Array]]:
        """Usable rows of each joint."""
        return [self.rows(joint) for joint in range(len(self.joints))]

    def discrepancies(self, joint: int) -> Array:
        """Return the usable rows of a joint's columns of what the model may leave out."""
        D = np.zeros((*self.Y.shape, 0)) if self.D is None else self.D
        return np.asarray(D[joint][self.valid[joint]])

    def predict(self, chi: Array) -> Array:
        """Return W χ of all rows, (n, N)."""
        return np.asarray(self.W @ chi)

    def relative_residual(self, chi: Array) -> Array:
        """Return ‖Y_j − W_j χ‖/‖Y_j‖ of the usable rows of each joint, (n,)."""
        error = np.where(self.valid, self.Y - self.predict(chi), 0.0)
        signal = np.where(self.valid, self.Y, 0.0)
        size = np.linalg.norm(signal, axis=1)
        # Rows without torque (a link behind a spring) are measured by the largest of their parts.
        for j in np.flatnonzero(size == 0.0):
            size[j] = np.linalg.norm(self.rows(int(j))[0] * chi, axis=0).max(initial=0.0)
        return np.asarray(np.linalg.norm(error, axis=1) / np.maximum(size, 1e-300))

    def total_residual(self, chi: Array) -> float:
        """Return ‖Y − W χ‖/‖Y‖ of the usable rows of all joints."""
        error = sum(float(np.sum((y - w @ chi) ** 2)) for w, y in self.blocks)
        return float(np.sqrt(error / max(sum(float(y @ y) for _, y in self.blocks), 1e-300)))


@dataclasses.dataclass(frozen=True)
class Rows(System):
    """Rows of a system at known times."""

    time: Array  # (N,) [s]
    _: dataclasses.KW_ONLY
    noise: Array | None = None  # (n,) standard deviation of the torque noise, or None
    Z: Array | None = None  # (n, N, b) instruments: W of the reference, or None
    # (N,) False where samples were made up to bridge a gap, or None: all were measured.
    measured: Mask | None = None
    # (n, N) those of `valid` where the joint moves, or None: all.
    moving: Mask | None = None
    q: Array | None = None  # (N, n) positions, or None
    dq: Array | None = None  # (N, n) velocities, or None

    @classmethod
    def concatenate(cls, systems: Sequence['Rows'], step: int = 1) -> 'Rows':
        """Put the rows of systems with the same columns behind each other, one of each step."""
        changed, ends = dict[str, Any](), np.cumsum([0, *(len(system.time) for system in systems)])
        kept = [slice(-end % step, None, step) for end in ends[:-1].tolist()]
        for axis, names in enumerate(ROW_FIELDS):
            for name in names:
                parts, rows = [getattr(system, name) for system in systems], None
                if all(part is not None for part in parts):
                    pairs = zip(parts, kept, strict=True)
                    chosen = [part[:, own] if axis else part[own] for part, own in pairs]
                    rows = read_only(np.concatenate(chosen, axis=axis))
                changed[name] = rows
        noise = [system.noise for system in systems if system.noise is not None]
        common = np.sqrt(np.mean(np.square(noise), axis=0)) if len(noise) == len(systems) else None
        band = min(system.band for system in systems)
        return dataclasses.replace(systems[0], **changed, noise=common, band=band)


@dataclasses.dataclass(frozen=True)
class Factors(System):
    """A system of triangular factors of [W D Y], which stand for any number of rows."""

    counts: Indices  # (n,) equations that W and Y stand for
    batches: Array  # (n, K, b + 1, b + 1) factors of [W Y] of successive parts

    @property
    def equations(self) -> Indices:
        """Number of equations of each joint (n,)."""
        return self.counts


@dataclasses.dataclass(frozen=True)
class Observed(Generic[S_co]):
    """What was observed of a recording, of one chunk of it, or of several logs."""

    system: S_co  # rows in memory, or triangular factors of all chunks and logs
    samples: Samples  # of all of it, or of the first chunk that moves
    # Rows in memory: all of them, or those of some chunks from all over.
    sampled_systems: tuple[Rows, ...]
    # Of each joint's effort behind its position that were removed [s].
    delays: Mapping[str, float] = dataclasses.field(default_factory=dict)
    notes: tuple[Finding, ...] = ()  # findings on the signals
    parts: tuple['Observed[System]', ...] = ()  # of several logs, each of them


def observe(samples: Samples, robot: Robot, base: BaseParameters) -> Rows:
    """
    Stack the base columns of W and the torque, through one filter, one sample in `decimation`.

    Columns that are as smooth as the filtered positions need fewer samples than friction. Raises
    a RecordingError where no row is left.
    """
    keep, motion = samples.decimation, (samples.q, samples.dq, samples.ddq)
    # Friction that grows with the links' torques mixes what is smooth and what is not.
    mixed = robot.load_dependent or isinstance(robot, ElasticRobot)
    step = 1 if mixed else max(1, min(int(samples.rate / samples.band_limit), keep // 2))
    smooth = np.isin(base.columns, robot.body_columns)
    smooth |= [robot.parameters[column].symbol in LINEAR for column in base.columns]
    smooth &= step > 1
    path = [] if isinstance(robot, ElasticRobot) else list(path_columns(robot, *motion[:2]))
    W, Y = decimated_rows(robot, base.columns[~smooth], motion, samples.tau, keep, path)
    if smooth.any():
        others, W = W, np.empty((*Y.shape, base.rank))
        W[:, :, ~smooth] = others
        W[:, :, smooth] = _smooth_columns(samples, robot, base.columns[smooth], step)
    valid, moving = _used_rows(samples)
    return Rows(
        base.names, base.units, samples.joints, read_only(W), read_only(Y), valid,
        samples.time[::keep],
        noise=samples.noise,
        band=NOISE_BAND if keep > 1 else 1.0,
        measured=None if samples.measured is None else samples.measured[::keep],
        moving=moving,
        q=read_only(samples.q[::keep].copy()),
        dq=read_only(samples.dq[::keep].copy()),
        gain_spread=robot.gain_spread,
    )  # fmt: skip


def decimated_rows(
    robot: Robot, columns: Indices, motion: Sequence[Array], tau: Array, keep: int,
    path: Sequence[tuple[int, int, Array]],
) -> tuple[Array, Array]:  # fmt: skip
    """
    Return columns of W (n, N', c) and the torque (n, N') along q, dq, ddq (N, n), decimated.

    The regressor is computed in blocks that overlap by the filter's memory, so that what is kept
    in memory is the decimated system alone (parallel decimation, DIDIM section II). `path` has
    joint, column and values (N,) of friction that is no function of one state.
    """
    total = len(tau)
    Y = np.empty((robot.n, -(-total // keep)))
    W = np.zeros((*Y.shape, len(columns)))
    overlap = DECAY_ROWS * keep if keep > 1 else 0
    length = max(BLOCK_SAMPLES, 4 * overlap) // keep * keep
    used = _nonzero(robot, columns)
    places = {int(column): k for k, column in enumerate(columns)}
    joint, place = used.nonzero()
    for start in range(0, total, length):
        stop = min(start + length, total)
        low = max(0, start - overlap)
        rows = slice(low, min(total, stop + overlap))
        full = regressor(robot, *(x[rows] for x in motion), columns=columns).swapaxes(1, 2)
        for j, column, values in path:
            if column in places:
                full[j, places[column]] = values[rows]
        out = slice(start // keep, -(-stop // keep))
        own = slice((start - low) // keep, (start - low) // keep + out.stop - out.start)
        W[joint, out, place] = decimate(full[used], keep)[:, own]
        Y[:, out] = decimate(tau[rows].T, keep)[:, own]
    return W, Y


def _used_rows(samples: Samples) -> tuple[Mask, Mask]:
    """Return which decimated rows (n, N) count and which of them move; RecordingError: none."""
    valid, moving = (x[:: samples.decimation].T for x in (samples.valid, samples.moving))
    if not valid.any():
        raise RecordingError('no sample is left after decimation: record longer')
    return valid.copy(), moving


def with_rows(observed: Observed[Rows], samples: Samples) -> Observed[Rows]:
    """Return what was observed with the rows of samples that differ in nothing else."""
    valid, moving = _used_rows(samples)
    system = dataclasses.replace(observed.system, valid=valid, moving=moving)
    return dataclasses.replace(observed, system=system, samples=samples, sampled_systems=(system,))


def _nonzero(robot: Robot, columns: Indices) -> Mask:
    """Return which columns of which joints (n, c) are not zero: few links hang on a joint."""
    # At random states. Those of slow motion, or of its path, are zero there.
    states = np.random.default_rng(0).normal(size=(3, STATES, robot.n))
    used = np.array(regressor(robot, *states, columns=columns).any(axis=1))
    for place, column in enumerate(columns):
        if robot.parameters[column].symbol in SHRUNK:
            used[robot.joints.index(robot.parameters[column].joint), place] = True
    return used


def _smooth_columns(samples: Samples, robot: Robot, columns: Indices, step: int) -> Array:
    """
    Return decimated columns (n, N, c) that are as smooth as the motion, from one sample in `step`.

    The filtered positions have next to nothing above the rate of these samples, which would be
    mistaken for something slow. So a sum of them times the response of the decimation's filter is
    the same as a sum over all samples.
    """
    keep, rows = samples.decimation, -(-len(samples.time) // samples.decimation)
    q, dq, ddq = (x[::step] for x in (samples.q, samples.dq, samples.ddq))
    weights, memory = _weights(keep, step)
    group, ahead = weights.shape[1], min(len(q) - 1, 10 * keep // step)
    hop = group * keep // step
    groups = max(1, BLOCK_SAMPLES // hop)
    joint, place = _nonzero(robot, columns).nonzero()
    found = np.zeros((robot.n, rows + groups * group, len(columns)))
    for first in range(0, rows, groups * group):
        # Beyond its ends a signal goes on as for the filter of the other columns.
        wanted = first * keep // step + np.arange(-memory, groups * hop + memory)
        wanted = wanted[wanted < len(q) + memory]
        low, high = max(int(wanted[0]), 0), min(int(wanted[-1]) + 1, len(q))
        inner = slice(low, high)
        full = regressor(robot, q[inner], dq[inner], ddq[inner], columns=columns)
        own = full.swapaxes(1, 2)[joint, place]
        before = np.minimum(-wanted[wanted < 0], ahead)
        after = np.minimum(wanted[wanted >= len(q)] - len(q) + 1, ahead)
        parts = [2.0 * own[:, :1] - own[:, before], own]
        parts += [2.0 * own[:, -1:] - own[:, high - low - 1 - after]]
        signals = np.concatenate(parts, axis=1)
        for k in range(groups):
            part = signals[:, k * hop : k * hop + len(weights)]
            out = slice(first + k * group, first + (k + 1) * group)
            found[joint, out, place] = part @ weights[: part.shape[1]]
    return found[:, :rows]


@lru_cache(maxsize=16)
def _weights(keep: int, step: int) -> tuple[Array, int]:
    """
    Return weights (L, G) that take one sample in `step` to G rows, and where the first row is.

    They are the decimation filter's response. Rows of successive groups lie alike between samples.
    """
    reach, alike = DECAY_ROWS * keep, step // int(np.gcd(step, keep))
    group, memory = alike * -(-2 * DECAY_ROWS // alike), -(-reach // step)
    impulse = np.zeros((1, 2 * reach + 1))
    impulse[0, reach] = step
    response = filter_without_phase(impulse, FILTER_ORDER, FILTER_BAND / keep, 0)[0]
    at = step * (np.arange(group * keep // step + 2 * memory) - memory)
    lag = keep * np.arange(group) - at[:, None]
    near = np.abs(lag) <= reach
    return np.where(near, response[np.where(near, lag + reach, 0)], 0.0), memory


def read_only(array: Array) -> Array:
    """Make an array read-only that nobody else holds, so that no copy is needed."""
    array.flags.writeable = False
    return array


def decimate(x: Array, keep: int) -> Array:
    """Return one sample in `keep` along axis 1, after a filter without phase against aliasing."""
    if keep == 1:
        return x
    signals, pad = np.moveaxis(x, 1, -1), min(x.shape[1] - 1, 10 * keep)
    kept = filter_without_phase(signals, FILTER_ORDER, FILTER_BAND / keep, pad, keep)
    return np.moveaxis(kept, -1, 1)


# Blocks of time. Of the motion's speeds and positions, the outer quarters.
BLOCKS, OUTER = 8, 0.25


def folds(q: Array, dq: Array, used: Mask) -> Mask:
    """
    Return which rows each fold holds (F, N): blocks of time, extreme speeds, extreme positions.

    A block of time is like its neighbours, and a term that only interpolates predicts it well;
    another motion is faster, slower, or elsewhere (Roberts et al. 2017). The positions' directions
    are the first two principal ones. Of q, dq (N, n), the rows that are used are divided.
    """
    place = np.flatnonzero(used)
    time = np.zeros(len(q), dtype=int)
    time[place] = np.arange(len(place)) * BLOCKS // max(len(place), 1)
    found = [used & (time == k) for k in range(BLOCKS)]
    scale = np.maximum(np.quantile(np.abs(dq[place]), 0.95, axis=0), 1e-9)
    speed = np.linalg.norm(dq / scale, axis=1)
    spread = q - q[place].mean(axis=0)
    directions = np.linalg.svd(spread[place], full_matrices=False)[2][:2]
    for values in (speed, *(spread @ direction for direction in directions)):
        low, high = np.quantile(values[place], (OUTER, 1.0 - OUTER))
        found += [used & (values <= low), used & (values >= high)]
    return np.array([fold for fold in found if fold.any() and not fold[place].all()])


# Batches of one chunk, and at how many neighbours merge. A batch has to outlast the correlation of
# residuals; the covariance is estimated from the scores of 64 batches or more of a long recording.
BATCHES_PER_CHUNK, MAX_BATCHES = 32, 128


class TriangularFactors:
    """Triangular factors of [W D Y] of all batches so far, which merge in pairs if too many."""

    def __init__(self) -> None:
        self._batches = list[Array]()
        self._counts: Indices = np.zeros((), dtype=np.intp)
        # How many new batches make one as long as the merged ones.
        self._merged, self._waiting = 1, list[Array]()

    def add(self, system: Rows, batches: int = BATCHES_PER_CHUNK) -> None:
        """Add the rows of a chunk, as so many batches."""
        self._counts = self._counts + system.equations
        for part in _batches(system, batches):
            self._waiting.append(triangular_factor(part))
            if len(self._waiting) == self._merged:
                self._batches.append(_stacked(self._waiting))
                self._waiting = []
            if len(self._batches) == MAX_BATCHES:
                pairs = zip(self._batches[::2], self._batches[1::2], strict=True)
                self._batches = [_stacked(pair) for pair in pairs]
                self._merged *= 2

    def system(self, template: System) -> Factors:
        """Return the system of all rows; names, units and joints are those of the template."""
        last = [_stacked(self._waiting)] if self._waiting else []
        return _of_batches(template, [*self._batches, *last], self._counts)


def joined(system: System) -> Array:
    """Return [W D Y] (n, N, b + d + 1)."""
    D = [] if system.D is None else [system.D]
    return np.concatenate([system.W, *D, system.Y[:, :, None]], axis=2)


def compress(system: System, most_batches: int) -> Factors:
    """Return the triangular factors of rows or factors, of at most so many successive batches."""
    if not isinstance(system, Factors):
        parts = [*map(triangular_factor, _batches(system, most_batches))]
        return _of_batches(system, parts, system.valid.sum(axis=1))
    groups = np.array_split(system.batches, min(most_batches, system.batches.shape[1]), axis=1)
    merged = [triangular_factor(g.reshape(len(g), -1, g.shape[-1])) for g in groups]
    return dataclasses.replace(system, batches=np.stack(merged, axis=1))


def stack_factors(systems: Sequence[System]) -> Factors:
    """Put systems of triangular factors together."""
    factors = [each for each in systems if isinstance(each, Factors)]
    counts = np.sum([each.counts for each in factors], axis=0)
    batches = np.concatenate([each.batches for each in factors], axis=1)
    return _factors(factors[0], _stacked([joined(each) for each in factors]), counts, batches)


def _of_batches(template: System, factors: Sequence[Array], counts: Indices) -> Factors:
    """Return the system of factors of [W D Y] of K batches, (n, b + d + 1, b + d + 1) each."""
    size, total, batches = factors[0].shape[-1], list[Array](), list[Array]()
    for joint in map(np.stack, zip(*factors, strict=True)):  # one at a time: these are copies
        total.append(triangular_factor(joint.reshape(-1, size)))
        batches.append(triangular_factor(joint[..., [*range(len(template.names)), size - 1]]))
    return _factors(template, np.stack(total), counts, np.stack(batches))


def _factors(template: System, total: Array, counts: Indices, batches: Array) -> Factors:
    """Return the system of a factor of [W D Y] (n, b + d + 1, b + d + 1), and of its batches."""
    b, own = len(template.names), {f.name: getattr(template, f.name) for f in fields(System)}
    own |= {'W': total[:, :, :b], 'Y': total[:, :, -1], 'valid': np.ones(total.shape[:2], bool)}
    own['D'] = None if template.D is None else total[:, :, b:-1]
    return Factors(**own, counts=counts, batches=batches)


def _batches(system: System, batches: int) -> list[Array]:
    """Return the usable rows of [W D Y] in so many successive parts, (n, N, b + d + 1) each."""
    rows = joined(system)
    rows *= system.valid[:, :, None]
    return np.array_split(rows, batches, axis=1)


def _stacked(parts: Sequence[Array]) -> Array:
    return triangular_factor(np.concatenate(parts, axis=1))


def triangular_factor(rows: Array) -> Array:
    """Return R (…, b, b) of rows (…, N, b), filled up with zeros."""
    count, size = rows.shape[-2:]
    R: Array = np.asarray(np.linalg.qr(rows, mode='r'))
    if count < size:
        R = np.concatenate([R, np.zeros((*R.shape[:-2], size - count, size))], axis=-2)
    return R
