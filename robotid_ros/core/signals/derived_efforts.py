"""Efforts that are no torques: positions, their derivatives, or copies of the velocities."""

import warnings

import numpy as np

from ...exceptions import RecordingError
from ..arrays import Array

# Relative residual below which one signal is another one times a constant. Logged velocities and
# accelerations leave at most 0.5 % of the positions' derivatives (UR10, TX-40, EMPS, encoders of
# 4096 counts, drives that filter for 10 ms); efforts of these robots leave 24 % or more, those of
# simulated robots 3.1 %, without dry friction 1.6 % (a SCARA).
ALIKE = 0.01
# A drive's filter makes a velocity later than its position by no more [s].
MAX_DELAY = 0.03
# Samples over which differences are compared with integrals: more of them leave less of the noise.
SPANS = (1, 5, 25, 125)
# Rows of a long log that are compared, and the parts of it that they are from.
MANY, PARTS = 30_000, 30
MIN_ROWS = 50  # fewer look like anything
MIN_TRAVEL = 1e-3  # a joint that travels less is at rest [rad or m]
# A step of a signal that is so many times this quantile of all is a jump: what has one at the same
# time looks alike.
JUMP, USUAL = 20.0, 0.99
STILL = 1e-6  # share of a signal below which its changes are rounding
ORDERS = ('the positions', 'the derivatives of the positions', 'the accelerations')


def refuse_derived_efforts(
    joints: tuple[str, ...],
    position: Array,
    effort: Array,
    velocity: Array | None = None,
    rate: float = 0.0,
    where: str = '',
) -> None:
    """
    Raise an error where efforts follow from the motion alone.

    Those of all joints that move are positions, velocities or accelerations times constants, or
    one of them is a copy. That one alone is a multiple proves nothing: a light joint may have
    hardly more than viscous friction.

    Parameters
    ----------
    position, effort, velocity : (N, n) in rows that are evenly spread; velocities where measured
    rate : of the rows [Hz], 0 where it is unknown
    where : the efforts are from, for the message

    Raises
    ------
    RecordingError : the efforts are no torques

    """
    if len(position) < MIN_ROWS:
        return
    signals = [(what, order, position) for order, what in enumerate(ORDERS)]
    signals += [] if velocity is None else [('the velocities', 0, velocity)]
    said = np.full(len(joints), '', dtype=object)
    for what, order, values in signals:
        alike = (unlikeness(values, effort, order, MAX_DELAY * rate) < ALIKE).any(axis=0)
        said[alike & (said == '')] = what
    with np.errstate(all='ignore'), warnings.catch_warnings():
        warnings.simplefilter('ignore', RuntimeWarning)  # joints without a number
        moving = np.nanmax(position, axis=0) - np.nanmin(position, axis=0) > MIN_TRAVEL
    derived = moving & (said != '')
    if not derived[moving].all():
        known = position if velocity is None else np.hstack([position, velocity])
        derived &= [
            any(np.array_equal(column, x, equal_nan=True) for x in known.T) for column in effort.T
        ]
    if derived.any():
        names = {what: np.array(joints)[derived & (said == what)] for what in said[derived]}
        each = ' and '.join(f'of {", ".join(own)} are {what}' for what, own in names.items())
        raise RecordingError(
            f'{where}{": " if where else ""}the efforts {each} times a constant, so they are no '
            "torques: give those that were measured, of a table as in --columns 'effort=NAME'"
        )


def unlikeness(signals: Array, others: Array, order: int = 0, delay: float = 0.0) -> Array:
    """
    Return how much (m, k) of others (N, k) is no derivative of signals (N, m) times a constant.

    Differences of the one are compared with integrals of the other, which noise matters least in;
    1 where one of them does not change.

    Parameters
    ----------
    order : 0: the signals themselves with an offset; 1 and 2: their derivatives
    delay : of the derivatives behind the signals at most [rows]

    """
    rows = np.isfinite(signals).all(axis=1) & np.isfinite(others).all(axis=1)
    # Parts (P, L, m) of a long log, or one.
    length = MANY // PARTS if (count := int(rows.sum())) > MANY else count
    starts = np.linspace(0, count - length, PARTS if count > MANY else 1).astype(int)
    a, b = (values[rows][starts[:, None] + np.arange(length)] for values in (signals, others))
    least = np.ones((a.shape[2], b.shape[2]))
    if count < MIN_ROWS:
        return least
    steps = np.abs(np.diff(a, axis=1, prepend=a[:, :1]))
    usual = np.quantile(steps, USUAL, axis=(0, 1))
    jumps = ((steps > JUMP * usual) & (usual > 0.0)).any(axis=2).cumsum(axis=1)
    for _ in range(order):
        b = np.cumsum(0.5 * (b[:, 1:] + b[:, :-1]), axis=1)
        b = np.concatenate([np.zeros_like(b[:, :1]), b], axis=1)
    for span in SPANS if order else (0,):
        if order * span > a.shape[1] // 5:
            break
        x, y, width = a, b, order * span
        for _ in range(order):
            x, y = x[:, span:] - x[:, :-span], y[:, span:] - y[:, :-span]
        clear = jumps[:, width:] == jumps[:, : jumps.shape[1] - width]
        if clear.sum() >= MIN_ROWS:
            slope = np.gradient(x, axis=1) if order and delay else np.zeros_like(x)
            rest = _residual(x[clear], y[clear], slope[clear], delay)
            least = np.fmin(least, rest)
    return least


def _residual(x: Array, y: Array, d: Array, delay: float) -> Array:
    """Return the relative residuals (m, k) of y = c (x − T d) + offset with |T| ≤ delay."""
    size = [np.sqrt(np.mean(v**2, axis=0)) for v in (x, y)]
    x, y, d = (v - v.mean(axis=0) for v in (x, y, d))
    xx, yy, dd, xd = (np.sum(u * v, axis=0) for u, v in ((x, x), (y, y), (d, d), (x, d)))
    still = [np.sqrt(s / len(x)) <= STILL * u for s, u in zip((xx, yy), size, strict=True)]
    xy, dy = x.T @ y, d.T @ y
    xx, dd, xd = xx[:, None], dd[:, None], xd[:, None]
    with np.errstate(all='ignore'):
        late = -np.nan_to_num((xx * dy - xd * xy) / (dd * xy - xd * dy))
        late = np.clip(late, -delay, delay)
        alike = (xy - late * dy) ** 2 / ((xx - 2.0 * late * xd + late**2 * dd) * yy)
    found = np.sqrt(np.clip(1.0 - np.nan_to_num(alike), 0.0, 1.0))
    found[still[0]] = 1.0
    found[:, still[1]] = 1.0
    return np.asarray(found)
